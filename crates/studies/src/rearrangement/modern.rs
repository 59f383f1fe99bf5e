//! Rearrangement on a drive of 2020 with a cache of 512 MB and a media cache, alone and behind RAID-5 of five such drives: how much of the
//! gain remains?
//!
//! The load uses as many blocks as `steady` does on the study's disk, spread evenly over the whole volume. All measured requests come after
//! the copies of the first period and before those of the second.
//! *Assumption:* 80,000 blocks in use, as on the study's disk, so that only the drive differs.

use super::BLOCKS;
use super::loads::{LoadCase, RearrangedLoad, ServerShape};
use super::shuffling::share_saved;
use super::window::MeasuredWindow;
use crate::judge::Measured;
use crate::study::{Findings, Length, Setting, StudyError};
use headstack::report::{Axis, Chart, Section, Series, Table};
use headstack_model::{Nanos, drives};
use headstack_sim::{RearrangeLayer, Rig};

/// Western Digital Ultrastar DC HC570, 22 TB: a cache of 512 MB that also holds writes, a media cache, and 32 tags of NCQ with an order
/// that knows rotation.
const DRIVE: &str = "ultrastar-hc570";

/// Blocks in use.
const USED_BLOCKS: u64 = 80_000;

/// Requests outstanding.
const QUEUES: [u32; 4] = [1, 4, 16, 64];

/// The queue depths of the short form, at which the rows are judged.
const JUDGED_QUEUES: [u32; 2] = [1, 64];

/// A volume and the share of reads.
#[derive(Clone, Copy, Debug)]
struct ModernVolume {
    name: &'static str,
    is_array: bool,
    load: RearrangedLoad,
}

const VOLUMES: [ModernVolume; 4] = [
    ModernVolume { name: "drive, 90 % reads", is_array: false, load: RearrangedLoad::Steady },
    ModernVolume { name: "drive, 50 % reads", is_array: false, load: RearrangedLoad::Slow },
    ModernVolume { name: "RAID-5, 90 % reads", is_array: true, load: RearrangedLoad::Steady },
    ModernVolume { name: "RAID-5, 50 % reads", is_array: true, load: RearrangedLoad::Slow },
];

/// RAID-5 of five drives with a stripe unit of 64 KiB, as the shipped rig `raid5` has it.
fn array_rig() -> Result<Rig, StudyError> {
    let text = format!(
        "title = \"RAID-5\"\n[drive]\npreset = \"{DRIVE}\"\ncount = 5\nvolume = \"data\"\n[array]\nname = \"raid5\"\n\
         organisation = \"raid-5\"\ndrives = [\"data\"]\nstripe_unit_sectors = 128\nrotation = \"left-symmetric\"\n"
    );
    Ok(Rig::parse(&text, "raid5", &mut |name| drives::load(name))?)
}

impl ModernVolume {
    /// The volume with a region; `None` for a period without an end in which nothing is copied.
    fn rig(&self, period_s: Option<f64>) -> Result<Rig, StudyError> {
        let mut rig = if self.is_array { array_rig()? } else { Rig::from_drive(drives::load(DRIVE)?) };
        rig.set("rearrange.blocks", &BLOCKS.to_string())?;
        rig.set("rearrange.when", "at-once")?;
        rig.set("rearrange.parallel_copies", "64")?;
        match period_s {
            Some(seconds) => rig.set("rearrange.period_s", &seconds.to_string())?,
            None => rig.set("rearrange.least_references", "1000000000")?,
        }
        Ok(rig)
    }

    fn case(&self, sectors: u64) -> LoadCase {
        let shape = ServerShape { spread: sectors / 16 / USED_BLOCKS, ..ServerShape::STUDY };
        LoadCase { load: self.load, shape }
    }
}

/// Means of the measured requests.
#[derive(Clone, Copy, Debug)]
struct ModernTimes {
    /// Time from one completion to the next.
    io_ms: f64,
    response_ms: f64,
    /// Share of the requests after the copies that were served from copies alone.
    hits: f64,
    /// When the last of the requests that the analyzer counts completed.
    counted_s: f64,
}

/// Runs a volume at a queue depth; without a period, nothing is copied.
fn times(
    volume: &ModernVolume,
    queue: u32,
    period_s: Option<f64>,
    counted: u64,
) -> Result<ModernTimes, StudyError> {
    let rig = volume.rig(period_s)?;
    let mut window = MeasuredWindow::new(counted);
    let mut response = Nanos::ZERO;
    let infos = rig.volumes();
    let mut load = volume.case(infos[0].sectors).closed(&infos, queue, window.to + u64::from(queue))?;
    let mut engine = rig.build(1)?;
    engine.run(&mut load, &mut |finished| {
        if window.note(finished.completion.completed) {
            response += finished.completion.response();
        }
    });
    let hits =
        engine.layer::<RearrangeLayer>(0).expect("the volume has a region").activity().view.counters.hits
            as f64;
    Ok(ModernTimes {
        io_ms: window.io_ms(),
        response_ms: window.mean_ms(response),
        hits: hits / (window.met - counted) as f64,
        counted_s: window.counted_s,
    })
}

/// A volume at a queue depth, without copies and with them.
struct ModernRuns {
    volume: &'static ModernVolume,
    queue: u32,
    plain: ModernTimes,
    copied: ModernTimes,
}

impl ModernRuns {
    /// The time per request that copies save, in percent.
    fn saved(&self) -> f64 {
        share_saved(self.copied.io_ms, self.plain.io_ms)
    }
}

fn pair(volume: &'static ModernVolume, queue: u32, counted: u64) -> Result<ModernRuns, StudyError> {
    let plain = times(volume, queue, None, counted)?;
    // The period ends with the last counted request: until then both runs are the same.
    let copied = times(volume, queue, Some(plain.counted_s.max(1.0)), counted)?;
    Ok(ModernRuns { volume, queue, plain, copied })
}

/// Runs all volumes at all queue depths.
///
/// *Errors:* as of a run.
pub(super) fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let is_short = setting.length == Length::Quick;
    let queues = if is_short { &JUDGED_QUEUES[..] } else { &QUEUES[..] };
    let counted = setting.length.pick(50_000, 20_000);
    let cases: Vec<(&ModernVolume, u32)> =
        VOLUMES.iter().flat_map(|volume| queues.iter().map(move |queue| (volume, *queue))).collect();
    let all = setting.map(&cases, |(volume, queue)| pair(volume, *queue, counted))?;
    let judged = all.iter().filter(|runs| JUDGED_QUEUES.contains(&runs.queue));
    let row = |runs: &ModernRuns| {
        Measured::new(format!("modern {}, {}", runs.volume.name, runs.queue), runs.saved())
    };
    let rows: Vec<Measured> = judged.map(row).collect();
    let columns = ["volume", "queue", "ms", "with copies", "saved %", "hits %", "response ms", "with copies"];
    let mut table = Table::new("Time of a request by volume and queue", columns);
    for runs in &all {
        let ModernRuns { volume, queue, plain, copied } = runs;
        let numbers = [
            f64::from(*queue),
            plain.io_ms,
            copied.io_ms,
            runs.saved(),
            100.0 * copied.hits,
            plain.response_ms,
            copied.response_ms,
        ];
        table.named_row([volume.name], numbers);
    }
    let lines = VOLUMES.iter().enumerate().map(|(hue, volume)| {
        let runs = all.iter().filter(|runs| runs.volume.name == volume.name);
        Series::new(volume.name, hue, runs.map(|runs| (f64::from(runs.queue), runs.saved())))
    });
    let chart = Chart::new(
        "Time that copies save on a drive of 2020 and behind RAID-5",
        Axis::log("requests outstanding").with_ticks(QUEUES.map(f64::from)),
        Axis::linear("saved (% of a request's time)"),
        lines,
    );
    let text = "80,000 blocks of 8 KiB, spread over a drive of 22 TB or over RAID-5 of five of them, requested by as many clients as requests are outstanding. Times are from one completion to the next.";
    let section =
        Section::new("A drive of 2020 and RAID-5").with_text(text).with_chart(chart).with_table(table);
    Ok(Findings::new(rows, [section]))
}
