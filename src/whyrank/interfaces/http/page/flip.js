// Two hits side by side, and the smallest change that would flip them.

import * as api from "./api.js";
import { bar, pieces, reach, sum } from "./bars.js";
import { alarm, at, button, fill, h, hint } from "./dom.js";
import { order } from "./hits.js";
import { named } from "./names.js";
import { question } from "./search.js";
import { sliderFor, turn } from "./sliders.js";
import { change, listen, now } from "./state.js";
import { openTab } from "./tabs.js";
import { number, title } from "./words.js";

let asking = null;

/** Keep the panel up to date. */
export function startFlip() {
  listen(["picked", "wish", "pool", "limit"], draw);
  draw();
}

/** Pick a hit to compare, or leave it out again; a third one takes the place of the older. */
export function pick(id) {
  const { picked } = now();
  const others = picked.includes(id) ? picked.filter((other) => other !== id) : [...picked, id].slice(-2);
  change({ picked: others });
  if (others.length === 2) openTab("compare");
}

function draw() {
  const panel = at("compare");
  const two = pair();
  if (two.length < 2) return fill(panel, ...invitation(two));
  const whole = Math.max(...two.map((hit) => reach(hit.trail)));
  const flips = h("div", { "data-flips": "", role: "status" }, h("p", {}, "Looking for the smallest change …"));
  const cards = two.map((hit) => card(hit, whole));
  fill(panel, h("h2", {}, "Compare"), ...cards, differences(two), h("h3", {}, "What would swap them"), flips);
  ask(two, flips);
}

/** Return the picked hits as they stand, the better placed first. */
function pair() {
  const { hits, dropped } = order();
  const found = [...hits, ...dropped].filter((hit) => now().picked.includes(hit.id) && hit.trail);
  return found.slice(0, 2);
}

function invitation(one) {
  const first = "Tick “compare” at two hits, or press c on each.";
  const next = one.length ? `${title(one[0])} is picked. Pick another one.` : first;
  const then = "You will see how they differ, and the smallest change that would swap them.";
  return [h("h2", {}, "Compare"), h("p", {}, next), h("p", {}, then)];
}

function card(hit, whole) {
  return h(
    "div",
    { "data-card": "" },
    h("h3", {}, hit.place ? `${hit.place} · ` : "", title(hit)),
    bar(hit.trail, whole),
    sum(hit.trail, hit.score),
  );
}

/** Write what each signal and stage gave to the one and to the other. */
function differences([one, other]) {
  const [mine, theirs] = [one, other].map((hit) => totals(hit.trail));
  const labels = [...new Set([...mine.keys(), ...theirs.keys()])];
  const lines = labels.map((label) => line(label, mine.get(label) ?? 0, theirs.get(label) ?? 0));
  const heads = ["part", "first", "second", "difference"].map((name) => h("th", { scope: "col" }, name));
  return h(
    "table",
    { "data-differences": "" },
    h("thead", {}, h("tr", {}, ...heads)),
    h("tbody", {}, ...lines, line("score", one.score, other.score)),
  );
}

function line(label, mine, theirs) {
  const values = [number(mine), number(theirs), signed(mine - theirs)];
  return h("tr", {}, h("th", { scope: "row" }, label), ...values.map((value) => h("td", {}, value)));
}

function totals(trail) {
  const found = new Map();
  for (const { label, value } of pieces(trail)) found.set(label, (found.get(label) ?? 0) + value);
  return found;
}

function signed(value) {
  return value > 0 ? `+${number(value)}` : number(value);
}

async function ask([upper, lower], place) {
  asking?.abort();
  const mine = (asking = new AbortController());
  try {
    const told = await api.why({ ...question(), limit: now().limit, id: lower.id, over: upper.id }, mine.signal);
    fill(place, ...flips(told, [upper, lower]));
  } catch (failure) {
    if (failure.name !== "AbortError") fill(place, alarm(failure));
  }
}

function flips(told, two) {
  const repeats = (line) => two.some((hit) => line.startsWith(hit.id)); // places and scores, which stand above already
  const turned = Object.keys(now().wish).length > 0;
  return [
    h("p", {}, named(told.summary)),
    told.changes.length ? h("ul", {}, ...told.changes.map(flip)) : null,
    ...told.details.filter((line) => !repeats(line)).map((line) => hint(named(line))),
    ...told.notices.map((notice) => hint(notice.message)),
    turned ? hint("Counted from the settings as they are saved, not from the sliders.") : null,
  ];
}

function flip(found) {
  const knob = found.kind === "setting" && found.key ? sliderFor(found.key, found.after) : null;
  const trial = knob ? button("Try it", () => turn(knob, found.after), { "data-try": found.key }) : null;
  return h("li", {}, h("span", {}, found.text), trial);
}
