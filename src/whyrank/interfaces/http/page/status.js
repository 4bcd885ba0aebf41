// What the store holds, what waits, how far its confidence can be trusted, how it was measured last.

import * as api from "./api.js";
import { curve } from "./curve.js";
import { at, fill, h } from "./dom.js";
import { order } from "./hits.js";
import { change, listen, now } from "./state.js";
import { bytes, day, many, percent } from "./words.js";

/** Keep the panel up to date. */
export function startStatus() {
  listen(["status"], draw);
  listen(["pool", "wish", "limit"], () => now().status && draw(now()));
  fill(at("store"), h("h2", {}, "Store"));
}

/** Ask the server how the store is. */
export async function refreshStatus() {
  try {
    change({ status: await api.status() });
  } catch (failure) {
    fill(at("store"), h("h2", {}, "Store"), h("p", { role: "alert" }, `${failure.message} ${failure.hint ?? ""}`));
    if (failure.status === 401) change({ phase: "failed", failure });
  }
}

function draw({ status }) {
  at("add").hidden = status.read_only;
  fill(
    at("store"),
    h("h2", {}, "Store"),
    h("dl", {}, ...facts(status).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    ...(status.notices ?? []).map((notice) => h("p", { "data-notice": "" }, notice.message)),
    ...scopes(status),
    ...spaces(status),
    ...calibrations(status),
    ...evaluation(status.evaluation),
  );
}

function facts(status) {
  return [
    ["File", h("code", {}, status.store)],
    ["Holds", `${many(status.memories, "memory", "memories")} from ${many(status.files, "file")}`],
    ["Size", bytes(status.bytes)],
    ["Queue", queue(status)],
    ["Kept by", `${status.engine}, ${status.keyword_index}`],
    ...(status.version ? [["whyrank", status.version]] : []),
  ];
}

function queue(status) {
  const backlog = status.backlog ?? {};
  const waiting = backlog.waiting ?? status.without_vector ?? 0;
  if (!waiting && !backlog.refused) return "empty: every memory has its vector";
  const refused = backlog.refused ? `, ${backlog.refused} refused` : "";
  return `${many(waiting, "memory", "memories")} without a vector${refused}${backlog.error ? `: ${backlog.error}` : ""}`;
}

function scopes(status) {
  const all = Object.entries(status.scopes ?? {});
  if (all.length < 2) return [];
  return [h("h3", {}, "Scopes"), h("ul", {}, ...all.map(([name, count]) => h("li", {}, `${name}: ${many(count, "memory", "memories")}`)))];
}

function spaces(status) {
  if (!status.roles?.length) return [];
  const lines = status.roles.map((role) =>
    h("li", {}, h("strong", {}, role.model), ` ${role.role}, ${many(role.vectors, "vector")}${role.waiting ? `, ${role.waiting} waiting` : ""}${role.error ? `: ${role.error}` : ""}`),
  );
  return [h("h3", {}, "Embedding spaces"), h("ul", {}, ...lines)];
}

function calibrations(status) {
  const made = status.calibrations ?? [];
  const title = h("h3", {}, "From evidence to confidence");
  if (!made.length) {
    const how = h("p", { "data-hint": "" }, "Not calibrated yet: default thresholds speak. ", h("code", {}, "whyrank calibrate"), " fits them to these memories.");
    return [title, how];
  }
  return [title, ...made.flatMap((one) => calibration(one))];
}

function calibration(made) {
  const which = made.thresholds.evidence ?? made.thresholds.coverage;
  const told = `Measured over ${many(made.memories, "memory", "memories")} of ${made.scopes.join(", ")} on ${day(made.made)}: ${percent(which.kept)} of ${made.questions.own} own questions kept, ${percent(which.rejected)} of ${made.questions.foreign} foreign ones rejected.`;
  return [curve(which, order().hits), h("p", { "data-hint": "" }, told)];
}

function evaluation(last) {
  const title = h("h3", {}, "The last evaluation");
  if (!last) {
    return [title, h("p", { "data-hint": "" }, "None is kept here. ", h("code", {}, "whyrank eval SET --keep"), " measures how well the right memories are found.")];
  }
  return [title, h("p", { "data-hint": "" }, `Made ${last.made} by whyrank ${last.whyrank}.`), ...last.sets.map(measured)];
}

const MEASURES = ["ndcg@10", "recall@10", "hit@1"];

/** Show one set: a line for each recipe, for words and vectors alone, and for the best that could be done. */
function measured({ set, queries, lines }) {
  const rows = Object.entries(lines).map(([name, figures]) =>
    h("tr", {}, h("th", { scope: "row" }, name), ...MEASURES.map((measure) => h("td", {}, (figures[measure] ?? NaN).toFixed(3)))));
  const head = h("tr", {}, h("th", { scope: "col" }, set), ...MEASURES.map((measure) => h("th", { scope: "col" }, measure)));
  return h("table", {}, h("caption", {}, many(queries, "question", "questions")), h("thead", {}, head), h("tbody", {}, ...rows));
}
