// Sliders over the settings this recipe honours: every turn ranks the candidates again, here in the browser.

import * as api from "./api.js";
import { at, button, fill, fresh, h } from "./dom.js";
import { question } from "./search.js";
import { change, listen, now } from "./state.js";
import { say } from "./toasts.js";
import { toml } from "./toml.js";
import { short } from "./words.js";

const DIVERSITY = "ranking.mmr_lambda";

/** Keep the panel up to date. */
export function startSliders() {
  listen(["pool"], draw);
  listen(["wish"], follow);
  draw(now());
}

function draw({ pool }) {
  const panel = at("tune");
  if (!pool) return fill(panel, h("h2", {}, "Tune"), h("p", {}, "Ask something, then turn a slider: the hits are ranked again as you turn it."));
  fill(
    panel,
    h("h2", {}, "Tune"),
    h("p", {}, "Ranked again in this browser, from the same candidates. Nothing is saved."),
    ...pool.knobs.map(slider),
    h(
      "p",
      { "data-actions": "" },
      button("Reset", reset, { id: "reset" }),
      button("Copy as TOML", copy, { id: "copy" }),
    ),
    h("pre", { id: "toml", tabindex: "0", "aria-label": "Settings as TOML" }),
  );
  follow(now());
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
    oninput: (event) => turn(knob, event.target.valueAsNumber),
  });
  return h(
    "div",
    { "data-knob": knob.key },
    h("label", { for: id }, knob.label),
    h("output", { for: id }),
    input,
    knob.ends ? h("p", { "data-ends": "", "aria-hidden": "true" }, h("span", {}, knob.ends[0]), h("span", {}, knob.ends[1])) : null,
  );
}

/** Put the sliders where the settings stand, wherever these were changed. */
function follow({ wish, pool }) {
  for (const knob of pool?.knobs ?? []) {
    const row = at("tune").querySelector(`[data-knob="${CSS.escape(knob.key)}"]`);
    if (row) show(row, knob, wish[knob.key]);
  }
  const changed = Object.keys(wish).length > 0;
  if (!at("toml")) return;
  at("toml").textContent = changed ? toml(wish) : "# as it stands: nothing to write";
  at("reset").disabled = !changed;
  at("copy").disabled = !changed;
}

function show(row, knob, turned) {
  const value = turned ?? knob.value;
  const input = row.querySelector("input");
  const told = value === null ? "off" : short(value);
  if (document.activeElement !== input || turned === undefined) input.value = value ?? knob.rest ?? knob.low;
  row.toggleAttribute("data-turned", turned !== undefined);
  row.querySelector("output").textContent = turned === undefined ? told : `${knob.value === null ? "off" : short(knob.value)} → ${told}`;
  input.setAttribute("aria-valuetext", told);
}

/** Turn one setting; back where it stood it is not turned at all. */
export async function turn(knob, value) {
  const { [knob.key]: _, ...others } = now().wish;
  if (knob.key === DIVERSITY) await compareAll();
  change({ wish: value === knob.value ? others : { ...others, [knob.key]: value } });
}

/** Turn a setting by its name, if there is a slider that goes so far. */
export function turnTo(key, value) {
  const knob = sliderFor(key, value);
  if (knob) return turn(knob, value);
}

/** Return the slider that can bring a setting to a value. */
export function sliderFor(key, value) {
  return now().pool?.knobs.find((knob) => knob.key === key && knob.low <= value && value <= knob.high) ?? null;
}

let comparing = null;

/** Fetch how alike the candidates are, which only diversity asks for. */
async function compareAll() {
  const { pool } = now();
  if (!pool || pool.likeness) return;
  comparing ??= api.likeness(question());
  try {
    const alike = await comparing;
    if (now().pool === pool) change({ pool: { ...pool, likeness: alike } });
  } catch (failure) {
    say(`Diversity cannot be shown: ${failure.message}`);
  } finally {
    comparing = null;
  }
}

function reset() {
  change({ wish: {} });
  at("tune").querySelector("input")?.focus();
}

async function copy() {
  const text = toml(now().wish);
  try {
    await navigator.clipboard.writeText(text);
    say("Copied. Put it into whyrank.toml.");
  } catch {
    getSelection().selectAllChildren(at("toml"));
    say("Selected below: copy it with your keyboard.");
  }
}
