//! Cylinder shuffling on the same loads: whole cylinders in the order of the organ pipe, and what moving them costs.
//!
//! A request that crosses the end of its cylinder is served in one piece at the new place of its first sector. Requests during a move are
//! not modelled: the moves are timed on a disk without other requests.

use super::loads::{LoadCase, RearrangedLoad, WEEK_DRIVES};
use super::seeks::{DISK, LEAST_REQUESTS};
use crate::judge::Measured;
use crate::study::{Findings, Length, Setting, StudyError};
use headstack::report::{Section, Table};
use headstack_model::{DriveSpec, Instant, Lbn, Nanos, Op, Request};
use headstack_sim::{Completion, Rig};
use headstack_streams::rearrange::{CylinderMove, CylinderShuffle};
use headstack_workload::{Inbox, Issue, Load, Poll};

/// Tracks of a cylinder, sectors of a track, and cylinders of the study's disk.
const TRACKS: u64 = 8;
const TRACK_SECTORS: u64 = 113;
pub(super) const CYLINDERS: u32 = 1449;
pub(super) const CYLINDER_SECTORS: u64 = TRACKS * TRACK_SECTORS;

/// The reference counts by which cylinders are shuffled at the end of a day.
#[derive(Clone, Copy)]
enum ShuffleCounts<'a> {
    /// None: no cylinder moves.
    Never,
    /// The counts of the day that ends.
    Past,
    /// The counts of the next day, which only a simulation can know in advance.
    Next(&'a [Vec<u64>]),
}

/// A load whose cylinders are shuffled at the end of each day.
struct ShuffledLoad<'a> {
    load: Box<dyn Load + 'a>,
    counts: ShuffleCounts<'a>,
    shuffle: CylinderShuffle,
    day: Nanos,
    /// References by cylinder, for each day that has ended.
    days: Vec<Vec<u64>>,
    moves: Vec<Vec<CylinderMove>>,
}

impl ShuffledLoad<'_> {
    fn end_day(&mut self) {
        self.days.push(self.shuffle.counts().to_vec());
        if let ShuffleCounts::Next(days) = self.counts {
            self.shuffle.clear();
            let next: &[u64] = days.get(self.days.len()).map_or(&[], Vec::as_slice);
            for (home, count) in next.iter().enumerate() {
                (0..*count).for_each(|_| self.shuffle.observe(home as u32));
            }
        }
        match self.counts {
            ShuffleCounts::Never => self.shuffle.clear(),
            _ => self.moves.push(self.shuffle.shuffle()),
        }
    }

    fn shuffled(&mut self, now: Instant, request: Request) -> Request {
        while Instant::ZERO + Nanos(self.day.0 * (self.days.len() as u64 + 1)) <= now {
            self.end_day();
        }
        let home = (request.lbn.0 / CYLINDER_SECTORS) as u32;
        self.shuffle.observe(home);
        let lbn = cylinder_start(self.shuffle.place_of(home)) + request.lbn.0 % CYLINDER_SECTORS;
        let last = cylinder_start(CYLINDERS).0 - u64::from(request.sectors);
        Request { lbn: Lbn(lbn.0.min(last)), ..request }
    }
}

pub(super) fn cylinder_start(cylinder: u32) -> Lbn {
    Lbn(u64::from(cylinder) * CYLINDER_SECTORS)
}

impl Load for ShuffledLoad<'_> {
    fn poll(&mut self, now: Instant) -> Poll {
        match self.load.poll(now) {
            Poll::Issue(issue) if issue.device == 0 => {
                Poll::Issue(Issue { request: self.shuffled(now, issue.request), ..issue })
            }
            other => other,
        }
    }

    fn handle_completion(&mut self, now: Instant, id: u64) {
        self.load.handle_completion(now, id);
    }
}

/// Sums over the requests of a day.
#[derive(Clone, Copy, Default)]
struct DaySums {
    requests: u64,
    seek: Nanos,
    service: Nanos,
    accesses: u64,
    zero_seeks: u64,
}

impl DaySums {
    fn add(&mut self, completion: &Completion) {
        self.requests += 1;
        self.seek += completion.parts.seek;
        self.service += completion.response() - completion.parts.queued;
        if let Some(travel) = completion.travel {
            self.accesses += 1;
            self.zero_seeks += u64::from(travel.distance() == 0);
        }
    }
}

/// A run's means over the days after the first.
struct ShuffledSeeks {
    seek_ms: f64,
    service_ms: f64,
    zero_share: f64,
    /// Cylinders moved at the end of a day.
    moved: f64,
    /// Time of these moves, in seconds.
    move_s: f64,
    requests_per_day: f64,
    days: Vec<Vec<u64>>,
}

pub(super) fn rig(load: RearrangedLoad) -> Result<Rig, StudyError> {
    let mut rig = Rig::from_drive(DriveSpec::parse(DISK, "studies/rearrangement/disk.toml")?);
    if load.is_trace() {
        rig.set("drive.count", &WEEK_DRIVES.to_string())?;
    }
    Ok(rig)
}

fn measure(
    load: RearrangedLoad,
    trace: Option<&[u8]>,
    counts: ShuffleCounts<'_>,
    length: Length,
) -> Result<ShuffledSeeks, StudyError> {
    let rig = rig(load)?;
    let case = LoadCase::study(load);
    let day = Nanos::from_ms(case.day_s() * 1e3);
    let mut shuffled = ShuffledLoad {
        load: case.requests(trace, &rig.volumes(), length)?,
        counts,
        shuffle: CylinderShuffle::new(CYLINDERS),
        day,
        days: Vec::new(),
        moves: Vec::new(),
    };
    let mut days: Vec<DaySums> = Vec::new();
    rig.build(1)?.run(&mut shuffled, &mut |finished| {
        let number = (finished.completion.submitted.since(Instant::ZERO).0 / day.0) as usize;
        if finished.volume == 0 {
            days.resize(days.len().max(number + 1), DaySums::default());
            days[number].add(&finished.completion);
        }
    });
    shuffled.days.push(shuffled.shuffle.counts().to_vec());
    means(&days, shuffled)
}

fn means(days: &[DaySums], load: ShuffledLoad<'_>) -> Result<ShuffledSeeks, StudyError> {
    let (mut all, mut counted) = (DaySums::default(), 0);
    for day in days.iter().skip(1).filter(|day| day.requests >= LEAST_REQUESTS) {
        all.requests += day.requests;
        all.seek += day.seek;
        all.service += day.service;
        all.accesses += day.accesses;
        all.zero_seeks += day.zero_seeks;
        counted += 1;
    }
    let shuffles = load.moves.len().max(1) as f64;
    let mut move_s = 0.0;
    for moves in &load.moves {
        move_s += time_of_moves(moves)?;
    }
    let requests = all.requests.max(1) as f64;
    Ok(ShuffledSeeks {
        seek_ms: all.seek.as_ms() / requests,
        service_ms: all.service.as_ms() / requests,
        zero_share: all.zero_seeks as f64 / all.accesses.max(1) as f64,
        moved: load.moves.iter().map(Vec::len).sum::<usize>() as f64 / shuffles,
        move_s: move_s / shuffles,
        requests_per_day: requests / f64::from(counted.max(1)),
        days: load.days,
    })
}

/// Seconds that a disk without other requests needs for a number of moves, one track at a time.
pub(super) fn time_of_moves(moves: &[CylinderMove]) -> Result<f64, StudyError> {
    let mut engine = rig(RearrangedLoad::Steady)?.build(1)?;
    let mut inbox = Inbox::default();
    let mut id = 0;
    for &CylinderMove { from, to, .. } in moves {
        for (op, cylinder) in [(Op::Read, from), (Op::Write, to)] {
            for track in 0..TRACKS {
                let lbn = cylinder_start(cylinder) + track * TRACK_SECTORS;
                let request = Request { op, lbn, sectors: TRACK_SECTORS as u32, fua: false };
                inbox.put(Instant::ZERO, Issue::new(0, request, id));
                id += 1;
            }
        }
    }
    engine.run(&mut inbox, &mut |_| {});
    Ok(engine.now().as_secs())
}

/// Runs the available loads, each with its trace and with the seek time that block rearrangement saves.
///
/// *Errors:* as of a run.
pub(super) fn run(
    setting: &Setting<'_>,
    loads: &[(RearrangedLoad, Option<Vec<u8>>, f64)],
) -> Result<Findings, StudyError> {
    let columns = [
        "load",
        "by the counts of",
        "seek ms",
        "saved %",
        "service ms",
        "saved %",
        "zero-length seeks %",
        "cylinders moved",
        "in s",
        "days to pay",
    ];
    let mut table = Table::new("Cylinder shuffling", columns).with_words(2);
    let all = setting.map(loads, |(load, trace, _)| {
        let one = |counts| measure(*load, trace.as_deref(), counts, setting.length);
        let plain = one(ShuffleCounts::Never)?;
        let next = one(ShuffleCounts::Next(&plain.days))?;
        Ok([one(ShuffleCounts::Past)?, next, plain])
    })?;
    let mut measured = Vec::new();
    for ((load, _, by_blocks), [past, next, plain]) in loads.iter().zip(&all) {
        for (name, run) in [("no day", plain), ("the day before", past), ("the day itself", next)] {
            show([load.name(), name], run, plain, &mut table);
        }
        measured.extend(rows(*load, *by_blocks, past, plain));
    }
    Ok(Findings::new(measured, [Section::new("Cylinder shuffling").with_table(table)]))
}

/// The time that a run saves against a time without moves, in percent.
pub(super) fn share_saved(run: f64, plain: f64) -> f64 {
    100.0 * (1.0 - run / plain)
}

fn rows(load: RearrangedLoad, by_blocks: f64, run: &ShuffledSeeks, plain: &ShuffledSeeks) -> [Measured; 5] {
    let row = |metric: &str, value| Measured::new(format!("{} shuffling {metric}", load.name()), value);
    let seek = share_saved(run.seek_ms, plain.seek_ms);
    [
        row("seek reduction, least", seek),
        row("seek reduction, most", seek),
        row("service reduction", share_saved(run.service_ms, plain.service_ms)),
        row("zero-length seeks", 100.0 * (run.zero_share - plain.zero_share)),
        row("against blocks", by_blocks - seek),
    ]
}

fn show(words: [&str; 2], run: &ShuffledSeeks, plain: &ShuffledSeeks, table: &mut Table) {
    let saved_s = run.requests_per_day * (plain.service_ms - run.service_ms) / 1e3;
    let moves = run.move_s > 0.0;
    let numbers = [
        Some(run.seek_ms),
        Some(share_saved(run.seek_ms, plain.seek_ms)),
        Some(run.service_ms),
        Some(share_saved(run.service_ms, plain.service_ms)),
        Some(100.0 * run.zero_share),
        Some(run.moved),
        Some(run.move_s),
        (moves && saved_s > 0.0).then(|| run.move_s / saved_s),
    ];
    table.named_row(words, numbers);
}
