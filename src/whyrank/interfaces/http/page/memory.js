// The memory that is looked at: its whole text, what is known about it, what can be done with it.

import * as api from "./api.js";
import { alarm, at, button, code, fill, h, hint } from "./dom.js";
import { forget, openFact, openPurge } from "./facts.js";
import { now } from "./state.js";
import { openTab } from "./tabs.js";
import { day, place, title } from "./words.js";

// The fields of a memory that are moments.
const MOMENTS = new Set(["date", "valid_from", "valid_until", "expires", "superseded_at"]);

let looking = null;

/** Say what the panel is for until something is looked at. */
export function startMemory() {
  const what = "Click the title of a hit, or press m on it, to read the whole memory here.";
  fill(at("memory"), h("h2", {}, "Memory"), h("p", {}, what));
}

/** Show a memory whole. */
export async function look(id) {
  looking?.abort();
  const mine = (looking = new AbortController());
  openTab("memory");
  try {
    const found = await api.memory(id, now().scope, mine.signal);
    fill(at("memory"), ...whole(found));
  } catch (failure) {
    if (failure.name !== "AbortError") fill(at("memory"), h("h2", {}, "Memory"), alarm(failure));
  }
}

function whole(found) {
  return [
    h("h2", {}, title(found)),
    found.headings?.length ? h("p", { "data-headings": "" }, found.headings.join(" › ")) : null,
    h("p", { "data-text": "", tabindex: "0", role: "region", "aria-label": "Its text" }, found.text),
    h("dl", {}, ...fields(found).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    ...past(found),
    actions(found),
  ];
}

function fields(found) {
  const known = [
    ["Id", code(found.id)],
    ["Place", found.path ? code(place(found).long) : ""],
    ["Date", day(found.date)],
    ["Kind", found.kind],
    ["Category", found.category],
    ["Scope", found.scope],
    ["Trust", found.trust],
    ["Tags", (found.tags ?? []).join(", ")],
    ["Importance", found.importance ? String(found.importance) : ""],
    ["Expires", day(found.expires)],
    ["Recalled", found.recalls ? `${found.recalls} times` : ""],
    ["Replaced by", found.superseded_by],
  ];
  return known.filter(([, value]) => value);
}

function past(found) {
  const replaced = (found.replaced ?? []).map((old) => h("li", {}, "replaced ", h("q", {}, old.text)));
  const before = (found.history ?? []).map((old) => h("li", {}, `until ${moment(old.changed)}: `, ...former(old.was)));
  const lines = [...replaced, ...before];
  return lines.length ? [h("h3", {}, "Its past"), h("ul", { "data-past": "" }, ...lines)] : [];
}

/** Say what the fields that a change touched were before it. */
function former(was) {
  const said = Object.entries(was).map(([name, value]) => [`${name.replaceAll("_", " ")} `, told(name, value)]);
  return said.flatMap((piece, place) => (place ? ["; ", ...piece] : piece));
}

function told(name, value) {
  if (name === "text") return h("q", {}, value);
  if (value === null || value === "" || value.length === 0) return "not set";
  if (MOMENTS.has(name)) return moment(value);
  return Array.isArray(value) ? value.join(", ") : String(value);
}

/** Write a moment; one that no calendar holds comes as a number, and stays one. */
function moment(value) {
  return typeof value === "string" ? day(value) : String(value);
}

function actions(found) {
  if (now().status?.read_only) return hint("This server is read-only.");
  if (found.kind !== "fact") {
    return hint("It comes from a file. To change it, change the file and run ", code("whyrank ingest"), ".");
  }
  return h(
    "p",
    { "data-actions": "" },
    button("Replace …", () => openFact(found)),
    button("Forget", () => forget(found)),
    button("Purge …", () => openPurge(found), { "data-danger": "" }),
  );
}
