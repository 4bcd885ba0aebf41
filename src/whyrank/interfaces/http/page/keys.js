// The keyboard: single letters, never while somebody is typing.

import { at } from "./dom.js";
import { openFact } from "./facts.js";
import { openHelp } from "./help.js";
import { selected, step } from "./hits.js";
import { change } from "./state.js";
import { closeSheet, goToTab } from "./tabs.js";

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
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") return escape(event);
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

/** Walk the hits by arrow keys, from the search field too. */
function arrows(event) {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const inHits = at("hits").contains(event.target);
  if (!by || (!inHits && (event.target !== at("query") || by < 0))) return false;
  step(by);
  return true;
}

function escape(event) {
  if (closeSheet()) return;
  if (event.target !== at("query")) {
    event.preventDefault();
    toSearch();
  }
}

function toSearch() {
  at("query").focus();
  at("query").select();
}
