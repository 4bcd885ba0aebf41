// Search as you type: one question at a time, the last one asked wins, and what is stale is thrown away.

import * as api from "./api.js";
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
  const { query } = now();
  if (!query.trim()) return change({ phase: "idle", answer: null, pool: null, failure: null, picked: [] });
  change({ phase: "asking" });
  try {
    await answer(mine.signal);
  } catch (failure) {
    if (running === mine && failure.name !== "AbortError") change({ phase: "failed", failure });
  }
}

/** Show the server's answer as soon as it is there; the candidates, which bars and sliders need, may come later. */
async function answer(signal) {
  const asked = question();
  const pool = api.candidates(asked, signal);
  pool.catch(() => {}); // it is awaited below, unless the answer itself fails first
  const found = await api.search(asked, signal);
  const isNew = found.query !== now().answer?.query;
  const fresh = isNew ? { opened: new Set(), picked: [], selected: null } : {};
  if (!Object.keys(now().wish).length) {
    const kept = isNew ? null : now().pool;
    change({ answer: found, pool: kept, phase: "answered", failure: null, ...fresh });
  }
  const received = await pool;
  change({ answer: found, pool: received, wish: honoured(received), phase: "answered", failure: null, ...fresh });
}

/** Return the question as it is asked of every route. */
export function question() {
  const { query, recipe, scope, limit } = now();
  return { query, recipe, scope, limit };
}

/** Keep of the turned settings those that this recipe knows. */
function honoured(pool) {
  const known = new Set(pool.knobs.map((knob) => knob.key));
  return Object.fromEntries(Object.entries(now().wish).filter(([key]) => known.has(key)));
}
