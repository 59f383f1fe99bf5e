//! How far a disk lets a later command overtake an earlier one, and how long the choice takes.
//!
//! A longer command waits while the arm is busy; a shorter one arrives after it. If the disk orders by positioning time alone,
//! the shorter goes first, however small the difference. If it bounds overtaking (`headstack_policy`'s `bounded-sptf`: times T (L
//! − A) with L = m + K mᴾ, m other commands waiting, A later ones), the shorter has to be below K mᴾ / (m + K mᴾ) of the longer.
//! That share is measured with one other command and with many, which gives K and P.

use super::scene::Scene;
use headstack_model::{Lbn, Nanos};
use headstack_tracks::Track;

/// Repetitions of each test.
const ROUNDS: usize = 3;
/// Steps of the bisection for the share, which end within a hundredth of a turn.
const STEPS: usize = 7;
/// Number of places at which both commands are searched.
const PLACES: usize = 12;
/// Turns from the end of an access to the end of the longer command.
const LONGER: [f64; 5] = [1.8, 1.6, 1.4, 1.2, 1.0];
/// Minimum turns to the end of the shorter command.
const SHORTEST: f64 = 0.12;
/// Tolerance of the end of a command: turns.
const OFF: f64 = 0.06;
/// Turns by which a block may be missed barely: more than the time of a choice, which a disk may leave out when it looks ahead.
const BARELY: f64 = 0.05;
/// Least share that counts as no bound.
const UNBOUNDED: f64 = 0.93;
/// Tolerance within which P counts as 1.
const WHOLE_POWER: f64 = 0.15;
/// Number of tracks on which the time of a committed choice is bounded.
const GAP_PLACES: usize = 12;
/// Maximum tested time of the choice: ms.
const CHOICE_MS: f64 = 1.0;

/// K and P of a bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bound {
    pub(super) more: f64,
    pub(super) power: f64,
}

impl Bound {
    /// The order with this bound, as in drive files.
    pub(super) fn order(self) -> String {
        match self.power {
            1.0 => format!("bounded-sptf({:.2})", self.more),
            power => format!("bounded-sptf({:.2}, {power:.2})", self.more),
        }
    }
}

/// The bound on overtaking of a disk that orders by positioning time; none if it has none, or if it cannot be measured.
pub(super) async fn bound(scene: &Scene<'_>, depth: usize, choice_ms: f64) -> Option<Bound> {
    // A choice that is made ahead, for a place that the arm has not reached, takes none of that time.
    let choice_ms = if scene.committed == 1 { choice_ms } else { 0.0 };
    let few = odds(scene, 1, choice_ms).await?;
    let many = depth.saturating_sub(1 + scene.committed).min(14);
    let most = if many < 4 { None } else { odds(scene, many, choice_ms).await };
    let Some(most) = most else { return Some(Bound { more: 1.0 / few, power: 1.0 }) };
    let power = 1.0 - libm::log(most / few) / libm::log(many as f64);
    Some(if (power - 1.0).abs() < WHOLE_POWER {
        Bound { more: 1.0 / libm::sqrt(few * most), power: 1.0 }
    } else {
        Bound { more: 1.0 / few, power: power.clamp(0.0, 1.0) }
    })
}

/// With `others` other commands waiting: (1 − share) / share, where a later command goes first below this share of a longer
/// command's time; that is m^(1 − P) / K. None if a later command goes first even if it is hardly shorter.
async fn odds(scene: &Scene<'_>, others: usize, choice_ms: f64) -> Option<f64> {
    let (mut low, mut high) = (0.0, 1.0);
    for step in 0..STEPS {
        // First, whether there is a bound at all.
        let share = if step == 0 { UNBOUNDED } else { 0.5 * (low + high) };
        if scene.overtakes(share, others, choice_ms).await? {
            low = share
        } else {
            high = share
        }
        if low >= UNBOUNDED {
            return None;
        }
    }
    let share = 0.5 * (low + high);
    Some((1.0 - share) / share)
}

impl Scene<'_> {
    /// Whether a later command with a share of the time of an earlier one goes first; `None` if no such commands are found.
    async fn overtakes(&self, share: f64, others: usize, choice_ms: f64) -> Option<bool> {
        self.at_places(async |here: Track| {
            // The part of both times that is no positioning: the choice, and the transfer.
            let shared =
                choice_ms * 1e6 / self.bench.turn + f64::from(self.bench.unit()) / f64::from(here.sectors);
            let (long, turns) = self.longer(here).await?;
            let wanted = share * (turns - shared) + shared;
            let short = self.command_after(here, wanted.max(SHORTEST)).await?;
            let unit = u64::from(self.bench.unit());
            // The commands between lie before the first, so that none of them passes a turn earlier; they arrived later, which counts more.
            let before = |index: u64| Lbn(long.0.saturating_sub(2 * index * unit));
            let mut order: Vec<Lbn> = (0..others as u64).map(before).collect();
            order.push(short);
            Some(self.first_of(here, None, &order).await == Some(short))
        })
        .await
    }

    /// The majority of the answers at places where the test is possible; none if no place is.
    async fn at_places(&self, question: impl AsyncFn(Track) -> Option<bool>) -> Option<bool> {
        let (mut yes, mut asked) = (0, 0);
        for _ in 0..PLACES {
            let Some(answer) = question(self.bench.fresh()).await else { continue };
            yes += usize::from(answer);
            asked += 1;
            if asked == ROUNDS {
                break;
            }
        }
        (asked > 0).then_some(2 * yes > asked)
    }

    /// A block whose command ends long after the end of a track, and the turns.
    pub(super) async fn longer(&self, here: Track) -> Option<(Lbn, f64)> {
        for turns in LONGER {
            if let Some(lbn) = self.command_after(here, turns).await {
                return Some((lbn, turns));
            }
        }
        None
    }

    /// A block whose command ends `turns` turns after the end of a track, if it waits alone.
    pub(super) async fn command_after(&self, here: Track, turns: f64) -> Option<Lbn> {
        for share in [0.003, 0.03, 0.1, 0.2, 0.4] {
            let Some(other) = self.off(here, share) else { continue };
            let lbn = self.after(here, other, turns).await;
            if self.takes(here, lbn, turns).await && !self.barely_misses(here, other, lbn, turns).await {
                return Some(lbn);
            }
        }
        None
    }

    /// Whether a command that waits alone ends `turns` turns after the end of a track.
    async fn takes(&self, here: Track, lbn: Lbn, turns: f64) -> bool {
        self.alone_after(here, lbn).await.is_some_and(|took| (took - turns).abs() < OFF)
    }

    /// Whether a block on another track that ends `turns` turns after the end of a track would almost pass a turn earlier: the disk may
    /// expect that when it chooses, and find itself too late.
    async fn barely_misses(&self, here: Track, other: Track, lbn: Lbn, turns: f64) -> bool {
        if turns < 1.0 {
            return false;
        }
        let unit = u64::from(self.bench.unit());
        let units = u64::from(other.sectors) / unit;
        let behind = (BARELY * units as f64) as u64;
        let later = other.first + ((lbn.0 - other.first.0) / unit + behind) % units * unit;
        !self.takes(here, later, turns + BARELY).await
    }

    /// Turns from the end of a track to that of a command that waited for it alone.
    async fn alone_after(&self, here: Track, lbn: Lbn) -> Option<f64> {
        let bench = self.bench;
        let (busy, at) = self.make_busy(here, None).await;
        let waiting = bench.send(self.media_read(lbn), at);
        let ready = busy.end(bench).await;
        let ended = bench.disk().answer(waiting).await.ended;
        (ended > ready).then(|| (ended - ready).0 as f64 / bench.turn)
    }
}

/// How long after the end of an access a command may arrive and still be chosen, with another waiting: ms, 0 if it may not.
pub(super) async fn choice_ms(scene: &Scene<'_>) -> Option<f64> {
    if !scene.is_chosen_after(0.0).await? {
        return Some(0.0);
    }
    let (mut low, mut high) = (0.0, CHOICE_MS);
    while high - low > 0.005 {
        let middle = 0.5 * (low + high);
        if scene.is_chosen_after(middle).await? { low = middle } else { high = middle }
    }
    Some(libm::round(low * 100.0) / 100.0)
}

/// The time from the end of an access to the start of the next one that the disk has committed: ms.
///
/// A read of the track on which the one before it ended passes a turn later if less than that time lies between them. Tracks with other
/// numbers of sectors bound the time by other multiples of a sector's; the answer lies within most of the bounds.
pub(super) async fn committed_choice_ms(scene: &Scene<'_>) -> f64 {
    let mut bounds = Vec::with_capacity(GAP_PLACES);
    for _ in 0..GAP_PLACES {
        bounds.extend(scene.gap(scene.bench.anywhere()).await);
    }
    let holding = |ms: f64| bounds.iter().filter(move |(low, high)| *low <= ms && ms < *high);
    let mut lows: Vec<f64> = bounds.iter().map(|(low, _)| *low).collect();
    lows.sort_by(f64::total_cmp);
    let Some(low) = lows.into_iter().max_by_key(|low| holding(*low).count()).filter(|low| *low > 0.0) else {
        return 0.0;
    };
    let high = holding(low).map(|(_, high)| *high).fold(f64::INFINITY, f64::min);
    libm::round(50.0 * (low + high)) / 100.0
}

impl Scene<'_> {
    /// The bounds of the time between two reads of a track that pass in one turn, both having waited: ms.
    async fn gap(&self, track: Track) -> Option<(f64, f64)> {
        let unit_ms = self.bench.turn / 1e6 * f64::from(self.bench.unit()) / f64::from(track.sectors);
        // The first unit behind the first read continues it, for which a disk may need no choice.
        let (mut few, mut enough) = (0, (CHOICE_MS / unit_ms) as u64 + 1);
        if !self.passes_behind(track, enough).await {
            return None;
        }
        while enough - few > 1 {
            let middle = (few + enough) / 2;
            if self.passes_behind(track, middle).await { enough = middle } else { few = middle }
        }
        Some((few as f64 * unit_ms, enough as f64 * unit_ms))
    }

    /// Whether a read a number of units behind another passes in the same turn.
    async fn passes_behind(&self, track: Track, units: u64) -> bool {
        let (bench, unit) = (self.bench, u64::from(self.bench.unit()));
        let first = track.first + u64::from(track.sectors) / 4 / unit * unit;
        let at = bench.disk().now() + bench.turns(0.1);
        // Both have arrived when it ends.
        let before = bench.send(self.long_read(bench.fresh()), at);
        let (one, other) = (
            bench.send(self.media_read(first), at),
            bench.send(self.media_read(first + (1 + units) * unit), at),
        );
        bench.disk().answer(before).await;
        let (one, other) = (bench.disk().answer(one).await.ended, bench.disk().answer(other).await.ended);
        other.since(one).0 as f64 / bench.turn < 0.5
    }

    /// Whether a near command goes first that arrives `ms` after the end of an access, with one waiting that takes long.
    async fn is_chosen_after(&self, ms: f64) -> Option<bool> {
        self.at_places(async |here: Track| {
            let bench = self.bench;
            let (long, _) = self.longer(here).await?;
            let short = self.after(here, self.off(here, 0.003)?, 0.4).await;
            let (busy, at) = self.make_busy(here, None).await;
            let waiting = bench.send(self.media_read(long), at);
            let ended = busy.end(bench).await;
            let late = bench.send(self.media_read(short), ended + Nanos::from_ms(ms));
            let (late, waiting) = (bench.disk().answer(late).await, bench.disk().answer(waiting).await);
            Some(late.ended < waiting.ended)
        })
        .await
    }
}
