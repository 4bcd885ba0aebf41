// Facts are added at once; replacing and forgetting waits a few seconds and can be undone until then.

import * as api from "./api.js";
import { button, fresh, h } from "./dom.js";
import { openDialog } from "./dialog.js";
import { askNow } from "./search.js";
import { refreshStatus } from "./status.js";
import { change, now } from "./state.js";
import { later, say } from "./toasts.js";
import { sentence, title } from "./words.js";

const PURGING =
  "Forgetting removes it from the store. Purging also overwrites every byte of its text and vector in the store's " +
  "file. It can take a while and cannot be undone.";

const MOST_CHARACTERS = 50000; // what the server takes for a fact

const OUTCOMES = {
  stored: "Added.",
  known: "It existed already.",
  replacing: "It existed already.",
  revived: "It existed before and is found again.",
  merged: "A near-duplicate exists; the new fields were added to it.",
};

// What was typed and is not stored yet, by the id of the fact it replaces: a form that is closed loses no text.
const drafts = new Map();
const NEW = ""; // replaces none

/** Ask for a new fact, or for the one that replaces an old one. */
export function openFact(old = null) {
  const draft = drafts.get(old?.id ?? NEW) ?? { text: "", tags: (old?.tags ?? []).join(", "), importance: old?.importance };
  const ids = { text: fresh("fact"), tags: fresh("fact"), importance: fresh("fact") };
  const form = h(
    "form",
    { method: "dialog" },
    old ? h("blockquote", {}, old.text) : null,
    h("label", { for: ids.text }, old ? "What is true now" : "One fact, in a sentence"),
    h("textarea", { id: ids.text, name: "text", rows: "3", required: true, maxlength: MOST_CHARACTERS }, draft.text),
    h("label", { for: ids.tags }, "Tags, separated by commas"),
    h("input", { id: ids.tags, name: "tags", value: draft.tags }),
    h("label", { for: ids.importance }, "Importance"),
    h("select", { id: ids.importance, name: "importance" }, ...levels(draft.importance)),
    h("p", { "data-actions": "" }, submit(old ? "Replace" : "Add"), cancel()),
  );
  const dialog = openDialog(old ? "Replace a fact" : "Add a fact", form);
  form.addEventListener("input", () => drafts.set(old?.id ?? NEW, draftOf(form)));
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  form.addEventListener("submit", () => (old ? replace(old, read(form, old)) : add(read(form, old))));
  dialog.querySelector("textarea").focus();
}

function submit(label) {
  return h("button", { type: "submit", "data-main": "", title: "Ctrl+Enter" }, label);
}

function draftOf(form) {
  const data = new FormData(form);
  return { text: data.get("text"), tags: data.get("tags"), importance: Number(data.get("importance")) };
}

function cancel() {
  return button("Cancel", (event) => event.target.closest("dialog").close());
}

function levels(chosen) {
  const names = ["as usual", "1, least", "2", "3", "4", "5, most"];
  return names.map((name, value) => h("option", { value: value || "", selected: value === (chosen ?? 0) }, name));
}

function read(form, old) {
  const data = new FormData(form);
  const tags = data.get("tags").split(",").map((tag) => tag.trim()).filter(Boolean);
  const importance = data.get("importance") ? Number(data.get("importance")) : undefined;
  const scope = scopeFor(old);
  return { text: data.get("text").trim(), tags: tags.length ? tags : undefined, importance, scope };
}

/** Return the scope to name: a memory is changed only in its own, and where a server has one none is named. */
function scopeFor(memory) {
  const { status, scope } = now();
  if (!status) return scope;
  return status.multi_scope ? (memory?.scope ?? scope) : "";
}

/** Return what there is to say of a fact that was written. */
function told(done) {
  return (done.notices ?? []).map((notice) => sentence(notice.message));
}

async function add(fact) {
  const done = await sent(() => api.add(fact), "The fact was not added");
  if (!done) return;
  drafts.delete(NEW);
  say([OUTCOMES[done.outcome], ...told(done)].join(" "));
  renew();
}

/** Put a fact in another's place, in a few seconds. */
function replace(old, fact) {
  const successor = { ...fact, supersedes: old.id };
  doom(old.id);
  later({
    text: `Replacing “${title(old)}”.`,
    bytes: new TextEncoder().encode(JSON.stringify(successor)).length,
    undo: () => spare(old.id),
    send: async (leaving) => {
      const done = await sent(() => api.add(successor, leaving), "The fact was not replaced");
      if (done) drafts.delete(old.id);
      if (done?.notices?.length) say(["Replaced.", ...told(done)].join(" "));
      spare(old.id);
      renew();
    },
  });
}

/** Forget a memory, in a few seconds. */
export function forget(memory, purge = false) {
  const scope = scopeFor(memory);
  doom(memory.id);
  later({
    text: `${purge ? "Purging" : "Forgetting"} “${title(memory)}”.`,
    undo: () => spare(memory.id),
    send: async (leaving) => {
      const done = await sent(() => api.forget(memory.id, scope, purge, leaving), "It was not forgotten");
      if (done?.remains?.length) say(`It is still in ${done.remains.join(", ")}.`);
      spare(memory.id);
      renew();
    },
  });
}

/** Ask once more before purging, which cannot be taken back by anybody. */
export function openPurge(memory) {
  const purge = (event) => event.target.closest("dialog").close() ?? forget(memory, true);
  openDialog(
    "Purge this memory?",
    h("blockquote", {}, memory.text),
    h("p", {}, PURGING),
    h("p", { "data-actions": "" }, button("Purge", purge, { "data-danger": "" }), cancel()),
  );
}

async function sent(send, otherwise) {
  try {
    return await send();
  } catch (failure) {
    const what = failure.code === "broken-off" ? "" : `${otherwise}: `; // it may well be done
    say(`${what}${sentence(failure.message)} ${sentence(failure.hint ?? "")}`);
    return null;
  }
}

function doom(id) {
  change({ doomed: new Set([...now().doomed, id]) });
}

function spare(id) {
  change({ doomed: new Set([...now().doomed].filter((other) => other !== id)) });
}

function renew() {
  refreshStatus();
  if (now().query.trim()) askNow();
}
