// Short messages at the edge, and what waits there for a few seconds so that it can still be undone.

import { at, button, h } from "./dom.js";

const SAID_MS = 5000;
const READ_MS = 60; // a character, for whoever reads slowly
export const UNDO_MS = 6000; // long enough to read the line and reach the button

// Browsers send 64 KiB for a page that is being left, for all its requests together, and drop what is more.
const MOST_WAITING_BYTES = 60000;

const waiting = new Set();

/** Say something for a while. */
export function say(text) {
  const toast = h("div", { "data-toast": "" }, h("p", {}, text));
  at("toasts").append(toast);
  setTimeout(() => toast.remove(), Math.max(SAID_MS, READ_MS * text.length));
}

/**
 * Do something after a few seconds unless it is undone; `send(true)` is called if the page is left before.
 *
 * What is too large to be sent then, `bytes` with all that waits, is sent at once and cannot be undone.
 */
export function later({ text, send, undo, bytes = 0 }) {
  const all = [...waiting].reduce((sum, other) => sum + other.bytes, bytes);
  if (all > MOST_WAITING_BYTES) {
    say(`${text} It is too long to wait for an undo.`);
    return send(false);
  }
  const one = { send, bytes };
  one.toast = h(
    "div",
    { "data-toast": "undo", "--wait": `${UNDO_MS}ms` },
    h("p", {}, text),
    button("Undo", () => end(one, undo), { "data-undo": "" }),
    button("Now", () => end(one, send)),
  );
  one.timer = setTimeout(() => end(one, send), UNDO_MS);
  waiting.add(one);
  at("toasts").append(one.toast);
}

/** End the wait by sending or undoing, whichever comes first; what no longer waits is past both. */
function end(one, what, leaving = false) {
  if (!waiting.delete(one)) return;
  clearTimeout(one.timer);
  one.toast.remove();
  what(leaving);
}

/** Send what waits when the page is left: it was asked for, nobody undid it, and whoever comes back cannot either. */
export function startToasts() {
  addEventListener("pagehide", () => {
    for (const one of [...waiting]) end(one, one.send, true);
  });
}
