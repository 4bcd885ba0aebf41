// The one total order, and the helpers that carry the stages (order.py).

import { after, step } from "./trail.js";

/** Order hits by tier and score, best first; candidates stand in the order that breaks ties, so the place decides. */
export function inOrder(hits) {
  return [...hits].sort((one, other) => other.tier - one.tier || other.score - one.score || one.place - other.place);
}

/** Give each hit any number of steps, and order the hits anew; who is given a drop is dropped. */
export function restepped(ranking, stepsFor) {
  const hits = [];
  const gone = [];
  for (const hit of ranking.hits) {
    const steps = stepsFor(hit);
    (steps.some((one) => one.op === "drop") ? gone : hits).push(steps.reduce(after, hit));
  }
  return { hits: inOrder(hits), dropped: [...ranking.dropped, ...gone] };
}

/** Drop the hits that have a reason to go, and remember the reason. */
export function kept(ranking, stage, reason) {
  const hits = [];
  const gone = [];
  for (const hit of ranking.hits) {
    const why = reason(hit);
    if (why === null) hits.push(hit);
    else gone.push(after(hit, step(stage, "drop", 0, why)));
  }
  return { hits, dropped: [...ranking.dropped, ...gone] };
}
