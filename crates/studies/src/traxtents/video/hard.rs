//! Hard real time: the most streams with which a round ends in time in the worst case.
//!
//! A request takes its overhead, its transfer, a revolution if it begins anywhere, and a switch for each track end in it. The seeks of a
//! round take as long as the worst sweep over the disk. The footnote in which the study defines its worst seek is lost. Its four numbers
//! leave 1.95 to 2.07 ms for the seek and overhead of an aligned request of one track, which matches a sweep over the whole disk. A sweep
//! of the first zone, where the requests of this study lie, is shown for comparison.

use super::Server;
use super::rounds::{Sweep, most_streams};
use super::soft::Reads;
use crate::judge::Measured;
use crate::study::Findings;
use headstack::report::{Axis, Chart, Draw, Section, Series, Table};
use headstack_model::spec::{DriveSpec, ZeroLatency};
use headstack_model::{Mechanics, Nanos, TrackPlace};
use std::convert::Infallible;

/// Bytes of the study's requests, 264 KB and 528 KB: one track and two.
const TRACK: f64 = 264.0 * 1024.0;

/// The worst-case times that are added up.
pub(super) struct Worst {
    sweep: Sweep,
    overhead: Nanos,
    turn: Nanos,
    sectors: f64,
    /// The longest wait at a track that is read whole: until the sector under the head has passed, or until the track's first sector
    /// arrives.
    at_track: Nanos,
    switch: Nanos,
    /// Time for the data of the last request to cross the bus.
    last: Nanos,
}

impl Worst {
    /// As the study counts: a head switch for each track end, and seeks over `cylinders` cylinders.
    pub(super) fn study(server: &Server, cylinders: u32) -> Worst {
        let turn = Nanos::from_ms(60e3 / server.spec.mechanics.rpm);
        let skew = longest_skew(&server.spec, false);
        let sectors = server.track_sectors();
        let at_track = match server.spec.mechanics.zero_latency_read {
            ZeroLatency::None => turn,
            _ => Nanos::from_ms(turn.as_ms() / sectors),
        };
        Worst {
            sweep: sweep(&server.spec, cylinders),
            overhead: Nanos::from_ms(server.spec.overhead.after_read.read_miss_ms),
            turn,
            sectors,
            at_track,
            switch: Nanos::from_ms(turn.as_ms() * skew),
            last: Nanos::ZERO,
        }
    }

    /// All that a drive may need: switches to the next cylinder, and the bus transfer of the last request.
    pub(super) fn complete(server: &Server, cylinders: u32, sectors: f64) -> Worst {
        let study = Worst::study(server, cylinders);
        let skew = longest_skew(&server.spec, true);
        Worst {
            switch: Nanos::from_ms(study.turn.as_ms() * skew),
            last: Nanos::from_us(server.spec.bus.read_us_per_sector * sectors),
            ..study
        }
    }

    /// The longest round of `streams` streams with `sectors` blocks each.
    pub(super) fn round(&self, reads: Reads, sectors: f64, streams: u32) -> Nanos {
        let tracks = sectors / self.sectors;
        let transfer = tracks * self.turn.as_ms();
        let (requests, ends, latency) = match reads {
            Reads::Tracks => (tracks.ceil(), tracks.ceil() - 1.0, tracks.ceil() * self.at_track.as_ms()),
            Reads::Anywhere => (1.0, ((sectors - 1.0) / self.sectors).ceil(), self.turn.as_ms()),
        };
        let each = requests * self.overhead.as_ms() + latency + transfer + ends * self.switch.as_ms();
        self.sweep.longest(streams) + Nanos::from_ms(each * f64::from(streams)) + self.last
    }

    /// The most streams whose rounds end in time with requests of `bytes`.
    pub(super) fn most(&self, server: &Server, reads: Reads, bytes: f64) -> u32 {
        let sectors = bytes / f64::from(server.spec.sector_bytes);
        let period = Nanos::from_ms(bytes / server.rate * 1e3);
        let round = |streams| Ok::<_, Infallible>(self.round(reads, sectors, streams));
        most_streams(server.limit, period, round).unwrap_or_else(|never| match never {})
    }

    /// The smallest request in bytes with which unaligned reads serve `streams` streams; `None` if 64 MiB are not enough.
    fn least(&self, server: &Server, streams: u32) -> Option<f64> {
        let kib = (1..=64 * 1024)
            .find(|kib| self.most(server, Reads::Anywhere, f64::from(*kib) * 1024.0) >= streams)?;
        Some(f64::from(kib) * 1024.0)
    }
}

/// The worst sweeps over `cylinders` cylinders of a drive.
fn sweep(spec: &DriveSpec, cylinders: u32) -> Sweep {
    let mechanics = Mechanics::new(spec);
    let to = |cylinder| TrackPlace { cylinder, head: 1 };
    Sweep::new(cylinders, |distance| mechanics.reposition(TrackPlace::default(), to(distance), false))
}

/// The longest switch at the end of a track, in revolutions: to the next head, or, if `any`, to whichever track comes next.
fn longest_skew(spec: &DriveSpec, any: bool) -> f64 {
    let zones = spec.geometry.zones.iter().map(|zone| {
        let sectors = if any {
            zone.cylinder_skew_sectors.max(zone.track_skew_sectors)
        } else {
            zone.track_skew_sectors
        };
        sectors / f64::from(zone.sectors_per_track)
    });
    let bands = spec.geometry.band_zones.iter().map(|zone| {
        if any { zone.track_skew_turns.max(zone.head_skew_turns) } else { zone.track_skew_turns }
    });
    zones.chain(bands).fold(0.0, f64::max)
}

pub(super) fn run(server: &Server) -> Findings {
    let cylinders = server.spec.geometry.cylinders;
    let worst = Worst::study(server, cylinders);
    let mut measured = Vec::new();
    for (name, tracks) in [("264_kb", 1.0), ("528_kb", 2.0)] {
        for reads in Reads::BOTH {
            let streams = f64::from(worst.most(server, reads, tracks * TRACK));
            let metric = format!("video.hard.{name}.{}", reads.name());
            measured.push(Measured::new(format!("{metric}.streams"), streams));
            if tracks == 1.0 {
                measured
                    .push(Measured::new(format!("{metric}.efficiency"), streams / f64::from(server.limit)));
            }
        }
    }
    let [one, two] = [1.0, 2.0].map(|tracks| worst.most(server, Reads::Tracks, tracks * TRACK));
    let mut matching = Table::new(
        "Unaligned requests that hold as many streams as aligned ones",
        ["as", "streams", "request MB", "start-up s"],
    );
    for (name, metric, streams) in [("264 KB aligned", "264_kb", one), ("528 KB aligned", "528_kb", two)] {
        let bytes = worst.least(server, streams);
        let start_up = bytes.map(|bytes| server.start_up(bytes / server.rate));
        let mb = bytes.map(|bytes| bytes / 1e6);
        matching.named_row([name], [Some(f64::from(streams)), mb, start_up]);
        for (what, value) in [("mb", mb), ("start_up", start_up)] {
            measured
                .extend(value.map(|value| Measured::new(format!("video.hard.match_{metric}.{what}"), value)));
        }
    }
    Findings::new(measured, [section(server, &worst, matching)])
}

/// Streams per disk with aligned and with unaligned requests of one track and of two, as published.
const PUBLISHED: [[f64; 2]; 2] = [[67.0, 36.0], [75.0, 52.0]];

fn streams_table(server: &Server, worst: &Worst) -> Table {
    let zone = server.zone.cylinders;
    let all = server.spec.geometry.cylinders;
    let mut table = Table::new(
        "Streams a disk",
        [
            "request",
            "reads",
            "published",
            "sweep of the disk",
            "sweep of the first zone",
            "with cylinder switches and bus",
        ],
    )
    .with_words(2);
    for (row, tracks) in PUBLISHED.iter().zip([1.0, 2.0]) {
        for (value, reads) in row.iter().zip(Reads::BOTH) {
            let bytes = tracks * TRACK;
            let complete = Worst::complete(server, all, bytes / f64::from(server.spec.sector_bytes));
            table.named_row(
                [&format!("{:.0} KB", bytes / 1024.0), reads.name()],
                [
                    *value,
                    f64::from(worst.most(server, reads, bytes)),
                    f64::from(Worst::study(server, zone).most(server, reads, bytes)),
                    f64::from(complete.most(server, reads, bytes)),
                ],
            );
        }
    }
    table
}

fn section(server: &Server, worst: &Worst, matching: Table) -> Section {
    let line = |family: usize, reads: Reads, sizes: &[f64]| {
        Series::new(
            reads.name().to_string(),
            family,
            sizes.iter().map(|tracks| {
                (tracks * TRACK / 1024.0, f64::from(worst.most(server, reads, tracks * TRACK)))
            }),
        )
        .with_draw(if sizes.len() > 16 { Draw::Line } else { Draw::Points })
    };
    let marks = |family: usize, reads: Reads| {
        Series::new(
            format!("{}, published", reads.name()),
            family,
            [(264.0, PUBLISHED[0][family]), (528.0, PUBLISHED[1][family])],
        )
        .with_draw(Draw::Marks)
    };
    let whole: Vec<f64> = [1, 2, 3, 4, 6, 8, 12, 16].map(f64::from).to_vec();
    let any: Vec<f64> = (1..=64).map(|quarter| f64::from(quarter) / 4.0).collect();
    let figure = Chart::new(
        "Streams a disk that are always in time",
        Axis::log("KB a request").with_ticks([66.0, 132.0, 264.0, 528.0, 1056.0, 2112.0, 4224.0]),
        Axis::linear("streams"),
        [
            line(0, Reads::Tracks, &whole),
            line(1, Reads::Anywhere, &any),
            marks(0, Reads::Tracks),
            marks(1, Reads::Anywhere),
        ],
    );
    let text = "Each request is counted with its overhead, its transfer, a revolution unless it is aligned, a head switch for each \
                track end in it, and its share of the worst sweep.";
    Section::new("Video server, hard real time")
        .with_text(text)
        .with_chart(figure)
        .with_table(streams_table(server, worst))
        .with_table(matching)
}
