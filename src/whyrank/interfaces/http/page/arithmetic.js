// The arithmetic behind a score, line by line: what each signal said, what it was worth, what each stage did.

import { h } from "./dom.js";
import { inkOf } from "./bars.js";
import { named } from "./names.js";
import { apply } from "./ranking/trail.js";
import { number, short } from "./words.js";

const SIGNS = { set: "=", add: "+", scale: "×", lift: "↑", note: "·", drop: "✗" };

/** Write a trail as a table whose last column is the score so far. */
export function arithmetic(trail, label) {
  const lines = [];
  let key = [0, 0];
  for (const step of trail) {
    key = apply(key, step);
    lines.push(...step.parts.map(partLine), stepLine(step, key[1]));
  }
  return h(
    "table",
    { "data-arithmetic": "", "aria-label": label },
    h("thead", {}, h("tr", {}, ...["step", "how", "gives", "score"].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, ...lines),
  );
}

function partLine(part) {
  return h(
    "tr",
    { "data-part": "" },
    h("th", { scope: "row" }, h("i", { "data-ink": inkOf(part.signal), "aria-hidden": "true" }), part.signal),
    h("td", {}, h("p", {}, product(part)), h("p", {}, source(part)), terms(part)),
    h("td", {}, number(part.value, 4)),
    h("td"),
  );
}

function product(part) {
  return `${short(part.weight)} weight × ${number(part.normalised, 4)} vote${vote(part)}`;
}

/** Write how a raw score became a vote, where that is a division: from which floor it counts, and what is a whole vote. */
function vote({ raw, floor, reference }) {
  if (typeof raw !== "number" || typeof reference !== "number") return "";
  const difference = floor ? `${number(raw, 4)} − ${number(floor, 4)}` : number(raw, 4);
  const isBelow = raw < (floor || 0);
  const above = isBelow ? `max(0, ${difference})` : floor ? `(${difference})` : difference;
  return ` = ${above} / ${number(reference, 4)}`;
}

function source(part) {
  const raw = part.raw === null || part.raw === undefined ? "no raw score" : `raw ${number(part.raw, 4)}`;
  const best = part.best === null || part.best === undefined ? "" : ` of at best ${number(part.best, 4)}`;
  const rank = part.rank ? `rank ${part.rank} of its run` : "not listed by its run";
  const coverage = part.coverage ? `, covers ${Math.round(part.coverage * 100)} % of the question` : "";
  return `${raw}${best}, ${rank}${coverage}`;
}

function terms(part) {
  if (!part.terms.length) return null;
  const whole = part.terms.reduce((sum, { value }) => sum + value, 0);
  return h(
    "ul",
    { "aria-label": "what each term gave" },
    ...part.terms.map((term) => h("li", {}, h("span", {}, termLabel(term)), h("span", {}, number(term.value)))),
    h("li", { "data-whole": "" }, h("span", {}, "together"), h("span", {}, number(whole))),
  );
}

/** Name a term as the text of an explanation does: in brackets what is not a word or a date of the memory's own text. */
function termLabel({ term, field, context }) {
  if (field === "speakers") return `said by ${term}`;
  const found = [];
  if (field !== "words" && field !== "dates") found.push(field);
  if (context !== "own") found.push(context);
  return found.length ? `${term} (${found.join(", ")})` : term;
}

function amount(step) {
  return step.op === "lift" ? `tier ${step.value}` : number(step.value, 4);
}

function stepLine(step, score) {
  const moves = step.op !== "note" && step.op !== "drop";
  return h(
    "tr",
    { "data-op": step.op },
    h("th", { scope: "row" }, step.stage),
    h("td", {}, named(step.why) || (step.parts.length ? "the parts above, added up" : "")),
    h("td", {}, moves ? `${SIGNS[step.op]} ${amount(step)}` : SIGNS[step.op]),
    h("td", {}, moves ? number(score, 4) : ""),
  );
}
