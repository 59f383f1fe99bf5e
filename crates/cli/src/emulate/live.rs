//! `--stats`: the activity of the disks.

use super::summary::micros;
use crate::service::lines::Lines;
use crate::sim::text::figure;
use crate::units::{capacity, grouped};
use headstack::ratio;
use headstack_host::disk::{Count, Kind};
use headstack_host::{DiskHandle, Snapshot};
use headstack_model::Instant;
use std::time::{self, Duration};

pub(super) struct Live {
    disks: Vec<Shown>,
    lines: Lines,
}

/// A disk, with its time and counts when it was last shown.
struct Shown {
    handle: DiskHandle,
    at: Instant,
    count: Count,
}

impl Live {
    pub(super) fn new(interval: Duration, handles: Vec<DiskHandle>) -> Live {
        let shown = |handle: DiskHandle| Shown { at: handle.clock().now(), count: Count::default(), handle };
        Live { disks: handles.into_iter().map(shown).collect(), lines: Lines::new(interval) }
    }

    pub(super) fn next(&self) -> time::Instant {
        self.lines.next()
    }

    pub(super) fn show(&mut self) {
        let line = |disk: &mut Shown| disk.line(&disk.handle.snapshot());
        self.lines.show_all(self.disks.iter_mut().map(line));
    }
}

impl Shown {
    /// The present state, with rates since the last line.
    fn line(&mut self, snapshot: &Snapshot) -> String {
        let count: Count = snapshot.volumes.iter().map(|volume| volume.books.all()).sum();
        let seconds = snapshot.at.since(self.at).as_secs();
        let done = (count.done - self.count.done) as f64;
        let mb_s = ratio((count.bytes - self.count.bytes) as f64 / 1e6, seconds);
        let mean_ms = ratio(count.time.saturating_sub(self.count.time).as_ms(), done);
        (self.at, self.count) = (snapshot.at, count);
        let late = |share| micros(snapshot.lateness.quantile(share));
        let mut parts = vec![snapshot.volumes[0].name.clone()];
        parts.extend(drives(snapshot));
        parts.push(format!("{} in flight", snapshot.outstanding));
        let unwritten: u64 = snapshot.volumes.iter().map(|volume| volume.unwritten_bytes).sum();
        if unwritten > 0 {
            parts.push(format!("{} not on the media", capacity(unwritten)));
        }
        parts.push(format!("{} IOPS, {} MB/s", figure(ratio(done, seconds)), figure(mb_s)));
        parts.push(format!("mean {} ms", figure(mean_ms)));
        parts.push(format!("late p50 {} us, p99 {} us", late(0.5), late(0.99)));
        parts.join(" | ")
    }
}

/// The arm's position and activity if the disk is a single drive; combined activity of several drives.
fn drives(snapshot: &Snapshot) -> Vec<String> {
    let [(view, activity)] = &snapshot.drives[..] else {
        let queued: usize = snapshot.drives.iter().map(|(view, _)| view.queued).sum();
        let several = snapshot.drives.len();
        return if several > 0 { vec![format!("{several} drives, {queued} commands")] } else { Vec::new() };
    };
    let mut parts = vec![
        format!(
            "cylinder {}, head {}, LBN {}",
            grouped(view.cylinder.into()),
            view.head,
            grouped(view.lbn.0)
        ),
        view.work.name().to_string(),
        format!("queue {}/{}", view.queued, view.depth),
    ];
    let reads = snapshot.volumes[0].books.count_of(Kind::Read).done;
    if reads > 0 {
        parts.push(format!("hits {:.0} %", 100.0 * activity.read_hit_share()));
    }
    if view.dirty_sectors > 0 {
        parts.push(format!("{} blocks dirty", grouped(view.dirty_sectors)));
    }
    parts
}
