// What to rank by, and whose memories to look at.

import * as api from "./api.js";
import { at, fill, h } from "./dom.js";
import { listen } from "./state.js";

/** Fill the pickers, and call `choose` when something is picked. */
export function startPickers(choose) {
  listen(["status", "recipe", "scope"], draw);
  listen(["recipes"], draw);
  for (const id of ["recipe", "scope"]) {
    at(id).addEventListener("change", (event) => choose({ [id]: event.target.value }));
  }
}

/** Ask the server which recipes there are. */
export async function loadRecipes() {
  const { recipes } = await api.recipes();
  return Object.keys(recipes);
}

function draw({ recipes, recipe, status, scope }) {
  options(at("recipe"), "as configured", recipes, recipe);
  options(at("scope"), "global", Object.keys(status?.scopes ?? {}).filter((name) => name !== "global"), scope);
  at("scope").closest("label").hidden = !status?.multi_scope;
}

/** Offer these values, and the chosen one even if nobody knows it, so that the answer can say so. */
function options(select, usual, values, chosen) {
  const all = chosen && !values.includes(chosen) ? [...values, chosen] : values;
  const offered = all.map((value) => h("option", { value, selected: value === chosen }, value));
  fill(select, h("option", { value: "" }, usual), ...offered);
}
