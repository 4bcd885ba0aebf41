// How numbers, dates and judgements are said.

const LIKELY = 0.8; // the confidence a memory has at the threshold "found" …
const POSSIBLE = 0.2; // … and at the threshold "weak"

/** Say a confidence in words. */
export function sure(confidence) {
  if (confidence === null || confidence === undefined) return null;
  const share = percent(confidence);
  if (confidence >= LIKELY) return { level: "found", text: `confident, ${share}` };
  if (confidence >= POSSIBLE) return { level: "weak", text: `perhaps, ${share}` };
  return { level: "nothing", text: `doubtful, ${share}` };
}

/** Say a share in per cent. */
export function percent(share) {
  return `${Math.round(share * 100)} %`;
}

export const VERDICTS = {
  found: ["Found", "The best of these answer the question."],
  weak: ["Weak", "Some results are similar, but the evidence is thin: read them before you rely on them."],
  nothing: ["Nothing relevant", "These are only the nearest memories. The store does not seem to contain an answer."],
};

/** Write a number with so many digits behind the point, a true minus sign before it. */
export function number(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  return value.toFixed(digits).replace("-", "−");
}

/** Write a number as short as it can be said. */
export function short(value) {
  return String(Number(value.toPrecision(6))).replace("-", "−");
}

const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });

/** Write a date. */
export function day(moment) {
  return moment ? DAY.format(new Date(moment)) : "";
}

const SHOWN_FOLDERS = 3; // what fits on a line; the whole path is told on hovering

/** Return where a memory stands, its path cut from the left. */
export function place(row) {
  if (!row.path) return { short: "", long: row.id };
  const parts = row.path.split("/");
  const lines = row.start_line ? `:${row.start_line}-${row.end_line}` : "";
  const kept = parts.length > SHOWN_FOLDERS ? `…/${parts.slice(-SHOWN_FOLDERS).join("/")}` : row.path;
  return { short: kept + lines, long: row.path + lines };
}

/** Return what a memory is called. */
export function title(row) {
  return row.title || row.name || firstWords(row.text ?? row.snippet?.join("") ?? "") || row.id;
}

const TITLE_LENGTH = 70;

function firstWords(text) {
  const line = text.trim().split("\n")[0];
  return line.length <= TITLE_LENGTH ? line : `${line.slice(0, TITLE_LENGTH)}…`;
}

/** Write what a program said as a sentence. */
export function sentence(text) {
  return text && `${text[0].toUpperCase()}${text.slice(1)}${/[.!?…]$/.test(text) ? "" : "."}`;
}

const UNITS = ["bytes", "kB", "MB", "GB", "TB"];

/** Write a number of bytes. */
export function bytes(size) {
  const power = size ? Math.min(Math.floor(Math.log10(size) / 3), UNITS.length - 1) : 0;
  return `${(size / 1000 ** power).toFixed(power ? 1 : 0)} ${UNITS[power]}`;
}

/** Write a number of things. */
export function many(count, one, several = `${one}s`) {
  return `${count.toLocaleString("en-GB")} ${count === 1 ? one : several}`;
}
