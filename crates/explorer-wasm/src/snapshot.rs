//! The state of a device at one time as numbers.

use crate::rows::location;
use headstack::model::zones::{ZoneState, Zones};
use headstack::model::{Instant, Nanos, Op};
use headstack::sim::{Activity, ArmTime, Device, Engine, OutstandingCommand};

/// Maximum number of cache segments, and of queued commands, in a snapshot: as many as a page can show.
const LISTED_MAX: usize = 1024;
/// Maximum number of cells in the picture of zones. With more, a person could not distinguish them.
const CELLS_MAX: u32 = 512;
/// Count of numbers that each device has before its lists.
pub const COLUMNS: usize = 25;
/// Value of a number that does not exist.
const NONE: f64 = -1.0;

/// Whether a snapshot contains the cells of zones. A disk may have tens of thousands of zones, which a live page does not need at each event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneCells {
    /// It contains them.
    Included,
    /// It omits them. The page continues to show the cells of the last snapshot that had them.
    Omitted,
}

/// Adds the state of all devices.
pub fn add_all(engine: &Engine, now_ns: f64, cells: ZoneCells, into: &mut Vec<f64>) {
    (0..engine.devices()).for_each(|device| add(engine.device(device), now_ns, cells, into));
}

/// The arm's time in ns for seeks, rotational latency and media transfer, of commands, cached writes, cleaning and read-ahead (media).
fn arm_times(activity: &Activity) -> [f64; 3] {
    let all = [&activity.commands, &activity.destages, &activity.shingled.cleaning];
    let sum = |part: fn(&ArmTime) -> Nanos| all.iter().map(|time| part(time).0 as f64).sum::<f64>();
    let media = sum(|time| time.media) + activity.read_ahead.0 as f64;
    [sum(|time| time.seek), sum(|time| time.rotational_latency), media]
}

/// The outstanding commands, the oldest first, as many as a page can show.
fn oldest_commands(device: &Device) -> Vec<OutstandingCommand> {
    let mut commands = device.outstanding_commands();
    commands.sort_by_key(|command| (command.submitted, command.command.request.lbn));
    commands.truncate(LISTED_MAX);
    commands
}

/// Adds a device's state: [`COLUMNS`] numbers, then 3 for each segment, then 8 for each of its commands. With cells, the number of its zones
/// in each state follows, then the cells.
fn add(device: &Device, now_ns: f64, cells: ZoneCells, into: &mut Vec<f64>) {
    let now = Instant(now_ns.max(0.0) as u64);
    let view = device.view();
    let activity = device.activity();
    let angle = device.drive().mechanics.spindle().angle_at(now);
    let ahead = device.read_ahead(now);
    let [ahead_from, ahead_to] =
        ahead.map_or([NONE; 2], |blocks| [blocks.start, blocks.end].map(|lbn| lbn.0 as f64));
    let segments: Vec<_> = device.segments().take(LISTED_MAX).collect();
    let commands = oldest_commands(device);
    let ([open, active], cells) = zone_numbers(device, cells);
    let [seek, latency, media] = arm_times(activity);
    let [log_sectors, log_free, cleaned_from, cleaned_to] = shingle_numbers(device);
    let columns: [f64; COLUMNS] = [
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
        open,
        active,
        log_sectors,
        log_free,
        cleaned_from,
        cleaned_to,
        seek,
        latency,
        media,
        segments.len() as f64,
        commands.len() as f64,
        cells.len() as f64,
    ];
    into.extend(columns);
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
    into.extend(cells);
}

/// Of a drive-managed shingled disk: the sectors of its log, the free ones, and the first and the end block of the band being cleaned.
fn shingle_numbers(device: &Device) -> [f64; 4] {
    let Some(shingles) = device.shingles() else { return [NONE; 4] };
    let (from, to) =
        shingles.cleaned_band.map_or((NONE, NONE), |band| (band.start.0 as f64, band.end.0 as f64));
    [shingles.log_sectors as f64, shingles.free_sectors as f64, from, to]
}

/// The numbers of open and of active zones, and the cells as [`zone_cells`] returns them.
fn zone_numbers(device: &Device, cells: ZoneCells) -> ([f64; 2], Vec<f64>) {
    let Some(zones) = device.zones() else { return ([NONE; 2], Vec::new()) };
    let cells = if cells == ZoneCells::Included { zone_cells(zones) } else { Vec::new() };
    ([f64::from(zones.open()), f64::from(zones.active())], cells)
}

/// The rank of a state in a picture: a cell of several zones shows the highest-ranked of their states.
fn rank(state: ZoneState) -> u8 {
    match state {
        ZoneState::Conventional => 0,
        ZoneState::Empty => 1,
        ZoneState::Full => 2,
        ZoneState::Closed => 3,
        ZoneState::ImplicitlyOpen => 4,
        ZoneState::ExplicitlyOpen => 5,
    }
}

/// The number of zones of each rank, then for each cell its rank plus the written share of its zones, which is below 1.
fn zone_cells(zones: &Zones) -> Vec<f64> {
    let (count, mut counts) = (zones.layout().zones(), [0.0; 6]);
    let zones_per_cell = count.div_ceil(CELLS_MAX) as usize;
    let all: Vec<_> = zones.iter().collect();
    let cells: Vec<f64> = all
        .chunks(zones_per_cell)
        .map(|group| {
            let (mut most, mut written, mut sectors) = (0, 0, 0);
            for zone in group {
                let rank = rank(zone.state);
                counts[usize::from(rank)] += 1.0;
                most = most.max(rank);
                written += zone.write_pointer - zone.start;
                sectors += zone.sectors;
            }
            f64::from(most) + 0.999 * (written as f64 / sectors as f64)
        })
        .collect();
    counts.into_iter().chain(cells).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstack::model::zones::{ZoneCommand, ZoneLayout, ZoneModel};
    use headstack::model::{Lbn, Request};

    #[test]
    fn cell_has_the_state_that_matters_most_and_the_written_share_of_its_zones() {
        let layout = ZoneLayout {
            model: ZoneModel::HostManaged,
            sectors: 1024 * 100,
            zone_sectors: 100,
            conventional: 2,
            open_max: 8,
            active_max: None,
        };
        let mut zones = Zones::new(layout);
        zones.accept(&Request::write(Lbn(300), 50)).expect("it is at the write pointer");
        zones.command(ZoneCommand::Finish, 4).expect("it is not conventional");
        zones.command(ZoneCommand::Open, 1023).expect("it is not conventional");
        let numbers = zone_cells(&zones);
        assert_eq!(numbers[..6], [2.0, 1019.0, 1.0, 0.0, 1.0, 1.0]);
        let cells = &numbers[6..];
        assert_eq!(cells.len(), 512, "two zones in each");
        assert_eq!(cells[..4], [0.0, 4.0 + 0.999 * 0.25, 2.0 + 0.999 * 0.5, 1.0]);
        assert_eq!(cells[511], 5.0);
    }
}
