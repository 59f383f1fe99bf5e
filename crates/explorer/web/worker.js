// @ts-check
// The worker: runs the simulator (WebAssembly) for each side and sends the page what it has to draw. All sides have the same time.
/* global Side, readWindow */

/** @typedef {{ sides: [string, string][][], seed: string }} Setup */

const worker = {
  /** @type {any} */ wasm: null,
  /** @type {Side[]} */ sides: [],
  /** @type {Setup} */ setup: { sides: [[]], seed: "0" },
  nowNs: 0,
  /** Time of the run that a step covers. */
  stepNs: 1e8,
  done: false,
  /** The number of the last event of a running disk. */
  event: 0,
};

/** Longest work between two messages: short in play, so that it is smooth; longer in a run to the end, which then takes less time. */
const BUDGET_MS = { play: 24, toEnd: 100 };
/** Numbers of rows that a step aims at, some hundred requests: the memory for rows then does not depend on how fast the machine is. */
const STEP_NUMBERS = { least: 4096, most: 16384 };

/** @param {string} value */
function writeText(value) {
  const bytes = new TextEncoder().encode(value);
  const at = worker.wasm.input(bytes.length);
  new Uint8Array(worker.wasm.memory.buffer, at, bytes.length).set(bytes);
}

function readText() {
  const { wasm } = worker;
  return new TextDecoder().decode(new Uint8Array(wasm.memory.buffer, wasm.text(), wasm.text_length()));
}

/** @param {number} count */
function readRows(count) {
  return new Float64Array(worker.wasm.memory.buffer, worker.wasm.rows(), count);
}

/** @param {[string, string][]} settings @param {string} seed */
function createSession(settings, seed) {
  writeText(JSON.stringify({ settings, seed }));
  const session = worker.wasm.create();
  if (!session) throw new Error(readText());
  return session;
}

/** @param {Setup} setup */
function restart(setup) {
  const created = [];
  try {
    for (const settings of setup.sides) created.push(createSession(settings, setup.seed));
  } catch (error) {
    created.forEach((session) => worker.wasm.free(session));
    throw error;
  }
  worker.sides.forEach((side) => worker.wasm.free(side.session));
  worker.sides = created.map((session) => {
    worker.wasm.describe(session);
    return new Side(session, JSON.parse(readText()));
  });
  worker.setup = setup;
  worker.nowNs = 0;
  worker.done = false;
}

/** Moves every side to the same time; returns how many numbers the rows of the side with most had. @param {number} untilNs */
function advanceAll(untilNs) {
  let more = false;
  let most = 0;
  for (const side of worker.sides) {
    const count = worker.wasm.advance(side.session, untilNs);
    most = Math.max(most, count);
    side.add(readRows(count));
    more = worker.wasm.has_more(side.session) === 1 || more;
  }
  worker.nowNs = untilNs;
  if (!more) {
    worker.nowNs = Math.max(...worker.sides.map((side) => worker.wasm.now(side.session)));
    worker.done = true;
  }
  compareIssues();
  return most;
}

/** The requests of all sides must be the same, one by one for each source, as long as their load does not depend on completions. */
function compareIssues() {
  const [first, second] = worker.sides;
  if (!second) return;
  for (const source of first.hashes.keys()) {
    const a = first.hashes.get(source), b = second.hashes.get(source);
    if (!a || !b) continue;
    const from = Math.max(a.from, b.from), to = Math.min(a.from + a.marks.length, b.from + b.marks.length);
    for (let mark = from; mark < to; mark++) {
      if (a.marks[mark - a.from] !== b.marks[mark - b.from]) {
        first.differs = second.differs = true;
      } else {
        first.compared = second.compared = Math.max(first.compared, (mark + 1) * Side.MARK);
      }
    }
    a.drop(to);
    b.drop(to);
  }
}

/** Moves on to `untilNs` as far as the budget allows, in steps of some hundred requests. @param {number} untilNs @param {number} budgetMs */
function advanceWithin(untilNs, budgetMs) {
  const began = performance.now();
  while (!worker.done && worker.nowNs < untilNs && performance.now() - began < budgetMs) {
    const isWhole = worker.nowNs + worker.stepNs <= untilNs;
    const numbers = advanceAll(Math.min(worker.nowNs + worker.stepNs, untilNs));
    if (numbers > STEP_NUMBERS.most) worker.stepNs = Math.max(worker.stepNs / 2, 1e6);
    // A step that the shown time cut short says nothing of the next.
    else if (isWhole && numbers < STEP_NUMBERS.least) worker.stepNs = Math.min(worker.stepNs * 2, 1e11);
  }
}

/** Runs a new session to its end or to `untilNs`, in steps that bound the memory for rows. @param {number} session */
function runOn(session, untilNs = 1e18) {
  for (let nowNs = 0; nowNs < untilNs && worker.wasm.has_more(session) === 1; ) {
    nowNs = Math.min(nowNs + 2.5e8, untilNs);
    worker.wasm.advance(session, nowNs);
  }
}

/** Moves to the next event of any side. */
function stepOnce() {
  const [first] = worker.sides;
  if (!first || worker.done) return;
  first.add(readRows(worker.wasm.step(first.session)));
  advanceAll(Math.max(worker.wasm.now(first.session), worker.nowNs));
}

/** Runs the same experiment again from its seed to an earlier time. @param {number} untilNs */
function back(untilNs) {
  restart(worker.setup);
  while (worker.nowNs < untilNs && !worker.done) advanceAll(Math.min(worker.nowNs + 2.5e8, untilNs));
}

/** Everything that happened between the issue and the end of a request, from a new run with the same seed.
 *  @param {number} index @param {any} request */
function life(index, request) {
  const session = createSession(worker.setup.sides[index], worker.setup.seed);
  const collected = readWindow((untilNs) => readRows(worker.wasm.advance(session, untilNs)), request);
  worker.wasm.free(session);
  return collected;
}

function frame() {
  const sides = worker.sides.map((side) => {
    const count = worker.wasm.snapshot(side.session, worker.nowNs);
    const shown = side.frame(worker.nowNs, readRows(count).slice());
    return { ...shown, nextNs: worker.wasm.next_event(side.session) };
  });
  const transfer = sides.flatMap((side) => [side.queue.buffer, side.devices.buffer, side.accesses.buffer]);
  const message = { kind: "frame", nowNs: worker.nowNs, done: worker.done, sides, memoryBytes: worker.wasm.memory.buffer.byteLength };
  // @ts-ignore: the scope of a worker
  self.postMessage(message, transfer);
}

/** Shows a running disk, whose events come from the server. @param {any[]} descriptions of its panels */
function startLive(descriptions) {
  worker.event = 0;
  worker.sides = descriptions.map((description) => new Side(0, description));
  // @ts-ignore: the scope of a worker
  self.postMessage({ kind: "described", descriptions, setup: worker.setup });
}

/** Adds an event of the server, which has a line with its number and one for each panel. @param {string} data */
function addLive(data) {
  const [number, ...lines] = data.split("\n");
  // Of events that the page missed, requests that ended would stay in the queue for good.
  if (worker.event && Number(number) !== worker.event + 1) worker.sides.forEach((side) => side.outstanding.clear());
  worker.event = Number(number);
  const sides = lines.map((line, index) => addLiveSide(worker.sides[index], line));
  worker.nowNs = sides[0].nowNs;
  const transfer = sides.flatMap((side) => [side.queue.buffer, side.devices.buffer, side.accesses.buffer]);
  // @ts-ignore: the scope of a worker
  self.postMessage({ kind: "frame", nowNs: worker.nowNs, done: false, sides, memoryBytes: 0 }, transfer);
}

/** Adds what happened on a side: time, dropped events, length of the rows, rows, state of the devices. @param {Side} side @param {string} line */
function addLiveSide(side, line) {
  const bytes = Uint8Array.from(atob(line), (letter) => letter.charCodeAt(0));
  const numbers = new Float64Array(bytes.buffer);
  const [nowNs, dropped, length] = numbers;
  if (!side.startNs) side.startNs = nowNs;
  side.add(numbers.subarray(3, 3 + length));
  // Requests whose end was dropped would stay in the queue for good.
  if (dropped > side.dropped) side.outstanding.clear();
  side.dropped = dropped;
  return { ...side.frame(nowNs, numbers.slice(3 + length)), nowNs, nextNs: -1 };
}

/** @param {any} message */
async function handle(message) {
  switch (message.kind) {
    case "live": startLive(message.descriptions); return null;
    case "event": addLive(message.data); return null;
    case "load": {
      const module = await WebAssembly.instantiate(message.module, {});
      worker.wasm = module.instance.exports;
      writeText(JSON.stringify(message.experiment));
      if (!worker.wasm.load()) throw new Error(readText());
      restart(message.setup);
      break;
    }
    case "restart": restart(message.setup); break;
    case "advance": advanceWithin(message.untilNs, message.toEnd ? BUDGET_MS.toEnd : BUDGET_MS.play); break;
    case "step": stepOnce(); break;
    case "back": back(message.untilNs); break;
    case "results": {
      const session = createSession(worker.setup.sides[message.side], worker.setup.seed);
      runOn(session);
      const isGood = worker.wasm.finish(session) === 1;
      return { kind: "results", isGood, text: readText() };
    }
    case "life":
      // What happened on a running disk cannot be run again: its last accesses are all that is known.
      if (!worker.wasm) return { kind: "life", side: message.side, request: message.request, ...worker.sides[message.side].knownLife(message.request) };
      return { kind: "life", side: message.side, request: message.request, ...life(message.side, message.request) };
  }
  if (message.kind === "load" || message.kind === "restart") {
    const descriptions = worker.sides.map((side) => side.description);
    // @ts-ignore: the scope of a worker
    self.postMessage({ kind: "described", descriptions, setup: worker.setup });
  }
  frame();
  return null;
}

self.onmessage = async (event) => {
  try {
    const answer = await handle(event.data);
    // @ts-ignore: the scope of a worker
    if (answer) self.postMessage(answer);
  } catch (error) {
    const fault = error instanceof Error ? error.message : String(error);
    // @ts-ignore: the scope of a worker
    self.postMessage({ kind: "fault", cause: event.data.kind, message: fault });
  }
};
