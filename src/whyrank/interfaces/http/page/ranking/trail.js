// What happened to a hit on its way through ranking: the fold that makes its key (trail.py).

const START = [0, 0];

/** Return the key [tier, score] after one step. */
export function apply([tier, score], step) {
  switch (step.op) {
    case "set": return [tier, step.value];
    case "add": return [tier, score + step.value];
    case "scale": return [tier, score * step.value];
    case "lift": return [tier + Math.trunc(step.value), score];
    default: return [tier, score];
  }
}

/** Fold a trail into the key it produced. */
export function replay(trail) {
  return trail.reduce(apply, START);
}

/** Return the hit after a step: the only way a key ever changes. */
export function after(hit, step) {
  const [tier, score] = apply([hit.tier, hit.score], step);
  return { ...hit, tier, score, trail: [...hit.trail, step] };
}

/** Make a step. */
export function step(stage, op, value, why = "", parts = []) {
  return { stage, op, value, why, parts };
}

/** Return what a signal gave to this hit, if it gave anything. */
export function partOf(trail, signal) {
  for (const taken of trail) {
    const part = taken.parts.find((one) => one.signal === signal);
    if (part) return part;
  }
  return null;
}

/**
 * Return what a score is made of, in order: a piece per signal and per stage, together the score.
 * `of` names the colour: the signal, or the stage. A stage that scales or sets the score counts for what it changed.
 */
export function addends(trail) {
  const pieces = [];
  let key = START;
  for (const taken of trail) {
    const next = apply(key, taken);
    if (taken.parts.length) {
      for (const part of taken.parts) {
        if (part.value) pieces.push({ of: part.signal, kind: "signal", value: part.value, op: "add", step: taken, part });
      }
    } else if (next[1] !== key[1]) {
      pieces.push({ of: taken.stage, kind: "stage", value: next[1] - key[1], op: taken.op, step: taken, part: null });
    }
    key = next;
  }
  return pieces;
}
