//! A layer of one's own: a network link with a fixed delay, between the load and one disk.
//!
//! `cargo run --release -p headstack-sim --example own_layer`

use headstack_model::{Instant, Nanos, drives};
use headstack_sim::layer::{Layer, Out, Submission};
use headstack_sim::{Device, DeviceOptions, Engine, LayerPlace};
use headstack_workload::{Closed, Pattern, Region, Shape};
use std::collections::VecDeque;

/// Sends each request on after a delay. The answers go up by themselves.
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

/// Mean response time in ms of 1,000 random 4 KiB reads, one at a time, over a link with this delay.
pub(crate) fn mean_response_ms(delay: Nanos) -> f64 {
    let spec = drives::load("exos-x16").expect("the drive ships with Headstack");
    let device = Device::new(&spec, &DeviceOptions::default()).expect("a shipped drive is valid");
    let mut engine = Engine::new(vec![device]);
    engine.insert(LayerPlace::Device(0), Box::new(Link { delay, ..Link::default() }));
    let region = Region::whole(spec.capacity_sectors);
    let shape = Shape { region, pattern: Pattern::Random, sectors: 8, alignment: 8, read_share: 1.0 };
    let mut load = Closed::new(shape, 1, 1_000, 1).expect("the shape fits the drive");
    let mut total = Nanos::ZERO;
    engine.run(&mut load, &mut |finished| total += finished.completion.response());
    total.as_ms() / 1_000.0
}

fn main() {
    for delay_ms in [0.0, 0.5, 2.0] {
        println!("{delay_ms} ms on the link: {:.2} ms a read", mean_response_ms(Nanos::from_ms(delay_ms)));
    }
}
