//! Soft real time: the most streams with which 99.99 % of all rounds end in time.

use super::Server;
use super::rounds::most_streams;
use crate::judge::Measured;
use crate::runs::{self, Responses};
use crate::study::{Findings, Setting, StudyError};
use headstack::report::{Axis, Chart, Draw, Section, Series, Table};
use headstack_model::{Instant, Nanos};
use headstack_personalities::video::{Chunk, Rounds, VideoServer};
use headstack_sim::DeviceOptions;

/// Rounds of each kind that are played.
const TRIALS: u32 = 10_000;

/// Share of the rounds that must end in time.
const SHARE: f64 = 0.9999;

const ROUND_S: f64 = 0.5;

/// Streams of the row for start-up.
const MANY: u32 = 70;

/// A server that reads whole tracks, or one that ignores tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reads {
    Tracks,
    Anywhere,
}

impl Reads {
    pub(super) const BOTH: [Reads; 2] = [Reads::Tracks, Reads::Anywhere];

    pub(super) fn name(self) -> &'static str {
        match self {
            Reads::Tracks => "aligned",
            Reads::Anywhere => "unaligned",
        }
    }
}

/// The service of a number of streams.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served {
    /// Data that each stream gets in a round, in tracks.
    pub tracks: f64,
    /// Seconds of a round.
    pub round: f64,
}

/// What must end within the length of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// Each round.
    Rounds,
    /// Each request, counted from the beginning of its round.
    Requests,
}

/// How many requests of a round, which the server has sorted, the drive holds at a time; it reorders among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    Of(u32),
    /// All requests of the round.
    All,
}

impl Depth {
    /// The drive always holds the next request, and serves in the server's order.
    pub(super) const TWO: Depth = Depth::Of(2);

    fn of(self, requests: u64) -> u32 {
        let all = u32::try_from(requests).unwrap_or(u32::MAX);
        match self {
            Depth::Of(depth) => depth.min(all),
            Depth::All => all,
        }
    }

    fn name(self) -> String {
        match self {
            Depth::Of(depth) => depth.to_string(),
            Depth::All => "all".to_string(),
        }
    }
}

/// A task with a deadline: reads of `tracks` tracks' worth of data; either each round or each request must be in time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) reading: Reading,
    pub(super) reads: Reads,
    pub(super) depth: Depth,
    pub(super) tracks: f64,
    pub(super) seconds: f64,
}

impl Server {
    /// Seconds within which all but one of ten thousand rounds end.
    pub(super) fn round(
        &self,
        depth: Depth,
        chunk: Chunk,
        streams: u32,
        trials: u32,
    ) -> Result<f64, StudyError> {
        self.nearly_all(Reading::Rounds, depth, chunk, streams, trials)
    }

    /// Seconds within which all but one of ten thousand end.
    fn nearly_all(
        &self,
        reading: Reading,
        depth: Depth,
        chunk: Chunk,
        streams: u32,
        trials: u32,
    ) -> Result<f64, StudyError> {
        let mut shape = Rounds { streams, chunk, depth: 1, rounds: trials };
        shape.depth = depth.of(shape.requests());
        let options = DeviceOptions { seed: 1, depth: Some(shape.depth), order: None };
        let mut load = VideoServer::new(&self.tracks, shape, u64::from(streams))?;
        let of_a_round = shape.requests();
        let (mut begun, mut ended, mut times) = (Instant::ZERO, 0, Vec::new());
        let results = runs::run_load(&self.spec, &options, &mut load, |finished| {
            let now = finished.completion.completed;
            ended += 1;
            if ended == of_a_round || reading == Reading::Requests {
                times.push(now - begun);
            }
            if ended == of_a_round {
                (begun, ended) = (now, 0);
            }
        })?;
        Ok(Responses::new(times, results.end.as_secs()).quantile_ms(SHARE) / 1e3)
    }

    /// Data of a stream in a round: `tracks` tracks, or as many blocks.
    pub(super) fn chunk(&self, reads: Reads, tracks: f64) -> Chunk {
        match reads {
            Reads::Tracks => Chunk::Tracks(tracks.round() as u32),
            Reads::Anywhere => Chunk::Blocks((tracks * self.track_sectors()).round() as u32),
        }
    }

    /// The most streams whose data arrive in time.
    pub(super) fn most(&self, task: Task, trials: u32) -> Result<u32, StudyError> {
        let Task { reading, reads, depth, tracks, seconds } = task;
        most_streams(self.limit, Nanos::from_ms(seconds * 1e3), |streams| {
            let took = self.nearly_all(reading, depth, self.chunk(reads, tracks), streams, trials)?;
            Ok(Nanos::from_ms(took * 1e3))
        })
    }

    /// The least data per round for each of `streams` streams with which the disk keeps up, and the length of the round. `None` if no size
    /// up to `most` tracks is enough.
    pub(super) fn least(
        &self,
        reads: Reads,
        depth: Depth,
        streams: u32,
        most: f64,
        trials: u32,
    ) -> Result<Option<Served>, StudyError> {
        let serve = |tracks: f64| -> Result<Served, StudyError> {
            Ok(Served { tracks, round: self.round(depth, self.chunk(reads, tracks), streams, trials)? })
        };
        let late = |served: Served| served.round - self.period(served.tracks);
        let mut small = serve(1.0)?;
        if late(small) <= 0.0 {
            return Ok(Some(small));
        }
        let mut fits = loop {
            let next = match reads {
                Reads::Tracks => small.tracks + 1.0,
                Reads::Anywhere => small.tracks * 1.5,
            };
            if next > most {
                return Ok(None);
            }
            let now = serve(next)?;
            if late(now) <= 0.0 {
                break now;
            }
            small = now;
        };
        while reads == Reads::Anywhere && fits.tracks > CLOSE * small.tracks {
            let now = serve((small.tracks + fits.tracks) / 2.0)?;
            *if late(now) <= 0.0 { &mut fits } else { &mut small } = now;
        }
        Ok(Some(fits))
    }
}

/// Precision of the search: the least sufficient request is at most this factor above an insufficient one.
const CLOSE: f64 = 1.02;

pub(super) fn run(setting: &Setting<'_>, server: &Server) -> Result<Findings, StudyError> {
    let trials = setting.length.pick(TRIALS, TRIALS / 50);
    let (depths, by_depth) = depths(setting, server, trials)?;
    let (most, in_time, others) = streams(setting, server, depths, trials)?;
    let counts: &[u32] = setting.length.pick(&[10, 30, 45, 50, 55, 60, 65, 70, 74], &[30, MANY]);
    let cases: Vec<(Reads, u32)> =
        Reads::BOTH.into_iter().flat_map(|reads| counts.iter().map(move |count| (reads, *count))).collect();
    let served = setting.map(&cases, |(reads, count)| {
        let depth = depths[usize::from(*reads == Reads::Anywhere)];
        server.least(*reads, depth, *count, 20.0, trials)
    })?;
    let at = |reads: Reads, count: u32| {
        let index = cases.iter().position(|case| *case == (reads, count))?;
        served[index]
    };
    let mut measured = vec![
        Measured::new("video.soft.aligned.streams", most[0].into()),
        Measured::new("video.soft.unaligned.streams", most[1].into()),
        Measured::new("video.soft.gain", f64::from(most[0]) / f64::from(most[1])),
        Measured::new("video.soft.requests.aligned.streams", in_time[0].into()),
        Measured::new("video.soft.requests.unaligned.streams", in_time[1].into()),
    ];
    if let (Some(aligned), Some(unaligned)) = (at(Reads::Tracks, MANY), at(Reads::Anywhere, MANY)) {
        measured.push(Measured::new("video.soft.start_up", unaligned.round / aligned.round));
    }
    let mut table = Table::new(
        "Least requests by number of streams a disk, ten disks",
        ["streams", "reads", "request KB", "round s", "start-up s", "buffer a disk MB"],
    )
    .with_words(2);
    for ((reads, count), served) in cases.iter().zip(&served) {
        let number = |read: &dyn Fn(&Served) -> f64| served.as_ref().map(read);
        table.named_row(
            [&count.to_string(), reads.name()],
            [
                number(&|served| server.bytes(served.tracks) / 1024.0),
                number(&|served| served.round),
                number(&|served| server.start_up(served.round)),
                number(&|served| 2.0 * server.bytes(served.tracks) * f64::from(*count) / 1e6),
            ],
        );
    }
    let line = |family: usize, reads: Reads| {
        Series::new(
            reads.name().to_string(),
            family,
            counts
                .iter()
                .filter_map(|count| Some((f64::from(*count), server.start_up(at(reads, *count)?.round)))),
        )
    };
    let marks = |family: usize, name: &str, streams: f64| {
        Series::new(format!("{name}, published"), family, vec![(streams, server.start_up(ROUND_S))])
            .with_draw(Draw::Marks)
    };
    let figure = Chart::new(
        "Longest start-up of a new stream, ten disks",
        Axis::linear("streams a disk"),
        Axis::log("s").with_ticks([1.0, 2.0, 5.0, 10.0, 20.0, 50.0]),
        [
            line(0, Reads::Tracks),
            line(1, Reads::Anywhere),
            marks(0, "aligned", 70.0),
            marks(1, "unaligned", 45.0),
        ],
    );
    let text = format!(
        "Streams of 4 Mb/s; 99.99 % of {trials} rounds of each kind end in time. With requests of one track (264 KB) and rounds of \
         0.5 s a disk holds {} streams of aligned requests and {} of unaligned ones. The server sorts a round's requests, up and down by \
         turns, and the drive has several of them at a time, among which it takes its own order: {} of aligned ones and {} of unaligned \
         ones, with which each kind holds most.",
        most[0],
        most[1],
        depths[0].name(),
        depths[1].name(),
    );
    let section = Section::new("Video server, soft real time")
        .with_text(text)
        .with_chart(figure)
        .with_table(by_depth)
        .with_table(table)
        .with_table(others);
    Ok(Findings::new(measured, [section]))
}

type Both = [u32; 2];

/// How many requests a drive may have at a time.
const DEPTHS: [Depth; 6] = [Depth::TWO, Depth::Of(4), Depth::Of(8), Depth::Of(16), Depth::Of(32), Depth::All];

/// For each kind of read, the depth that admits the most streams (the smallest of equal ones, as an operator would choose), and a table of
/// all depths.
fn depths(setting: &Setting<'_>, server: &Server, trials: u32) -> Result<([Depth; 2], Table), StudyError> {
    let cases: Vec<_> = DEPTHS.iter().flat_map(|depth| Reads::BOTH.map(|reads| (*depth, reads))).collect();
    let most = setting.map(&cases, |(depth, reads)| {
        let task =
            Task { reading: Reading::Rounds, reads: *reads, depth: *depth, tracks: 1.0, seconds: ROUND_S };
        server.most(task, trials)
    })?;
    let mut table = Table::new(
        "Streams a disk by the requests that the drive has at a time, rounds of 0.5 s",
        ["at a time", "aligned", "unaligned"],
    );
    let mut best = [(Depth::TWO, 0); 2];
    for (depth, both) in DEPTHS.iter().zip(most.chunks(2)) {
        table.named_row([depth.name()], [f64::from(both[0]), f64::from(both[1])]);
        for (best, streams) in best.iter_mut().zip(both) {
            if *streams > best.1 {
                *best = (*depth, *streams);
            }
        }
    }
    Ok((best.map(|(depth, _)| depth), table))
}

/// The numbers of streams that are on time with requests of one track, by rounds and by requests; and a table with each interpretation of
/// the study's limit.
fn streams(
    setting: &Setting<'_>,
    server: &Server,
    depths: [Depth; 2],
    trials: u32,
) -> Result<(Both, Both, Table), StudyError> {
    let readings = [
        ("rounds of 0.5 s", Reading::Rounds, ROUND_S),
        ("requests, not rounds, within 0.5 s", Reading::Requests, ROUND_S),
        ("rounds of 0.54 s, which a track lasts", Reading::Rounds, server.period(1.0)),
    ];
    let mut cases = Vec::new();
    for (_, reading, seconds) in readings {
        for (reads, depth) in Reads::BOTH.into_iter().zip(depths) {
            cases.push(Task { reading, reads, depth, tracks: 1.0, seconds });
        }
    }
    let most = setting.map(&cases, |task| server.most(*task, trials))?;
    let mut table =
        Table::new("Streams a disk, requests of a track, 99.99 % in time", ["", "aligned", "unaligned"]);
    table.named_row(["published"], [70.0, 45.0]);
    for ((name, _, _), both) in readings.iter().zip(most.chunks(2)) {
        table.named_row([*name], [f64::from(both[0]), f64::from(both[1])]);
    }
    Ok(([most[0], most[1]], [most[2], most[3]], table))
}
