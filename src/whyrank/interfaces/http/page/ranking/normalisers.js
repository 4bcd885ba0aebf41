// Bring a signal's scores into 0..1 (normalisers.py): every one monotonic, none of them upside down.

const TINY = 1e-9;
const DEVIATIONS = 3;
const FLAT = 700; // beyond it exp() overflows and the logistic curve is flat anyway

/** Those that read ranks, so that what the run did not list adds nothing. */
const BY_RANK = new Set(["reciprocal-rank", "binary"]);

export function isByRank(normaliser) {
  return BY_RANK.has(normaliser.kind);
}

/** Return the normaliser with the numbers of a signal, where it is one that every signal gives numbers of its own. */
export function settledFor(normaliser, { floor, mass, memories }) {
  const { kind, least } = normaliser;
  if (kind === "above-floor") return theoreticalOf(floor ?? 0, floor === null ? 0 : least * (1 - floor));
  if (kind === "against-mass") return theoreticalOf(0, mass === null ? 0 : shareOf(normaliser, mass, memories));
  return normaliser;
}

/** A share of the mass, and more of it among few memories. */
function shareOf({ share, most, few, strictness }, mass, memories) {
  const factor = memories === null ? 1 : Math.log(few) / Math.log(Math.max(memories, 2));
  return Math.min(Math.max(factor, 1), strictness) * Math.min(share * mass, most);
}

function theoreticalOf(minimum, least) {
  return { kind: "theoretical", minimum, least };
}

/** Return what a score, counted from the minimum, is divided by. */
export function reference({ minimum, least }, best) {
  return Math.max(best - minimum, least);
}

/** Return one value for each score, in the same order; ranks count from 1, null for what was not listed. */
export function normalised(normaliser, scores, ranks) {
  const known = NORMALISERS[normaliser.kind];
  if (!known) throw new Error(`no normaliser is called ${normaliser.kind}`);
  return known(normaliser, scores, ranks);
}

const NORMALISERS = {
  "reciprocal-rank": ({ k }, _, ranks) => ranks.map((rank) => (rank === null ? 0 : (k + 1) / (k + rank))),
  "binary": (_, __, ranks) => ranks.map((rank) => (rank === null ? 0 : 1)),
  "batch-max": batchMax,
  "min-max": (_, scores) => minMax(scores),
  "theoretical": theoretical,
  "sigmoid": ({ midpoint }, scores) => scores.map((score) => sigmoid(midpoint - Math.abs(score))),
  "saturating": (_, scores) => scores.map((score) => Math.max(score, 0) / (1 + Math.max(score, 0))),
  "above": ({ threshold }, scores) => scores.map((score) => unit((score - threshold) / (1 - threshold))),
  "atan": ({ scale }, scores) => scores.map((score) => (2 / Math.PI) * Math.atan(Math.max(score, 0) / scale)),
  "distribution": (_, scores) => distribution(scores),
  "clamped": (_, scores) => scores.map(unit),
};

function unit(value) {
  return Math.min(1, Math.max(0, value));
}

function batchMax({ least, cap }, scores) {
  if (scores.length < least) return scores.map((score) => unit(score / cap));
  const top = Math.max(...scores, TINY);
  return scores.map((score) => unit(score / top));
}

/** Return places between the worst and the best score of the batch; 1 where all are equal. */
export function minMax(scores) {
  const low = scores.length ? Math.min(...scores) : 0;
  const high = scores.length ? Math.max(...scores) : 0;
  const half = high / 2 - low / 2; // half the reach, which cannot overflow
  if (half <= 0) return scores.map(() => 1);
  const start = low / 2;
  return scores.map((score) => unit((score / 2 - start) / half));
}

function theoretical(normaliser, scores) {
  const { minimum } = normaliser;
  const reach = reference(normaliser, scores.length ? Math.max(...scores) : minimum);
  if (reach <= 0) return scores.map(() => 0);
  return scores.map((score) => unit((score - minimum) / reach));
}

function sigmoid(below) {
  if (!Number.isFinite(below)) return 0;
  return 1 / (1 + Math.exp(Math.max(-FLAT, Math.min(FLAT, below))));
}

function distribution(scores) {
  if (!scores.length) return [];
  const largest = Math.max(...scores.map(Math.abs)) || 1; // in shares of it nothing overflows
  const shares = scores.map((score) => score / largest);
  const mean = exactSum(shares) / shares.length;
  const reach = DEVIATIONS * Math.sqrt(exactSum(shares.map((share) => (share - mean) ** 2)) / shares.length);
  if (reach <= TINY) return shares.map(() => 0.5);
  return shares.map((share) => unit((share - mean + reach) / (2 * reach)));
}

/** Add numbers without rounding on the way (Shewchuk 1997), as Python's fsum does. */
function exactSum(numbers) {
  let parts = [];
  for (let number of numbers) {
    const kept = [];
    for (let other of parts) {
      if (Math.abs(number) < Math.abs(other)) [number, other] = [other, number];
      const sum = number + other;
      const lost = other - (sum - number);
      if (lost) kept.push(lost);
      number = sum;
    }
    parts = [...kept, number];
  }
  return parts.reduceRight((sum, part) => sum + part, 0);
}
