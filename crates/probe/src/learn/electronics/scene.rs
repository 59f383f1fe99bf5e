//! Commands that wait while the arm is busy: the common part of the tests of the queue.

use super::bench::{Bench, Kind};
use headstack_model::{Instant, Lbn};
use headstack_tracks::Track;

/// Commands that wait while the arm is busy.
pub(super) struct Scene<'a> {
    pub(super) bench: &'a Bench,
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
        let (bench, unit) = (self.bench, self.bench.unit());
        if let Some(from) = from {
            bench.access(Kind::Read, from, unit, Instant::ZERO).await;
        }
        let at = bench.disk().now() + bench.turns(0.1);
        let (busy, ask) = self.busy(here);
        let busy = bench.send(busy, at);
        let sent: Vec<_> = order.iter().map(|lbn| (*lbn, bench.send(ask(*lbn), at))).collect();
        bench.disk().answer(busy).await;
        let mut ends = Vec::new();
        for (lbn, ticket) in sent {
            ends.push((bench.disk().answer(ticket).await.ended, lbn));
        }
        ends.into_iter().min().map(|(_, lbn)| lbn)
    }
}
