//! An order, a layer and a load of one's own on a shipped rig, with nothing but the crate `headstack`.
//!
//! `cargo run --release -p headstack --example own_parts`

use headstack::model::{Lbn, Op, Request};
use headstack::policy::QueueView;
use headstack::policy::order::{AccessCost, Order};
use headstack::sim::LayerPlace;
use headstack::sim::layer::{Layer, Out, Submission};
use headstack::workload::{Issue, Load, Poll};
use headstack::{Error, Instant, Nanos, NoFiles, Results, Simulation, Workload, load_rig};
use std::collections::VecDeque;

/// Youngest request first: the oldest starve.
#[derive(Debug)]
struct YoungestFirst;

impl Order for YoungestFirst {
    fn choose(&mut self, queue: &QueueView<'_>, _cost: &dyn AccessCost) -> Option<usize> {
        queue.slots.len().checked_sub(1)
    }
}

/// A link with a fixed delay in front of a volume.
#[derive(Debug, Default)]
struct Link {
    delay: Nanos,
    /// Requests on the link, each with when it arrives.
    held: VecDeque<(Instant, Submission)>,
}

impl Layer for Link {
    fn submit(&mut self, now: Instant, submission: Submission, out: &mut Out<'_>) {
        self.held.push_back((now + self.delay, submission));
        out.wake_at(self.held[0].0);
    }

    fn wake(&mut self, now: Instant, out: &mut Out<'_>) {
        while let Some((_, submission)) = self.held.front().copied().filter(|(arrives, _)| *arrives <= now) {
            self.held.pop_front();
            out.forward_held(0, submission);
        }
        out.wake_at(self.held.front().map_or(Instant::MAX, |(arrives, _)| *arrives));
    }
}

/// Reads of 4 KiB all over the volume, as many outstanding as `depth`.
struct Strides {
    sectors: u64,
    depth: u64,
    issued: u64,
    completed: u64,
    count: u64,
}

impl Load for Strides {
    fn poll(&mut self, _now: Instant) -> Poll {
        if self.issued == self.count {
            return Poll::Done;
        }
        if self.issued - self.completed == self.depth {
            return Poll::Waiting;
        }
        let lbn = self.issued.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (self.sectors / 8) * 8;
        let request = Request { op: Op::Read, lbn: Lbn(lbn), sectors: 8, fua: false };
        self.issued += 1;
        Poll::Issue(Issue::new(0, request, self.issued))
    }

    fn handle_completion(&mut self, _now: Instant, _id: u64) {
        self.completed += 1;
    }
}

/// The results of 2,000 reads with these parts, over a link with this delay.
pub(crate) fn run(delay: Nanos) -> Result<Results, Error> {
    let rig = load_rig("exos-x16", &NoFiles)?;
    let load = Strides { sectors: rig.volumes()[0].sectors, depth: 8, issued: 0, completed: 0, count: 2000 };
    let mut simulation = Simulation::new(&rig, Workload::from_load("strides", load), 1)?;
    let engine = simulation.engine_mut();
    engine.set_order(0, Box::new(YoungestFirst));
    engine.insert(LayerPlace::Volume(0), Box::new(Link { delay, ..Link::default() }));
    simulation.run()
}

fn main() -> Result<(), Error> {
    for delay_ms in [0.0, 5.0] {
        let results = run(Nanos::from_ms(delay_ms))?;
        let times = results.response();
        println!("{delay_ms} ms: {:.0} IOPS, p99 {:.0} ms", results.iops(), times.p99().as_ms());
    }
    Ok(())
}
