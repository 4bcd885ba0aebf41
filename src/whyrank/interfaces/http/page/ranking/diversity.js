// Diversity: of results that say the same, the first counts and the rest step back (diversity.py).

import { minMax } from "./normalisers.js";
import { inOrder } from "./order.js";
import { after, step } from "./trail.js";

/** What a reranker has read is lifted by this, more than any name is. */
export const WINDOW_LIFT = 64;

/** λ · relevance − (1 − λ) · likeness to the most similar hit placed before it (Carbonell and Goldstein 1998). */
export function diverse(ranking, { lambda_: lambda }, pool, likeness) {
  const { hits } = ranking;
  const relevance = relevanceOf(hits);
  const picks = placed(hits, relevance, lambda, likeness);
  const found = picks.map((pick, index) => {
    let why = `${shown(lambda)} × relevance ${relevance[pick.place].toFixed(4)}`;
    if (pick.likeness > 0) {
      const nearest = mostLike(picks, index, hits, likeness);
      why += ` − ${shown(1 - lambda)} × ${pick.likeness.toFixed(4)}, most like ${nearest.id}`;
    }
    return after(hits[pick.place], step("mmr", "set", pick.gain, why));
  });
  return { hits: inOrder(found), dropped: ranking.dropped };
}

/** Place the best, see how like it the others are, place the best of these, and so on. */
function placed(hits, relevance, lambda, likeness) {
  const most = hits.map(() => 0);
  const left = new Set(hits.keys());
  const picks = [];
  for (const tier of [...new Set(hits.map((hit) => hit.tier))].sort((one, other) => other - one)) {
    const standing = [...left].filter((place) => hits[place].tier === tier);
    for (let count = standing.length; count; count--) {
      let best = null;
      for (const place of standing) {
        if (!left.has(place)) continue;
        const gain = lambda * relevance[place] - most[place] * (1 - lambda);
        const isBetter = best === null || gain > best.gain;
        if (isBetter || (gain === best.gain && hits[place].place < hits[best.place].place)) best = { place, gain };
      }
      picks.push({ ...best, likeness: most[best.place] });
      left.delete(best.place);
      for (const place of left) {
        most[place] = Math.max(most[place], likeness(hits[best.place].place, hits[place].place));
      }
    }
  }
  return picks;
}

/** Scale scores from the worst to the best; those a reranker gave are on a scale of their own. */
function relevanceOf(hits) {
  const relevance = hits.map(() => 0);
  const windows = hits.map((hit) => Math.floor(hit.tier / WINDOW_LIFT));
  for (const window of new Set(windows)) {
    const inside = [...hits.keys()].filter((place) => windows[place] === window);
    const scaled = minMax(inside.map((place) => hits[place].score));
    inside.forEach((place, index) => { relevance[place] = scaled[index]; });
  }
  return relevance;
}

/** Return the most similar of those picked before one, of several the first. */
function mostLike(picks, index, hits, likeness) {
  const own = hits[picks[index].place];
  let nearest = null;
  for (const pick of picks.slice(0, index)) {
    const alike = likeness(hits[pick.place].place, own.place);
    if (nearest === null || alike > nearest.alike) nearest = { alike, id: hits[pick.place].id };
  }
  return nearest;
}

function shown(number) {
  return String(Number(number.toPrecision(6)));
}
