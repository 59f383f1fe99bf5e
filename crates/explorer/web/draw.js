// @ts-check
// Drawing on canvases: platters, the queue over the disk, the arm's way over time. Each function draws one picture of a side.

/** Numbers of a device's state, of a segment and of a command in a snapshot: `explorer-wasm/src/snapshot.rs`. */
const DEVICE_COLUMNS = 25, SEGMENT_COLUMNS = 3, COMMAND_COLUMNS = 8;
const ACCESS = { device: 0, work: 1, submitted: 2, lbn: 3, sectors: 4, from: 5, to: 6, end: 7, head: 8, begins: 9, seek: 10, latency: 11, media: 12, ends: 13, outstanding: 14 };
const ACCESS_WIDTH = 15, QUEUE_WIDTH = 9;
/** States of a cache's segment by their number: the class of the colour and the words. Unwritten data have the colour of the accesses that write them. */
const SEGMENT_STATES = [["empty", "empty"], ["read", "read"], ["written", "written, on the media too"], ["ahead", "being filled"], ["destage", "not yet on the media"]];
const WORK_NAMES = ["idle", "read", "read-ahead", "write", "destage"];

/** Splits a snapshot into devices. @param {Float64Array} numbers @param {number} count */
function readDevices(numbers, count) {
  const devices = [];
  let at = 0;
  for (let index = 0; index < count && at < numbers.length; index++) {
    const segments = numbers[at + 22], commands = numbers[at + 23], cells = numbers[at + 24];
    const segmentsAt = at + DEVICE_COLUMNS, commandsAt = segmentsAt + segments * SEGMENT_COLUMNS;
    const cellsAt = commandsAt + commands * COMMAND_COLUMNS;
    devices.push({
      angle: numbers[at], cylinder: numbers[at + 1], head: numbers[at + 2], work: numbers[at + 3], lbn: numbers[at + 4],
      queued: numbers[at + 5], depth: numbers[at + 6], dirty: numbers[at + 7], aheadFrom: numbers[at + 8],
      aheadTo: numbers[at + 9], logRecords: numbers[at + 10], bandsCleaned: numbers[at + 11], cleaningNs: numbers[at + 12],
      zonesOpen: numbers[at + 13], zonesActive: numbers[at + 14],
      logSectors: numbers[at + 15], logFree: numbers[at + 16], cleanedFrom: numbers[at + 17], cleanedTo: numbers[at + 18],
      seekNs: numbers[at + 19], latencyNs: numbers[at + 20], mediaNs: numbers[at + 21],
      segments: numbers.subarray(segmentsAt, commandsAt),
      commands: numbers.subarray(commandsAt, cellsAt),
      zones: cells ? numbers.subarray(cellsAt, cellsAt + cells) : null,
    });
    at = cellsAt + cells;
  }
  return { devices, end: at };
}

/** The colours of the theme, read once for each change of it. */
function readColours() {
  const style = getComputedStyle(document.documentElement);
  const colour = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  return {
    ink: colour("--ink"), quiet: colour("--quiet"), grid: colour("--grid"), paper: colour("--paper"), card: colour("--card"),
    read: colour("--read"), write: colour("--write"), ahead: colour("--ahead"), destage: colour("--destage"), urgent: colour("--urgent"),
    zones: [colour("--quiet"), colour("--grid"), ...[2, 3, 4, 5].map((rank) => colour(`--zone-${rank}`))],
    zoneOuter: colour("--zone-outer"), zoneInner: colour("--zone-inner"),
  };
}

/** A canvas with as many dots as the screen has. @param {HTMLCanvasElement} canvas */
function prepare(canvas) {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

/** Rings of a drive's zones, drawn once. @type {Map<string, HTMLCanvasElement>} */
const zoneLayers = new Map();

/** @param {any} device @param {number} radius @param {any} colours */
function zoneLayer(device, radius, colours) {
  const key = [device.name, device.title, radius, colours.zoneOuter].join(" ");
  let layer = zoneLayers.get(key);
  if (layer) return layer;
  if (zoneLayers.size > 64) zoneLayers.clear();
  layer = document.createElement("canvas");
  layer.width = layer.height = Math.ceil(4 * radius);
  const context = /** @type {CanvasRenderingContext2D} */ (layer.getContext("2d"));
  context.setTransform(2, 0, 0, 2, 2 * radius, 2 * radius);
  const zones = device.zones, most = Math.max(...zones.map((/** @type {number[]} */ zone) => zone[1]));
  const least = Math.min(...zones.map((/** @type {number[]} */ zone) => zone[1]));
  for (const [first, sectors] of zones) {
    const share = most > least ? (sectors - least) / (most - least) : 1;
    context.beginPath();
    context.arc(0, 0, radiusOf(device, first, radius), 0, 2 * Math.PI);
    context.fillStyle = mix(colours.zoneInner, colours.zoneOuter, share);
    context.fill();
    // Drives with a number of sectors for each few cylinders would be lines alone.
    if (zones.length > 40) continue;
    context.strokeStyle = colours.grid;
    context.lineWidth = 0.5;
    context.stroke();
  }
  context.strokeStyle = colours.grid;
  context.lineWidth = 0.5;
  context.beginPath();
  context.arc(0, 0, radiusOf(device, device.cylinders, radius), 0, 2 * Math.PI);
  context.fillStyle = colours.paper;
  context.fill();
  context.stroke();
  context.beginPath();
  context.arc(0, 0, 0.12 * radius, 0, 2 * Math.PI);
  context.fillStyle = colours.grid;
  context.fill();
  zoneLayers.set(key, layer);
  return layer;
}

/** @param {string} a @param {string} b @param {number} share */
function mix(a, b, share) {
  const part = (/** @type {string} */ colour, /** @type {number} */ at) => parseInt(colour.slice(1 + 2 * at, 3 + 2 * at), 16);
  const channel = (/** @type {number} */ at) => Math.round(part(a, at) + (part(b, at) - part(a, at)) * share);
  return `rgb(${channel(0)}, ${channel(1)}, ${channel(2)})`;
}

/** Distance of a cylinder from the axis. @param {any} device @param {number} cylinder @param {number} radius */
function radiusOf(device, cylinder, radius) {
  return radius * (1 - 0.62 * Math.min(Math.max(cylinder / device.cylinders, 0), 1));
}

/** Sectors on a track of a cylinder. @param {any} device @param {number} cylinder */
function sectorsPerTrack(device, cylinder) {
  let found = device.zones[0][1];
  for (const [first, sectors] of device.zones) {
    if (first > cylinder) break;
    found = sectors;
  }
  return found;
}

/** The access of a device that is in progress, or was last, at a time. @param {Float64Array} accesses @param {number} device @param {number} nowNs */
function currentAccess(accesses, device, nowNs) {
  for (let at = accesses.length - ACCESS_WIDTH; at >= 0; at -= ACCESS_WIDTH) {
    if (accesses[at] === device && accesses[at + ACCESS.begins] <= nowNs) return accesses.subarray(at, at + ACCESS_WIDTH);
  }
  return null;
}

/** Where the arm is, as a fraction of a cylinder, and what it does. @param {Float64Array | null} access @param {number} nowNs */
function armState(access, nowNs) {
  if (!access) return { cylinder: 0, phase: "idle", lbn: -1 };
  const since = nowNs - access[ACCESS.begins];
  const { from, to, end, seek, latency, media, lbn, sectors } = ACCESS;
  if (since < access[seek]) {
    const share = since / access[seek], smooth = share * share * (3 - 2 * share);
    return { cylinder: access[from] + (access[to] - access[from]) * smooth, phase: "seek", lbn: -1 };
  }
  if (since < access[seek] + access[latency]) return { cylinder: access[to], phase: "rotational latency", lbn: -1 };
  if (nowNs >= access[ACCESS.ends]) return { cylinder: access[end], phase: "idle", lbn: -1 };
  const share = Math.min((since - access[seek] - access[latency]) / Math.max(access[media], 1), 1);
  const block = access[lbn] + Math.min(Math.floor(share * access[sectors]), access[sectors] - 1);
  return { cylinder: access[to] + (access[end] - access[to]) * share, phase: "media transfer", lbn: block };
}

/** @param {HTMLCanvasElement} canvas @param {any} view what `page.js` has of a side @param {number} index of the device @param {any} colours */
function drawPlatter(canvas, view, index, colours) {
  const { context, width, height } = prepare(canvas);
  const device = view.description.devices[index], state = view.devices[index];
  if (!device || !state) return;
  const radius = Math.min(width * 0.86, height) / 2 - 6, x = radius + 6, y = height / 2;
  context.drawImage(zoneLayer(device, radius, colours), x - radius, y - radius, 2 * radius, 2 * radius);
  // The arm is at the right. Where a frame has less than half a revolution, the platter turns under it; faster, it is drawn as if
  // lit once a revolution, and only the arm's distance from the axis has a meaning.
  const turned = view.nsPerFrame < device.periodNs / 2 ? state.angle : 0;
  const angleAt = (/** @type {number} */ timeNs) => state.angle - (view.nowNs - timeNs) / device.periodNs;
  const screen = (/** @type {number} */ angle) => 2 * Math.PI * (turned - angle);
  drawPast(context, view, index, { x, y, radius, device, angleAt, screen }, colours);
  drawCommands(context, view, state, { x, y, radius, device, screen }, colours);
  const access = currentAccess(view.accesses, index, view.nowNs);
  const arm = armState(access, view.nowNs);
  if (state.aheadFrom >= 0) {
    const length = Math.min((state.aheadTo - state.aheadFrom) / sectorsPerTrack(device, state.cylinder), 1);
    const to = screen(state.angle);
    ring(context, x, y, radiusOf(device, state.cylinder, radius), to, to + 2 * Math.PI * length, colours.ahead, 4);
  }
  if (access && arm.phase !== "idle") {
    const starts = angleAt(access[ACCESS.begins] + access[ACCESS.seek] + access[ACCESS.latency]);
    const length = Math.max(Math.min(access[ACCESS.sectors] / sectorsPerTrack(device, access[ACCESS.to]), 1), 0.004);
    ring(context, x, y, radiusOf(device, access[ACCESS.to], radius), screen(starts + length), screen(starts), workColour(access[ACCESS.work], colours), 5);
  }
  drawArm(context, { x, y, radius, at: radiusOf(device, arm.cylinder, radius) }, arm.phase, access ? access[ACCESS.work] : 0, colours);
}

/** @param {CanvasRenderingContext2D} context @param {any} place @param {string} phase @param {number} work @param {any} colours */
function drawArm(context, { x, y, radius, at }, phase, work, colours) {
  const headX = x + at, headY = y;
  const pivotX = x + 1.12 * radius * Math.cos(0.35), pivotY = y + 1.12 * radius * Math.sin(0.35);
  context.strokeStyle = colours.ink;
  context.lineWidth = 3;
  context.lineCap = "round";
  context.beginPath();
  context.moveTo(pivotX, pivotY);
  context.lineTo(headX, headY);
  context.stroke();
  context.fillStyle = phase === "media transfer" ? workColour(work, colours) : colours.ink;
  context.beginPath();
  context.arc(headX, headY, 4.5, 0, 2 * Math.PI);
  context.fill();
}

/** @param {CanvasRenderingContext2D} context */
function ring(context, /** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ radius, /** @type {number} */ from, /** @type {number} */ to, /** @type {string} */ colour, /** @type {number} */ width) {
  context.beginPath();
  context.arc(x, y, radius, from, to);
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.lineCap = "butt";
  context.stroke();
}

/** @param {number} work @param {any} colours */
function workColour(work, colours) {
  return [colours.quiet, colours.read, colours.ahead, colours.write, colours.destage][work] ?? colours.quiet;
}

/** The last accesses of a device, fading. @param {CanvasRenderingContext2D} context @param {any} view @param {number} index @param {any} place @param {any} colours */
function drawPast(context, view, index, { x, y, radius, device, angleAt, screen }, colours) {
  const { accesses, nowNs } = view, count = accesses.length / ACCESS_WIDTH;
  for (let number = Math.max(0, count - 64); number < count; number++) {
    const access = accesses.subarray(number * ACCESS_WIDTH, (number + 1) * ACCESS_WIDTH);
    if (access[0] !== index || access[ACCESS.ends] > nowNs) continue;
    const starts = angleAt(access[ACCESS.begins] + access[ACCESS.seek] + access[ACCESS.latency]);
    const length = Math.max(Math.min(access[ACCESS.sectors] / sectorsPerTrack(device, access[ACCESS.to]), 1), 0.006);
    context.globalAlpha = 0.1 + 0.5 * (1 - (count - number) / 64);
    ring(context, x, y, radiusOf(device, access[ACCESS.to], radius), screen(starts + length), screen(starts), workColour(access[ACCESS.work], colours), 3);
  }
  context.globalAlpha = 1;
}

/** Commands that wait, at their places on the disk. @param {CanvasRenderingContext2D} context @param {any} view @param {any} state @param {any} place @param {any} colours */
function drawCommands(context, view, state, { x, y, radius, device, screen }, colours) {
  const mark = (/** @type {number} */ cylinder, /** @type {number} */ angle, /** @type {number} */ write, /** @type {number} */ urgent, /** @type {number} */ size) => {
    if (cylinder < 0) return;
    const at = radiusOf(device, cylinder, radius), turn = screen(angle);
    context.fillStyle = urgent ? colours.urgent : write ? colours.write : colours.read;
    context.fillRect(x + at * Math.cos(turn) - size / 2, y + at * Math.sin(turn) - size / 2, size, size);
  };
  const index = view.devices.indexOf(state);
  // Requests that wait in front of the device, then those that it has.
  for (let at = 0; at < view.queue.length; at += QUEUE_WIDTH) {
    const queue = view.queue;
    if (queue[at + 8] === index) mark(queue[at + 6], queue[at + 7], queue[at + 1], queue[at + 4], 3);
  }
  for (let at = 0; at < state.commands.length; at += COMMAND_COLUMNS) {
    const commands = state.commands;
    mark(commands[at + 6], commands[at + 7], commands[at + 2], commands[at + 4], 5);
  }
}

/** The queue: where on the volume (to the right) and how old (down) its requests are. @param {HTMLCanvasElement} canvas @param {any} view @param {any} colours */
function drawQueue(canvas, view, colours) {
  const { context, width, height } = prepare(canvas);
  const left = 46, bottom = height - 16, volume = view.description.volumes[0];
  const levels = [1e6, 1e7, 1e8, 1e9, 1e10], top = 6;
  const down = (/** @type {number} */ ageNs) => top + ((Math.log10(Math.max(ageNs, 1e6)) - 6) / 4) * (bottom - top);
  context.font = "11px system-ui, sans-serif";
  context.fillStyle = colours.quiet;
  context.strokeStyle = colours.grid;
  context.lineWidth = 1;
  levels.forEach((level, index) => {
    const y = Math.round(down(level)) + 0.5;
    context.beginPath();
    context.moveTo(left, y);
    context.lineTo(width, y);
    context.stroke();
    context.fillText(["1 ms", "10 ms", "100 ms", "1 s", "10 s"][index], 2, Math.min(Math.max(y + 4, 11), bottom));
  });
  context.fillText("first block", left, height - 3);
  context.textAlign = "right";
  context.fillText("last block", width - 2, height - 3);
  context.textAlign = "left";
  for (let at = 0; at < view.queue.length; at += QUEUE_WIDTH) {
    const queue = view.queue;
    const x = left + (queue[at + 2] / volume.sectors) * (width - left - 4);
    context.fillStyle = queue[at + 4] ? colours.urgent : queue[at + 1] ? colours.write : colours.read;
    context.fillRect(x, Math.min(down(view.nowNs - queue[at]), bottom) - 2, 4, 4);
  }
}

/** The position of the arm: time to the right, cylinders down. @param {HTMLCanvasElement} canvas @param {any} view @param {any} colours */
function drawWay(canvas, view, colours) {
  const { context, width, height } = prepare(canvas);
  const accesses = view.accesses, left = 46, bottom = height - 16;
  context.font = "11px system-ui, sans-serif";
  context.fillStyle = colours.quiet;
  const device = view.description.devices[0];
  const [outer, inner] = view.description.isNode ? ["first", "last"] : ["outer", "inner"];
  context.fillText(outer, 2, 12);
  context.fillText(inner, 2, bottom);
  if (!accesses.length) return;
  const first = Math.max(0, accesses.length - 96 * ACCESS_WIDTH), from = accesses[first + ACCESS.begins];
  const to = Math.max(view.nowNs, from + 1);
  const x = (/** @type {number} */ timeNs) => left + ((Math.min(timeNs, to) - from) / (to - from)) * (width - left - 4);
  const y = (/** @type {number} */ cylinder) => 6 + (cylinder / device.cylinders) * (bottom - 12);
  context.lineWidth = 1.5;
  for (let at = first; at < accesses.length; at += ACCESS_WIDTH) {
    const access = accesses.subarray(at, at + ACCESS_WIDTH);
    if (access[ACCESS.begins] > to) break;
    const seekEnds = access[ACCESS.begins] + access[ACCESS.seek];
    context.strokeStyle = colours.grid;
    line(context, x(access[ACCESS.begins]), y(access[ACCESS.from]), x(seekEnds), y(access[ACCESS.to]));
    context.strokeStyle = workColour(access[ACCESS.work], colours);
    line(context, x(seekEnds), y(access[ACCESS.to]), x(access[ACCESS.ends]), y(access[ACCESS.end]));
    context.fillStyle = context.strokeStyle;
    context.fillRect(x(access[ACCESS.ends]) - 1.5, y(access[ACCESS.end]) - 1.5, 3, 3);
  }
  context.fillStyle = colours.quiet;
  context.fillText(`the last ${((to - from) / 1e6).toFixed(0)} ms`, left, height - 3);
}

/** @param {CanvasRenderingContext2D} context @param {number} x1 @param {number} y1 @param {number} x2 @param {number} y2 */
function line(context, x1, y1, x2, y2) {
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x2, y2);
  context.stroke();
}

/** The segments of a cache, each as a cell. @param {HTMLCanvasElement} canvas @param {any} view @param {any} colours */
function drawCache(canvas, view, colours) {
  const { context, width, height } = prepare(canvas);
  const rows = view.devices.length, rowHeight = Math.max(4, Math.min(16, height / Math.max(rows, 1)));
  view.devices.forEach((/** @type {any} */ state, /** @type {number} */ row) => {
    const count = state.segments.length / SEGMENT_COLUMNS;
    if (!count) return;
    const cell = width / count;
    let most = 1;
    for (let at = 0; at < state.segments.length; at += SEGMENT_COLUMNS) most = Math.max(most, state.segments[at + 1] - state.segments[at]);
    for (let number = 0; number < count; number++) {
      const at = number * SEGMENT_COLUMNS, kind = state.segments[at + 2];
      const share = (state.segments[at + 1] - state.segments[at]) / most, filled = Math.max(share, 0.08) * (rowHeight - 2);
      context.fillStyle = [colours.grid, colours.read, colours.quiet, colours.ahead, colours.destage][kind] ?? colours.grid;
      context.fillRect(number * cell, (row + 1) * rowHeight - 1 - filled, Math.max(cell - 1, 0.5), filled);
    }
  });
}
