// Dark, light, or as in the system; remembered in this browser.

import { at } from "./dom.js";

const KEY = "whyrank.theme";
const THEMES = { auto: "as in the system", light: "light", dark: "dark" };
const SIGNS = { auto: "◐", light: "☀", dark: "☾" };

/** Put on the remembered colours, and let the button change them. */
export function startTheme() {
  wear(localStorage.getItem(KEY) ?? "auto");
  at("theme").addEventListener("click", () => {
    const names = Object.keys(THEMES);
    wear(names[(names.indexOf(worn()) + 1) % names.length]);
    localStorage.setItem(KEY, worn());
  });
}

function worn() {
  return document.documentElement.dataset.theme;
}

function wear(name) {
  const theme = name in THEMES ? name : "auto";
  document.documentElement.dataset.theme = theme;
  at("theme").textContent = SIGNS[theme];
  at("theme").setAttribute("aria-label", `Colours: ${THEMES[theme]}`);
}
