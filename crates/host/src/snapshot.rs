//! A copy of a running disk's state, so that its reader does not delay the disk.

use crate::disk::{Books, Emulator, LiveEvent, Volume};
use crate::{DiskHandle, Lateness, realtime};
use headstack_model::{Instant, QuantityReport};
use headstack_sim::{Activity, DeviceView, Engine, RearrangeLayer};
use headstack_streams::rearrange::{RearrangeView, Rearranger};

/// A disk at a moment.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub struct Snapshot {
    pub at: Instant,
    pub outstanding: usize,
    pub is_dark: bool,
    pub volumes: Vec<VolumeSnapshot>,
    /// The model's drives; none for a disk that takes no time.
    pub drives: Vec<(DeviceView, Activity)>,
    pub lateness: Lateness,
}

/// A volume at a moment.
#[derive(Clone, Debug)]
pub struct VolumeSnapshot {
    /// Its name.
    pub name: String,
    /// Dirty bytes.
    pub unwritten_bytes: u64,
    /// Its statistics.
    pub books: Books,
    /// The copies of its hot blocks; `None` without a rearranger.
    pub copies: Option<RearrangeView>,
    /// What its layers have counted.
    pub report: QuantityReport,
}

impl VolumeSnapshot {
    fn report(&self, into: &mut QuantityReport) {
        into.fact("name", self.name.as_str()).label("disk");
        let help = [
            "Response times by the model, in the disk's time, of operations that succeeded",
            "Response times by the model, in the disk's time, together",
        ];
        self.books.report(help, into);
        into.gauge("unwritten_bytes", self.unwritten_bytes, "Bytes that are written and not on the media");
        into.merge(self.report.clone());
    }
}

impl DiskHandle {
    /// The disk at this moment.
    pub fn snapshot(&self) -> Snapshot {
        let clock = self.clock();
        // The disk's own thread waits for the lock, so its holder must not wait for other processes.
        realtime::with_realtime(|| {
            let lateness = self.lateness();
            self.inspect(|emulator| Snapshot::capture(emulator, clock.now(), lateness))
        })
    }
}

/// The events of a disk since the last call, and its state.
#[derive(Clone, Debug)]
pub struct LiveState<R> {
    /// The events: first those of requests, then the accesses of each device; each of these lists is in order of time.
    pub events: Vec<LiveEvent>,
    /// What was read from the disk after the last of them.
    pub state: R,
}

impl DiskHandle {
    /// The events since the last call, and what `read` returns for the disk, the time and the number of events that were dropped. Events
    /// are recorded from the first call on.
    pub fn live_state<R: Send>(&self, read: impl Fn(&Emulator, Instant, u64) -> R + Sync) -> LiveState<R> {
        realtime::with_realtime(|| {
            let mut events = Vec::new();
            let state = self.inspect_events(&mut events, &read);
            LiveState { events, state }
        })
    }
}

impl Snapshot {
    /// Adds the disk, its volumes and its drives, each with labels for metrics.
    pub fn report(&self, into: &mut QuantityReport) {
        let name = self.volumes[0].name.as_str();
        into.list("disk", [self], |disk, into| {
            into.fact("name", name).label("disk");
            disk.report_state(into);
        });
        into.list("volume", &self.volumes, VolumeSnapshot::report);
        into.list("drive", self.drives.iter().enumerate(), |(number, (view, activity)), into| {
            into.fact("disk", name).label("disk");
            into.fact("drive", number).label("drive");
            view.report(into);
            activity.report(None, None, into);
            activity.report_uses(into);
        });
    }

    fn report_state(&self, into: &mut QuantityReport) {
        into.gauge("time_s", self.at.since_start(), "The disk's time");
        into.gauge("outstanding", self.outstanding, "Operations in flight");
        into.gauge("powered", !self.is_dark, "Whether the disk has power");
        for (share, quantile) in [(0.5, "0.5"), (0.9, "0.9"), (0.99, "0.99"), (1.0, "1")] {
            let late = self.lateness.quantile(share).as_secs_f64();
            into.gauge(
                "lateness",
                late,
                "How much later than the model said answers were given, in real time",
            )
            .quantile("lateness_seconds", quantile);
        }
    }

    fn capture(emulator: &Emulator, at: Instant, lateness: Lateness) -> Snapshot {
        let mut reports = emulator.engine().map(Engine::reports).unwrap_or_default().into_iter();
        let volume = |(number, volume): (usize, &Volume)| VolumeSnapshot {
            report: reports.next().unwrap_or_default(),
            name: volume.info().name.clone(),
            unwritten_bytes: volume.unwritten_bytes(),
            books: emulator.books(number as u32).clone(),
            copies: emulator
                .engine()
                .and_then(|engine| engine.layer(number).map(RearrangeLayer::rearranger))
                .map(Rearranger::view),
        };
        Snapshot {
            at,
            outstanding: emulator.outstanding(),
            is_dark: emulator.is_dark(),
            volumes: emulator.volumes().iter().enumerate().map(volume).collect(),
            drives: emulator.engine().map(drives).unwrap_or_default(),
            lateness,
        }
    }
}

fn drives(engine: &Engine) -> Vec<(DeviceView, Activity)> {
    let devices = (0..engine.devices()).map(|index| engine.device(index));
    devices.map(|device| (device.view(), *device.activity())).collect()
}
