//! How far a disk lets a later command overtake an earlier one, and how long the choice takes.
//!
//! A longer command waits while the arm is busy; a shorter one arrives after it. If the disk orders by positioning time alone,
//! the shorter goes first, however small the difference. If it bounds overtaking (`headstack_policy`'s `bounded-sptf`: times T (L
//! − A) with L = m + K mᴾ, m other commands waiting, A later ones), the shorter has to be below K mᴾ / (m + K mᴾ) of the longer.
//! That share is measured with one other command and with many, which gives K and P.

use super::scene::Scene;
use crate::ProbeCommand;
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
/// Least share that counts as no bound.
const UNBOUNDED: f64 = 0.93;
/// Tolerance within which P counts as 1.
const WHOLE_POWER: f64 = 0.15;
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
    let few = odds(scene, 1, choice_ms).await?;
    let many = depth.saturating_sub(2).min(14);
    let most = if many < 4 { None } else { odds(scene, many, choice_ms).await };
    let Some(most) = most else { return Some(Bound { more: 1.0 / few, power: 1.0 }) };
    let power = 1.0 - libm::log(most / few) / libm::log(many as f64);
    Some(match (power - 1.0).abs() < WHOLE_POWER {
        true => Bound { more: 1.0 / libm::sqrt(few * most), power: 1.0 },
        false => Bound { more: 1.0 / few, power: power.clamp(0.0, 1.0) },
    })
}

/// With `others` other commands waiting: (1 − share) / share, where a later command goes first below this share of a longer
/// command's time; that is m^(1 − P) / K. None if a later command goes first even if it is hardly shorter.
async fn odds(scene: &Scene<'_>, others: usize, choice_ms: f64) -> Option<f64> {
    let (mut low, mut high) = (0.0, 1.0);
    for step in 0..STEPS {
        // First, whether there is a bound at all.
        let share = if step == 0 { UNBOUNDED } else { 0.5 * (low + high) };
        match scene.overtakes(share, others, choice_ms).await? {
            true => low = share,
            false => high = share,
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
            if let Some(took) = self.alone_after(here, lbn).await
                && (took - turns).abs() < OFF
            {
                return Some(lbn);
            }
        }
        None
    }

    /// Turns from the end of a track to that of a command that waited for it alone.
    async fn alone_after(&self, here: Track, lbn: Lbn) -> Option<f64> {
        let (bench, at) = (self.bench, self.bench.disk().now() + self.bench.turns(0.1));
        let (busy, ask) = self.busy(here);
        let busy = bench.send(busy, at);
        let waiting = bench.send(ask(lbn), at);
        let busy = bench.disk().answer(busy).await;
        let waiting = bench.disk().answer(waiting).await;
        (waiting.ended > busy.ended).then(|| (waiting.ended - busy.ended).0 as f64 / bench.turn)
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
        match scene.is_chosen_after(middle).await? {
            true => low = middle,
            false => high = middle,
        }
    }
    Some(libm::round(low * 100.0) / 100.0)
}

impl Scene<'_> {
    /// Whether a near command goes first that arrives `ms` after the end of an access, with one waiting that takes long.
    async fn is_chosen_after(&self, ms: f64) -> Option<bool> {
        self.at_places(async |here: Track| {
            let bench = self.bench;
            let (long, _) = self.longer(here).await?;
            let short = self.after(here, self.off(here, 0.003)?, 0.4).await;
            let at = bench.disk().now() + bench.turns(0.1);
            let (busy, ask) = self.busy(here);
            let busy = bench.send(busy, at);
            let waiting = bench.send(ask(long), at);
            let ended = bench.disk().answer(busy).await.ended;
            let late = bench.send(ask(short), ended + Nanos::from_ms(ms));
            let (late, waiting) = (bench.disk().answer(late).await, bench.disk().answer(waiting).await);
            Some(late.ended < waiting.ended)
        })
        .await
    }

    /// A read of several tracks up to the end of one, so that all commands have arrived when it ends, and the requests of the others.
    pub(super) fn busy(&self, here: Track) -> (ProbeCommand, impl Fn(Lbn) -> ProbeCommand + use<>) {
        let unit = self.bench.unit();
        // Not one track, which may be read from any angle.
        let tracks = [4, 3, 2]
            .into_iter()
            .find_map(|tracks| Some((tracks, self.bench.neighbour_track(here, 1 - tracks)?)));
        let (tracks, first) = tracks.unwrap_or((1, here));
        let read = |lbn, sectors| ProbeCommand::Read { lbn, sectors, from_media: true };
        (read(first.first, tracks as u32 * here.sectors), move |lbn| read(lbn, unit))
    }
}
