// @ts-check
// Running disks: the page shows one at a time, whose events come from the server that the page came from.
/* global page, byId */

const live = {
  /** @type {any[]} name, events and descriptions of each disk */ disks: [],
  /** @type {string | null} the disk that is shown */ disk: null,
  /** @type {EventSource | null} */ source: null,
  /** Events that the worker has got and whose frames have not come. */ pending: 0,
};

/** Events that wait for a worker that does not keep up, a second of them: those that follow are dropped, which the worker sees by their numbers. */
const PENDING_MAX = 20;

/** Shows running disks: time is theirs. @param {any[]} disks */
function startLive(disks) {
  for (const id of ["play", "step", "back", "end", "setup", "save", "go", "footer-run"]) byId(id).hidden = true;
  byId("speed").closest("label").hidden = true;
  page.live = true;
  live.disks = disks;
  const select = byId("disk");
  select.replaceChildren(...disks.map((disk, index) => new Option(disk.name, String(index))));
  byId("disks").hidden = disks.length < 2;
  select.addEventListener("change", () => showDisk(Number(select.value)));
  // The address names the disk, so that a link and a reload show the same one.
  const named = decodeURIComponent(location.hash.slice(1));
  const index = Math.max(disks.findIndex((disk) => disk.name === named), 0);
  select.value = String(index);
  showDisk(index);
}

/** Ends the events of the disk that was shown, and shows another. @param {number} index */
function showDisk(index) {
  const disk = live.disks[index], status = byId("status");
  live.source?.close();
  live.disk = disk.name;
  history.replaceState(null, "", `#${encodeURIComponent(disk.name)}`);
  page.worker?.postMessage({ kind: "live", descriptions: disk.sides });
  const source = new EventSource(disk.events);
  live.pending = 0;
  source.onmessage = (event) => {
    if (live.pending >= PENDING_MAX) return;
    live.pending += 1;
    page.worker?.postMessage({ kind: "event", data: event.data });
  };
  source.onerror = () => { status.textContent = "The server does not answer; the page asks again."; };
  source.onopen = () => { status.textContent = live.disks.length > 1 ? `Shows ${disk.name}` : ""; };
  live.source = source;
}
