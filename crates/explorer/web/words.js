// @ts-check
// Numbers and requests in words.
/* global nodeLifeInWords */

const PART_NAMES = ["queued", "overhead", "seek", "rotational latency", "retries", "media", "bus", "cache"];
/** By the use of the drive's cache: miss, part, joined, whole, buffered. */
const CACHE_WORDS = [
  "", "The drive's cache had its first blocks, and the arm read the rest.", "The arm was already reading its blocks ahead.",
  "The drive's cache had all of it.", "The drive acknowledged it once its data were in the cache.",
];
const OP_NAMES = ["Read", "Write", "Flush", "Trim"];

/** @param {number} ns */
function duration(ns) {
  if (ns >= 1e10) return `${(ns / 1e9).toFixed(1)} s`;
  if (ns >= 1e9) return `${(ns / 1e9).toFixed(2)} s`;
  if (ns >= 1e8) return `${(ns / 1e6).toFixed(0)} ms`;
  if (ns >= 1e6) return `${(ns / 1e6).toFixed(2)} ms`;
  return `${(ns / 1e3).toFixed(0)} µs`;
}

/** @param {number} value */
function grouped(value) {
  return Math.round(value).toString().replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

/** @param {any} request @param {any} description */
function requestTitle(request, description) {
  const volume = description.volumes[request.volume]?.name ?? "the disk";
  return `${OP_NAMES[request.op]} of ${request.sectors} sectors at block ${grouped(request.lbn)} on ${volume}`;
}

/** The part that took longest. @param {any} request */
function mainPart(request) {
  return request.parts.reduce((/** @type {number} */ best, /** @type {number} */ part, /** @type {number} */ index) => (part > request.parts[best] ? index : best), 0);
}

/** Why a request took its time, in sentences. @param {any} answer what the worker says of its life @param {any} description @param {string} order */
function lifeInWords(answer, description, order) {
  if (description.isNode) return nodeLifeInWords(answer);
  const { request, accesses, overtook, before, distance } = answer;
  const part = mainPart(request), share = Math.round((100 * request.parts[part]) / Math.max(request.response, 1));
  const sentences = [
    `It was issued at ${(request.submitted / 1e9).toFixed(3)} s and finished at ${(request.completed / 1e9).toFixed(3)} s of the run.`,
    `${PART_NAMES[part][0].toUpperCase()}${PART_NAMES[part].slice(1)} took ${duration(request.parts[part])}, ${share} % of its ${duration(request.response)}.`,
  ];
  if (part === 0 && overtook !== null) sentences.push(...whyQueued({ overtook, before, order }));
  else if (part > 0) sentences.push(whyLong(part, request));
  if (request.from >= 0 && request.parts[2] > 0) {
    const cylinders = Math.abs(request.to - request.from);
    const all = description.devices[request.device]?.cylinders ?? 1;
    sentences.push(`For itself the arm moved ${grouped(cylinders)} of ${grouped(all)} cylinders in ${duration(request.parts[2])} and then waited ${duration(request.parts[3])} for the first sector.`);
  } else if (request.cache > 0) {
    sentences.push(CACHE_WORDS[request.cache]);
  }
  const others = accesses.filter((/** @type {number[]} */ access) => access[2] !== request.submitted || access[3] !== request.lbn);
  if (others.length) {
    const ahead = others.filter((/** @type {number[]} */ access) => access[1] === 2).length;
    const destages = others.filter((/** @type {number[]} */ access) => access[1] === 4).length;
    const kinds = [ahead ? `${grouped(ahead)} to read ahead` : "", destages ? `${grouped(destages)} to write cached data` : ""].filter((kind) => kind);
    sentences.push(`While it was outstanding, the arm made ${grouped(others.length)} other accesses${kinds.length ? ` (${kinds.join(", ")})` : ""} and moved ${grouped(distance)} cylinders.`);
  }
  return sentences;
}

/** @param {{ overtook: number, before: number, order: string }} counts */
function whyQueued({ overtook, before, order }) {
  const sentences = [`While it waited, ${grouped(before + overtook)} other requests finished.`];
  if (overtook > before) {
    sentences.push(`${grouped(overtook)} of them were issued later: the order ${order} chose them first, because they cost the arm less time. Without a limit on waiting, such a request can wait as long as nearer ones arrive.`);
  } else if (overtook > 0) {
    sentences.push(`${grouped(before)} of them were issued earlier and ${grouped(overtook)} later (order ${order}): most of the wait is the length of the queue.`);
  } else {
    sentences.push(`All of them were issued earlier: the wait is the length of the queue, not the order (${order}).`);
  }
  return sentences;
}

/** @param {number} part @param {any} request */
function whyLong(part, request) {
  return [
    "",
    "The command itself took most of the time: the arm and the media had little to do.",
    "The seek was long: the arm crossed much of the disk.",
    "Its first sector had just passed, so that the head waited for most of a revolution.",
    "The drive lost revolutions to retries or background work.",
    `It is long: ${grouped(request.sectors)} sectors pass under the head.`,
    "The transfer to the host took longer than the media.",
    "It waited for the cache: for room, for a read-ahead in progress, or for cached data to be written.",
  ][part];
}
