// The keys, told in a dialog.

import { h } from "./dom.js";
import { openDialog } from "./dialog.js";

const KEYS = [
  ["/", "go to the search"],
  ["j  k", "next and previous hit (arrow keys too)"],
  ["Enter", "show the arithmetic of a hit, or hide it"],
  ["m", "read the whole memory"],
  ["c", "pick a hit to compare; two picked are compared"],
  ["1 … 6", "open a panel"],
  ["a", "add a fact"],
  ["r", "reset all sliders"],
  ["Ctrl+Enter", "in a form: add the fact, or replace it"],
  ["Esc", "close what is open, go back to the search, empty it; once more brings the question back"],
  ["?", "this help"],
];

const BARS =
  "A bar is a score: each colour is what one signal or stage gave, and together they are the score. Hatched is what " +
  "was subtracted. Click a bar for the arithmetic.";

function caps(keys) {
  return keys.split("  ").map((key) => h("kbd", {}, key));
}

/** Open the help. */
export function openHelp() {
  openDialog(
    "Keys",
    h("dl", { "data-keys": "" }, ...KEYS.flatMap(([keys, does]) => [h("dt", {}, ...caps(keys)), h("dd", {}, does)])),
    h("p", {}, BARS),
  );
}
