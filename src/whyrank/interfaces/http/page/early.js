// The question of the address, asked before the rest of the page is there: the server thinks while the browser loads.

import { readAddress } from "./address.js";
import { candidates, takeToken } from "./api.js";

takeToken();
const asked = readAddress();
let answer = asked.query.trim() ? candidates(body(asked)) : null;
answer?.catch(() => {}); // whoever takes it hears of the failure

/** Return a question as it is asked of every route. */
export function body({ query, recipe, scope }) {
  return { query, recipe, scope: scope ? [scope] : undefined };
}

/** Return the answer to the question of the address, once, if that is what is asked. */
export function takeEarly(question) {
  const taken = JSON.stringify(question) === JSON.stringify(body(asked)) ? answer : null;
  answer = null;
  return taken;
}
