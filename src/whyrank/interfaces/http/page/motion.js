// Hits glide to their new places when a slider moves them, unless the reader asked for stillness.

const GLIDE_MS = 220;

function still() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

/** Return where each hit stands now. */
export function positions(list) {
  if (still()) return new Map();
  return new Map([...list.children].map((item) => [item.dataset.id, item.offsetTop]));
}

/** Let each hit glide from where it stood. */
export function glide(list, before) {
  for (const item of before.size ? list.children : []) {
    const from = before.get(item.dataset.id);
    const by = from === undefined ? 0 : from - item.offsetTop;
    const path = [{ transform: `translateY(${by}px)` }, { transform: "none" }];
    if (by) item.animate(path, { duration: GLIDE_MS, easing: "ease-out" });
  }
}
