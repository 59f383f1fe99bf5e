// @ts-check
// A storage node's disk: where its streams read, what its memory holds, the commands at the disk, and whether the disk is slow.
/* global prepare, line, grouped, duration, COMMAND_COLUMNS, Panel */

/** Numbers of a node's state and of a stream in an event: `cli/src/live_page/node.rs`. */
const NODE_COLUMNS = 19, STREAM_COLUMNS = 9, STREAM_ROWS = 10;
/** Time over which rates of streams are smoothed: their turns may be seconds apart. */
const RATE_NS = 5e9;

/** @param {Float64Array} numbers @param {number} at where the numbers of the node begin */
function readNode(numbers, at) {
  const [streams, dispatched, waitingStreams, waitingRequests, memory, used, staged, coalesced, outstanding, connections, busyNs, slow, alarms, late, lateNs, lateShare, slowdown, failed, count] =
    numbers.subarray(at, at + NODE_COLUMNS);
  const first = at + NODE_COLUMNS;
  const list = Array.from({ length: count }, (_, index) => {
    const [id, since, writes, backward, block, bytes, waiting, held, hasTurn] = numbers.subarray(first + index * STREAM_COLUMNS, first + (index + 1) * STREAM_COLUMNS);
    return { key: `${id} ${since}`, writes, backward, block, bytes, waiting, held, hasTurn };
  });
  return { streams, dispatched, waitingStreams, waitingRequests, memory, used, staged, coalesced, outstanding, connections, busyNs, slow, alarms, late, lateNs, lateShare, slowdown, failed, list };
}

/** @param {number} bytes */
function mebibytes(bytes) {
  return `${(bytes / 1048576).toFixed(bytes < 104857600 ? 1 : 0)} MiB`;
}

/** What a panel has in the place of platters, for a node. */
class NodeParts {
  /** @param {Panel} panel */
  constructor(panel) {
    this.panel = panel;
    /** @type {Map<string, { bytes: number, atNs: number, rate: number }>} bytes a second of each stream */ this.rates = new Map();
    this.busy = { ns: -1, atNs: 0, share: 0 };
    const figure = document.createElement("figure");
    this.canvas = Object.assign(document.createElement("canvas"), { className: "strip" });
    this.canvas.setAttribute("role", "img");
    this.caption = document.createElement("figcaption");
    figure.append(this.canvas, this.caption);
    this.rows = this.addTable();
    panel.part(".platters").classList.add("node");
    panel.part(".platters").append(figure, this.table);
    const captions = { queue: "Requests of clients: place on the disk and age", way: "Commands of the disk: block over time", cache: "Stream memory: read ahead, written and not on the disk, other, free" };
    for (const [name, text] of Object.entries(captions)) panel.part(`.${name}`).previousElementSibling.textContent = text;
    panel.part(".lists h3").textContent = "Last requests: response time";
    panel.part(".parts").hidden = true;
  }

  addTable() {
    const table = document.createElement("table"), head = table.createTHead().insertRow();
    table.className = "streams";
    table.createCaption().textContent = "Busiest streams";
    for (const name of ["stream", "next block", "place", "MB/s", "memory", "waiting", "turn"]) head.append(Object.assign(document.createElement("th"), { scope: "col", textContent: name }));
    const body = table.createTBody();
    this.table = table;
    return Array.from({ length: STREAM_ROWS }, () => {
      const row = body.insertRow();
      row.hidden = true;
      return { row, cells: Array.from({ length: 7 }, () => row.insertCell()) };
    });
  }

  /** Follows the rates of streams and of the disk. @param {any} node @param {number} nowNs */
  follow(node, nowNs) {
    const { rates, busy } = this;
    const present = new Set(node.list.map((/** @type {any} */ stream) => stream.key));
    for (const key of rates.keys()) if (!present.has(key)) rates.delete(key);
    for (const stream of node.list) {
      const kept = rates.get(stream.key);
      if (!kept) rates.set(stream.key, { bytes: stream.bytes, atNs: nowNs, rate: 0 });
      else if (nowNs - kept.atNs >= 5e8) {
        const latest = ((stream.bytes - kept.bytes) * 1e9) / (nowNs - kept.atNs), weight = Math.min((nowNs - kept.atNs) / RATE_NS, 1);
        rates.set(stream.key, { bytes: stream.bytes, atNs: nowNs, rate: kept.rate ? kept.rate + weight * (latest - kept.rate) : latest });
      }
    }
    if (busy.ns < 0) Object.assign(busy, { ns: node.busyNs, atNs: nowNs });
    else if (nowNs - busy.atNs >= 1e9) Object.assign(busy, { share: Math.min((node.busyNs - busy.ns) / (nowNs - busy.atNs), 1), ns: node.busyNs, atNs: nowNs });
  }

  /** The disk from its first block (left) to its last: streams above the line, commands and the last access below. @param {any} view @param {any} colours */
  draw(view, colours) {
    const { context, width, height } = prepare(/** @type {HTMLCanvasElement} */ (this.canvas));
    const { node } = view, [state] = view.devices, { sectors } = view.description.devices[0];
    const x = (/** @type {number} */ block) => 4 + (Math.min(Math.max(block, 0), sectors) / sectors) * (width - 8), middle = Math.round(0.72 * height);
    context.strokeStyle = colours.grid;
    context.lineWidth = 6;
    line(context, 4, middle, width - 4, middle);
    const most = Math.max(1, ...node.list.map((/** @type {any} */ stream) => stream.held));
    for (const stream of node.list) {
      const at = x(stream.block), tall = 6 + (stream.held / most) * (middle - 26);
      context.fillStyle = context.strokeStyle = stream.writes ? colours.write : colours.read;
      context.globalAlpha = stream.hasTurn ? 1 : 0.45;
      context.fillRect(at - 1, middle - 5 - tall, 2, tall);
      context.beginPath();
      context.arc(at, middle - 5 - tall, stream.hasTurn ? 4 : 2.5, 0, 2 * Math.PI);
      context.fill();
    }
    context.globalAlpha = 1;
    for (let at = 0; at < state.commands.length; at += COMMAND_COLUMNS) {
      context.fillStyle = state.commands[at + 2] ? colours.write : colours.read;
      context.fillRect(x(state.commands[at]) - 2, middle + 5, Math.max(x(state.commands[at] + state.commands[at + 1]) - x(state.commands[at]), 4), 7);
    }
    context.fillStyle = colours.ink;
    context.beginPath();
    context.moveTo(x(state.lbn), middle + 3);
    context.lineTo(x(state.lbn) - 5, middle + 14);
    context.lineTo(x(state.lbn) + 5, middle + 14);
    context.fill();
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = colours.quiet;
    context.fillText("first block", 4, height - 3);
    context.textAlign = "right";
    context.fillText("last block", width - 4, height - 3);
    context.textAlign = "left";
  }

  /** The use of the stream memory as one bar. @param {HTMLCanvasElement} canvas @param {any} node @param {any} colours */
  drawMemory(canvas, node, colours) {
    const { context, width, height } = prepare(canvas);
    const other = Math.max(node.used - node.staged - node.coalesced, 0);
    let from = 0;
    for (const [bytes, colour] of [[node.staged, colours.ahead], [node.coalesced, colours.write], [other, colours.quiet], [node.memory - node.used, colours.grid]]) {
      const wide = (bytes / Math.max(node.memory, 1)) * width;
      context.fillStyle = colour;
      context.fillRect(from, 4, wide, height - 8);
      from += wide;
    }
  }

  /** Writes the texts. @param {any} view */
  write(view) {
    const { node } = view, [state] = view.devices, [device] = view.description.devices, { panel } = this;
    panel.figure("Requests waiting", `${grouped(node.outstanding)}, ${grouped(node.waitingRequests)} for a turn`);
    panel.figure("At the disk", `${grouped(state.queued)} commands`);
    panel.figure("Streams", `${grouped(node.streams)}, ${grouped(node.dispatched)} with a turn`);
    panel.figure("Stream memory", `${mebibytes(node.used)} of ${mebibytes(node.memory)}`);
    panel.figure("Disk busy", `${Math.round(100 * this.busy.share)} %`);
    panel.figure("Connections", grouped(node.connections));
    panel.figure("Late commands", `${grouped(node.late)}, ${duration(node.lateNs)}`);
    panel.figure("Slow-disk alarms", grouped(node.alarms));
    const alarm = panel.part(".alarm"), slow = `SLOW: late commands lose ${(100 * node.lateShare).toFixed(1)} % of the time, reads take ${node.slowdown.toFixed(1)} times as long as at first`;
    const text = node.failed ? "The thread of this disk has failed: the node ends" : node.slow ? slow : "";
    if (alarm.textContent !== text) alarm.textContent = text;
    alarm.hidden = !text;
    const place = `${grouped(state.lbn)} of ${grouped(device.sectors)}`;
    this.caption.textContent = `The last command ended at block ${place}. Where the arm of a disk is, its host does not know.`;
    this.canvas.setAttribute("aria-label", `${grouped(node.streams)} streams on the disk; the last command ended at block ${place}`);
    panel.part(".cache").setAttribute("aria-label", `Stream memory: ${mebibytes(node.staged)} read ahead, ${mebibytes(node.coalesced)} written and not on the disk, ${mebibytes(node.memory - node.used)} free of ${mebibytes(node.memory)}`);
    panel.part(".way").setAttribute("aria-label", "Blocks of the last commands");
    const rate = (/** @type {any} */ stream) => this.rates.get(stream.key)?.rate ?? 0;
    const busiest = [...node.list].sort((one, other) => rate(other) - rate(one) || one.block - other.block);
    this.rows.forEach(({ row, cells }, index) => {
      const stream = busiest[index];
      row.hidden = !stream;
      if (!stream) return;
      const texts = [`${stream.writes ? "write" : "read"}${stream.backward ? ", backward" : ""}`, grouped(stream.block), `${((100 * stream.block) / device.sectors).toFixed(1)} %`, (rate(stream) / 1e6).toFixed(1), mebibytes(stream.held), grouped(stream.waiting), stream.hasTurn ? "yes" : "no"];
      texts.forEach((value, cell) => { if (cells[cell].textContent !== value) cells[cell].textContent = value; });
    });
  }
}

/** Why a request of a client took its time, as far as a node knows. @param {any} answer */
function nodeLifeInWords({ request, accesses }) {
  const own = accesses.filter((/** @type {number[]} */ access) => access[3] < request.lbn + request.sectors && request.lbn < access[3] + access[4]);
  const sentences = [`It came at ${(request.submitted / 1e9).toFixed(3)} s and was answered at ${(request.completed / 1e9).toFixed(3)} s of the node.`];
  sentences.push(`Meanwhile the disk ended ${grouped(accesses.length)} commands, ${grouped(own.length)} of them with its blocks.`);
  if (!own.length && request.op === 0) sentences.push("No command read its blocks in that time: they were in the stream memory, or the command is older than those that the page keeps.");
  return sentences;
}
