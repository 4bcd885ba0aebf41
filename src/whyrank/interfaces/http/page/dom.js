// Elements made of values. Text goes in as text and nowhere else: nothing here, or in the page, reads markup.

import { visible } from "./characters.js";
import { sentence } from "./words.js";

const READ = ["title", "aria-label", "placeholder", "aria-description"]; // attributes that people read

/** Make an element: `on…` are listeners, true and false set or leave out an attribute, children nodes or texts. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) put(element, name, value);
  // What is edited stays as it is.
  const shown = children.flat().filter(isShown);
  element.append(...(tag === "textarea" ? shown : shown.map(text)));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

/** Make an element of a drawing. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.filter(isShown).map(text));
  return element;
}

function text(child) {
  return typeof child === "string" ? visible(child) : child;
}

function put(element, name, value) {
  if (value === false || value === null || value === undefined) return;
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (name.startsWith("--")) element.style.setProperty(name, value);
  else element.setAttribute(name, value === true ? "" : READ.includes(name) ? visible(String(value)) : value);
}

function isShown(child) {
  return child !== null && child !== undefined && child !== false && child !== "";
}

/** Put these children in the place of whatever an element holds. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat().filter(isShown).map(text));
  return element;
}

/** Return the element with this id. */
export function at(id) {
  return document.getElementById(id);
}

/** Return a quiet line. */
export function hint(...children) {
  return h("p", { "data-hint": "" }, ...children);
}

/** Return something to be typed, or a name that is. */
export function code(text) {
  return h("code", {}, text);
}

/** Return what went wrong, and what to do about it. */
export function alarm(failure) {
  return h("p", { role: "alert" }, `${sentence(failure.message)} ${sentence(failure.hint ?? "")}`);
}

/** Return a button. */
export function button(label, onclick, attributes = {}) {
  return h("button", { type: "button", onclick, ...attributes }, label);
}

/** Return a snippet's pieces, every second one a word that matched. */
export function marked(pieces) {
  return pieces.map((piece, place) => (place % 2 ? h("mark", {}, piece) : piece));
}

let count = 0;

/** Return an id that no other element has. */
export function fresh(prefix) {
  count += 1;
  return `${prefix}-${count}`;
}
