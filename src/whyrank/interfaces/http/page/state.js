// What the page knows, in one place: changed by `change`, and everybody who listens is told which parts changed.

const state = {
  query: "",
  recipe: "",
  scope: "",
  limit: 10,
  phase: "idle", // idle, asking, answered, failed
  failure: null,
  pool: null, // what /v1/candidates said: the answer, and all that is needed to rank it again
  likeness: null, // what /v1/likeness said, which only diversity asks for
  wish: {}, // settings turned away from where they stood, by name
  selected: null, // the id the keys are at
  opened: new Set(), // ids whose arithmetic is shown
  picked: [], // up to two ids to compare
  doomed: new Set(), // ids that are about to be forgotten or replaced
  status: null,
  recipes: [], // their names
};

const listeners = [];

/** Return the state; it is read anywhere and changed only by `change`. */
export function now() {
  return state;
}

/** Change parts of the state and tell those who listen to one of them. */
export function change(parts) {
  Object.assign(state, parts);
  const changed = Object.keys(parts);
  for (const { keys, hear } of listeners) {
    if (changed.some((key) => keys.includes(key))) hear(state);
  }
}

/** Call `hear` whenever one of these parts changes. */
export function listen(keys, hear) {
  listeners.push({ keys, hear });
}
