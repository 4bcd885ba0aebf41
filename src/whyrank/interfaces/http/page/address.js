// The question stands in the address, so that it can be kept, shared and gone back to.

import { visible } from "./characters.js";
import { now } from "./state.js";

let isKept = true; // whether the question of the present address was meant, and should be gone back to

/** Read the question out of the address, to which the browser has gone. */
export function readAddress() {
  isKept = true;
  const asked = new URLSearchParams(location.search);
  return { query: asked.get("q") ?? "", recipe: asked.get("recipe") ?? "", scope: asked.get("scope") ?? "" };
}

/** Write the question into the address: beside what was meant, in place of what was only typed on the way. */
export function writeAddress(isMeant) {
  const { query, recipe, scope } = now();
  const asked = new URLSearchParams(Object.entries({ q: query, recipe, scope }).filter(([, value]) => value));
  const address = asked.size ? `?${asked}` : location.pathname;
  if (address !== (location.search || location.pathname)) {
    history[isKept ? "pushState" : "replaceState"](null, "", address);
    isKept = false;
  }
  isKept ||= isMeant;
  document.title = query ? `${visible(query)} · whyrank` : "whyrank";
}
