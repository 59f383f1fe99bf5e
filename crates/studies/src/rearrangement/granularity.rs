//! The unit of rearrangement: cylinders, files or blocks. The same file server runs with the same share of the disk moved by each.
//!
//! At the end of a period, cylinders are shuffled, files are moved (iPcress), or blocks are copied. The time of all moves counts. The
//! server moves files itself, and the disk copies blocks between its requests; the moves of cylinders are timed separately and added.

use super::Key;
use super::seeks::DISK;
use super::shuffling::{CYLINDER_SECTORS, CYLINDERS, cylinder_start, share_saved, time_of_moves};
use crate::judge::Measured;
use crate::study::{Findings, Setting, StudyError};
use headstack::report::{Axis, Chart, Section, Series, Table};
use headstack_model::{DriveSpec, Instant, Lbn, Nanos, Request};
use headstack_personalities::ext2::{Ext2Shape, Ext2Volume, FileServer, FileServerShape};
use headstack_sim::{RearrangeLayer, Rig};
use headstack_streams::rearrange::{CylinderMove, CylinderShuffle};
use headstack_workload::{Distribution, Issue, Load, Poll, Popularity};

/// Bytes of a block of the file system, which is also what block rearrangement copies.
const BLOCK_BYTES: u32 = 4096;

/// Blocks of the file system: the disk without the largest region of block rearrangement.
const FILE_SYSTEM_BLOCKS: u64 = 156_000;

/// Blocks of the disk.
const DISK_BLOCKS: u64 = CYLINDERS as u64 * CYLINDER_SECTORS / 8;

/// Shares of the disk that are moved, per thousand; rows are judged at one of them.
const SHARES: [u64; 4] = [5, 10, 20, 40];
const JUDGED_SHARE: u64 = 20;

/// Files by size: 56 % of them have at most 4 KiB, and the mean is 26 KB. *Source:* assumption, the shape of surveys of the time.
const FILE_SIZES: [(f64, f64); 7] = [
    (1024.0, 28.0),
    (4096.0, 28.0),
    (8192.0, 16.0),
    (16_384.0, 12.0),
    (65_536.0, 11.0),
    (262_144.0, 4.0),
    (1_048_576.0, 0.3),
];

/// The unit of rearrangement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MovedUnit {
    Cylinder,
    File,
    Block,
}

impl MovedUnit {
    const ALL: [MovedUnit; 3] = [MovedUnit::Cylinder, MovedUnit::File, MovedUnit::Block];

    fn name(self) -> &'static str {
        match self {
            MovedUnit::Cylinder => "cylinders (shuffling)",
            MovedUnit::File => "files (iPcress)",
            MovedUnit::Block => "blocks (rearrangement)",
        }
    }
}

/// A unit and the share of the disk, or `None` where nothing is moved.
type MovedShare = Option<(MovedUnit, u64)>;

/// The sizes of files.
pub(super) fn file_sizes() -> Distribution<f64> {
    Distribution::Empirical(FILE_SIZES.to_vec())
}

/// The server, without the unit that is moved. *Source:* the exponent is the one that fits the week's trace; the others are assumptions,
/// chosen before the first run.
fn server() -> FileServerShape {
    FileServerShape {
        files: 18_000,
        directories: 180,
        file_bytes: file_sizes(),
        popularity: Popularity::Zipf { exponent: 0.98 },
        write_share: 0.1,
        transfer_blocks: 2,
        cached_blocks: 512,
        holds_metadata: false,
        clients: 4,
        host_time: Nanos::from_ms(2.0),
        reserved_blocks: 0,
        moves_files: false,
        period: Nanos::from_secs(3600),
        periods: 4,
    }
}

/// The server on a disk whose hottest cylinders are shuffled at the end of each period.
struct ShuffledServer {
    server: FileServer,
    shuffle: CylinderShuffle,
    hottest: u32,
    period: Nanos,
    moves: Vec<Vec<CylinderMove>>,
}

impl ShuffledServer {
    fn shuffled(&mut self, now: Instant, request: Request) -> Request {
        while now >= Instant::ZERO + Nanos(self.period.0 * (self.moves.len() as u64 + 1)) {
            self.moves.push(self.shuffle.shuffle_hottest(self.hottest));
        }
        let home = (request.lbn.0 / CYLINDER_SECTORS) as u32;
        self.shuffle.observe(home);
        let lbn = cylinder_start(self.shuffle.place_of(home)) + request.lbn.0 % CYLINDER_SECTORS;
        // A request that crosses the end of its cylinder is served in one piece at the new place of its first sector.
        let last = cylinder_start(CYLINDERS).0 - u64::from(request.sectors);
        Request { lbn: Lbn(lbn.0.min(last)), ..request }
    }
}

impl Load for ShuffledServer {
    fn poll(&mut self, now: Instant) -> Poll {
        match self.server.poll(now) {
            Poll::Issue(issue) => Poll::Issue(Issue { request: self.shuffled(now, issue.request), ..issue }),
            other => other,
        }
    }

    fn handle_completion(&mut self, now: Instant, id: u64) {
        self.server.handle_completion(now, id);
    }
}

/// A run's means over the periods after the first.
#[derive(Clone, Copy, Debug)]
struct ServedFiles {
    per_second: f64,
    /// Seek time per access, without that of moves.
    seek_ms: f64,
    /// Requests per access.
    requests: f64,
    /// Share of the time spent on moves.
    moving: f64,
}

fn gain(run: &ServedFiles, plain: &ServedFiles) -> f64 {
    100.0 * (run.per_second / plain.per_second - 1.0)
}

fn measure(moved: MovedShare, mut shape: FileServerShape) -> Result<ServedFiles, StudyError> {
    let input = |error: &dyn std::fmt::Display| StudyError::Input(error.to_string());
    let mut rig = Rig::from_drive(DriveSpec::parse(DISK, "studies/rearrangement/disk.toml")?);
    let blocks = moved.map_or(0, |(_, share)| DISK_BLOCKS * share / 1000);
    let (unit, mut hottest) = (moved.map(|(unit, _)| unit), 0);
    match unit {
        None => {}
        Some(MovedUnit::Cylinder) => hottest = (u64::from(CYLINDERS) * blocks / DISK_BLOCKS) as u32,
        Some(MovedUnit::File) => (shape.reserved_blocks, shape.moves_files) = (blocks as u32, true),
        Some(MovedUnit::Block) => {
            let keys: [Key; 2] = [("rearrange.when", "at-once"), ("rearrange.block_bytes", "4096")];
            keys.iter().try_for_each(|(key, value)| rig.set(key, value))?;
            rig.set("rearrange.blocks", &blocks.to_string())?;
            rig.set("rearrange.period_s", &shape.period.as_secs().to_string())?;
        }
    }
    let geometry = Ext2Shape {
        block_bytes: BLOCK_BYTES,
        blocks: FILE_SYSTEM_BLOCKS,
        bytes_per_inode: BLOCK_BYTES,
        reserved_percent: 5,
    };
    let volume = Ext2Volume::new(geometry.geometry().map_err(|error| input(&error))?, true);
    let volume = volume.map_err(|error| input(&error))?;
    let (period, periods, mover) = (shape.period, shape.periods, shape.clients);
    let server = FileServer::new(volume, (Lbn(0), 512), shape, 1).map_err(|error| input(&error))?;
    let mut load = ShuffledServer {
        server,
        shuffle: CylinderShuffle::new(CYLINDERS),
        hottest,
        period,
        moves: Vec::new(),
    };
    let (mut seek, mut requests) = (Nanos::ZERO, 0);
    let counted = Instant::ZERO + period..Instant::ZERO + Nanos(period.0 * u64::from(periods));
    let mut engine = rig.build(1)?;
    engine.run(&mut load, &mut |finished| {
        if finished.source != mover && counted.contains(&finished.completion.completed) {
            seek += finished.completion.parts.seek;
            requests += 1;
        }
    });
    let time = counted.end.since(counted.start).as_secs();
    let moving_s = moving_s(
        unit,
        &load,
        engine.layer(0).map(RearrangeLayer::activity).map(|activity| activity.times.copy_arm),
        periods,
    )?;
    let added_s = if unit == Some(MovedUnit::Cylinder) { moving_s } else { 0.0 };
    let ended: u64 = load.server.ended_accesses().iter().take(periods as usize).skip(1).sum();
    Ok(ServedFiles {
        per_second: ended as f64 / (time + added_s),
        seek_ms: seek.as_ms() / ended.max(1) as f64,
        requests: f64::from(requests) / ended.max(1) as f64,
        moving: moving_s / (time + added_s),
    })
}

/// Seconds for all moves.
fn moving_s(
    unit: Option<MovedUnit>,
    load: &ShuffledServer,
    copy_arm: Option<Nanos>,
    periods: u32,
) -> Result<f64, StudyError> {
    match unit {
        None => Ok(0.0),
        Some(MovedUnit::Cylinder) => {
            // A shuffle at the end of the run would serve no request.
            load.moves.iter().take(periods as usize - 1).map(|moves| time_of_moves(moves)).sum()
        }
        Some(MovedUnit::File) => Ok(load.server.relocations().iter().map(|moved| moved.time.as_secs()).sum()),
        Some(MovedUnit::Block) => Ok(copy_arm.expect("the volume has a rearranger").as_secs()),
    }
}

/// Runs the server with each unit and each share.
///
/// *Errors:* as of a run.
pub(super) fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let moved = || SHARES.iter().flat_map(|share| MovedUnit::ALL.map(|unit| (unit, *share)));
    let cases: Vec<MovedShare> = std::iter::once(None).chain(moved().map(Some)).collect();
    let runs = setting.map(&cases, |case| measure(*case, server()))?;
    let plain = &runs[0];
    let columns = ["moved", "share %", "accesses/s", "gain %", "seek ms", "saved %", "requests", "moving %"];
    let mut table = Table::new("Cylinders, files and blocks", columns);
    show("nothing", 0, plain, plain, &mut table);
    let mut lines = MovedUnit::ALL.map(|unit| Series::new(unit.name(), unit as usize, []));
    let mut judged = Vec::new();
    for ((unit, share), run) in moved().zip(&runs[1..]) {
        show(unit.name(), share, run, plain, &mut table);
        lines[unit as usize].points.push((share as f64 / 10.0, gain(run, plain)));
        if share == JUDGED_SHARE {
            judged.push(gain(run, plain));
        }
    }
    let [cylinders, files, blocks] = judged[..] else { unreachable!("each unit has a run at the share") };
    let measured = vec![
        Measured::new("files throughput", files),
        Measured::new("blocks above files", blocks - files),
        Measured::new("files above cylinders", files - cylinders),
    ];
    let chart = Chart::new(
        "Throughput gained by what is moved",
        Axis::linear("share of the disk moved (%)"),
        Axis::linear("accesses per second gained (%)"),
        lines,
    );
    let tables = [table, trials(setting)?];
    let section = Section::new("Cylinders, files and blocks").with_chart(chart).with_tables(tables);
    Ok(Findings::new(measured, [section]))
}

/// Servers with one parameter changed. None of these is judged.
fn changed_servers() -> [(&'static str, FileServerShape); 6] {
    let study = server();
    let in_memory = FileServerShape { holds_metadata: true, ..study.clone() };
    let small_cache = FileServerShape { cached_blocks: 64, ..in_memory.clone() };
    let skewed = Popularity::Zipf { exponent: 1.2 };
    [
        ("metadata in memory", in_memory.clone()),
        ("files of 8 KiB", FileServerShape { file_bytes: Distribution::Constant(8192.0), ..study.clone() }),
        (
            "metadata in memory, files of 8 KiB",
            FileServerShape { file_bytes: Distribution::Constant(8192.0), ..in_memory },
        ),
        ("cache of 256 KiB", FileServerShape { cached_blocks: 64, ..study }),
        ("metadata in memory, cache of 256 KiB", small_cache.clone()),
        (
            "metadata in memory, cache of 256 KiB, exponent 1.2",
            FileServerShape { popularity: skewed, ..small_cache },
        ),
    ]
}

/// What each unit gains on the changed servers, at the share at which rows are judged.
fn trials(setting: &Setting<'_>) -> Result<Table, StudyError> {
    let units = [None].into_iter().chain(MovedUnit::ALL.map(|unit| Some((unit, JUDGED_SHARE))));
    let servers = changed_servers();
    let cases: Vec<(MovedShare, &FileServerShape)> =
        servers.iter().flat_map(|(_, shape)| units.clone().map(move |unit| (unit, shape))).collect();
    let runs = setting.map(&cases, |(unit, shape)| measure(*unit, (*shape).clone()))?;
    let columns = ["changed", "accesses/s", "cylinders gain %", "files gain %", "blocks gain %"];
    let mut table = Table::new("Something changed, 2 % moved", columns);
    for ((name, _), runs) in servers.iter().zip(runs.chunks(1 + MovedUnit::ALL.len())) {
        let gains = runs[1..].iter().map(|run| gain(run, &runs[0]));
        table.named_row([*name], std::iter::once(runs[0].per_second).chain(gains));
    }
    Ok(table)
}

fn show(name: &str, share: u64, run: &ServedFiles, plain: &ServedFiles, table: &mut Table) {
    let numbers = [
        share as f64 / 10.0,
        run.per_second,
        gain(run, plain),
        run.seek_ms,
        share_saved(run.seek_ms, plain.seek_ms),
        run.requests,
        100.0 * run.moving,
    ];
    table.named_row([name], numbers);
}
