//! An emulated disk on the live page: its arms, queues and caches.

use super::LiveSide;
use headstack_explorer_wasm::snapshot::{self, ZoneCells};
use headstack_explorer_wasm::{describe_running, rows};
use headstack_host::disk::{Emulator, LiveEvent};
use headstack_host::{DiskHandle, LiveState};
use headstack_model::Instant;
use serde_json::Value;

/// One in this number of events has the cells of zones, which is one each half second. More would delay the disk, which waits while tens of
/// thousands of zones are read.
const CELLS_PERIOD: u32 = 10;

/// The panel of an emulated disk; none for a disk that takes no time, which has nothing to show.
pub(crate) fn emulated(disk: DiskHandle) -> Option<LiveSide> {
    let description = disk.inspect(describe)?;
    let mut events = 0;
    let reader = move || {
        let cells = if events % CELLS_PERIOD == 0 { ZoneCells::Included } else { ZoneCells::Omitted };
        events += 1;
        read(&disk, cells)
    };
    Some(LiveSide { description, reader: Box::new(reader) })
}

fn describe(emulator: &Emulator) -> Option<Value> {
    let volumes: Vec<_> = emulator.volumes().iter().map(|volume| volume.info().clone()).collect();
    emulator.engine().map(|engine| describe_running(&volumes, engine))
}

/// The events since the last call, and the state of the disk. The disk waits only while these are copied.
fn read(disk: &DiskHandle, cells: ZoneCells) -> Vec<f64> {
    let LiveState { events, state } =
        disk.live_state(|disk, now, dropped| numbers(disk, now, dropped, cells));
    let mut message = vec![state[0], state[1], 0.0];
    events.iter().for_each(|event| add_row(event, &mut message));
    message[2] = (message.len() - 3) as f64;
    message.extend_from_slice(&state[2..]);
    message
}

/// Time, number of dropped events, and the state of the devices.
fn numbers(emulator: &Emulator, now: Instant, dropped: u64, cells: ZoneCells) -> Vec<f64> {
    let mut numbers = vec![now.0 as f64, dropped as f64];
    if let Some(engine) = emulator.engine() {
        snapshot::add_all(engine, now.0 as f64, cells, &mut numbers);
    }
    numbers
}

fn add_row(event: &LiveEvent, into: &mut Vec<f64>) {
    match event {
        LiveEvent::Issued(at, issue) => into.extend_from_slice(&rows::issue(*at, issue)),
        LiveEvent::Finished(finished) => into.extend_from_slice(&rows::finish(finished)),
        LiveEvent::Access(device, record) => into.extend_from_slice(&rows::access(*device, record)),
    }
}
