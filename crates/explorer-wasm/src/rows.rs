//! Events of a simulation as rows of numbers, which a page reads without parsing.
//!
//! A row begins with its kind; each kind has a fixed length. Times are nanoseconds; a number without a value is -1. Numbers above 2⁵³ would
//! lose digits. That would take a disk of 4 exabytes, or a run of 104 days.

use headstack::Instant;
use headstack::model::Op;
use headstack::sim::{ArmRecord, Device, Engine, Finished};
use headstack::workload::Issue;

/// Kind of a row of an issued request.
pub const ISSUE: f64 = 1.0;
/// Kind of a row of a finished request.
pub const FINISH: f64 = 2.0;
/// Kind of a row of an access of the arm.
pub const ACCESS: f64 = 3.0;
/// Length of a row of each kind, indexed by the kind.
pub const LENGTHS: [usize; 4] = [0, 13, 23, 16];
/// Value of a number that does not exist.
const NONE: f64 = -1.0;

fn op_number(op: Op) -> f64 {
    match op {
        Op::Read => 0.0,
        Op::Write => 1.0,
        Op::Flush => 2.0,
    }
}

/// Cylinder and angle (0 to 1) of a block; none if there is no such block.
pub(crate) fn location(device: Option<&Device>, lbn: u64) -> [f64; 2] {
    match device {
        Some(device) if lbn < device.sectors() => {
            let place = device.drive().geometry.locate(headstack::model::Lbn(lbn));
            [f64::from(place.cylinder), f64::from(place.angle.0) / 2f64.powi(32)]
        }
        _ => [NONE, NONE],
    }
}

/// The row of an issued request. [`place_issues`] adds its place on the disk, once the engine is free.
pub fn issue(now: Instant, issue: &Issue) -> [f64; LENGTHS[1]] {
    [
        ISSUE,
        issue.id as f64,
        now.0 as f64,
        f64::from(issue.device),
        op_number(issue.request.op),
        issue.request.lbn.0 as f64,
        f64::from(issue.request.sectors),
        f64::from(issue.source),
        f64::from(u8::from(issue.urgent)),
        f64::from(issue.limit),
        NONE,
        NONE,
        NONE,
    ]
}

/// Adds cylinder, angle and device to the rows of issued requests, for volumes that are one device each.
pub fn place_issues(rows: &mut [f64], engine: &Engine, volume_devices: &[Option<usize>]) {
    let mut row = 0;
    while row < rows.len() {
        if rows[row] == ISSUE
            && let Some(Some(device)) = volume_devices.get(rows[row + 3] as usize)
        {
            let [cylinder, angle] = location(Some(engine.device(*device)), rows[row + 5] as u64);
            (rows[row + 10], rows[row + 11], rows[row + 12]) = (cylinder, angle, *device as f64);
        }
        row += LENGTHS[rows[row] as usize];
    }
}

/// The row of a finished request.
pub fn finish(finished: &Finished) -> [f64; LENGTHS[2]] {
    let completion = &finished.completion;
    let travel = completion.travel.map(|travel| (f64::from(travel.from), f64::from(travel.to)));
    let (from, to) = travel.unwrap_or((NONE, NONE));
    let parts = completion.parts.parts().map(|part| part.0 as f64);
    let head = [
        FINISH,
        finished.id as f64,
        f64::from(finished.volume),
        f64::from(finished.device),
        op_number(completion.request.op),
        completion.request.lbn.0 as f64,
        f64::from(completion.request.sectors),
        completion.submitted.0 as f64,
        completion.completed.0 as f64,
        f64::from(finished.source),
        completion.cache.index() as f64,
        f64::from(u8::from(completion.outcome != headstack::sim::Outcome::Done)),
        from,
        to,
        f64::from(u8::from(finished.cached)),
    ];
    std::array::from_fn(|column| if column < head.len() { head[column] } else { parts[column - head.len()] })
}

/// The row of an access of a device's arm.
pub fn access(device: usize, record: &ArmRecord) -> [f64; LENGTHS[3]] {
    [
        ACCESS,
        device as f64,
        f64::from(record.work as u8),
        record.submitted.map_or(NONE, |submitted| submitted.0 as f64),
        record.blocks.start.0 as f64,
        (record.blocks.end - record.blocks.start) as f64,
        f64::from(record.travel.from),
        f64::from(record.travel.to),
        f64::from(record.end_place.cylinder),
        f64::from(record.end_place.head),
        record.begins.0 as f64,
        record.seek.0 as f64,
        record.rotational_latency.0 as f64,
        record.media.0 as f64,
        record.ends.0 as f64,
        f64::from(record.outstanding),
    ]
}
