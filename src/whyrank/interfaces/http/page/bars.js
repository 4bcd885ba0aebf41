// A trail as a stacked bar: what every signal and stage added, and what was taken away again.

import { h } from "./dom.js";
import { addends } from "./rank.js";
import { number } from "./words.js";

// What has a colour and a pattern of its own in parts.css; the rest shares one.
const INKS = new Set(["vector", "keyword", "name", "recency", "importance", "base", "boosts", "mmr", "rerank"]);
const LABELS = { mmr: "diversity", base: "worth", "token-match": "matching words", boosts: "name words" };
const INVISIBLE = 1e-12; // less than rounding: nothing to draw

/** Return what each part and step changed, with how it is drawn; the values add up to the score. */
export function pieces(trail) {
  return addends(trail)
    .filter(({ value }) => Math.abs(value) > INVISIBLE)
    .map(({ of, value }) => ({ ink: inkOf(of), label: LABELS[of] ?? of, value }));
}

/** Return the ink of a signal or a stage; `vector:2` asks for another wording and has the ink of `vector`. */
export function inkOf(name) {
  const family = name.split(":")[0];
  return INKS.has(family) ? family : "other";
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
  const swatch = (ink) => h("i", { "data-ink": ink, "aria-hidden": "true" });
  const terms = pieces(trail).map(({ ink, label, value }, at) => [
    at || value < 0 ? h("span", {}, value < 0 ? "−" : "+") : null,
    h("span", { "data-term": "" }, swatch(ink), `${label} ${number(Math.abs(value))}`),
  ]);
  return h("span", { "data-sum": "" }, ...terms.flat(), h("span", { "data-term": "" }, "= ", h("strong", {}, number(score))));
}
