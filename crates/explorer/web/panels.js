// @ts-check
// A side of the page: its figures, its pictures, the lists of its last and slowest requests.
/* global readDevices, drawPlatter, drawQueue, drawWay, drawCache, duration, grouped, requestTitle, PART_NAMES, WORK_NAMES, NodeParts, readNode, ShingleParts, SEGMENT_STATES, SEGMENT_COLUMNS */

/** Platters of a side that are drawn. */
const PLATTERS_MAX = 8;
/** Time between two changes of texts, which nobody reads at 60 a second. */
const TEXT_MS = 200;

/** Number and blocks of the segments of each state, over all disks. @param {any[]} devices @returns {{ count: number, sectors: number }[]} */
function countSegments(devices) {
  const known = SEGMENT_STATES.map(() => ({ count: 0, sectors: 0 }));
  for (const { segments } of devices) {
    for (let at = 0; at < segments.length; at += SEGMENT_COLUMNS) {
      const of = known[segments[at + 2]];
      of.count += 1;
      of.sectors += segments[at + 1] - segments[at];
    }
  }
  return known;
}

class Panel {
  /** @param {any} description @param {number} index @param {(side: number, request: any) => void} onRequest */
  constructor(description, index, onRequest) {
    this.description = description;
    this.index = index;
    this.onRequest = onRequest;
    this.texts = 0;
    /** @type {any} */ this.view = null;
    const template = /** @type {HTMLTemplateElement} */ (document.getElementById("side"));
    this.root = /** @type {HTMLElement} */ (/** @type {HTMLElement} */ (template.content.firstElementChild).cloneNode(true));
    this.part("h2").textContent = description.heading ?? `Order ${description.order}`;
    this.root.setAttribute("aria-label", description.heading ?? `Run with order ${description.order}`);
    /** @type {any} */ this.node = description.isNode ? new NodeParts(this) : null;
    this.platters = this.node ? [] : description.devices.slice(0, PLATTERS_MAX).map((/** @type {any} */ device) => this.addPlatter(device));
    /** @type {ShingleParts[]} */
    this.shingles = description.devices.slice(0, PLATTERS_MAX).flatMap((/** @type {any} */ device, /** @type {number} */ number) => (device.hasZones || device.isShingled ? [new ShingleParts(this, device, number)] : []));
    this.part(".parts").append(...PART_NAMES.map((name, part) => Object.assign(document.createElement("span"), { className: `key-${part}`, textContent: name })));
    if (description.heading) this.part(".slow").previousElementSibling.textContent = "Slowest requests since the page opened";
    this.figures = new Map();
    this.rows = { last: this.addRows(".last", 12), slow: this.addRows(".slow", 8) };
  }

  /** @param {string} selector @returns {any} */
  part(selector) {
    return this.root.querySelector(selector);
  }

  /** @param {any} device */
  addPlatter(device) {
    const figure = document.createElement("figure");
    const canvas = document.createElement("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Platter of ${device.name}, ${device.title}`);
    const caption = document.createElement("figcaption");
    figure.append(canvas, caption);
    this.part(".platters").append(figure);
    return { canvas, caption, device };
  }

  /** @param {string} selector @param {number} count */
  addRows(selector, count) {
    return Array.from({ length: count }, () => {
      const item = document.createElement("li"), button = document.createElement("button");
      button.type = "button";
      const time = document.createElement("span"), right = document.createElement("span");
      const words = document.createElement("span"), split = document.createElement("span");
      words.className = "words";
      split.className = "split";
      const parts = PART_NAMES.map((_, part) => split.appendChild(Object.assign(document.createElement("i"), { className: `part-${part}` })));
      right.append(split);
      button.append(time, right);
      item.append(button);
      item.hidden = true;
      this.part(selector).append(item);
      const row = { item, button, time, words, parts, request: /** @type {any} */ (null) };
      button.addEventListener("click", () => row.request && this.onRequest(this.index, row.request));
      return row;
    });
  }

  /** @param {any} message the frame of this side @param {number} nowNs @param {number} nsPerFrame */
  show(message, nowNs, nsPerFrame) {
    const { devices, end } = readDevices(message.devices, this.description.devices.length);
    this.view = { ...message, devices, nowNs, nsPerFrame, description: this.description };
    this.shingles.forEach((shingle) => shingle.follow(devices[shingle.index], nowNs));
    if (!this.node) return;
    this.view.node = readNode(message.devices, end);
    this.node.follow(this.view.node, nowNs);
  }

  /** Moves the time of what is shown on. @param {number} ns */
  extrapolate(ns) {
    if (!this.view) return;
    this.view.nowNs += ns;
    this.view.nsPerFrame = ns;
    this.view.devices.forEach((/** @type {any} */ state, /** @type {number} */ index) => { state.angle += ns / (this.description.devices[index].periodNs ?? 1e9); });
  }

  /** @param {any} colours @param {number} clock */
  draw(colours, clock) {
    const { view } = this;
    if (!view) return;
    this.platters.forEach((/** @type {any} */ platter, /** @type {number} */ index) => drawPlatter(platter.canvas, view, index, colours));
    drawQueue(this.part(".queue"), view, colours);
    drawWay(this.part(".way"), view, colours);
    if (this.node) {
      this.node.draw(view, colours);
      this.node.drawMemory(this.part(".cache"), view.node, colours);
    } else drawCache(this.part(".cache"), view, colours);
    this.shingles.forEach((shingle) => shingle.draw(view, colours));
    if (clock - this.texts < TEXT_MS) return;
    this.texts = clock;
    this.write();
  }

  /** Writes the texts of the side. */
  write() {
    const { view } = this, { statistics } = view;
    const dirty = view.devices.reduce((/** @type {number} */ sum, /** @type {any} */ state) => sum + state.dirty, 0);
    const seconds = Math.max(view.nowNs / 1e9, 1e-9);
    this.figure("Requests/s, last 5 s", statistics.iops.toFixed(statistics.iops < 100 ? 1 : 0));
    if (this.description.heading) this.figure("MB/s, last 5 s", statistics.mbS.toFixed(1));
    else this.figure("MB/s, whole run", (view.bytes / 1e6 / seconds).toFixed(1));
    this.figure("p50, last 5 s", duration(statistics.p50));
    this.figure("p99, last 5 s", duration(statistics.p99));
    this.figure("Finished", grouped(view.completed));
    if (view.dropped > 0) this.figure("Events dropped", grouped(view.dropped));
    this.part(".queue").setAttribute("aria-label", `${view.outstanding} requests in the queue`);
    this.fill(this.rows.last, view.last, this.node !== null);
    this.fill(this.rows.slow, view.slowest, true);
    this.shingles.forEach((shingle) => shingle.write(view));
    if (this.node) this.node.write(view);
    else this.writeDisks(view, dirty);
  }

  /** The texts of disks whose arms are known. @param {any} view @param {number} dirty */
  writeDisks(view, dirty) {
    const arms = Math.max(view.nowNs * view.devices.length, 1);
    const share = (/** @type {string} */ part) => `${Math.round((100 * view.devices.reduce((/** @type {number} */ sum, /** @type {any} */ state) => sum + state[part], 0)) / arms)} % of the time`;
    this.figure("In the queue", grouped(view.outstanding));
    this.figure("Dirty in caches", `${grouped(dirty)} sectors`);
    this.figure("Arms seek", share("seekNs"));
    this.figure("Arms wait for the sector", share("latencyNs"));
    this.figure("Arms transfer", share("mediaNs"));
    const shingled = view.devices.find((/** @type {any} */ _, /** @type {number} */ index) => this.description.devices[index].isShingled);
    if (shingled) this.figure("Bands cleaned", `${grouped(shingled.bandsCleaned)} in ${duration(shingled.cleaningNs)}`);
    const zoned = view.devices.find((/** @type {any} */ state) => state.zonesOpen >= 0);
    if (zoned) this.figure("Open zones", grouped(zoned.zonesOpen));
    if (view.compared > 0) this.figure("Same requests", view.differs ? "no: the load depends on completions" : `first ${grouped(view.compared)}`);
    this.platters.forEach((/** @type {any} */ platter, /** @type {number} */ index) => {
      const state = view.devices[index];
      if (state) platter.caption.textContent = `${platter.device.name}: ${WORK_NAMES[state.work]}, cylinder ${grouped(state.cylinder)}, head ${state.head}, ${state.queued} of ${state.depth} commands`;
    });
    this.part(".way").setAttribute("aria-label", "Cylinders that the arm visited last");
    this.part(".cache").setAttribute("aria-label", `Cache: ${this.cacheText()}`);
    this.writeSegments(view);
  }

  /** The legend of the picture of segments: how many have each state, and the blocks in them. @param {any} view */
  writeSegments(view) {
    const legend = this.part(".segments"), known = countSegments(view.devices);
    legend.hidden = known.every(({ count }) => count === 0);
    while (legend.children.length < SEGMENT_STATES.length) legend.append(Object.assign(document.createElement("span"), { className: SEGMENT_STATES[legend.children.length][0] }));
    known.forEach(({ count, sectors }, state) => {
      const words = sectors > 0 ? `${grouped(count)} ${SEGMENT_STATES[state][1]}, ${this.segmentSize(sectors)}` : `${grouped(count)} ${SEGMENT_STATES[state][1]}`;
      legend.children[state].hidden = count === 0;
      if (legend.children[state].textContent !== words) legend.children[state].textContent = words;
    });
  }

  /** @param {number} sectors */
  segmentSize(sectors) {
    const bytes = sectors * (this.description.volumes[0]?.sectorBytes ?? 512);
    return bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(2)} MB`;
  }

  cacheText() {
    const states = this.view.devices;
    const count = states.reduce((/** @type {number} */ sum, /** @type {any} */ state) => sum + state.segments.length / 3, 0);
    const ahead = states.filter((/** @type {any} */ state) => state.aheadFrom >= 0);
    const text = ahead.map((/** @type {any} */ state) => `${state.aheadTo - state.aheadFrom} sectors read ahead`);
    return [`${count} segments hold data`, ...text].join(", ");
  }

  /** @param {string} name @param {string} value */
  figure(name, value) {
    let field = this.figures.get(name);
    if (!field) {
      const group = document.createElement("div"), term = document.createElement("dt");
      term.textContent = name;
      field = document.createElement("dd");
      group.append(term, field);
      this.part(".figures").append(group);
      this.figures.set(name, field);
    }
    if (field.textContent !== value) field.textContent = value;
  }

  /** @param {any[]} rows @param {any[]} requests @param {boolean} relative to the slowest, not to themselves */
  fill(rows, requests, relative) {
    const longest = Math.max(1, ...requests.slice(0, rows.length).map((request) => request.response));
    rows.forEach((row, index) => {
      const request = requests[index];
      row.item.hidden = !request;
      if (!request || row.request === request) return;
      row.request = request;
      row.time.textContent = duration(request.response);
      row.button.setAttribute("aria-label", `${duration(request.response)}: ${requestTitle(request, this.description)}`);
      row.button.title = requestTitle(request, this.description);
      const whole = relative ? longest : Math.max(longest, 1);
      row.parts.forEach((/** @type {HTMLElement} */ part, /** @type {number} */ number) => {
        part.style.width = `${((100 * request.parts[number]) / whole).toFixed(2)}%`;
      });
    });
  }
}
