// The stages after fusion (stages.py, reranking.py): each turns a ranking into a ranking.
// What no slider moves was recorded where it was computed, and is replayed here step by step.

import { diverse, WINDOW_LIFT } from "./diversity.js";
import { inOrder, kept, restepped } from "./order.js";
import { after, partOf, step } from "./trail.js";

/** Return the ranking after a stage. */
export function passed(ranking, stage, pool, likeness) {
  return (STAGES[stage.kind] ?? recorded)(ranking, stage, pool, likeness);
}

const STAGES = {
  "name": nameFirst,
  "recency": recency,
  "evidence": evidence,
  "min-score": minScore,
  "openclaw-selection": openClawSelection,
  "dedup": dedup,
  "group": groupBySource,
  "mmr": diverse,
  "rerank": rerank,
};

/** Tell whether a stage compares the candidates with each other. */
export function readsLikeness(stage) {
  return stage.kind === "mmr" || (stage.kind === "dedup" && stage.near !== null);
}

/** Give each hit the steps it was given where this stage was computed. */
function recorded(ranking, stage) {
  if (!stage.steps) throw new Error(`no stage is called ${stage.kind}`);
  const taken = ([op, value, why]) => step(stage.kind, op, value, stage.whys[why]);
  return restepped(ranking, (hit) => (stage.steps[hit.place] ?? []).map(taken));
}

/** Exact names come first, by order and not by a bigger bonus; parts of names get a bounded one. */
function nameFirst(ranking, stage) {
  return restepped(ranking, (hit) => {
    const found = stage.steps[hit.place];
    if (!found) return [];
    const [how, value, why] = found;
    return [how === "lift" ? step("name", "lift", value, why) : step("name", "add", stage[how] * value, why)];
  });
}

/** × (1 − w + w · 2^(−age/half-life)): newer is better, within bounds. */
function recency(ranking, { weight, half_life_days: halfLife }, pool) {
  return restepped(ranking, (hit) => {
    const age = pool.candidates[hit.place].age_days;
    if (age === null) return [];
    const factor = 1 - weight + weight * 2 ** (-age / halfLife);
    const days = age.toFixed(0);
    const old = `${days} ${days === "1" ? "day" : "days"} old`;
    return [step("recency", "scale", factor, `${old}, half-life ${Number(halfLife.toPrecision(6))}`)];
  });
}

/** Keep a hit if its cosine passes or its coverage passes; a hit lifted for its name stays. */
function evidence(ranking, stage, pool) {
  const isCalibrated = stage.min_vector === null && stage.min_coverage === null;
  const minVector = (isCalibrated ? pool.least.vector : stage.min_vector) ?? null;
  const minCoverage = (isCalibrated ? pool.least.keyword : stage.min_coverage) ?? null;
  return kept(ranking, "evidence", (hit) => {
    const cosine = partOf(hit.trail, "vector")?.raw ?? null;
    const coverage = partOf(hit.trail, "keyword")?.coverage ?? null;
    const failed = [];
    if (cosine !== null && minVector !== null) {
      if (cosine >= minVector) return null;
      failed.push(`cosine ${cosine.toFixed(3)} is below ${minVector}`);
    }
    if (coverage !== null) {
      if (coverage > 0 && coverage >= (minCoverage ?? 0)) return null;
      if (minCoverage !== null) failed.push(`coverage ${coverage.toFixed(3)} is below ${minCoverage}`);
    }
    return failed.length && hit.tier % WINDOW_LIFT === 0 ? failed.join(", ") : null;
  });
}

/** A threshold on the fused score. */
function minScore(ranking, { at_least: least }) {
  return kept(ranking, "min-score", (hit) => (hit.score >= least ? null : below(hit, least)));
}

/** Keep rows whose score or cosine reaches the minimum, and of the others some that words speak for. */
function openClawSelection(ranking, { min_score: least }, pool) {
  const nonePasses = !ranking.hits.some((hit) => hit.score >= least);
  const holders = holdersOf(ranking.hits, pool);
  return restepped(ranking, (hit) => {
    if (hit.score >= least) return [];
    const stays = pardon(hit, least, holders, nonePasses);
    if (stays !== null) return [step("openclaw-selection", "note", 0, stays)];
    const unbacked = isListed(hit, "keyword") ? "" : ", and no keyword matches";
    return [step("openclaw-selection", "drop", 0, below(hit, least) + unbacked)];
  });
}

/** Say why a row stays though its score is too low; null if it does not. */
function pardon(hit, least, holders, nonePasses) {
  const cosine = partOf(hit.trail, "vector")?.raw ?? null;
  if (cosine !== null && cosine >= least) return `cosine ${cosine.toFixed(3)} reaches ${least}`;
  if (!isListed(hit, "keyword")) return null;
  if (nonePasses) return `its words match, and no score reaches ${least}`;
  if (!isListed(hit, "vector")) return "its words match, and the vector run did not find it";
  const alone = wordsOf(hit).find((word) => holders.get(word).size === 1);
  return alone === undefined ? null : `no other note holds ${alone || "a word of the query"}`;
}

/** Return the notes that hold each word of the query. */
function holdersOf(hits, pool) {
  const holders = new Map();
  for (const hit of hits) {
    for (const word of wordsOf(hit)) {
      if (!holders.has(word)) holders.set(word, new Set());
      holders.get(word).add(pool.candidates[hit.place].origin);
    }
  }
  return holders;
}

/** Return the words of the query that a row holds; of a list without terms it is known that it holds one. */
function wordsOf(hit) {
  const keyword = partOf(hit.trail, "keyword");
  if (!keyword?.terms.length) return isListed(hit, "keyword") ? [""] : [];
  const isWord = ({ field, context }) => field === "words" && context !== "window";
  return keyword.terms.filter(isWord).map(({ term }) => term);
}

function below(hit, least) {
  return `score ${hit.score.toFixed(3)} is below ${least}`;
}

function isListed(hit, signal) {
  return (partOf(hit.trail, signal)?.rank ?? null) !== null;
}

/** Of memories with the same text, or nearly the same, the best placed stays and stands for the rest. */
function dedup(ranking, { same, dates, near }, pool, likeness) {
  const representatives = [...ranking.hits].sort((one, other) =>
    other.tier - one.tier || other.score - one.score || dates[other.place] - dates[one.place]
    || isListed(other, "keyword") - isListed(one, "keyword") || one.place - other.place);
  const first = new Map();
  for (const hit of representatives) if (!first.has(same[hit.place])) first.set(same[hit.place], hit);
  const close = near === null ? new Map() : nearlySame([...first.values()], near, likeness);
  return kept(ranking, "dedup", (hit) => {
    const stays = first.get(same[hit.place]);
    return stays.place === hit.place ? close.get(hit.place) ?? null : `same text as ${stays.id}`;
  });
}

/** Return which of these, from the best placed on, are nearly the same as one that stays. */
function nearlySame(hits, near, likeness) {
  const gone = new Map();
  hits.forEach((stays, index) => {
    if (gone.has(stays.place)) return;
    for (const later of hits.slice(index + 1)) {
      const alike = likeness(stays.place, later.place);
      if (alike >= near && !gone.has(later.place)) gone.set(later.place, `${alike.toFixed(3)} like ${stays.id}`);
    }
  });
  return gone;
}

/** Show a file once: its best chunks stay, the others stand under them. */
function groupBySource(ranking, { max_per_file: most }, pool) {
  const shown = [];
  const gone = [];
  const files = new Map();
  for (const hit of ranking.hits) {
    const { origin } = pool.candidates[hit.place];
    if (!files.has(origin)) files.set(origin, []);
    const taken = files.get(origin);
    if (taken.length < most) {
      taken.push(shown.length);
      shown.push(hit);
      continue;
    }
    const best = shown[taken[0]];
    gone.push(after(hit, step("group", "drop", 0, `same file as ${best.id}, which ranks higher`)));
    shown[taken[0]] = { ...best, also: [...best.also, hit.id] };
  }
  return { hits: shown, dropped: [...ranking.dropped, ...gone] };
}

/** Order what a reranker has read by its opinions; names stay first, and what was read stays above the rest. */
function rerank(ranking, { opinions, by }) {
  const read = ranking.hits.filter((hit) => hit.place in opinions);
  const ordered = read.sort((one, other) => opinions[other.place] - opinions[one.place]);
  const scores = new Map();
  let above = Infinity;
  for (const hit of ordered) {
    // What it finds alike stays as it was: equal opinions are set apart by the least there is.
    above = Math.min(opinions[hit.place], nextBelow(above));
    scores.set(hit.place, { score: above, told: `${scores.size + 1} of ${ordered.length} by ${by}` });
  }
  const hits = ranking.hits.map((hit) => {
    const found = scores.get(hit.place);
    if (!found) return hit;
    const set = after(hit, step("rerank", "set", found.score, found.told));
    return after(set, step("rerank", "lift", WINDOW_LIFT, "reranked hits come before the others"));
  });
  return { hits: inOrder(hits), dropped: ranking.dropped };
}

/** Return the largest number below one: the bits of a double, read as a whole number, count doubles. */
function nextBelow(number) {
  if (number === 0) return -Number.MIN_VALUE;
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, number);
  view.setBigInt64(0, view.getBigInt64(0) + (number > 0 ? -1n : 1n));
  return view.getFloat64(0);
}
