// The list of hits, drawn again whenever what it shows has changed; what had the focus keeps it.

import { at, button, fill, h } from "./dom.js";
import { hitElement } from "./hit.js";
import { reach } from "./bars.js";
import { arrange, NOTHING } from "./order.js";
import { named } from "./names.js";
import { glide, positions } from "./motion.js";
import { change, listen, now } from "./state.js";
import { many, title } from "./words.js";

const MORE = 10; // how many hits "show more" adds
const MOST = 100;

let current = NOTHING;

/** Return the order on the screen. */
export function order() {
  return current;
}

/** Keep the list up to date. */
export function startHits(does) {
  listen(["pool", "wish", "limit"], (state) => {
    current = state.pool ? arrange(state) : NOTHING;
  });
  listen(["pool", "wish", "limit", "opened", "picked", "doomed", "phase"], (state) => draw(state, does));
}

function draw(state, does) {
  const list = at("hits");
  list.toggleAttribute("aria-busy", state.phase === "asking");
  list.dataset.asked = state.pool?.query ?? "";
  const held = focused(list);
  const before = positions(list);
  const whole = Math.max(0, ...current.hits.map((hit) => reach(hit.trail)));
  fill(list, ...current.hits.map((hit) => hitElement(hit, { whole, ...marks(state, hit), does })));
  glide(list, before);
  refocus(list, held);
  fill(at("below"), goneList(current.gone), moreButton(state, does));
}

function marks(state, hit) {
  return { opened: state.opened, picked: state.picked, doomed: state.doomed.has(hit.id) };
}

function goneList(gone) {
  if (!gone.length) return null;
  return h(
    "section",
    { "data-gone": "", "aria-label": "No longer on the page" },
    h("h3", {}, "No longer on the page"),
    h("ul", {}, ...gone.map(goneLine)),
  );
}

function goneLine(row) {
  return h("li", {}, h("span", { "data-move": "down" }, "▼"), ` ${title(row)} `, h("small", {}, whereNow(row)));
}

function whereNow(row) {
  return row.place ? `now ${row.place}` : `dropped: ${named(row.why)}`;
}

function moreButton(state, does) {
  const full = current.dropped.some((hit) => hit.stage === "top") && state.limit < MOST;
  return full ? button("Show more", () => does.more(Math.min(MOST, state.limit + MORE)), { "data-more": "" }) : null;
}

function focused(list) {
  const element = list.contains(document.activeElement) ? document.activeElement : null;
  return element && { id: element.closest("[data-id]")?.dataset.id, part: element.dataset.part };
}

function refocus(list, held) {
  if (held?.id) find(list, held.id, held.part)?.focus({ preventScroll: true });
}

function find(list, id, part) {
  return list.querySelector(`[data-id="${CSS.escape(id)}"] [data-part="${part}"]`);
}

/** Move the selection by so many hits, and put the focus on its bar. */
export function step(by) {
  const ids = current.hits.map((hit) => hit.id);
  if (!ids.length) return;
  const here = focused(at("hits"))?.id ?? now().selected;
  const from = ids.indexOf(here);
  const to = from < 0 ? (by > 0 ? 0 : ids.length - 1) : Math.min(ids.length - 1, Math.max(0, from + by));
  select(ids[to]);
}

function select(id) {
  change({ selected: id });
  const part = find(at("hits"), id, "bar") ?? find(at("hits"), id, "title");
  part?.focus({ preventScroll: true });
  part?.closest("li").scrollIntoView({ block: "nearest" });
}

/** Return the id of the hit the keys are at. */
export function selected() {
  return focused(at("hits"))?.id ?? now().selected ?? current.hits[0]?.id ?? null;
}

/** Say how many hits there are. */
export function counted() {
  return many(current.hits.length, "hit");
}
