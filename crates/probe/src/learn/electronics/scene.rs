//! Commands that wait while the arm is busy: the common part of the tests of the queue.

use super::bench::{Bench, Kind};
use crate::{ProbeCommand, Ticket};
use headstack_model::{Instant, Lbn};
use headstack_tracks::Track;

/// Commands that wait while the arm is busy.
pub(super) struct Scene<'a> {
    pub(super) bench: &'a Bench,
    /// Commands that the disk serves in the order in which it chose them, the one in progress counted.
    pub(super) committed: usize,
}

impl Scene<'_> {
    /// A track at a share of the disk from another, above it if possible.
    pub(super) fn off(&self, here: Track, share: f64) -> Option<Track> {
        self.bench.away(here, share).or_else(|| self.bench.away(here, -share))
    }

    /// The block of another track that passes the head a number of turns after the end of a track.
    pub(super) async fn after(&self, here: Track, other: Track, turns: f64) -> Lbn {
        let (bench, unit) = (self.bench, self.bench.unit());
        let last = here.end().0 - u64::from(unit);
        let (mut of_last, mut of_first) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            of_last.push(bench.access(Kind::Read, Lbn(last), unit, Instant::ZERO).await.ended);
            of_first.push(bench.access(Kind::Read, other.first, unit, Instant::ZERO).await.ended);
        }
        let (Some(end), Some(first)) = (bench.phase_of(&of_last), bench.phase_of(&of_first)) else {
            return other.first;
        };
        let along = (end + turns - first).rem_euclid(1.0) * f64::from(other.sectors);
        other.first + (along as u64 / u64::from(unit) * u64::from(unit)).min(u64::from(other.sectors - unit))
    }

    /// Which of some commands is served first that arrive while the arm reads up to the end of a track, after coming from `from`.
    pub(super) async fn first_of(&self, here: Track, from: Option<Lbn>, order: &[Lbn]) -> Option<Lbn> {
        let bench = self.bench;
        let (busy, at) = self.make_busy(here, from).await;
        let sent: Vec<_> = order.iter().map(|lbn| (*lbn, bench.send(self.media_read(*lbn), at))).collect();
        busy.end(bench).await;
        let mut ends = Vec::new();
        for (lbn, ticket) in sent {
            ends.push((bench.disk().answer(ticket).await.ended, lbn));
        }
        ends.into_iter().min().map(|(_, lbn)| lbn)
    }

    /// The request of one of the commands that wait.
    pub(super) fn media_read(&self, lbn: Lbn) -> ProbeCommand {
        read(lbn, self.bench.unit())
    }

    /// Makes the arm busy with a read up to the end of a track, after coming from `from`. The commands to choose from have to be sent for the
    /// returned time.
    ///
    /// A disk that commits commands makes the choice as soon as that read is the last committed one. So others go before it, long ones,
    /// and the commands to choose from have arrived by then.
    pub(super) async fn make_busy(&self, here: Track, from: Option<Lbn>) -> (BusyArm, Instant) {
        let bench = self.bench;
        let before = self.committed - 1;
        if let Some(from) = from.filter(|_| before == 0) {
            bench.access(Kind::Read, from, bench.unit(), Instant::ZERO).await;
        }
        let at = bench.disk().now() + bench.turns(0.1);
        let mut fillers: Vec<_> = (0..before).map(|_| bench.fresh()).collect();
        if let (Some(last), Some(from)) = (fillers.last_mut(), from.and_then(|from| bench.track_of(from))) {
            *last = from;
        }
        let fillers = fillers.into_iter().map(|track| bench.send(self.long_read(track), at)).collect();
        // The disk expects to be at the end of a long one later, at an angle that the tests cannot know.
        let last = match before {
            0 => self.long_read(here),
            _ => self.media_read(Lbn(here.end().0 - u64::from(bench.unit()))),
        };
        (BusyArm { fillers, last: bench.send(last, at) }, at)
    }

    /// A read of several tracks up to the end of one, so that all commands have arrived when it ends.
    pub(super) fn long_read(&self, here: Track) -> ProbeCommand {
        // Not one track, which may be read from any angle.
        let tracks = [4, 3, 2]
            .into_iter()
            .find_map(|tracks| Some((tracks, self.bench.neighbour_track(here, 1 - tracks)?)));
        let (tracks, first) = tracks.unwrap_or((1, here));
        read(first.first, tracks as u32 * here.sectors)
    }
}

fn read(lbn: Lbn, sectors: u32) -> ProbeCommand {
    ProbeCommand::Read { lbn, sectors, from_media: true }
}

/// The reads that keep the arm busy.
pub(super) struct BusyArm {
    fillers: Vec<Ticket>,
    last: Ticket,
}

impl BusyArm {
    /// When the last of them has ended.
    pub(super) async fn end(self, bench: &Bench) -> Instant {
        for filler in self.fillers {
            bench.disk().answer(filler).await;
        }
        bench.disk().answer(self.last).await.ended
    }
}
