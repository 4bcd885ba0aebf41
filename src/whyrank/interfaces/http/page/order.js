// The order that is shown: the server's, or, once a slider is turned, the one ranked here from the same candidates.

import { rank } from "./rank.js";

/** Return the settings as rank.js names them. */
export function settingsOf(wish) {
  return Object.fromEntries(Object.entries(wish).map(([key, value]) => [key.replace(/^ranking\./, ""), value]));
}

/** Return hits, dropped and what moved: all the page needs to show an order. */
export function arrange({ answer, pool, wish, limit }) {
  const rows = rowsOf(answer, pool);
  if (!pool) return { hits: answer.hits.map((hit, at) => ({ ...hit, place: at + 1, trail: null })), gone: [], dropped: [] };
  const usual = rank(pool, {});
  const turned = Object.keys(wish).length > 0;
  const ranking = turned ? rank(pool, settingsOf(wish)) : usual;
  const was = places(usual.hits);
  const hits = ranking.hits.slice(0, limit).map((hit, at) => shown(hit, at + 1, rows, was, limit));
  return { hits, gone: turned ? left(usual, ranking, rows, limit) : [], dropped: dropped(ranking, rows, limit), turned };
}

/** Return every memory of the answer by id; what the answer says of a hit goes before what the pool says. */
function rowsOf(answer, pool) {
  const rows = new Map();
  for (const row of [...(pool?.candidates ?? []), ...answer.hits]) rows.set(row.id, { ...rows.get(row.id), ...row });
  return rows;
}

function places(hits) {
  return new Map(hits.map((hit, at) => [hit.id, at + 1]));
}

function shown(hit, place, rows, was, limit) {
  const before = was.get(hit.id) ?? null;
  const isNew = before === null || before > limit;
  return { ...rows.get(hit.id), ...hit, place, before, isNew, moved: before === null ? 0 : before - place };
}

/** Return what stood on the page before a slider was turned and does not now, with where it went. */
function left(usual, ranking, rows, limit) {
  const places_ = places(ranking.hits);
  const ends = new Map(ranking.dropped.map((hit) => [hit.id, hit.trail.at(-1)?.why ?? ""]));
  return usual.hits
    .slice(0, limit)
    .filter((hit) => (places_.get(hit.id) ?? Infinity) > limit)
    .map((hit) => ({ ...rows.get(hit.id), place: places_.get(hit.id) ?? null, why: ends.get(hit.id) ?? "" }));
}

/** Return what is not shown: what a stage dropped, and what stands behind the last place of the page. */
function dropped(ranking, rows, limit) {
  const behind = ranking.hits.slice(limit).map((hit, at) => ({
    ...rows.get(hit.id),
    ...hit,
    stage: "top",
    why: `ranked ${limit + at + 1}, and ${limit} were asked for`,
  }));
  const ended = ranking.dropped.map((hit) => {
    const last = hit.trail.at(-1);
    return { ...rows.get(hit.id), ...hit, stage: last?.stage ?? "", why: last?.why ?? "" };
  });
  return [...ended, ...behind];
}
