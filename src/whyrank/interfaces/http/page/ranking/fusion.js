// Several runs into one ranking: a weighted sum of normalised signals over all candidates (fusion.py).

import { isByRank, normalised, reference, settledFor } from "./normalisers.js";
import { step } from "./trail.js";

/** Return the kind of a run: `vector:2` asks for another wording what `vector` asks for the question. */
export function familyOf(signal) {
  return signal.split(":", 1)[0];
}

/** Return the fusion with every open weight filled in: the vector's is declared, the others share the rest. */
export function settled(fusion) {
  const open = fusion.votes.filter((vote) => vote.weight === null && vote.signal !== "vector");
  const rest = open.length ? (1 - fusion.declared) / open.length : 0;
  const settle = (vote) => ({ ...vote, weight: vote.weight ?? (vote.signal === "vector" ? fusion.declared : rest) });
  return { ...fusion, votes: fusion.votes.map(settle) };
}

/** Return the fusion with the vote of a signal shared among several runs of its kind, its weight as it was. */
export function split(fusion) {
  const { shares } = fusion;
  const named = new Set(fusion.votes.map((vote) => vote.signal));
  const votes = fusion.votes.flatMap((vote) => (vote.signal in shares ? divided(vote, shares[vote.signal]) : [vote]));
  if (fusion.others) {
    for (const signal in shares) if (!named.has(signal)) votes.push(...divided(fusion.others, shares[signal]));
  }
  return { ...fusion, votes };
}

function divided(vote, shares) {
  return Object.entries(shares).map(([signal, share]) => ({ ...vote, signal, weight: (vote.weight ?? 0) * share }));
}

/** Return the votes of the runs that found something; a run that found nothing changes nothing. */
export function live(fusion, runs) {
  if (fusion.absent === "zero") return fusion.votes;
  const found = runs.filter((name) => !fusion.proposing.includes(name));
  const named = new Set(fusion.votes.map((vote) => vote.signal));
  const further = found.filter((name) => !named.has(name)).map((signal) => [signal, voteFor(signal, fusion)]);
  const votes = [...fusion.votes, ...further.filter(([, vote]) => vote).map(([signal, vote]) => ({ ...vote, signal }))];
  const answered = votes.filter((vote) => found.includes(vote.signal));
  const weighed = answered.filter((vote) => vote.weight);
  if (weighed.length || fusion.absent === "kept") return weighed;
  // Where all that was given weight is silent, words that were given none may speak; vectors stay shut off.
  return answered.filter((vote) => familyOf(vote.signal) !== "vector").map((vote) => ({ ...vote, weight: 1 }));
}

/** Return what the votes that speak may give together: all, unless the silent keep their weights. */
function budget(fusion, votes) {
  const whole = fusion.strength ?? 1;
  if (fusion.absent !== "kept") return whole;
  const named = new Set(fusion.votes.map((vote) => vote.signal));
  const silentToo = [...fusion.votes, ...votes.filter((vote) => !named.has(vote.signal))];
  const [spoken, every] = [votes, silentToo].map((all) => all.reduce((sum, vote) => sum + (vote.weight ?? 0), 0));
  return every ? whole * (spoken / every) : whole;
}

/** Return the vote of a run that no vote names: that of a model that was added beside the first, or of any other. */
function voteFor(signal, fusion) {
  return familyOf(signal) === "vector" && fusion.added ? fusion.added : fusion.others;
}

/** Score every candidate by every signal that found something. */
export function fused(pool, fusion) {
  const votes = live(fusion, pool.runs);
  const columns = votes.map((vote) => columnOf(vote, pool));
  const weighed = new Set(columns.map((column) => column.signal.name));
  const silent = pool.signals.filter((signal) => signal.is_evidence && !weighed.has(signal.name)).map(silentColumn);
  const whole = budget(fusion, votes);
  const shared = shareOut(columns.map((column) => column.weight), whole);
  return pool.candidates.map(({ id }, place) => {
    const weights = weightsAt(place, columns, shared, whole, fusion.absent);
    const voting = columns.map((column, index) => partAt(place, column, weights[index]));
    const parts = [...voting, ...silent.map((column) => partAt(place, column, 0))].filter(Boolean);
    const score = voting.reduce((sum, part) => sum + (part ? part.value : 0), 0);
    return { id, place, tier: 0, score, trail: [step("fusion", "set", score, fusion.why, parts)], also: [] };
  });
}

function columnOf(vote, pool) {
  const signal = pool.signals.find((known) => known.name === vote.signal);
  if (isByRank(vote.normaliser)) {
    // "Not listed" is the definition of nothing.
    const values = normalised(vote.normaliser, signal.raw.map((score) => score ?? 0), signal.rank);
    return { signal, weight: vote.weight ?? 0, values, best: null, floor: null, reference: null };
  }
  const normaliser = settledFor(vote.normaliser, signal);
  const scores = signal.raw.filter((score) => score !== null); // only what has a score takes part
  const known = normalised(normaliser, scores, [])[Symbol.iterator]();
  const values = signal.raw.map((score) => (score === null ? null : known.next().value));
  const best = scores.length ? Math.max(...scores) : null;
  const isLine = normaliser.kind === "theoretical" && best !== null;
  const line = { floor: isLine ? normaliser.minimum : null, reference: isLine ? reference(normaliser, best) : null };
  return { signal, weight: vote.weight ?? 0, values, best, ...line };
}

/** A signal without a vote adds nothing, whatever its run listed, and is evidence all the same. */
function silentColumn(signal) {
  const values = signal.raw.map((score) => (score === null ? null : 0));
  return { signal: { ...signal, rank: signal.rank.map(() => null) }, weight: 0, values, best: null, floor: null, reference: null };
}

/** Return the weights for one candidate; a signal it does not have leaves its weight to the others. */
function weightsAt(place, columns, shared, whole, absent) {
  if (absent !== "shared" || columns.every((column) => column.values[place] !== null)) return shared;
  return shareOut(shared.map((weight, index) => (columns[index].values[place] === null ? 0 : weight)), whole);
}

/** Return what share of the whole each weight gets. */
export function shareOut(weights, whole = 1) {
  const summed = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => (summed ? (weight / summed) * whole : 0));
}

function partAt(place, column, weight) {
  const { signal, values, best, floor } = column;
  const value = values[place];
  if (value === null) return null;
  return {
    signal: signal.name,
    value: weight * value,
    weight,
    normalised: value,
    raw: signal.raw[place],
    rank: signal.rank[place],
    best,
    floor,
    reference: column.reference,
    coverage: signal.coverage ? signal.coverage[place] : null,
    terms: termsAt(place, signal.terms),
  };
}

/** Return what each term added, as records; they are sent as key, value, key, value, … */
function termsAt(place, { keys, added }) {
  const terms = [];
  const own = added[place] ?? [];
  for (let index = 0; index < own.length; index += 2) terms.push({ ...keys[own[index]], value: own[index + 1] });
  return terms;
}
