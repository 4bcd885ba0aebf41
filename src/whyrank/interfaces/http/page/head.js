// The head stays in sight, and wraps where it is narrow: what must not lie beneath it is told how tall it is.

/** Keep the height of the head known to the style sheets. */
export function startHead() {
  const head = document.querySelector("body > header");
  const tell = () => document.documentElement.style.setProperty("--head", `${head.offsetHeight}px`);
  new ResizeObserver(tell).observe(head);
  tell();
}
