// @ts-check
// Shingled disks: the zones of a host-managed one, the media cache and the cleaning of a drive-managed one.
/* global prepare, line, grouped, duration, Panel */

/** States of zones by their rank: `explorer-wasm/src/snapshot.rs`. */
const ZONE_STATES = ["conventional", "empty", "full", "closed", "implicitly open", "explicitly open"];
/** Samples of the media cache's fill, and the last bands that were cleaned, of each disk. */
const FILL_MAX = 240, BANDS_MAX = 32;

/** The fill of a media cache over the whole time that the page saw: where there are too many samples, every second one is dropped. */
class FillHistory {
  constructor() {
    /** @type {number[][]} time and fill */ this.samples = [];
    this.stepNs = 1e7;
    /** @type {number[][]} first and last block, newest first */ this.bands = [];
  }

  /** @param {number} nowNs @param {any} state of a device */
  add(nowNs, state) {
    while (this.samples.length && this.samples[this.samples.length - 1][0] > nowNs) this.samples.pop();
    const last = this.samples[this.samples.length - 1];
    if (!last || nowNs - last[0] >= this.stepNs) this.samples.push([nowNs, 1 - state.logFree / state.logSectors]);
    if (this.samples.length > FILL_MAX) {
      this.samples = this.samples.filter((_, index) => index % 2 === 0);
      this.stepNs *= 2;
    }
    if (state.cleanedFrom >= 0 && this.bands[0]?.[0] !== state.cleanedFrom) {
      this.bands.unshift([state.cleanedFrom, state.cleanedTo]);
      this.bands.length = Math.min(this.bands.length, BANDS_MAX);
    }
  }
}

/** The picture of a shingled disk. */
class ShingleParts {
  /** @param {Panel} panel @param {any} device @param {number} index */
  constructor(panel, device, index) {
    this.device = device;
    this.index = index;
    this.history = new FillHistory();
    /** @type {Float64Array | null} counts of states, then cells */ this.zones = null;
    const figure = document.createElement("figure"), title = document.createElement("figcaption");
    title.textContent = device.hasZones ? `Zones of ${device.name}` : `Media cache of ${device.name}: fill over time, and the band that is being cleaned`;
    this.canvas = Object.assign(document.createElement("canvas"), { className: device.hasZones ? "zones" : "fill" });
    this.canvas.setAttribute("role", "img");
    this.caption = document.createElement("figcaption");
    figure.append(title, this.canvas);
    if (device.hasZones) figure.append(this.legend());
    figure.append(this.caption);
    panel.part(".charts").append(figure);
  }

  legend() {
    const legend = Object.assign(document.createElement("p"), { className: "legend zone-legend" });
    legend.setAttribute("aria-hidden", "true");
    legend.append(...ZONE_STATES.map((name, rank) => Object.assign(document.createElement("span"), { className: `zone-${rank}`, textContent: name })));
    return legend;
  }

  /** @param {any} state of the device @param {number} nowNs */
  follow(state, nowNs) {
    if (state.zones) this.zones = state.zones;
    if (state.logSectors > 0) this.history.add(nowNs, state);
  }

  /** @param {any} view @param {any} colours */
  draw(view, colours) {
    if (this.zones) this.drawZones(this.zones, colours);
    else if (this.history.samples.length) this.drawFill(view, colours);
  }

  /** One cell for each zone, or for each group of zones: its colour is the state, its height the written share. @param {Float64Array} zones @param {any} colours */
  drawZones(zones, colours) {
    const { context, width, height } = prepare(/** @type {HTMLCanvasElement} */ (this.canvas));
    const cells = zones.subarray(ZONE_STATES.length), count = cells.length;
    const columns = Math.max(Math.ceil(Math.sqrt((count * width) / height)), 1), rows = Math.ceil(count / columns);
    const wide = width / columns, tall = height / rows;
    for (let index = 0; index < count; index++) {
      const rank = Math.floor(cells[index]), share = (cells[index] - rank) / 0.999;
      const x = (index % columns) * wide, y = Math.floor(index / columns) * tall, h = Math.max(tall - 1.5, 1);
      // An open zone is seen before much of it is written; a conventional one has no write pointer.
      const filled = rank === 0 ? h : Math.max(share * h, rank > 1 ? Math.min(3, h) : 0);
      context.fillStyle = colours.grid;
      context.globalAlpha = 0.45;
      context.fillRect(x, y, Math.max(wide - 1, 0.5), h);
      context.globalAlpha = rank === 0 ? 0.5 : 1;
      context.fillStyle = colours.zones[rank];
      context.fillRect(x, y + h - filled, Math.max(wide - 1, 0.5), filled);
    }
    context.globalAlpha = 1;
  }

  /** @param {any} view @param {any} colours */
  drawFill(view, colours) {
    const { context, width, height } = prepare(/** @type {HTMLCanvasElement} */ (this.canvas));
    const { samples, bands } = this.history, left = 46, bottom = height - 38;
    const from = samples[0][0], to = Math.max(view.nowNs, from + 1);
    const x = (/** @type {number} */ timeNs) => left + ((timeNs - from) / (to - from)) * (width - left - 4);
    const y = (/** @type {number} */ fill) => 6 + (1 - fill) * (bottom - 6);
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = colours.quiet;
    context.strokeStyle = colours.grid;
    context.lineWidth = 1;
    for (const share of [0, 0.5, 1]) {
      line(context, left, Math.round(y(share)) + 0.5, width - 4, Math.round(y(share)) + 0.5);
      context.fillText(`${100 * share} %`, 2, Math.max(y(share) + 4, 11));
    }
    context.strokeStyle = colours.ink;
    context.lineWidth = 1.5;
    context.beginPath();
    samples.forEach(([at, fill], index) => (index ? context.lineTo(x(at), y(fill)) : context.moveTo(x(at), y(fill))));
    const state = view.devices[this.index];
    context.lineTo(x(to), y(1 - state.logFree / state.logSectors));
    context.stroke();
    const block = (/** @type {number} */ lbn) => left + (lbn / this.device.sectors) * (width - left - 4), disk = height - 25;
    context.fillStyle = colours.grid;
    context.fillRect(left, disk, width - left - 4, 8);
    bands.forEach(([first, end], age) => {
      const isNow = first === state.cleanedFrom;
      context.fillStyle = isNow ? colours.ink : colours.quiet;
      context.globalAlpha = isNow ? 1 : 0.6 * (1 - age / BANDS_MAX);
      context.fillRect(block(first), disk - (isNow ? 3 : 0), Math.max(block(end) - block(first), 3), isNow ? 14 : 8);
    });
    context.globalAlpha = 1;
    context.fillStyle = colours.quiet;
    context.fillText("disk", 2, disk + 8);
    context.fillText(`the last ${duration(to - from)}`, left, height - 1);
  }

  /** Writes the picture's text. @param {any} view */
  write(view) {
    const state = view.devices[this.index], { zones, device } = this;
    let text = "";
    if (zones) {
      const counts = ZONE_STATES.map((name, rank) => [zones[rank], name]).filter(([count]) => Number(count) > 0).map(([count, name]) => `${grouped(Number(count))} ${name}`);
      const group = Math.ceil(device.zoneCount / (zones.length - ZONE_STATES.length));
      text = `${grouped(device.zoneCount)} zones: ${counts.join(", ")}. Each cell is ${group > 1 ? `${grouped(group)} zones` : "one zone"}; its height is the written share.`;
    } else if (state.logSectors > 0) {
      const fill = (100 * (1 - state.logFree / state.logSectors)).toFixed(1);
      const band = state.cleanedFrom >= 0 ? `the band of blocks ${grouped(state.cleanedFrom)} to ${grouped(state.cleanedTo - 1)} is being cleaned` : "no band is being cleaned";
      text = `${fill} % of the media cache is used, with data that are cleaned and whose space is not free yet; ${band}; ${grouped(state.bandsCleaned)} bands cleaned in ${duration(state.cleaningNs)}.`;
    }
    if (this.caption.textContent !== text) this.caption.textContent = text;
    this.canvas.setAttribute("aria-label", text);
  }
}
