// One hit: what it is, where it stands, why it stands there.

import { bar, sum } from "./bars.js";
import { arithmetic } from "./arithmetic.js";
import { button, h, marked } from "./dom.js";
import { day, number, place, sure, title } from "./words.js";

const NAME_BADGES = {
  equal: "exact name",
  accents: "exact name, other accents",
  "same words": "exact name, other order",
  "one edit": "name, one typo",
  "two edits": "name, two typos",
  code: "holds the code",
};

/** Draw a hit; `does` says what happens when it is opened, picked or looked at. */
export function hitElement(hit, { whole, opened, picked, doomed, does }) {
  const name = title(hit);
  return h(
    "li",
    { "data-id": hit.id, "data-doomed": doomed },
    h("p", { "data-place": "" }, String(hit.place), movement(hit)),
    h(
      "article",
      { "aria-label": `${hit.place}: ${name}` },
      h(
        "header",
        {},
        h("h2", {}, button(name, () => does.look(hit.id), { "data-part": "title", title: "Show the whole memory" })),
        pickBox(hit, name, picked, does),
      ),
      trailOfHeadings(hit, name),
      h("p", { "data-snippet": "" }, ...marked(hit.snippet)),
      why(hit, name, whole, opened, does),
      foot(hit),
    ),
  );
}

function movement(hit) {
  if (hit.isNew) {
    const told = hit.before ? `new here, was ${hit.before}` : "new here, was dropped";
    return h("span", { "data-move": "new", title: told, "aria-label": told }, "new");
  }
  if (!hit.moved) return null;
  const up = hit.moved > 0;
  const told = `${up ? "up" : "down"} ${Math.abs(hit.moved)}, was ${hit.before}`;
  const arrow = `${up ? "▲" : "▼"}${Math.abs(hit.moved)}`;
  return h("span", { "data-move": up ? "up" : "down", title: told, "aria-label": told }, arrow);
}

function trailOfHeadings(hit, name) {
  const headings = (hit.headings ?? []).filter((heading) => heading !== name);
  return headings.length ? h("p", { "data-headings": "" }, headings.join(" › ")) : null;
}

function why(hit, name, whole, opened, does) {
  const open = opened.has(hit.id);
  return h(
    "div",
    { "data-why": "" },
    button([bar(hit.trail, whole), sum(hit.trail, hit.score)], () => does.open(hit.id), {
      "data-part": "bar",
      "aria-expanded": String(open),
      "aria-label": `Score ${number(hit.score)} of ${name}: show the arithmetic`,
    }),
    open ? arithmetic(hit.trail, `How ${name} came to ${number(hit.score)}`) : null,
  );
}

function pickBox(hit, name, picked, does) {
  const box = h("input", {
    type: "checkbox",
    "data-part": "pick",
    checked: picked.includes(hit.id),
    onchange: () => does.pick(hit.id),
    "aria-label": `Compare ${name}`,
  });
  return h("label", { "data-pick": "" }, box, "compare");
}

function foot(hit) {
  const { short, long } = place(hit);
  const said = sure(hit.confidence);
  return h(
    "footer",
    {},
    said ? h("span", { "data-sure": said.level }, said.text) : null,
    tierBadge(hit),
    ...badges(hit).map((text) => h("span", { "data-badge": "" }, text)),
    short ? h("code", { title: long }, short) : null,
    hit.date ? h("time", { datetime: hit.date }, day(hit.date)) : null,
  );
}

/** Say that a hit stands before all scores because of its name. */
function tierBadge(hit) {
  const lift = hit.trail.find((step) => step.stage === "name" && step.op === "lift");
  if (!lift) return null;
  const relation = lift.why.split(":")[0];
  return h("span", { "data-badge": "tier", title: lift.why }, NAME_BADGES[relation] ?? "by name");
}

function badges(hit) {
  const scope = hit.scope && hit.scope !== "global" ? [hit.scope] : [];
  const also = hit.also?.length ? [`+${hit.also.length} of this file`] : [];
  return [hit.kind, ...scope, hit.trust, ...(hit.tags ?? []).map((tag) => `#${tag}`), ...also].filter(Boolean);
}
