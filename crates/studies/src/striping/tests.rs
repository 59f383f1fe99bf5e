//! The advisor against the simulator, on a coarse grid and, on line, under a load that changes.

use super::cell::{self, Buffer, Point};
use super::grid::{self, DISKS, READS, Row, THINKING};
use headstack_model::Nanos;
use headstack_policy::stripe::advise::{ForkJoin, OnLine};
use headstack_workload::process::Spread;

/// Requests per run: enough to know responses to about two per cent.
const REQUESTS: u64 = 1200;

fn row(kind: &grid::Kind, request: u64, mpl: u32) -> Row {
    let run = |across| {
        let point = Point {
            disks: kind.disks,
            buffer: kind.buffer,
            read_share: kind.read_share,
            sequential_share: kind.sequential_share,
            think: kind.think,
            mpl,
            request,
            across,
        };
        cell::measure(&point, REQUESTS).expect("the point can be run")
    };
    Row { request, mpl, runs: [1, 2, 4].map(run).to_vec() }
}

fn advisor() -> ForkJoin {
    ForkJoin::new(cell::times(Buffer::None).expect("the drive is shipped"), DISKS)
}

#[test]
fn advised_unit_is_within_a_twentieth_of_the_best() {
    let advisor = advisor();
    for kind in [READS, THINKING[1]] {
        for (request, mpl) in
            [(4, 8), (64, 1), (256, 2), (512, 3), (512, 8), (1024, 4), (2048, 8), (8192, 12)]
        {
            let row = row(&kind, request, mpl);
            let [_, settled] = row.our_regret(&advisor);
            assert!(settled <= 0.05, "{} of {request} blocks, MPL {mpl}: {settled}", kind.name);
        }
    }
}

/// The on-line advisor as the array asks it.
struct Advised<'a>(&'a mut OnLine);

impl Spread for Advised<'_> {
    fn across(&mut self, sectors: u64, others: u32) -> u32 {
        self.0.observe(sectors, others);
        sectors.div_ceil(self.0.unit()) as u32
    }
}

#[test]
fn online_unit_adapts_after_each_change_of_load() {
    let times = cell::times(Buffer::None).expect("the drive is shipped");
    let mut on_line = OnLine::new(times, DISKS, 4096, Nanos::from_secs(2));
    // At low load, 128 KB is best over all four disks, and at high load over one. 2 MB is best over all four, which any of these units
    // gives.
    for (request, mpl) in [(256, 1), (256, 12), (256, 1), (4096, 2)] {
        let mut engine = cell::array(Buffer::None, DISKS).expect("the drive holds");
        let point = Point { request, mpl, ..grid::points(&READS, crate::study::Length::Quick)[0] };
        let load = cell::run(&mut engine, &point, Advised(&mut on_line), REQUESTS).expect("it can be run");
        let last = load.joined().last().expect("there are some").across;
        let row = row(&READS, request, mpl);
        assert!(row.regret(last) <= 0.05, "{request} blocks, MPL {mpl}: over {last} disks");
    }
    assert!((3..=6).contains(&on_line.changes()), "{} changes", on_line.changes());
}
