// Answers speak of memories by id; people know them by what they are called.

import { now } from "./state.js";
import { title } from "./words.js";

const ID = /\bm_[a-z0-9]+/g;

/** Put the titles of memories in the place of their ids, where they are among the candidates. */
export function named(text) {
  const known = new Map((now().pool?.candidates ?? []).map((row) => [row.id, row]));
  return text.replace(ID, (id) => (known.has(id) ? `“${title(known.get(id))}”` : id));
}
