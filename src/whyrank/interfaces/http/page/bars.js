// A trail as a stacked bar: what every signal and stage added, and what was taken away again.

import { h } from "./dom.js";
import { number } from "./words.js";

// What has a colour and a pattern of its own in parts.css; the rest shares one.
const INKS = new Set(["vector", "keyword", "name", "recency", "importance", "base", "boosts", "mmr", "rerank"]);
const LABELS = { mmr: "diversity", base: "worth", "token-match": "matching words", boosts: "name words" };
const INVISIBLE = 1e-12; // less than rounding: nothing to draw

/** Return the score after a step. */
export function after(score, step) {
  if (step.op === "set") return step.value;
  if (step.op === "add") return score + step.value;
  return step.op === "scale" ? score * step.value : score;
}

/** Return what each part and step changed; the values add up to the score. */
export function pieces(trail) {
  const found = [];
  let score = 0;
  for (const step of trail) {
    const next = after(score, step);
    if (step.parts?.length) {
      found.push(...step.parts.map((part) => piece(part.signal, part.value)));
      if (score) found.push(piece(step.stage, -score));
    } else if (next !== score) {
      found.push(piece(step.stage, next - score));
    }
    score = next;
  }
  return found.filter(({ value }) => Math.abs(value) > INVISIBLE);
}

function piece(name, value) {
  const family = name.split(":")[0];
  return { ink: INKS.has(family) ? family : "other", label: LABELS[name] ?? name, value };
}

/** Return how long the bar of a trail is before anything is taken away. */
export function reach(trail) {
  return pieces(trail).reduce((sum, { value }) => sum + Math.max(value, 0), 0);
}

/** Draw a bar on a scale that ends at `whole`; what was taken away is hollow, at the end. */
export function bar(trail, whole) {
  const parts = pieces(trail);
  const lost = parts.reduce((sum, { value }) => sum + Math.max(-value, 0), 0);
  const share = (value) => String(Math.max(0, value) / (whole || 1));
  const filled = parts
    .filter(({ value }) => value > 0)
    .map(({ ink, value }) => h("i", { "data-ink": ink, "--share": share(value) }));
  const hollow = lost ? h("b", { "--share": share(lost) }) : null;
  return h("span", { "data-bar": "" }, ...filled, hollow);
}

/** Write the same as a sum that can be read. */
export function sum(trail, score) {
  const terms = pieces(trail).map(({ ink, label, value }, at) => [
    at || value < 0 ? h("span", {}, value < 0 ? "−" : "+") : null,
    h("span", { "data-term": "" }, h("i", { "data-ink": ink, "aria-hidden": "true" }), `${label} ${number(Math.abs(value))}`),
  ]);
  return h("span", { "data-sum": "" }, ...terms.flat(), h("span", {}, "="), h("strong", {}, number(score)));
}
