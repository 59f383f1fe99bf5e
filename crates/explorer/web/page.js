// @ts-check
// The page: starts the worker, moves time, handles the controls, shows the life of a request.
/* global Panel, readColours, duration, grouped, requestTitle, lifeInWords, PART_NAMES, startLive, live */

/** The page as it came, for `Save page`. */
const original = document.documentElement.outerHTML;

/** @param {string} id @returns {any} */
const byId = (id) => document.getElementById(id);

const page = {
  experiment: JSON.parse(byId("experiment").textContent),
  /** @type {Worker | null} */ worker: null,
  /** @type {Panel[]} */ panels: [],
  live: false, nowNs: 0, done: false, playing: false, toEnd: false,
  /** A message is on its way to the worker and its frame has not come. */
  busy: false,
  /** Commands that wait until the worker is free. @type {any[]} */ waiting: [],
  /** @type {any} */ colours: null,
  /** Time to which a program that drives the page moves it. */
  targetNs: 0, clock: 0, frames: 0, frameMs: 0, memoryBytes: 0,
  /** State or theme changed since the panels were drawn. */ changed: true,
  /** When the panels were drawn last. */ drawnMs: 0,
  /** @type {any} */ life: null,
  /** @type {any} */ results: null,
  setup: { sides: /** @type {[string, string][][]} */ ([[]]), seed: "0" },
};

/** Time between redraws of unchanged panels, in case the window was resized. */
const REDRAW_MS = 250;

const speed = () => 10 ** Number(byId("speed").value);

/** The simulator, which the page has packed by gzip. */
async function decodeModule() {
  const text = atob(byId("module").textContent.trim());
  const packed = new Blob([Uint8Array.from(text, (letter) => letter.charCodeAt(0))]);
  return new Response(packed.stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

async function start() {
  const source = new Blob([byId("worker").textContent], { type: "text/javascript" });
  page.worker = new Worker(URL.createObjectURL(source));
  page.worker.onmessage = (event) => receive(event.data);
  page.worker.onerror = (event) => showFault(event.message);
  const { experiment } = page;
  if (experiment.live) return startLive(experiment.live);
  page.setup = { sides: experiment.sides.length ? experiment.sides : [[]], seed: experiment.seed };
  post({ kind: "load", module: await decodeModule(), experiment, setup: page.setup });
}

/** Sends a message to the worker, or keeps it until the last one's frame has come. @param {any} message */
function post(message) {
  if (page.busy) return page.waiting.push(message);
  page.busy = true;
  page.worker?.postMessage(message);
}

/** @param {any} message */
function receive(message) {
  switch (message.kind) {
    case "described": return describe(message);
    case "frame": takeFrame(message); break;
    case "life": showLife(message); break;
    case "results": page.results = message; break;
    case "fault":
      page.toEnd = page.playing = false;
      showFault(message.message);
      break;
  }
  page.busy = false;
  const next = page.waiting.shift();
  if (next) post(next);
  else if (page.toEnd && !page.done) post({ kind: "advance", untilNs: page.nowNs + 3.6e12, toEnd: true });
  else if (page.nowNs < page.targetNs && !page.done) post({ kind: "advance", untilNs: page.targetNs });
  else page.toEnd = false;
  showButtons();
}

/** @param {any} message */
function takeFrame(message) {
  live.pending = Math.max(live.pending - 1, 0);
  byId("fault").hidden = true;
  const passed = message.nowNs - page.nowNs;
  page.nowNs = message.nowNs;
  page.changed = true;
  page.done = message.done;
  page.memoryBytes = message.memoryBytes;
  if (page.done) page.playing = false;
  page.panels.forEach((panel, index) => panel.show(message.sides[index], message.sides[index].nowNs ?? message.nowNs, Math.max(passed, 0)));
}

/** @param {any} message */
function describe(message) {
  page.setup = message.setup;
  page.panels = message.descriptions.map((/** @type {any} */ description, /** @type {number} */ index) => new Panel(description, index, askLife));
  byId("sides").replaceChildren(...page.panels.map((panel) => panel.root));
  page.life = null;
  byId("life").hidden = true;
  if (page.live) return;
  const [first, second] = message.descriptions;
  fillOrders(byId("order-0"), first.orders, first.order, null);
  fillOrders(byId("order-1"), first.orders, second?.order ?? "", "nothing");
  byId("depth").value = first.devices[0].depth;
  byId("seed").value = message.setup.seed;
}

/** @param {HTMLSelectElement} select @param {string[]} orders @param {string} chosen @param {string | null} none */
function fillOrders(select, orders, chosen, none) {
  const option = (/** @type {string} */ value, /** @type {string} */ text) => new Option(text, value, false, value === chosen);
  const known = orders.includes(chosen) || !chosen ? orders : [chosen, ...orders];
  select.replaceChildren(...(none ? [option("", none)] : []), ...known.map((order) => option(order, order)));
}

/** @param {string} message */
function showFault(message) {
  byId("fault").textContent = message;
  byId("fault").hidden = false;
}

/** @param {number} side @param {any} request */
function askLife(side, request) {
  page.toEnd = page.playing = false;
  byId("status").textContent = "Runs the experiment again up to this request …";
  post({ kind: "life", side, request });
}

/** @param {any} answer */
function showLife(answer) {
  const { description } = page.panels[answer.side], { request } = answer;
  page.life = { side: answer.side, request, words: lifeInWords(answer, description, description.order), overtook: answer.overtook, before: answer.before };
  byId("status").textContent = "";
  byId("life-title").textContent = `${duration(request.response)}: ${requestTitle(request, description)}`;
  byId("life-text").replaceChildren(...page.life.words.map((/** @type {string} */ sentence) => Object.assign(document.createElement("p"), { textContent: sentence })));
  for (const id of ["life-bar", "life-parts"]) byId(id).hidden = description.isNode === true;
  const share = (/** @type {number} */ part) => (100 * part) / Math.max(request.response, 1);
  const bar = request.parts.map((/** @type {number} */ part, /** @type {number} */ index) => {
    const piece = Object.assign(document.createElement("i"), { className: `part-${index}` });
    piece.style.width = `${share(part)}%`;
    return piece;
  });
  byId("life-bar").replaceChildren(...bar);
  const rows = request.parts.map((/** @type {number} */ part, /** @type {number} */ index) => {
    const row = document.createElement("tr"), name = document.createElement("th");
    name.scope = "row";
    name.append(Object.assign(document.createElement("span"), { className: `swatch part-${index}` }), PART_NAMES[index]);
    const cells = [duration(part), `${share(part).toFixed(1)} %`].map((text) => Object.assign(document.createElement("td"), { textContent: text }));
    row.append(name, ...cells);
    return row;
  });
  byId("life-parts").tBodies[0].replaceChildren(...rows);
  byId("life").hidden = false;
  byId("life").focus();
  byId("life").scrollIntoView({ block: "nearest" });
}

function showSlowest() {
  const found = page.panels.map((panel, side) => ({ side, request: panel.view?.slowest[0] })).filter((entry) => entry.request);
  if (!found.length) return;
  const slowest = found.reduce((best, entry) => (entry.request.response > best.request.response ? entry : best));
  askLife(slowest.side, slowest.request);
}

function stepBack() {
  if (page.live) return;
  page.playing = page.toEnd = false;
  page.targetNs = 0;
  const accesses = page.panels[0]?.view?.accesses ?? [];
  let untilNs = 0;
  for (let at = 9; at < accesses.length; at += 15) if (accesses[at] < page.nowNs) untilNs = Math.max(untilNs, accesses[at]);
  // Events at that time belong to the state before it.
  post({ kind: "back", untilNs: untilNs - 1 });
}

/** @param {Event | null} event */
function applySetup(event) {
  event?.preventDefault();
  const { orderKey } = page.panels[0].description, depth = byId("depth").value, key = byId("key").value.trim();
  const kept = page.setup.sides[0].filter(([name]) => name !== orderKey && name !== "drive.queue_depth");
  /** @type {[string, string][]} */ const common = depth && Number(depth) !== page.panels[0].description.devices[0].depth ? [...kept, ["drive.queue_depth", depth]] : kept.concat(page.setup.sides[0].filter(([name]) => name === "drive.queue_depth"));
  if (key) {
    const [name, ...rest] = key.split("=");
    common.push([name.trim(), rest.join("=").trim()]);
  }
  const orders = [byId("order-0").value, byId("order-1").value].filter((order) => order);
  restart({ sides: orders.map((order) => [...common, [orderKey, order]]), seed: byId("seed").value });
}

/** @param {any} setup */
function restart(setup) {
  page.playing = page.toEnd = false;
  page.targetNs = 0;
  post({ kind: "restart", setup });
}

function savePage() {
  const experiment = { ...page.experiment, sides: page.setup.sides, seed: page.setup.seed };
  const text = JSON.stringify(experiment).replaceAll("<", "\\u003c");
  const begin = original.indexOf(">", original.indexOf('id="experiment"')) + 1;
  const saved = `<!doctype html>\n${original.slice(0, begin)}${text}${original.slice(original.indexOf("</" + "script>", begin))}`;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([saved], { type: "text/html" }));
  link.download = "headstack-explorer.html";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function showButtons() {
  byId("play").textContent = page.playing ? "Pause" : "Play";
  byId("play").disabled = page.done;
  byId("step").disabled = page.done || page.playing;
  byId("end").textContent = page.toEnd ? "Stop" : "Run to the end";
  byId("end").disabled = page.done;
  byId("slowest").disabled = !page.panels.some((panel) => panel.view?.slowest.length);
}

function showTime() {
  const factor = speed();
  byId("speed-text").textContent = factor >= 1 ? `${grouped(factor)} ×` : `1 : ${grouped(1 / factor)}`;
  byId("time").textContent = `${(page.nowNs / 1e9).toFixed(6)} s of ${page.live ? "the disk" : "the run"}${page.done ? ", at its end" : ""}`;
}

/** @param {number} clock */
function drawFrame(clock) {
  const began = performance.now();
  const elapsed = Math.min(clock - page.clock, 100);
  page.clock = clock;
  if (page.playing && !page.busy) post({ kind: "advance", untilNs: page.nowNs + elapsed * 1e6 * speed() });
  // The disks do not wait for the next event of the server.
  if (page.live) page.panels.forEach((panel) => panel.extrapolate(elapsed * 1e6));
  if (page.live || page.changed || clock - page.drawnMs > REDRAW_MS) {
    page.changed = false;
    page.drawnMs = clock;
    page.colours ??= readColours();
    page.panels.forEach((panel) => panel.draw(page.colours, clock));
    page.frames += 1;
    page.frameMs = 0.95 * page.frameMs + 0.05 * (performance.now() - began);
  }
  showTime();
  requestAnimationFrame(drawFrame);
}

/** @param {string} name */
function setTheme(name) {
  document.documentElement.dataset.theme = name;
  byId("theme").textContent = name === "dark" ? "Light" : "Dark";
  page.colours = null;
  page.changed = true;
}

function togglePlay() {
  if (page.live) return;
  page.playing = !page.playing && !page.done;
  page.toEnd = false;
  showButtons();
}

function listen() {
  byId("play").addEventListener("click", togglePlay);
  byId("step").addEventListener("click", () => post({ kind: "step" }));
  byId("back").addEventListener("click", stepBack);
  byId("end").addEventListener("click", () => {
    page.playing = false;
    page.toEnd = !page.toEnd;
    if (page.toEnd) post({ kind: "advance", untilNs: page.nowNs + 3.6e12, toEnd: true });
    showButtons();
  });
  byId("slowest").addEventListener("click", showSlowest);
  byId("setup").addEventListener("submit", applySetup);
  byId("save").addEventListener("click", savePage);
  byId("go").addEventListener("click", () => {
    page.targetNs = 0;
    post({ kind: "back", untilNs: page.life.request.submitted });
  });
  byId("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  document.addEventListener("keydown", (event) => {
    const inField = event.target instanceof HTMLElement && event.target.matches("input, select, button, textarea");
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === " " && !inField) togglePlay();
    else if (event.key === "." && !inField && !page.live) post({ kind: "step" });
    else if (event.key === "," && !inField) stepBack();
    else return;
    event.preventDefault();
  });
}

/** @param {Panel} panel */
function sideState({ view, description, shingles }) {
  const known = view && {
    completed: view.completed, issued: view.issued, outstanding: view.outstanding, statistics: view.statistics, slowest: view.slowest, last: view.last,
    compared: view.compared, differs: view.differs, nowNs: view.nowNs, nextNs: view.nextNs, devices: view.devices.length, node: view.node,
    lbn: view.devices[0]?.lbn,
  };
  return { order: description.order, heading: description.heading, shingles: shingles.map(({ caption }) => caption.textContent), ...known };
}

/** What the page shows, for programs that drive it. */
const explorer = {
  state() {
    const { nowNs, done, playing, toEnd, busy, frames, frameMs, life, setup, results } = page;
    const sides = page.panels.map(sideState);
    return { nowNs, done, playing, live: page.live, disk: live.disk, memoryBytes: page.memoryBytes, toEnd, busy: busy || page.waiting.length > 0, frames, frameMs, life, setup, sides, fault: byId("fault").hidden ? null : byId("fault").textContent, results };
  },
  restart,
  /** @param {number} untilNs */
  advance(untilNs) {
    page.targetNs = untilNs;
    post({ kind: "advance", untilNs });
  },
  /** The results of a side's whole run, as `headstack sim --json` writes them. @param {number} side */
  results: (side) => post({ kind: "results", side }),
};
Object.assign(window, { explorer });

setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
listen();
showButtons();
start().catch((error) => showFault(String(error)));
requestAnimationFrame(drawFrame);
