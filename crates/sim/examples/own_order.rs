//! An order of one's own: the request with the fewest sectors first.
//!
//! `cargo run --release -p headstack-sim --example own_order`

use headstack_model::{DriveSpec, Instant, drives};
use headstack_policy::QueueView;
use headstack_policy::order::{AccessCost, Order, by_name};
use headstack_sim::{Device, DeviceOptions, Engine};
use headstack_workload::{Closed, Member, Mix, Pattern, Region, Shape};

/// Shortest request first, and of equally short ones the oldest.
#[derive(Debug)]
pub(crate) struct ShortestFirst;

impl Order for ShortestFirst {
    fn choose(&mut self, queue: &QueueView<'_>, _cost: &dyn AccessCost) -> Option<usize> {
        let slots = queue.slots.iter().enumerate();
        slots.min_by_key(|(_, slot)| (slot.request.sectors, slot.number)).map(|(index, _)| index)
    }
}

/// Random reads of this many sectors, 8 at a time, without an end.
fn reads(spec: &DriveSpec, sectors: u32) -> Member {
    let region = Region::whole(spec.capacity_sectors);
    let shape = Shape { region, pattern: Pattern::Random, sectors, alignment: 8, read_share: 1.0 };
    let load = Closed::new(shape, 8, u64::MAX, 1).expect("the shape fits the drive");
    Member { load: Box::new(load), device: 0, sources: 1 }
}

/// Mean response times in ms of reads of 4 KiB and of 1 MiB that share a drive, under an order.
pub(crate) fn mean_responses_ms(order: Box<dyn Order>) -> [f64; 2] {
    let spec = drives::load("exos-x16").expect("the drive ships with Headstack");
    let device = Device::new(&spec, &DeviceOptions::default()).expect("a shipped drive is valid");
    let mut engine = Engine::new(vec![device]);
    engine.set_order(0, order);
    let members = vec![reads(&spec, 8), reads(&spec, 2048)];
    let mut load = Mix::new(members, 4_000, Instant::MAX).expect("there are two loads");
    let mut responses = [(0, 0.0); 2];
    engine.run(&mut load, &mut |finished| {
        let (count, total_ms) = &mut responses[finished.source as usize];
        (*count, *total_ms) = (*count + 1, *total_ms + finished.completion.response().as_ms());
    });
    responses.map(|(count, total_ms)| total_ms / f64::from(count))
}

fn main() {
    let sptf = by_name("sptf").expect("`sptf` is built in");
    for (name, order) in [("sptf", sptf), ("shortest first", Box::new(ShortestFirst) as Box<dyn Order>)] {
        let [short, long] = mean_responses_ms(order);
        println!("{name}: {short:.1} ms a read of 4 KiB, {long:.1} ms a read of 1 MiB");
    }
}
