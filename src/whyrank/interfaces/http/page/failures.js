// What helps when the server does not let us in, or is not there.

import * as api from "./api.js";
import { code, h } from "./dom.js";
import { sentence } from "./words.js";

const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 15000;

/** Ask for the token that `whyrank serve` printed. */
export function tokenForm(failure, does) {
  const input = h("input", { id: "token", type: "password", required: true, autocomplete: "off" });
  const form = h(
    "form",
    { id: "let-in" },
    h("label", { for: "token" }, "Token"),
    input,
    h("button", { type: "submit", "data-main": "" }, "Come in"),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    api.keepToken(input.value);
    does.again();
  });
  return [
    h("h1", {}, "This memory is locked"),
    h("p", {}, "The address that ", code("whyrank serve"), " printed opens it, and so does the token in that address, ",
      "behind ", code("#token="), "."),
    h("p", { "data-hint": "", role: "alert" }, sentence(failure.message)),
    form,
  ];
}

let waiting = 0;

/** Look for the server again and again, ever less often, and go on where we were when it is back. */
export function waitForServer(does, pause = FIRST_WAIT_MS) {
  clearTimeout(waiting);
  waiting = setTimeout(async () => {
    const isBack = await fetch("/health").then(() => true, () => false);
    if (isBack) does.again();
    else waitForServer(does, Math.min(pause * 2, LONGEST_WAIT_MS));
  }, pause);
}
