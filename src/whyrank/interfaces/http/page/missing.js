// "Where is it?": name a memory by id, path or words, and see where the question lost it.

import * as api from "./api.js";
import { arithmetic } from "./arithmetic.js";
import { alarm, at, button, code, fill, h, hint } from "./dom.js";
import { named } from "./names.js";
import { question } from "./search.js";
import { now } from "./state.js";
import { place, title } from "./words.js";

const CHOICES = 6; // how many memories are offered where words may mean several
const LOOKS_LIKE_ID = /^m_\S+$/;

let asking = null;

/** Draw the form. */
export function startMissing() {
  const placeholder = "m_…, notes/tea.md, or its words";
  const input = h("input", { id: "wanted", name: "wanted", required: true, autocomplete: "off", placeholder });
  const form = h(
    "form",
    { id: "where" },
    h("label", { for: "wanted" }, "The memory you expected"),
    input,
    h("button", { type: "submit", "data-main": "" }, "Where is it?"),
  );
  form.addEventListener("submit", (event) => event.preventDefault() ?? lookFor(input.value.trim()));
  fill(
    at("missing"),
    h("h2", {}, "Missing something?"),
    h("p", {}, "See where the search above lost it, and by how much."),
    form,
    h("div", { id: "lost", role: "status" }),
  );
}

async function lookFor(wanted) {
  const out = at("lost");
  const first = "First search above, then name the memory you miss.";
  if (!now().query.trim()) return fill(out, h("p", {}, first));
  asking?.abort();
  const { signal } = (asking = new AbortController());
  fill(out, h("p", {}, "Looking …"));
  try {
    const choices = await resolve(wanted, signal);
    if (!choices.length) return fill(out, ...notThere(wanted));
    await tell(choices[0], choices, signal);
  } catch (failure) {
    if (failure.name !== "AbortError") fill(out, alarm(failure));
  }
}

/** Return the memories that may be meant, the likeliest first. */
async function resolve(wanted, signal) {
  const { scope } = question();
  if (LOOKS_LIKE_ID.test(wanted)) return known(() => api.memory(wanted, now().scope, signal).then((one) => [one]));
  const byPath = /[/.]/.test(wanted) ? await known(() => atPath(wanted, signal)) : [];
  const byWords = await api.search({ query: wanted, limit: CHOICES, scope, include_superseded: true }, signal);
  const all = [...byPath, ...(byWords.verdict === "nothing" ? [] : byWords.hits)];
  return all.filter((one, at) => all.findIndex((other) => other.id === one.id) === at).slice(0, CHOICES);
}

async function atPath(wanted, signal) {
  for (const path of [wanted, `*${wanted}*`]) {
    const found = await api.memories({ path, limit: CHOICES, scope: now().scope }, signal);
    if (found.memories.length) return found.memories;
  }
  return [];
}

/** Return nothing where nothing is known by that name; other failures go on. */
async function known(ask) {
  try {
    return await ask();
  } catch (failure) {
    if (failure.status === 404 || failure.status === 400 || failure.status === 422) return [];
    throw failure;
  }
}

async function tell(chosen, choices, signal) {
  const told = await api.why({ ...question(), limit: now().limit, id: chosen.id }, signal);
  fill(
    at("lost"),
    h("h3", {}, title(chosen)),
    hint(place(chosen).long),
    h("p", { "data-outcome": told.outcome }, named(told.summary)),
    told.details.length ? h("ul", {}, ...told.details.map((line) => h("li", {}, named(line)))) : null,
    told.trail.length ? arithmetic(told.trail, `How ${title(chosen)} came to its score`) : null,
    others(chosen, choices),
  );
}

function others(chosen, choices) {
  const rest = choices.filter((one) => one.id !== chosen.id);
  if (!rest.length) return null;
  const choose = (one) => button(title(one), () => again(one, choices));
  const offer = (one) => h("li", {}, choose(one), " ", h("small", {}, place(one).short));
  return h("div", {}, h("h3", {}, "Or did you mean"), h("ul", { "data-choices": "" }, ...rest.map(offer)));
}

async function again(one, choices) {
  asking?.abort();
  const { signal } = (asking = new AbortController());
  try {
    await tell(one, choices, signal);
  } catch (failure) {
    if (failure.name !== "AbortError") fill(at("lost"), alarm(failure));
  }
}

function notThere(wanted) {
  return [
    h("p", {}, `Nothing in this store is called “${wanted}”, and no name is similar.`),
    hint("It may have been forgotten, may belong to another scope, or its file was never ingested: ",
      code("whyrank ingest PATH"), "."),
  ];
}
