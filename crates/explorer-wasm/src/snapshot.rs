//! The state of a device at one time as numbers.

use crate::rows::location;
use headstack::model::{Instant, Op};
use headstack::sim::{Device, Engine};

/// Segments of a cache and commands of a queue that a snapshot has at most: what a page can show.
const LISTED_MAX: usize = 1024;

/// Adds the state of all devices.
pub fn add_all(engine: &Engine, now_ns: f64, into: &mut Vec<f64>) {
    (0..engine.devices()).for_each(|device| add(engine.device(device), now_ns, into));
}

/// Adds a device's state: 17 numbers, then 3 for each segment, then 8 for each command that it has.
fn add(device: &Device, now_ns: f64, into: &mut Vec<f64>) {
    let now = Instant(now_ns.max(0.0) as u64);
    let view = device.view();
    let activity = device.activity();
    let angle = device.drive().mechanics.spindle().angle_at(now);
    let read_ahead = device.read_ahead(now);
    let (ahead_from, ahead_to) =
        read_ahead.map_or((-1.0, -1.0), |blocks| (blocks.start.0 as f64, blocks.end.0 as f64));
    let segments: Vec<_> = device.segments().take(LISTED_MAX).collect();
    let mut commands = device.outstanding_commands();
    commands.sort_by_key(|command| (command.submitted, command.command.request.lbn));
    commands.truncate(LISTED_MAX);
    let zones =
        device.zones().map_or((-1.0, -1.0), |zones| (f64::from(zones.open()), f64::from(zones.active())));
    into.extend([
        f64::from(angle.0) / 2f64.powi(32),
        f64::from(view.cylinder),
        f64::from(view.head),
        f64::from(view.work as u8),
        view.lbn.0 as f64,
        view.queued as f64,
        view.depth as f64,
        view.dirty_sectors as f64,
        ahead_from,
        ahead_to,
        activity.shingled.records as f64,
        activity.shingled.bands_cleaned as f64,
        activity.shingled.cleaning.total().0 as f64,
        zones.0,
        zones.1,
        segments.len() as f64,
        commands.len() as f64,
    ]);
    for segment in segments {
        into.extend([segment.start.0 as f64, segment.end.0 as f64, f64::from(segment.state as u8)]);
    }
    for listed in commands {
        let command = listed.command;
        let [cylinder, angle] = location(Some(device), command.request.lbn.0);
        into.extend([
            command.request.lbn.0 as f64,
            f64::from(command.request.sectors),
            if command.request.op == Op::Write { 1.0 } else { 0.0 },
            listed.submitted.0 as f64,
            f64::from(u8::from(command.urgent)),
            f64::from(command.limit),
            cylinder,
            angle,
        ]);
    }
}
