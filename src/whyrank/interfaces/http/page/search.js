// Search as you type: one question at a time, the last one asked wins, and what is stale is thrown away.

import * as api from "./api.js";
import { body, takeEarly } from "./early.js";
import { needsLikeness } from "./rank.js";
import { change, now } from "./state.js";

const PAUSE_MS = 120; // shorter than it takes to think of the next word, longer than between two letters of one

let timer = 0;
let running = null;

/** Ask once typing pauses. */
export function askSoon() {
  clearTimeout(timer);
  timer = setTimeout(askNow, PAUSE_MS);
}

/** Ask at once, and drop what was asked before. */
export async function askNow() {
  clearTimeout(timer);
  running?.abort();
  const mine = (running = new AbortController());
  if (!now().query.trim()) return change({ phase: "idle", pool: null, failure: null, picked: [] });
  change({ phase: "asking" });
  const answer = await received(mine.signal).catch((failure) => ({ phase: "failed", failure }));
  if (running === mine && answer.failure?.name !== "AbortError") change(answer);
}

/** Return what changes by the answer; what was open and picked stays so if it is the same question. */
async function received(signal) {
  const pool = await (takeEarly(question()) ?? api.candidates(question(), signal));
  const wish = honoured(pool);
  const likeness = needsLikeness(pool, wish) ? await api.likeness(question(), signal) : null;
  const isNew = pool.query !== now().pool?.query;
  const fresh = isNew ? { opened: new Set(), picked: [], selected: null } : {};
  return { pool, wish, likeness, phase: "answered", failure: null, ...fresh };
}

/** Return the question as it is asked of every route. */
export function question() {
  return body(now());
}

/** Keep of the turned settings those that this recipe knows. */
function honoured(pool) {
  const known = new Set(pool.knobs.map((knob) => knob.setting));
  return Object.fromEntries(Object.entries(now().wish).filter(([name]) => known.has(name)));
}
