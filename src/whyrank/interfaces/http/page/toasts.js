// Short messages at the edge, and what waits there for a few seconds so that it can still be undone.

import { at, button, h } from "./dom.js";

const SAID_MS = 5000;
export const UNDO_MS = 6000; // long enough to read the line and reach the button

const waiting = new Set();

/** Say something for a while. */
export function say(text) {
  const toast = h("div", { "data-toast": "" }, h("p", {}, text));
  at("toasts").append(toast);
  setTimeout(() => toast.remove(), SAID_MS);
}

/** Do something after a few seconds unless it is undone; `send(true)` is called if the page is left before. */
export function later({ text, send, undo }) {
  const one = { send };
  const toast = h(
    "div",
    { "data-toast": "undo", "--wait": `${UNDO_MS}ms` },
    h("p", {}, text),
    button("Undo", () => end(one, toast, undo), { "data-undo": "" }),
    button("Now", () => end(one, toast, send)),
  );
  one.timer = setTimeout(() => end(one, toast, send), UNDO_MS);
  waiting.add(one);
  at("toasts").append(toast);
}

function end(one, toast, what) {
  clearTimeout(one.timer);
  waiting.delete(one);
  toast.remove();
  what(false);
}

/** Send what waits when the page is left: it was asked for, and nobody undid it. */
export function startToasts() {
  addEventListener("pagehide", () => {
    for (const one of waiting) {
      clearTimeout(one.timer);
      one.send(true);
    }
    waiting.clear();
  });
}
