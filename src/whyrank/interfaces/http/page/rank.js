// The ranking of /v1/candidates, again and by other settings, as src/whyrank/ranking does it: the same sums in the same
// order, so that the browser and the library give the same answer. A test compares the two in a real browser.

import { fused } from "./ranking/fusion.js";
import { inOrder } from "./ranking/order.js";
import { adjusted } from "./ranking/recipe.js";
import { passed, readsLikeness } from "./ranking/stages.js";

export { addends, replay } from "./ranking/trail.js";

/**
 * Rank all candidates of a pool; `settings` stand in place of the pool's own, by name (`{vector_weight: 0.4}`).
 *
 * Returns hits, best first, and dropped ones with their reason at the end of the trail:
 * `{hits: [{id, place, tier, score, trail, also}], dropped: [the same]}`; `place` is that in `pool.candidates`.
 * `likeness` is the answer of /v1/likeness, asked for if `needsLikeness` says so.
 */
export function rank(pool, settings = {}, likeness = null) {
  const recipe = recipeOf(pool, settings);
  if (recipe.stages.some(readsLikeness) && !likeness) throw new Error("diversity needs the likeness of the candidates");
  const alike = likeness && comparison(pool, likeness);
  const ranking = { hits: inOrder(fused(pool, recipe.fusion)), dropped: [] };
  return recipe.stages.reduce((found, stage) => passed(found, stage, pool, alike), ranking);
}

/** Tell whether ranking by these settings compares the candidates with each other. */
export function needsLikeness(pool, settings = {}) {
  return recipeOf(pool, settings).stages.some(readsLikeness);
}

function recipeOf(pool, settings) {
  const unknown = Object.keys(settings).find((name) => !(name in pool.settings) || settings[name] === undefined);
  if (unknown) throw new Error(`${unknown} is no setting of a ranking, or has no value; null is unset`);
  return adjusted(pool, { ...pool.settings, ...settings });
}

/** Return a function from two places of the pool to how like each other they are; the unknown is like nothing. */
function comparison(pool, { ids, likeness }) {
  const rows = new Map(ids.map((id, row) => [id, row]));
  const known = pool.candidates.map(({ id }) => rows.get(id));
  return (one, other) => {
    const [upper, lower] = [known[one], known[other]];
    if (upper === undefined || lower === undefined) return 0;
    return upper === lower ? 1 : likeness[Math.max(upper, lower)][Math.min(upper, lower)];
  };
}

/** Write settings as whyrank.toml understands them; what is unset is not written. */
export function toToml(settings, recipe = null) {
  const lines = Object.entries(settings).filter(([, value]) => value !== null);
  const ranking = lines.map(([name, value]) => `${name} = ${JSON.stringify(value)}`);
  const head = recipe === null ? [] : [`recipe = ${JSON.stringify(recipe)}`, ""];
  return [...head, "[ranking]", ...ranking, ""].join("\n");
}
