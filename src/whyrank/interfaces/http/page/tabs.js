// The panel's tabs; on a narrow screen they stand at the lower edge and open a sheet.

import { listen } from "./state.js";

const tabs = () => [...document.querySelectorAll("[role=tab]")];
const NARROW = matchMedia("(max-width: 63.99rem)");

/** Make the tabs work, with the first one open where there is room. */
export function startTabs() {
  const all = tabs();
  all.forEach((tab, place) => {
    tab.addEventListener("click", () => press(tab));
    tab.addEventListener("keydown", (event) => walk(event, all, place));
  });
  show(NARROW.matches ? null : all[0]);
  NARROW.addEventListener("change", () => show(NARROW.matches ? null : all[0]));
  listen(["picked"], ({ picked }) => mark("tab-compare", picked.length));
}

function press(tab) {
  const isOpen = tab.getAttribute("aria-selected") === "true";
  show(isOpen && NARROW.matches ? null : tab);
}

function show(chosen) {
  const all = tabs();
  document.querySelector("aside").toggleAttribute("data-open", chosen !== null);
  for (const tab of all) {
    tab.setAttribute("aria-selected", String(tab === chosen));
    tab.tabIndex = tab === (chosen ?? all[0]) ? 0 : -1;
    document.getElementById(tab.getAttribute("aria-controls")).hidden = tab !== chosen;
  }
}

function walk(event, all, place) {
  const steps = { ArrowRight: 1, ArrowLeft: -1, Home: -place, End: all.length - 1 - place };
  if (!(event.key in steps)) return;
  event.preventDefault();
  const next = all[(place + steps[event.key] + all.length) % all.length];
  show(next);
  next.focus();
}

/** Open the panel of this name. */
export function openTab(name) {
  show(document.getElementById(`tab-${name}`));
}

/** Open the panel at this place and go there. */
export function goToTab(place) {
  const tab = tabs()[place];
  if (!tab) return;
  show(tab);
  tab.focus();
}

/** Close the sheet of a narrow screen; say whether there was one. */
export function closeSheet() {
  const open = NARROW.matches && document.querySelector("aside[data-open]") !== null;
  if (open) show(null);
  return open;
}

/** Tell on a tab how many things wait behind it. */
function mark(id, count) {
  const tab = document.getElementById(id);
  if (count) tab.setAttribute("data-count", String(count));
  else tab.removeAttribute("data-count");
}
