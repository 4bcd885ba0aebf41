// The keyboard: single letters, never while somebody is typing.

import { at } from "./dom.js";
import { openFact } from "./facts.js";
import { openHelp } from "./help.js";
import { order, selected, step } from "./hits.js";
import { change, now } from "./state.js";
import { closeSheet, goToTab } from "./tabs.js";
import { say } from "./toasts.js";

const TYPING = "input:not([type=checkbox]):not([type=range]), textarea, select";

/** Listen to the keys. */
export function startKeys(does) {
  const letters = {
    "/": () => toSearch(),
    "?": () => openHelp(),
    j: () => step(1),
    k: () => step(-1),
    c: () => withHit(does.pick),
    m: () => withHit(does.look),
    a: () => openFact(),
    r: () => change({ wish: {} }),
  };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") return event.preventDefault() ?? escape(event.target, does);
    if (arrows(event)) return event.preventDefault();
    if (event.target.matches(TYPING)) return;
    const act = letters[event.key] ?? (/^[1-6]$/.test(event.key) ? () => goToTab(Number(event.key) - 1) : null);
    if (!act) return;
    event.preventDefault();
    act();
  });
}

function withHit(act) {
  const id = selected();
  if (id) act(id);
}

/** Walk the hits by arrow keys: down from the search field too, and from a page on which nobody has been anywhere. */
function arrows(event) {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!by || !order().hits.length) return false;
  const isFresh = event.target === document.body && now().selected === null;
  const isAbove = by > 0 && (event.target === at("query") || isFresh);
  if (!isAbove && !at("hits").contains(event.target)) return false;
  step(by);
  return true;
}

/** Leave what is open, one thing at a time: the sheet, where one is, the arithmetic, then the question. */
function escape(target, does) {
  if (closeSheet()) return;
  if (target !== at("query")) return toSearch();
  if (now().opened.size) return change({ opened: new Set() });
  emptyOrBringBack(does);
}

let emptied = "";

/** Empty the search field; once more brings the question back, and so does the browser's way back. */
function emptyOrBringBack(does) {
  const query = at("query").value;
  if (!query && !emptied) return;
  does.ask(query ? "" : emptied);
  if (query) say("Esc once more brings the question back.");
  emptied = query;
}

function toSearch() {
  at("query").focus();
  at("query").select();
}
