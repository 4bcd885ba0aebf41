// The last evaluation that was kept beside the store: how well the right memories are found, recipe by recipe.

import { code, h, hint } from "./dom.js";

const HOW = "whyrank eval SET --keep";
const SHOWN = ["nDCG@10", "recall@10"]; // of all measures, those that fit and say most

/** Show an evaluation, or how to make one. */
export function evaluation(status) {
  const title = h("h3", {}, "The last evaluation");
  const sets = status.evaluation?.sets;
  if (!Array.isArray(sets)) return [title, hint("None is kept. ", code(HOW), " measures how well memories are found.")];
  return [title, ...sets.map(table)];
}

function table(set) {
  const names = SHOWN.filter((name) => set.measures.includes(name));
  const heads = [set.set, ...names].map((name) => h("th", { scope: "col" }, name));
  const lines = Object.entries(set.lines).map(([name, { measures }]) => {
    const values = names.map((measure) => h("td", {}, measures[measure].toFixed(3)));
    return h("tr", {}, h("th", { scope: "row" }, name), ...values);
  });
  return h("table", { "data-evaluation": "" }, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...lines));
}
