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
