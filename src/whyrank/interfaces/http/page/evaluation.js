// The last evaluation that was kept beside the store: how well the right memories are found, recipe by recipe.

import { code, h, hint } from "./dom.js";

const HOW = "whyrank eval SET --keep";
const SHOWN = ["ndcg@10", "recall@10", "hit@1"]; // of all measures, those that fit and say most

/** Show an evaluation, or how to make one. */
export function evaluation(status) {
  const title = h("h3", {}, "The last evaluation");
  const last = status.evaluation;
  if (!last) return [title, hint("None is kept. ", code(HOW), " measures how well memories are found.")];
  return [title, hint(`Made ${last.made} by whyrank ${last.whyrank}.`), ...last.sets.map(table)];
}

function table(set) {
  const heads = [`${set.set}, ${set.queries} questions`, ...SHOWN].map((name) => h("th", { scope: "col" }, name));
  const lines = Object.entries(set.lines).map(([name, figures]) => {
    const values = SHOWN.map((measure) => h("td", {}, figures[measure].toFixed(3)));
    return h("tr", {}, h("th", { scope: "row" }, name), ...values);
  });
  return h("table", { "data-evaluation": "" }, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...lines));
}
