// The line above the hits: what the search came to, in words, and what helps where it came to nothing.

import * as api from "./api.js";
import { at, button, fill, h } from "./dom.js";
import { openFact } from "./facts.js";
import { counted, order } from "./hits.js";
import { listen, now } from "./state.js";
import { openTab } from "./tabs.js";
import { tokenForm, waitForServer } from "./failures.js";
import { many, sentence, title, VERDICTS } from "./words.js";

const LISTED = 12; // memories looked at for them: neighbours often share a title
const EXAMPLES = 4; // memories offered to try the search with

/** Keep the line up to date. */
export function startVerdict(does) {
  listen(["phase", "pool", "wish", "limit", "failure", "status"], (state) => draw(state, does));
  draw(now(), does);
}

function draw(state, does) {
  const place = at("verdict");
  place.toggleAttribute("data-asking", state.phase === "asking");
  place.toggleAttribute("data-failed", state.phase === "failed");
  fill(at("notices"), ...(state.pool?.notices ?? []).map(noticeLine));
  if (state.phase === "failed") return void fill(place, ...failed(state.failure, does));
  if (state.phase === "idle") return void fill(place, ...idle(state, does));
  if (state.phase === "asking" && !state.pool) return void fill(place, h("p", {}, "Searching …"));
  if (state.phase === "answered") fill(place, ...answered(state));
}

function noticeLine(notice) {
  return h("p", { "data-notice": notice.code }, notice.message);
}

function answered({ pool, status }) {
  if (!pool.candidates.length) return nothing(status);
  const [word, meaning] = VERDICTS[pool.verdict];
  const again = order().turned ? ", ranked again with your settings" : "";
  const spent = `${Math.max(1, Math.round(pool.timings.total))} ms`;
  return [
    h("p", { "data-verdict": pool.verdict }, h("strong", {}, word), " ", meaning),
    h("p", { "data-count": "" }, `${counted()} of ${many(pool.candidates.length, "candidate")} in ${spent}${again}`),
    pool.verdict === "nothing" ? helpForNothing() : null,
  ];
}

function nothing(status) {
  if (status && !status.memories) return empty();
  return [
    h("p", { "data-verdict": "nothing" }, h("strong", {}, "Nothing found."), " No memory shares a word with this."),
    helpForNothing(),
  ];
}

function helpForNothing() {
  return h(
    "p",
    { "data-hint": "" },
    "Try other words, or a name. If you know it is there, ",
    button("see where it was lost", () => openTab("missing") ?? at("wanted").focus(), { "data-link": "" }),
    "; if it is not, ",
    button("add it", () => openFact(), { "data-link": "" }),
    ".",
  );
}

function empty() {
  return [
    h("h1", {}, "This memory is empty"),
    h("p", {}, "Fill it with notes, and come back here:"),
    h("pre", { tabindex: "0" }, "whyrank ingest notes/"),
    h("p", {}, "or ", button("add a first fact", () => openFact(), { "data-link": "" }), "."),
  ];
}

function idle({ status }, does) {
  if (status && !status.memories) return empty();
  const size = status ? `${many(status.memories, "memory is", "memories are")} listening.` : "";
  const examples = h("p", { "data-examples": "" });
  offer(examples, does);
  return [h("h1", {}, "Ask, and see why"), h("p", {}, `${size} Type a question, some words or a name.`), examples];
}

let listed = null;

/** Offer the titles of some memories to search for; they are asked for once. */
async function offer(place, does) {
  try {
    listed ??= api.memories({ limit: LISTED });
    const { memories } = await listed;
    const names = [...new Set(memories.map(title))].slice(0, EXAMPLES);
    fill(place, ...names.map((name) => button(name, () => does.ask(name), { "data-chip": "" })));
  } catch (failure) {
    listed = null;
    if (failure.status === 401) does.fail(failure);
  }
}

function failed(failure, does) {
  if (failure.status === 401) return tokenForm(failure, does);
  if (failure.code === "gone") waitForServer(does);
  return [
    h("p", { "data-verdict": "failed", role: "alert" }, h("strong", {}, headline(failure)), " ", sentence(failure.message)),
    failure.hint ? h("p", { "data-hint": "" }, sentence(failure.hint)) : null,
    h("p", {}, button("Try again", does.again)),
  ];
}

function headline(failure) {
  if (failure.code === "gone") return "No answer.";
  return failure.status >= 500 ? "The server could not do it." : "That did not work.";
}
