// The curve that confidence is read from: it rises through both thresholds.

import { svg } from "./dom.js";
import { number } from "./words.js";

const AT_WEAK = 0.2; // the confidence at the threshold "weak" …
const AT_FOUND = 0.8; // … and at "found", as the server sets them
const [WIDTH, HEIGHT, EDGE] = [320, 150, 26];
const POINTS = 80;

/** Return the confidence at some evidence. */
export function confidence({ weak, found }, evidence) {
  if (evidence >= found) return 1 - ((1 - AT_FOUND) * found) / evidence;
  if (evidence < weak) return (AT_WEAK * evidence) / weak;
  return AT_WEAK + ((evidence - weak) / (found - weak)) * (AT_FOUND - AT_WEAK);
}

/** Draw the curve with its thresholds, and the hits on it. */
export function curve(bar, hits) {
  const most = Math.max(1, bar.found * 1.6);
  const x = (evidence) => EDGE + (evidence / most) * (WIDTH - EDGE - 8);
  const y = (share) => HEIGHT - EDGE - share * (HEIGHT - EDGE - 8);
  const line = Array.from({ length: POINTS + 1 }, (_, at) => (at / POINTS) * most);
  const told = `Confidence over evidence: weak from ${number(bar.weak)}, found from ${number(bar.found)}`;
  return svg(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": told, "data-curve": "" },
    svg("path", { d: `M${x(0)} ${y(0)}H${x(most)}M${x(0)} ${y(0)}V${y(1)}`, "data-axis": "" }),
    ...threshold("weak", bar.weak, AT_WEAK, x, y),
    ...threshold("found", bar.found, AT_FOUND, x, y),
    svg("polyline", { points: line.map((evidence) => `${x(evidence)},${y(confidence(bar, evidence))}`).join(" ") }),
    ...hits.map((hit) => dot(hit, most, x, y)),
    svg("text", { x: x(0), y: HEIGHT - 6 }, "evidence"),
    svg("text", { x: 2, y: y(1) + 4 }, "1"),
  );
}

function threshold(name, evidence, share, x, y) {
  const isLeft = name === "weak";
  const beside = { x: x(evidence) + (isLeft ? -4 : 4), y: y(isLeft ? 0.86 : 0.1) };
  const where = { ...beside, "text-anchor": isLeft ? "end" : "start" };
  return [
    svg("path", { d: `M${x(evidence)} ${y(0)}V${y(1)}`, "data-threshold": name }),
    svg("text", where, `${name} ${number(evidence, 2)}`),
  ];
}

/** Draw where a hit stands; one that is called what was asked for stands above the curve, at certainty. */
function dot(hit, most, x, y) {
  return svg("circle", { cx: x(Math.min(most, hit.evidence)), cy: y(hit.confidence ?? 0), r: 3.5, "data-dot": "" });
}
