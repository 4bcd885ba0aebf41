// The order that is shown: ranked here from the server's candidates, by its settings and the sliders that were turned.

import { rank } from "./rank.js";

export const NOTHING = { hits: [], gone: [], dropped: [], turned: false };

/** Return hits, dropped and what moved: all the page needs to show an order. */
export function arrange({ pool, likeness, wish, limit }) {
  const rows = rowsOf(pool);
  const usual = rank(pool, {}, likeness);
  const turned = Object.keys(wish).length > 0;
  const ranking = turned ? rank(pool, wish, likeness) : usual;
  const was = places(usual.hits);
  const hits = ranking.hits.slice(0, limit).map((hit, at) => shown(hit, at + 1, rows, was, limit));
  const gone = turned ? left(usual, ranking, rows, limit) : [];
  return { hits, gone, dropped: dropped(ranking, rows, limit), turned };
}

/** Return every candidate by id, with the evidence there is for it, added up as the server does. */
function rowsOf(pool) {
  const signal = (name) => pool.signals.find((one) => one.name === name);
  const [vector, keyword] = [signal("vector"), signal("keyword")];
  const { coverage_counts, rest, least } = pool.weighing;
  const evidence = (at) => {
    const covered = keyword?.coverage?.[at] ?? 0;
    const found = rest * (Math.max(0, vector?.raw[at] ?? 0) + coverage_counts * covered);
    return covered ? Math.max(found, least) : found;
  };
  return new Map(pool.candidates.map((row, at) => [row.id, { ...row, evidence: evidence(at) }]));
}

function places(hits) {
  return new Map(hits.map((hit, at) => [hit.id, at + 1]));
}

function shown(hit, place, rows, was, limit) {
  const before = was.get(hit.id) ?? null;
  const isNew = before === null || (before > limit && place <= limit);
  return { ...rows.get(hit.id), ...hit, place, before, isNew, moved: before === null ? 0 : before - place };
}

/** Return what stood on the page before a slider was turned and does not now, with where it went. */
function left(usual, ranking, rows, limit) {
  const here = places(ranking.hits);
  const ends = new Map(ranking.dropped.map((hit) => [hit.id, hit.trail.at(-1)?.why ?? ""]));
  return usual.hits
    .slice(0, limit)
    .filter((hit) => (here.get(hit.id) ?? Infinity) > limit)
    .map((hit) => ({ ...rows.get(hit.id), place: here.get(hit.id) ?? null, why: ends.get(hit.id) ?? "" }));
}

/** Return what is not shown: what a stage dropped, and what stands behind the last place of the page. */
function dropped(ranking, rows, limit) {
  const behind = ranking.hits.slice(limit).map((hit, at) => {
    const why = `ranked ${limit + at + 1}, and ${limit} are shown`;
    return { ...rows.get(hit.id), ...hit, place: null, stage: "top", why };
  });
  const ended = ranking.dropped.map((hit) => {
    const last = hit.trail.at(-1);
    return { ...rows.get(hit.id), ...hit, place: null, stage: last?.stage ?? "", why: last?.why ?? "" };
  });
  return [...behind, ...ended];
}
