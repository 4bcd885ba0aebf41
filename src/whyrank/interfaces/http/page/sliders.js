// Sliders over the settings this recipe honours: every turn ranks the candidates again, here in the browser.

import * as api from "./api.js";
import { at, button, fill, fresh, h } from "./dom.js";
import { needsLikeness, toToml } from "./rank.js";
import { question } from "./search.js";
import { change, listen, now } from "./state.js";
import { say } from "./toasts.js";
import { short } from "./words.js";

/** Keep the panel up to date. */
export function startSliders() {
  listen(["pool"], draw);
  listen(["wish"], follow);
  draw(now());
}

function draw({ pool }) {
  const panel = at("tune");
  const first = "Search for something, then move a slider: the hits are re-ranked as you move it.";
  if (!pool) return fill(panel, h("h2", {}, "Tune"), h("p", {}, first));
  fill(
    panel,
    h("h2", {}, "Tune"),
    h("p", {}, "Ranked again in this browser, from the same candidates. Nothing is saved."),
    ...pool.knobs.map(slider),
    h(
      "div",
      { "data-dock": "" },
      h("p", { "data-actions": "" }, ...actions()),
      h("pre", { id: "toml", tabindex: "0", role: "region", "aria-label": "Settings as TOML" }),
    ),
  );
  follow(now());
}

function actions() {
  return [button("Reset", reset, { id: "reset" }), button("Copy as TOML", copy, { id: "copy" })];
}

function slider(knob) {
  const id = fresh("knob");
  const input = h("input", {
    id,
    type: "range",
    min: knob.low,
    max: knob.high,
    step: knob.step,
    "data-key": knob.key,
    "aria-describedby": `${id}-means`,
    oninput: (event) => turn(knob, event.target.valueAsNumber),
  });
  return h(
    "div",
    { "data-knob": knob.key },
    h("label", { for: id }, knob.label),
    h("output", { for: id }),
    input,
    h("p", { "data-hint": "", id: `${id}-means` }),
  );
}

function meaning(knob, idle) {
  return idle ? `${knob.meaning}. Idle here: ${idle}` : knob.meaning;
}

/** Say why moving a slider changes nothing; one that needs another waits until that is turned up. */
function idleness(knob, { wish, pool }) {
  const needed = pool.knobs.find((other) => other.setting === knob.needs);
  if (!needed) return knob.idle;
  return needed.idle ?? ((wish[needed.setting] ?? needed.value) > 0 ? null : `${needed.label} is at 0`);
}

/** Put the sliders where the settings stand, wherever these were changed. */
function follow({ wish, pool }) {
  for (const knob of pool?.knobs ?? []) {
    const row = at("tune").querySelector(`[data-knob="${CSS.escape(knob.key)}"]`);
    if (row) show(row, knob, wish[knob.setting], idleness(knob, { wish, pool }));
  }
  const changed = Object.keys(wish).length > 0;
  if (!at("toml")) return;
  at("toml").textContent = changed ? toToml(wish, now().recipe || null) : "";
  at("toml").hidden = !changed;
  at("reset").disabled = !changed;
  at("copy").disabled = !changed;
}

function show(row, knob, turned, idle) {
  const value = turned ?? knob.value;
  const input = row.querySelector("input");
  const told = withUnit(value, knob);
  if (document.activeElement !== input || turned === undefined) input.value = value;
  row.toggleAttribute("data-turned", turned !== undefined);
  row.toggleAttribute("data-idle", Boolean(idle));
  row.querySelector("[data-hint]").textContent = meaning(knob, idle);
  row.querySelector("output").textContent = turned === undefined ? told : `${short(knob.value)} → ${told}`;
  input.setAttribute("aria-valuetext", told);
}

function withUnit(value, { unit }) {
  return unit === "×" ? `× ${short(value)}` : `${short(value)} ${unit}`.trim();
}

/** Turn one setting; back where it stood it is not turned at all. */
export async function turn(knob, value) {
  const { [knob.setting]: _, ...others } = now().wish;
  const wish = value === knob.value ? others : { ...others, [knob.setting]: value };
  const { pool, likeness } = now();
  if (likeness || !needsLikeness(pool, wish)) return change({ wish });
  waiting = wish;
  await compareAll(pool);
}

/** Return the slider that can bring a setting to a value. */
export function sliderFor(key, value) {
  return now().pool?.knobs.find((knob) => knob.key === key && knob.low <= value && value <= knob.high) ?? null;
}

let comparing = false;
let waiting = {};

/** Fetch how alike the candidates are, once, and then show the last turn that waited for it. */
async function compareAll(pool) {
  if (comparing) return;
  comparing = true;
  try {
    const likeness = await api.likeness(question());
    if (now().pool === pool) change({ likeness, wish: waiting });
  } catch (failure) {
    say(`Diversity cannot be shown: ${failure.message}`);
  } finally {
    comparing = false;
  }
}

function reset() {
  change({ wish: {} });
  at("tune").querySelector("input")?.focus();
}

async function copy() {
  const text = at("toml").textContent;
  try {
    await navigator.clipboard.writeText(text);
    say("Copied. Put it into whyrank.toml.");
  } catch {
    getSelection().selectAllChildren(at("toml"));
    say("Selected below: copy it with your keyboard.");
  }
}
