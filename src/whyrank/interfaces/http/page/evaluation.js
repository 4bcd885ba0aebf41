// The last evaluation that was kept beside the store: how well the right memories are found, recipe by recipe.

import { h, hint } from "./dom.js";

const KEPT = ".eval"; // the end of the name of the file in which the server looks for one
const SHOWN = ["nDCG@10", "recall@10"]; // of all measures, those that fit and say most

/** Show an evaluation, or how to make one. */
export function evaluation(status) {
  const title = h("h3", {}, "The last evaluation");
  const sets = status.evaluation?.sets;
  if (!Array.isArray(sets)) return [title, ...howTo(status.store)];
  return [title, ...sets.map(table)];
}

function howTo(store) {
  const file = store.replace(/\.[^./\\]*$/, "") + KEPT;
  return [
    hint("None is kept here. This measures how well the right memories are found, and keeps it:"),
    h("pre", { tabindex: "0", role: "region", "aria-label": "How to evaluate" }, `whyrank eval SET --json > ${file}`),
  ];
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
