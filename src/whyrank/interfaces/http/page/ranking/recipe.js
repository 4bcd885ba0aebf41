// A recipe changed by settings: what each setting does to its fusion and its stages (settings.py, recipes.py).

import { settled, split } from "./fusion.js";

/** They go last: files are grouped by final scores, and diversity comes among what is shown. */
const LATE = ["group", "mmr"];

/** Return the fusion and the stages of a pool's recipe by these settings, every weight settled. */
export function adjusted(pool, wish) {
  let { fusion, stages } = pool;
  if (isBalanced(fusion) && wish.vector_weight !== null) fusion = balanced(fusion, wish.vector_weight);
  if (isBlend(fusion)) {
    if (wish.alpha !== null) fusion = balanced(fusion, wish.alpha);
    if (wish.boost_weight !== null) fusion = withBoostWeight(fusion, wish.boost_weight);
  }
  if (wish.k !== null) fusion = withNormalisers(fusion, "reciprocal-rank", { k: wish.k });
  if (wish.vector_threshold !== null) fusion = withNormalisers(fusion, "above", { threshold: wish.vector_threshold });
  if (wish.importance === "scaled") stages = withStages(stages, pool.importance);
  if (wish.recency_weight) {
    stages = withStages(stages, { kind: "recency", weight: wish.recency_weight, half_life_days: wish.recency_half_life_days });
  }
  if (wish.min_vector !== null || wish.min_coverage !== null || wish.evidence === "calibrated") {
    stages = withStages(stages, { kind: "evidence", min_vector: wish.min_vector, min_coverage: wish.min_coverage });
  }
  if (wish.mmr_lambda !== null) stages = withStages(stages, { kind: "mmr", lambda_: wish.mmr_lambda });
  stages = withStages(stages.map((stage) => changed(stage, wish)), ...pool.last);
  return { fusion: split(settled(fusion)), stages };
}

/** Return the stages with further ones, each in place of one of its kind. */
function withStages(stages, ...further) {
  if (!further.length) return stages;
  const kinds = further.map((stage) => stage.kind);
  const all = [...stages.filter((stage) => !kinds.includes(stage.kind)), ...further];
  const late = LATE.flatMap((kind) => all.filter((stage) => stage.kind === kind));
  return [...all.filter((stage) => !LATE.includes(stage.kind)), ...late];
}

function changed(stage, wish) {
  if (stage.kind === "openclaw-selection") return { ...stage, min_score: wish.min_score ?? stage.min_score };
  if (stage.kind === "min-score") return { ...stage, at_least: wish.min_score ?? stage.at_least };
  if (stage.kind === "group") return { ...stage, max_per_file: wish.max_per_file ?? stage.max_per_file };
  if (stage.kind !== "name") return stage;
  const times = wish.name_bonus;
  return { ...stage, partial_bonus: stage.partial_bonus * times, sentence_bonus: stage.sentence_bonus * times };
}

function isBalanced(fusion) {
  return fusion.strength === null && hasBoth(fusion);
}

function isBlend(fusion) {
  return fusion.strength !== null && hasBoth(fusion);
}

function hasBoth(fusion) {
  return ["vector", "keyword"].every((signal) => fusion.votes.some((vote) => vote.signal === signal));
}

function balanced(fusion, vectorWeight) {
  const weights = { vector: vectorWeight, keyword: 1 - vectorWeight };
  return { ...fusion, votes: fusion.votes.map((vote) => ({ ...vote, weight: weights[vote.signal] ?? vote.weight })) };
}

/** In small batches the boost weight is the cap as well. */
function withBoostWeight(fusion, strength) {
  const votes = fusion.votes.map((vote) => {
    const { kind, least } = vote.normaliser;
    return kind === "batch-max" && least ? { ...vote, normaliser: { ...vote.normaliser, cap: strength } } : vote;
  });
  return { ...fusion, strength, votes };
}

function withNormalisers(fusion, kind, fields) {
  const given = (vote) =>
    vote?.normaliser.kind === kind ? { ...vote, normaliser: { ...vote.normaliser, ...fields } } : vote;
  return { ...fusion, votes: fusion.votes.map(given), others: given(fusion.others) };
}
