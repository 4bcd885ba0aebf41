// What was a candidate and is not shown, stage by stage, each with its reason.

import { bar, reach } from "./bars.js";
import { at, fill, h, hint } from "./dom.js";
import { order } from "./hits.js";
import { named } from "./names.js";
import { listen } from "./state.js";
import { many, number, title } from "./words.js";

const STAGES = {
  top: "After the last result",
  group: "Another part of a file that is shown",
  evidence: "Too little evidence",
  "min-score": "Below the minimum score",
  "openclaw-selection": "Below the minimum score",
  dedup: "Same text as another",
  superseded: "Replaced by a newer fact",
  "not-expired": "Expired",
  budget: "Over the token budget",
};
const SHOWN = 60; // rows a person still reads; the count tells the rest

/** Keep the panel up to date. */
export function startDropped() {
  listen(["pool", "wish", "limit"], draw);
  draw();
}

function draw() {
  const { dropped } = order();
  const groups = Map.groupBy ? Map.groupBy(dropped, (hit) => hit.stage) : grouped(dropped);
  const whole = Math.max(0, ...dropped.map((hit) => reach(hit.trail)));
  const lists = [...groups].map(([stage, hits]) => group(stage, hits, whole));
  fill(at("dropped"), h("h2", {}, "Dropped"), h("p", {}, summary(dropped.length)), ...lists);
}

function summary(count) {
  if (!count) return "Every candidate is shown, or there was no search yet.";
  return `${many(count, "candidate")} looked at and not shown. Nothing vanishes without a reason.`;
}

function grouped(dropped) {
  const groups = new Map();
  for (const hit of dropped) groups.set(hit.stage, [...(groups.get(hit.stage) ?? []), hit]);
  return groups;
}

function group(stage, hits, whole) {
  const more = hits.length > SHOWN ? h("li", {}, `and ${hits.length - SHOWN} more`) : null;
  return h(
    "details",
    { "data-stage": stage },
    h("summary", {}, STAGES[stage] ?? stage, " ", h("span", {}, String(hits.length))),
    h("ul", {}, ...hits.slice(0, SHOWN).map((hit) => row(hit, whole)), more),
  );
}

function row(hit, whole) {
  return h(
    "li",
    {},
    h("p", {}, title(hit), " ", h("small", {}, number(hit.score))),
    bar(hit.trail, whole),
    hint(named(hit.why)),
  );
}
