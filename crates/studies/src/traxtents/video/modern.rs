//! The same server on a drive of 2019 with streams of 25 Mb/s, without published figures.

use super::Server;
use super::hard::Worst;
use super::soft::{Depth, Reading, Reads, Task};
use crate::study::{Findings, Setting, StudyError};
use headstack::report::{Section, Table};
use headstack_model::spec::ZeroLatency;

/// Bytes per second of 4K video.
const RATE: f64 = 25e6 / 8.0;

/// Upper bound of the number of streams, from the media rate of the outermost zone.
const LIMIT: u32 = 90;

/// Rounds of each kind.
const TRIALS: u32 = 10_000;

pub(super) fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let trials = setting.length.pick(TRIALS, TRIALS / 100);
    let plain = Server::new("exos-x16", RATE, LIMIT)?;
    let mut arriving = Server::new("exos-x16", RATE, LIMIT)?;
    arriving.spec.mechanics.zero_latency_read = ZeroLatency::WithinTrack;
    let sizes: &[f64] = setting.length.pick(&[1.0, 2.0], &[1.0]);
    let mut cases = Vec::new();
    for (name, server) in [("as it is", &plain), ("with access on arrival", &arriving)] {
        for tracks in sizes {
            cases.extend(Reads::BOTH.map(|reads| (name, server, *tracks, reads)));
        }
    }
    let soft = setting.map(&cases, |(_, server, tracks, reads)| {
        let seconds = server.period(*tracks);
        let task =
            Task { reading: Reading::Rounds, reads: *reads, depth: Depth::TWO, tracks: *tracks, seconds };
        server.most(task, trials)
    })?;
    let mut table = Table::new(
        "Streams of 25 Mb/s a disk, Exos X16, first zone, ten disks",
        ["drive", "reads", "tracks", "request MB", "round s", "start-up s", "soft", "hard", "buffer MB"],
    )
    .with_words(2);
    for ((name, server, tracks, reads), streams) in cases.iter().zip(&soft) {
        let (bytes, period) = (server.bytes(*tracks), server.period(*tracks));
        let cylinders = server.spec.geometry.cylinders;
        let hard =
            Worst::complete(server, cylinders, tracks * server.track_sectors()).most(server, *reads, bytes);
        table.named_row(
            [*name, reads.name()],
            [
                *tracks,
                bytes / 1e6,
                period,
                server.start_up(period),
                f64::from(*streams),
                f64::from(hard),
                2.0 * bytes * f64::from(*streams) / 1e6,
            ],
        );
    }
    let text = format!(
        "The drive's file knows of no access on arrival, so that a whole track still waits half a turn on average; the lower rows are the \
         same drive with it. 99.99 % of {trials} rounds end within the time in which a stream uses up its request; hard real \
         time counts switches over a band and the bus, too."
    );
    let section = Section::new("Video server, a drive of 2019").with_text(text).with_table(table);
    Ok(Findings::new(Vec::new(), [section]))
}
