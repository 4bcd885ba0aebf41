// The page: every part is started once, and after that hears from the state.

import { readAddress, writeAddress } from "./address.js";
import { at } from "./dom.js";
import { startDropped } from "./dropped.js";
import { openFact } from "./facts.js";
import { pick, startFlip } from "./flip.js";
import { openHelp } from "./help.js";
import { startHead } from "./head.js";
import { startHits } from "./hits.js";
import { startKeys } from "./keys.js";
import { look, startMemory } from "./memory.js";
import { startMissing } from "./missing.js";
import { loadRecipes, startPickers } from "./pickers.js";
import { askNow, askSoon } from "./search.js";
import { startSliders } from "./sliders.js";
import { change, now } from "./state.js";
import { refreshStatus, startStatus } from "./status.js";
import { startTabs } from "./tabs.js";
import { startTheme } from "./theme.js";
import { startToasts } from "./toasts.js";
import { startVerdict } from "./verdict.js";

const USUAL_LIMIT = 10;

// What the parts may do to each other, so that none has to know the whole.
const does = {
  open: (id) => {
    const opened = new Set(now().opened);
    if (!opened.delete(id)) opened.add(id);
    change({ opened, selected: id });
  },
  pick,
  look: (id) => change({ selected: id }) ?? look(id),
  more: (limit) => change({ limit }),
  ask: (query) => {
    writeAddress(true); // whatever was typed until now can be gone back to
    change({ query, limit: USUAL_LIMIT });
    meant();
  },
  fail: (failure) => change({ phase: "failed", failure }),
  again: () => askNow() && load(),
};

function start() {
  const asked = readAddress();
  change({ ...asked, phase: asked.query ? "asking" : "idle" });
  startTheme();
  startHead();
  startTabs();
  startHits(does);
  startDropped();
  startSliders();
  startFlip();
  startMemory();
  startMissing();
  startStatus();
  startToasts();
  startVerdict(does);
  startKeys(does);
  startForm();
  startPickers((choice) => change(choice) ?? meant());
  at("query").value = now().query;
  askNow();
  load();
}

/** Ask for what does not depend on the question. */
async function load() {
  refreshStatus();
  await loadRecipes().then((recipes) => change({ recipes }), () => {}); // the status says what is wrong
}

/** Ask the question that stands in the field, and keep it in the history. */
function meant() {
  at("query").value = now().query;
  writeAddress(true);
  askNow();
}

function startForm() {
  at("query").addEventListener("input", (event) => {
    change({ query: event.target.value, limit: USUAL_LIMIT });
    writeAddress(false);
    askSoon();
  });
  at("ask").addEventListener("submit", (event) => event.preventDefault() ?? meant());
  at("add").addEventListener("click", () => openFact());
  at("help").addEventListener("click", openHelp);
  addEventListener("popstate", () => {
    change({ ...readAddress(), limit: USUAL_LIMIT });
    at("query").value = now().query;
    askNow();
  });
}

start();
