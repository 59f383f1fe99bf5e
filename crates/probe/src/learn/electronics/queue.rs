//! The queue: whether commands are reordered, among how many, and by which criterion.
//!
//! While the arm is busy with one command others arrive, chosen so that each order takes another of them first. Only the first
//! one served counts.

use super::bench::{Bench, times};
use super::scene::Scene;
use super::{FindingConfidence, Findings, overtaking};
use crate::ProbeCommand;
use headstack_model::spec::QueueSpec;
use headstack_model::{Instant, Lbn};
use headstack_tracks::Track;

/// Repetitions of each test.
const ROUNDS: usize = 5;
/// Commands to choose from by which an order shows.
const LEAST_CHOICE: usize = 3;
/// Depth from which on an order shows: those, and the one in progress.
const LEAST_DEPTH: usize = 1 + LEAST_CHOICE;
/// Bursts that show how many commands are served in their order of arrival.
const BURSTS: usize = 8;
/// Maximum number of commands in such a burst: among these, the oldest is seldom chosen.
const MOST_BURST: usize = 24;
/// Shares of the disk to a near track, the next and a far one. Seeks over them differ by less than a turn on all drives, and by
/// more than some tenths.
const NEAR: f64 = 0.003;
const NEXT: f64 = 0.01;
const FAR: f64 = 0.4;
/// Turns after an access at which a block passes the head: just missed when the arm has moved, soon, and half a turn after the access.
const GONE: f64 = 1.05;
const SOON: f64 = 0.65;
const HALF: f64 = 0.5;
/// Distances as shares of the disk: to a place ahead of the arm, to a nearer place behind it, and to where the arm came from.
const AHEAD: f64 = 0.08;
const BEHIND: f64 = -0.02;
const FROM: f64 = -0.1;

/// Random reads in bursts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Commands in a burst.
    pub depth: usize,
    /// Reads a second.
    pub reads_per_s: f64,
}

pub(super) async fn learn(bench: &Bench, findings: &mut Findings) -> (QueueSpec, Vec<Rate>) {
    let depth = bench.disk().info().depth;
    let mut spec = QueueSpec { depth: depth as u32, ..QueueSpec::default() };
    findings.add_if(depth >= LEAST_DEPTH, "queue.order", FindingConfidence::Default);
    bench.disk().report_progress("queue", 0.0);
    let mut rates = Vec::new();
    for in_flight in [1, 2, 4, 8, 16, 32].into_iter().filter(|in_flight| *in_flight <= depth) {
        rates.push(Rate { depth: in_flight, reads_per_s: rate(bench, in_flight).await });
    }
    if depth < LEAST_DEPTH {
        return (spec, rates);
    }
    bench.disk().report_progress("queue", 0.4);
    let committed = committed(bench, depth.min(MOST_BURST)).await;
    findings.add_if(committed.is_some(), "queue.committed", FindingConfidence::Default);
    let Some(committed) = committed else { return (spec, rates) };
    spec.committed = committed as u32;
    let scene = Scene { bench, committed };
    let most = depth - committed;
    if most < LEAST_CHOICE {
        findings.add("queue.order", FindingConfidence::Default);
        return (spec, rates);
    }
    if !scene.mostly(Question::Near).await {
        return (spec, rates);
    }
    spec.order = if scene.mostly(Question::Soon).await {
        "sptf"
    } else {
        match (scene.mostly(Question::Upward).await, scene.mostly(Question::Downward).await) {
            (true, true) => "look",
            (true, false) => "c-look",
            (false, _) => "sstf",
        }
    }
    .to_string();
    if spec.order == "sptf" {
        bench.disk().report_progress("queue", 0.6);
        // A disk that commits commands never chooses one that arrives after the end of an access while another waits, but it waits as long.
        spec.choice_ms = match committed {
            1 => overtaking::choice_ms(&scene).await.unwrap_or(0.0),
            _ => overtaking::committed_choice_ms(&scene).await,
        };
        findings.add("queue.choice_ms", FindingConfidence::Measured);
        if let Some(bound) = overtaking::bound(&scene, depth, spec.choice_ms).await {
            // The disk chooses among all commands, within the bound.
            spec.order = bound.order();
            return (spec, rates);
        }
    }
    bench.disk().report_progress("queue", 0.8);
    let window = scene.window(most).await;
    spec.window = (window < most).then_some(window as u32);
    findings.add("queue.window", FindingConfidence::Measured);
    (spec, rates)
}

async fn rate(bench: &Bench, depth: usize) -> f64 {
    const READS: usize = 128;
    let ask = || ProbeCommand::Read { lbn: bench.anywhere().first, sectors: bench.unit(), from_media: true };
    let began = bench.disk().now();
    for _ in 0..READS / depth {
        let burst: Vec<_> = (0..depth).map(|_| bench.send(ask(), Instant::ZERO)).collect();
        for ticket in burst {
            bench.disk().answer(ticket).await;
        }
    }
    READS as f64 * 1e9 / (bench.disk().now() - began).0 as f64
}

/// How many commands the disk serves in the order of their arrival, the first counted, before the first one that it chooses;
/// none if all of a burst.
async fn committed(bench: &Bench, burst: usize) -> Option<usize> {
    let mut in_order = Vec::with_capacity(BURSTS);
    for _ in 0..BURSTS {
        let ask =
            || ProbeCommand::Read { lbn: bench.anywhere().first, sectors: bench.unit(), from_media: true };
        let at = bench.disk().now() + bench.turns(0.1);
        let sent: Vec<_> = (0..burst).map(|_| bench.send(ask(), at)).collect();
        let mut ends = Vec::with_capacity(burst);
        for ticket in sent {
            ends.push(bench.disk().answer(ticket).await.ended);
        }
        // A command is in order if none of the later ones ends before it.
        let leads = |first: &usize| ends[first + 1..].iter().all(|end| *end > ends[*first]);
        in_order.push((0..burst).take_while(leads).count());
    }
    in_order.sort_unstable();
    // A choice may happen to be the oldest command, which makes a number too large; an answer may be late, which makes one too small.
    Some(in_order[1].max(1)).filter(|count| *count < burst)
}

/// Which of two commands goes first?
#[derive(Clone, Copy, Debug, PartialEq)]
enum Question {
    /// Does a near one go before a far one that arrived earlier?
    Near,
    /// Does one that passes soon go before a nearer one that will just have passed?
    Soon,
    /// Does one above go before a nearer one below, if the arm came from below?
    Upward,
    /// Does one below go before a nearer one above, if the arm came from above?
    Downward,
}

impl Scene<'_> {
    async fn mostly(&self, question: Question) -> bool {
        times(ROUNDS, async |round| self.asked(question, round).await).await * 2 > ROUNDS
    }

    async fn asked(&self, question: Question, round: usize) -> bool {
        let bench = self.bench;
        loop {
            let here = bench.fresh();
            let (Some(near), Some(next), Some(far)) =
                (bench.away(here, NEAR), bench.away(here, NEXT), self.far(here))
            else {
                continue;
            };
            // The nearer one has just passed when the arm arrives.
            let (gone, soon) = (self.after(here, near, GONE).await, self.after(here, next, SOON).await);
            let (one, other, from) = match question {
                Question::Near => {
                    // A disk that bounds overtaking takes the near one only if it takes much less time.
                    let far = self.longer(here).await.map_or(far.first, |(lbn, _)| lbn);
                    (self.command_after(here, 0.4).await.unwrap_or(soon), far, None)
                }
                Question::Soon => (soon, gone, None),
                Question::Upward | Question::Downward => {
                    let up = if question == Question::Upward { 1.0 } else { -1.0 };
                    let place = |share: f64| bench.away(here, up * share);
                    let (Some(ahead), Some(back), Some(from)) = (place(AHEAD), place(BEHIND), place(FROM))
                    else {
                        continue;
                    };
                    (ahead.first, back.first, Some(from.first))
                }
            };
            // In both orders of arrival, unless a far one has to arrive earlier.
            let order = if round.is_multiple_of(2) && question != Question::Near {
                [one, other]
            } else {
                [other, one]
            };
            return self.first_of(here, from, &order).await == Some(one);
        }
    }

    fn far(&self, here: Track) -> Option<Track> {
        self.off(here, FAR)
    }

    /// Among how many of the oldest commands the disk chooses; `most` if among all.
    async fn window(&self, most: usize) -> usize {
        // Numbers that were enough, and too few.
        let (mut enough, mut few) = (2, most + 1);
        while few - enough > 1 {
            let middle = if few > most { most } else { (enough + few) / 2 };
            if self.chooses_among(middle).await { enough = middle } else { few = middle }
        }
        enough
    }

    /// Whether the last of `count` commands goes first if it is the only near one.
    async fn chooses_among(&self, count: usize) -> bool {
        let bench = self.bench;
        let yes = times(3, async |_| {
            let (here, near, far) = loop {
                let here = bench.fresh();
                if let (Some(near), Some(far)) = (bench.away(here, NEAR), self.far(here)) {
                    break (here, near, far);
                }
            };
            // One that alone takes that time, if there is any: a near track may be on another surface.
            let soon = match self.command_after(here, HALF).await {
                Some(soon) => soon,
                None => self.after(here, near, HALF).await,
            };
            let unit = u64::from(bench.unit());
            let mut order: Vec<Lbn> = (1..count as u64).map(|index| far.first + 3 * index * unit).collect();
            order.push(soon);
            self.first_of(here, None, &order).await == Some(soon)
        });
        yes.await >= 2
    }
}
