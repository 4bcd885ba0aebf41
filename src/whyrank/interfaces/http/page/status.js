// What the store holds, what waits, how far its confidence can be trusted, how it was measured last.

import * as api from "./api.js";
import { curve } from "./curve.js";
import { alarm, at, code, fill, h, hint } from "./dom.js";
import { evaluation } from "./evaluation.js";
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
    fill(at("store"), h("h2", {}, "Store"), alarm(failure));
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
    ...evaluation(status),
  );
}

function facts(status) {
  return [
    ["File", code(status.store)],
    ["Holds", `${memories(status.memories)} from ${many(status.files, "file")}`],
    ...(status.bytes === null ? [] : [["Size", bytes(status.bytes)]]),
    ["Queue", queue(status)],
    ["Kept by", `${status.engine}, ${status.keyword_index}`],
    ...(status.version ? [["whyrank", status.version]] : []),
  ];
}

const memories = (count) => many(count, "memory", "memories");
const also = (count, what) => (count ? `, ${count} ${what}` : "");
const because = (error) => (error ? `: ${error}` : "");

function queue(status) {
  const backlog = status.backlog ?? {};
  const waiting = backlog.waiting ?? status.without_vector ?? 0;
  if (!waiting && !backlog.refused) return "empty: every memory has its vector";
  return `${memories(waiting)} without a vector${also(backlog.refused, "refused")}${because(backlog.error)}`;
}

function scopes(status) {
  const all = Object.entries(status.scopes ?? {});
  if (all.length < 2) return [];
  const lines = all.map(([name, count]) => h("li", {}, `${name}: ${memories(count)}`));
  return [h("h3", {}, "Scopes"), h("ul", {}, ...lines)];
}

function spaces(status) {
  if (!status.roles?.length) return [];
  const told = ({ role, vectors, waiting, error }) =>
    ` ${role}, ${many(vectors, "vector")}${also(waiting, "waiting")}${because(error)}`;
  const lines = status.roles.map((role) => h("li", {}, h("strong", {}, role.model ?? role.space), told(role)));
  return [h("h3", {}, "Embedding spaces"), h("ul", {}, ...lines)];
}

function calibrations(status) {
  const made = status.calibrations ?? [];
  const title = h("h3", {}, "From evidence to confidence");
  if (!made.length) {
    const how = [code("whyrank calibrate"), " fits them to these memories."];
    return [title, hint("Not calibrated yet: default thresholds are used. ", ...how)];
  }
  return [title, ...made.flatMap((one) => calibration(one))];
}

function calibration(made) {
  const which = made.thresholds.evidence ?? made.thresholds.words;
  const over = `Measured over ${memories(made.memories)} of ${made.scopes.join(", ")} on ${day(made.made)}`;
  const kept = `${percent(which.kept)} of ${made.questions.own} own questions kept`;
  const rejected = `${percent(which.rejected)} of ${made.questions.foreign} foreign ones rejected`;
  return [curve(which, order().hits), hint(`${over}: ${kept}, ${rejected}.`)];
}
