// The question stands in the address, so that it can be kept, shared and gone back to.

import { now } from "./state.js";

/** Read the question out of the address. */
export function readAddress() {
  const asked = new URLSearchParams(location.search);
  return { query: asked.get("q") ?? "", recipe: asked.get("recipe") ?? "", scope: asked.get("scope") ?? "" };
}

/** Write the question into the address: in place of the last one while typing, as a new page when it is meant. */
export function writeAddress(isMeant) {
  const { query, recipe, scope } = now();
  const asked = new URLSearchParams(Object.entries({ q: query, recipe, scope }).filter(([, value]) => value));
  const address = asked.size ? `?${asked}` : location.pathname;
  if (isMeant && address !== location.search) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
  document.title = query ? `${query} · whyrank` : "whyrank";
}
