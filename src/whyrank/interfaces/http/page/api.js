// The server's routes. Every failure comes out as a Failure with what the server said to do about it.

const TOKEN = "whyrank.token";

/** A request that did not come to an answer: `code` is the server's, "gone" where nobody answered, "broken-off" where
 * an answer that began well did not come to its end. */
export class Failure extends Error {
  constructor(status, code, message, hint) {
    super(message);
    Object.assign(this, { status, code, hint });
  }
}

let admission = null; // a ticket on its way to become a token

/** Take token or ticket out of the address, where the command line put it, and keep the token for this tab. */
export function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1));
  const [token, ticket] = [given.get("token"), given.get("ticket")];
  if (token === null && ticket === null) return;
  if (token === null) admission = redeem(ticket);
  else keepToken(token);
  history.replaceState(history.state, "", location.pathname + location.search);
}

/** Get the token for a ticket; whoever is refused is asked for the token, as everybody is. */
async function redeem(ticket) {
  const body = JSON.stringify({ ticket });
  const asked = { method: "POST", headers: { "Content-Type": "application/json" }, body, cache: "no-store" };
  const answer = await fetch("/ticket", asked).then((found) => (found.ok ? found.json() : null)).catch(() => null);
  if (answer) keepToken(answer.token);
}

/** Keep a token for this tab. */
export function keepToken(token) {
  sessionStorage.setItem(TOKEN, token.trim());
}

function headers(body) {
  const token = sessionStorage.getItem(TOKEN);
  return {
    ...(token ? { Authorization: `Bearer ${token}` } : {}),
    ...(body ? { "Content-Type": "application/json" } : {}),
  };
}

async function ask(method, path, { body, signal, keepalive = false } = {}) {
  const text = body === undefined ? undefined : JSON.stringify(body);
  let response;
  if (admission) await admission;
  try {
    response = await fetch(path, { method, headers: headers(text), body: text, signal, keepalive, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure(0, "gone", "The server does not answer.", "Is `whyrank serve` still running?");
  }
  return read(response);
}

async function read(response) {
  const data = await response.json().catch((error) => unread(error, response));
  if (response.ok) return data;
  const said = data?.error ?? {};
  const message = said.message ?? `The server answered ${response.status}.`;
  throw new Failure(response.status, said.code ?? "unreadable", message, said.hint ?? "");
}

/** Return nothing for a refusal without words; an answer that is not read to its end is none. */
function unread(error, response) {
  if (error.name === "AbortError") throw error;
  if (!response.ok) return null;
  const what = "Try again; if this was a change, first check whether it was made.";
  throw new Failure(response.status, "broken-off", "The server's answer was cut off.", what);
}

function without(values) {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== "" && value !== undefined));
}

function addressed(path, values) {
  const asked = new URLSearchParams(without(values));
  return asked.size ? `${path}?${asked}` : path;
}

function one(id, values) {
  return addressed(`/v1/memories/${encodeURIComponent(id)}`, values);
}

export const search = (asked, signal) => ask("POST", "/v1/search", { body: without(asked), signal });
export const candidates = (asked, signal) => ask("POST", "/v1/candidates", { body: without(asked), signal });
export const likeness = (asked, signal) => ask("POST", "/v1/likeness", { body: without(asked), signal });
export const why = (asked, signal) => ask("POST", "/v1/why", { body: without(asked), signal });
export const status = () => ask("GET", "/v1/status");
export const recipes = () => ask("GET", "/v1/recipes");
export const memory = (id, scope, signal) => ask("GET", one(id, { scope }), { signal });
export const memories = (filters, signal) => ask("GET", addressed("/v1/memories", filters), { signal });
export const add = (fact, keepalive) => ask("POST", "/v1/memories", { body: without(fact), keepalive });
export const forget = (id, scope, purge, keepalive) => ask("DELETE", one(id, { purge, scope }), { keepalive });
