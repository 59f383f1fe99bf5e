//! Soft real time: so many streams that a round is over in time in 99.99 % of all rounds.

use super::super::Part;
use super::Server;
use crate::figure::{Axis, Cell, Figure, Line, Look, Section, Table};
use crate::judge::Measured;
use crate::runs::Responses;
use crate::study::{Setting, StudyError};
use headstack_model::Nanos;
use headstack_policy::rounds::most_streams;
use headstack_sim::{Device, DeviceOptions, Engine};
use headstack_workload::personality::video::{Chunk, Rounds, VideoServer};

/// Rounds of each kind that are played.
const TRIALS: u32 = 10_000;

/// Share of them that must be over in time.
const SHARE: f64 = 0.9999;

/// The study's round.
const ROUND_S: f64 = 0.5;

/// Streams of the row for start-up.
const MANY: u32 = 70;

/// A server that reads whole tracks, or does not know of them.
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

/// How a number of streams is served.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served {
    /// Tracks' worth of data that each stream gets in a round.
    pub tracks: f64,
    /// Seconds of a round.
    pub round: f64,
}

/// What is held against a round's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// Each round, of requests that the server sorted; the drive has the next by the time it is done with one.
    Rounds,
    /// Each request, from its round's beginning on.
    Requests,
    /// Each round, of requests that the drive has all at once and takes in its own order.
    ByDrive,
}

impl Server {
    /// Seconds in which all but one of ten thousand rounds are over.
    pub(super) fn round(&self, chunk: Chunk, streams: u32, trials: u32) -> Result<f64, StudyError> {
        self.nearly_all(Reading::Rounds, chunk, streams, trials)
    }

    /// Seconds in which all but one of ten thousand are over.
    fn nearly_all(
        &self,
        reading: Reading,
        chunk: Chunk,
        streams: u32,
        trials: u32,
    ) -> Result<f64, StudyError> {
        let (depth, order) = match reading {
            Reading::ByDrive => (streams, None),
            _ => (2, Some("fcfs".to_string())),
        };
        let options = DeviceOptions { seed: 1, depth: Some(depth), order };
        let mut engine = Engine::new(vec![Device::new(&self.spec, &options)?]);
        let shape = Rounds { streams, chunk, depth, rounds: trials };
        let mut load = VideoServer::new(&self.tracks, shape, u64::from(streams))?;
        let of_a_round = shape.requests();
        let (mut begun, mut ended, mut times) = (Nanos::ZERO, 0, Vec::new());
        engine.run(&mut load, &mut |finished| {
            let now = finished.completion.completed;
            ended += 1;
            if ended == of_a_round || reading == Reading::Requests {
                times.push((now - begun).as_ms());
            }
            if ended == of_a_round {
                (begun, ended) = (now, 0);
            }
        });
        Ok(Responses::new(times, engine.now().as_secs()).quantile_ms(SHARE) / 1e3)
    }

    /// What a stream gets: so many tracks, or as many blocks.
    pub(super) fn chunk(&self, reads: Reads, tracks: f64) -> Chunk {
        match reads {
            Reads::Tracks => Chunk::Tracks(tracks.round() as u32),
            Reads::Anywhere => Chunk::Blocks((tracks * self.track_sectors()).round() as u32),
        }
    }

    /// The most streams that get so much each within so many seconds.
    pub(super) fn most(
        &self,
        reading: Reading,
        reads: Reads,
        tracks: f64,
        seconds: f64,
        trials: u32,
    ) -> Result<u32, StudyError> {
        most_streams(self.limit, Nanos::from_ms(seconds * 1e3), |streams| {
            let took = self.nearly_all(reading, self.chunk(reads, tracks), streams, trials)?;
            Ok(Nanos::from_ms(took * 1e3))
        })
    }

    /// The least that so many streams must get each for the disk to keep up, and the round that it takes. None where
    /// no size up to `most` tracks will do.
    pub(super) fn least(
        &self,
        reads: Reads,
        streams: u32,
        most: f64,
        trials: u32,
    ) -> Result<Option<Served>, StudyError> {
        let serve = |tracks: f64| -> Result<Served, StudyError> {
            Ok(Served { tracks, round: self.round(self.chunk(reads, tracks), streams, trials)? })
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

/// How much larger the least request that will do is at most than one that will not.
const CLOSE: f64 = 1.02;

pub(super) fn run(setting: &Setting<'_>, server: &Server) -> Result<Part, StudyError> {
    let trials = setting.length.pick(TRIALS, TRIALS / 50);
    let (most, in_time, others) = streams(setting, server, trials)?;
    let counts: &[u32] = setting.length.pick(&[10, 30, 45, 50, 55, 60, 65, 70, 74], &[30, MANY]);
    let cases: Vec<(Reads, u32)> =
        Reads::BOTH.into_iter().flat_map(|reads| counts.iter().map(move |count| (reads, *count))).collect();
    let served = setting.map(&cases, |(reads, count)| server.least(*reads, *count, 20.0, trials))?;
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
        "Least requests for so many streams a disk, ten disks",
        ["streams", "reads", "request KB", "round s", "start-up s", "buffer a disk MB"],
    );
    table.words = 2;
    for ((reads, count), served) in cases.iter().zip(&served) {
        let number = |read: &dyn Fn(&Served) -> f64| Cell::from(served.as_ref().map(read));
        table.row([
            Cell::from(count.to_string()),
            Cell::from(reads.name()),
            number(&|served| server.bytes(served.tracks) / 1024.0),
            number(&|served| served.round),
            number(&|served| server.start_up(served.round)),
            number(&|served| 2.0 * server.bytes(served.tracks) * f64::from(*count) / 1e6),
        ]);
    }
    let line = |family: usize, reads: Reads| Line {
        name: reads.name().to_string(),
        points: counts
            .iter()
            .filter_map(|count| Some((f64::from(*count), server.start_up(at(reads, *count)?.round))))
            .collect(),
        family,
        ..Line::default()
    };
    let marks = |family: usize, name: &str, streams: f64| Line {
        name: format!("{name}, published"),
        points: vec![(streams, server.start_up(ROUND_S))],
        look: Look::Marks,
        family,
        ..Line::default()
    };
    let figure = Figure {
        title: "Longest start-up of a new stream, ten disks".to_string(),
        x: Axis::linear("streams a disk"),
        y: Axis::log("s").with_ticks([1.0, 2.0, 5.0, 10.0, 20.0, 50.0]),
        lines: vec![
            line(0, Reads::Tracks),
            line(1, Reads::Anywhere),
            marks(0, "aligned", 70.0),
            marks(1, "unaligned", 45.0),
        ],
    };
    let text = format!(
        "Streams of 4 Mb/s; 99.99 % of {trials} rounds of each kind end in time. With requests of one track (264 KB) and rounds of \
         0.5 s a disk holds {} streams of aligned requests and {} of unaligned ones.",
        most[0], most[1],
    );
    let section = Section {
        title: "Video server, soft real time".to_string(),
        text: vec![text],
        figures: vec![figure],
        tables: vec![table, others],
    };
    Ok((measured, vec![section]))
}

/// Streams of aligned and of unaligned requests.
type Both = [u32; 2];

/// The streams whose rounds are in time, with requests of a track; those whose requests are; and what else the study may mean.
fn streams(setting: &Setting<'_>, server: &Server, trials: u32) -> Result<(Both, Both, Table), StudyError> {
    let period = server.period(1.0);
    let readings = [
        ("rounds of 0.5 s, sorted by the server", Reading::Rounds, ROUND_S),
        ("requests, not rounds, within 0.5 s", Reading::Requests, ROUND_S),
        ("rounds of 0.54 s, which a track lasts", Reading::Rounds, period),
        ("rounds of 0.5 s in the drive's own order", Reading::ByDrive, ROUND_S),
    ];
    let cases: Vec<_> =
        readings.iter().flat_map(|reading| Reads::BOTH.map(|reads| (*reading, reads))).collect();
    let most = setting
        .map(&cases, |((_, reading, seconds), reads)| server.most(*reading, *reads, 1.0, *seconds, trials))?;
    let mut table =
        Table::new("Streams a disk, requests of a track, 99.99 % in time", ["", "aligned", "unaligned"]);
    table.row([Cell::from("published"), Cell::from(70.0), Cell::from(45.0)]);
    for ((name, _, _), both) in readings.iter().zip(most.chunks(2)) {
        table.row([Cell::from(*name), Cell::from(f64::from(both[0])), Cell::from(f64::from(both[1]))]);
    }
    Ok(([most[0], most[1]], [most[2], most[3]], table))
}
