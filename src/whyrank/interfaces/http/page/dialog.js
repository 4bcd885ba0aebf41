// Dialogs: one at a time, closed by Esc or a click beside it, the focus back where it was.

import { button, fresh, h } from "./dom.js";

/** Open a dialog with a title and return it. */
export function openDialog(title, ...children) {
  const id = fresh("dialog");
  const dialog = h(
    "dialog",
    { "aria-labelledby": id },
    h("header", {}, h("h2", { id }, title), button("×", () => dialog.close(), { "aria-label": "Close" })),
    ...children,
  );
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}
