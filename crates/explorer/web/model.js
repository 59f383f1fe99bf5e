// @ts-check
// What a side of the page knows of its run: outstanding requests, the last accesses and requests, throughput, quantiles, the slowest.
// All of it has a bound, however long the run is.

/** Kinds of rows and their lengths: `explorer-wasm/src/rows.rs`. */
const ISSUE = 1, FINISH = 2;
const LENGTHS = [0, 13, 23, 16];
/** Numbers of a request in the queue of a frame, and of an access. */
const QUEUE_COLUMNS = 9, ACCESS_COLUMNS = 15;
const QUEUE_MAX = 1024, ACCESSES_MAX = 256, LAST_MAX = 64, SLOWEST_MAX = 20;
/** Response times over which throughput and quantiles are computed, and the time that they cover. */
const WINDOW_NS = 5e9, WINDOW_MAX = 16384;

/** Checkpoints of the requests of a source: a hash after each thousand. */
class Marks {
  constructor() {
    this.hash = 0;
    this.count = 0;
    this.from = 0;
    /** @type {number[]} */ this.marks = [];
  }

  /** @param {number} op @param {number} lbn @param {number} sectors */
  add(op, lbn, sectors) {
    let hash = this.hash;
    for (const value of [op, lbn >>> 0, lbn / 4294967296, sectors]) hash = (Math.imul(hash ^ value, 16777619) + 97) | 0;
    this.hash = hash;
    if (++this.count % Side.MARK === 0 && this.marks.length < 4096) this.marks.push(hash);
  }

  /** Forgets the marks before `to`. @param {number} to */
  drop(to) {
    if (to > this.from) this.marks.splice(0, to - this.from);
    this.from = Math.max(this.from, to);
  }
}

class Side {
  static MARK = 1000;

  /** @param {number} session @param {any} description */
  constructor(session, description) {
    this.session = session;
    this.description = description;
    /** @type {Map<number, number[]>} Requests that were issued and have not finished, by their number. */
    this.outstanding = new Map();
    /** @type {number[][]} The last accesses of the arms, oldest first. */
    this.accesses = [];
    /** @type {any[]} The last finished requests, newest first. */
    this.last = [];
    /** @type {any[]} The slowest requests of the run, slowest first. */
    this.slowest = [];
    /** The last requests: end, response time, bytes of each. */
    this.window = new Float64Array(3 * WINDOW_MAX);
    this.windowEnd = 0;
    this.windowLength = 0;
    /** When the side began to count: a running disk is older than the page. */
    this.startNs = 0;
    this.completed = 0;
    this.issued = 0;
    this.bytes = 0;
    /** @type {Map<number, Marks>} */
    this.hashes = new Map();
    this.compared = 0;
    this.differs = false;
    /** Events of a running disk that the server dropped, because nobody asked in time. */
    this.dropped = 0;
    this.sorted = new Float64Array(WINDOW_MAX);
  }

  /** @param {Float64Array} rows */
  add(rows) {
    for (let at = 0; at < rows.length; at += LENGTHS[rows[at]]) {
      if (rows[at] === ISSUE) this.addIssue(rows, at);
      else if (rows[at] === FINISH) this.addFinish(rows, at);
      else this.addAccess(rows, at);
    }
  }

  /** @param {Float64Array} rows @param {number} at */
  addIssue(rows, at) {
    // number, time, op, lbn, sectors, urgent, limit, cylinder, angle, device
    this.issued += 1;
    this.outstanding.set(rows[at + 1], [
      rows[at + 2], rows[at + 4], rows[at + 5], rows[at + 6], rows[at + 8], rows[at + 9], rows[at + 10], rows[at + 11],
      rows[at + 12],
    ]);
    const source = rows[at + 7];
    let marks = this.hashes.get(source);
    if (!marks && this.hashes.size < 64) this.hashes.set(source, (marks = new Marks()));
    marks?.add(rows[at + 4], rows[at + 5], rows[at + 6]);
  }

  /** @param {Float64Array} rows @param {number} at */
  addFinish(rows, at) {
    this.outstanding.delete(rows[at + 1]);
    this.completed += 1;
    const volume = this.description.volumes[rows[at + 2]];
    const bytes = rows[at + 4] >= 2 ? 0 : rows[at + 6] * (volume ? volume.sectorBytes : 512);
    this.bytes += bytes;
    const response = rows[at + 8] - rows[at + 7];
    const slot = this.windowEnd % WINDOW_MAX;
    this.window.set([rows[at + 8], response, bytes], 3 * slot);
    this.windowEnd += 1;
    this.windowLength = Math.min(this.windowLength + 1, WINDOW_MAX);
    const slowestOfAll = this.slowest.length < SLOWEST_MAX || response > this.slowest[SLOWEST_MAX - 1].response;
    const request = finished(rows, at);
    this.last.unshift(request);
    if (this.last.length > LAST_MAX) this.last.pop();
    if (slowestOfAll) {
      const place = this.slowest.findIndex((other) => other.response < response);
      this.slowest.splice(place < 0 ? this.slowest.length : place, 0, request);
      this.slowest.length = Math.min(this.slowest.length, SLOWEST_MAX);
    }
  }

  /** @param {Float64Array} rows @param {number} at */
  addAccess(rows, at) {
    this.accesses.push(Array.from(rows.subarray(at + 1, at + LENGTHS[3])));
    if (this.accesses.length > ACCESSES_MAX) this.accesses.shift();
  }

  /** Requests and quantiles over the last seconds. @param {number} nowNs */
  statistics(nowNs) {
    const from = Math.max(nowNs - WINDOW_NS, this.startNs);
    let count = 0, bytes = 0;
    for (let back = 1; back <= this.windowLength; back++) {
      const slot = (this.windowEnd - back) % WINDOW_MAX;
      if (this.window[3 * slot] < from) break;
      this.sorted[count++] = this.window[3 * slot + 1];
      bytes += this.window[3 * slot + 2];
    }
    const oldest = count === WINDOW_MAX ? this.window[3 * (this.windowEnd % WINDOW_MAX)] : Math.max(from, 0);
    const sorted = this.sorted.subarray(0, count).sort();
    const quantile = (/** @type {number} */ share) => (count ? sorted[Math.min(count - 1, Math.floor(share * count))] : 0);
    const seconds = Math.max(nowNs - oldest, 1) / 1e9;
    return { iops: count / seconds, mbS: bytes / 1e6 / seconds, p50: quantile(0.5), p99: quantile(0.99), seconds, count };
  }

  /** What is known of the time in which a request of a running disk was outstanding. @param {any} request */
  knownLife(request) {
    const inTime = (/** @type {number[]} */ access) => access[0] === request.device && access[13] >= request.submitted && access[9] <= request.completed;
    const accesses = this.accesses.filter(inTime);
    const distance = accesses.reduce((sum, access) => sum + Math.abs(access[5] - access[6]), 0);
    return { accesses, overtook: null, before: null, distance };
  }

  /** What the page draws. @param {number} nowNs @param {Float64Array} devices */
  frame(nowNs, devices) {
    const count = Math.min(this.outstanding.size, QUEUE_MAX);
    const queue = new Float64Array(count * QUEUE_COLUMNS);
    let row = 0;
    for (const values of this.outstanding.values()) {
      if (row === count) break;
      queue.set(values, row * QUEUE_COLUMNS);
      row += 1;
    }
    const accesses = new Float64Array(this.accesses.length * ACCESS_COLUMNS);
    this.accesses.forEach((access, index) => accesses.set(access, index * ACCESS_COLUMNS));
    return {
      queue, devices, accesses,
      outstanding: this.outstanding.size,
      last: this.last.slice(0, 32),
      slowest: this.slowest,
      completed: this.completed,
      issued: this.issued,
      dropped: this.dropped,
      bytes: this.bytes,
      statistics: this.statistics(nowNs),
      compared: this.compared,
      differs: this.differs,
    };
  }
}

/** A finished request from its row. @param {Float64Array} rows @param {number} at */
function finished(rows, at) {
  return {
    id: rows[at + 1], volume: rows[at + 2], device: rows[at + 3], op: rows[at + 4], lbn: rows[at + 5], sectors: rows[at + 6],
    submitted: rows[at + 7], completed: rows[at + 8], source: rows[at + 9], cache: rows[at + 10], failed: rows[at + 11] === 1,
    from: rows[at + 12], to: rows[at + 13], cached: rows[at + 14] === 1,
    parts: Array.from(rows.subarray(at + 15, at + 23)),
    response: rows[at + 8] - rows[at + 7],
  };
}

/** The accesses and the ends of other requests while a request was outstanding. `advance` moves a new run.
 *  @param {(untilNs: number) => Float64Array} advance @param {any} request */
function readWindow(advance, request) {
  const accesses = [];
  let overtook = 0, before = 0, distance = 0;
  const issuedAt = new Map();
  const until = request.completed;
  for (let nowNs = 0; nowNs < until; ) {
    nowNs = Math.min(until, nowNs + 2.5e8);
    const rows = advance(nowNs);
    for (let at = 0; at < rows.length; at += LENGTHS[rows[at]]) {
      if (rows[at] === ISSUE) issuedAt.set(rows[at + 1], rows[at + 2]);
      else if (rows[at] === FINISH) {
        const issued = issuedAt.get(rows[at + 1]);
        issuedAt.delete(rows[at + 1]);
        if (rows[at + 8] <= request.submitted || rows[at + 1] === request.id && rows[at + 7] === request.submitted) continue;
        if (issued > request.submitted) overtook += 1;
        else before += 1;
      } else if (rows[at + 14] >= request.submitted && rows[at + 10] <= until && rows[at + 1] === request.device) {
        accesses.push(Array.from(rows.subarray(at + 1, at + LENGTHS[3])));
        distance += Math.abs(rows[at + 6] - rows[at + 7]);
        if (accesses.length > 4096) accesses.shift();
      }
    }
  }
  return { accesses, overtook, before, distance };
}
