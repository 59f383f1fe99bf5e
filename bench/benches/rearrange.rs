//! The processor time of simulated requests without and with block rearrangement in front of the drive, with the statistics that
//! `headstack sim` makes. Random requests are one case. Skewed ones, most of which copies serve, are the other. The period ends once, after
//! about half of the requests, as after a day with 150,000 requests.
//!
//! Two simulations of the same load advance in turn, each by 5,000 requests, and each ratio is that of two neighbouring parts. The speed of a
//! shared machine changes by a fifth and more from one run to the next, so that whole runs cannot be compared.

#![allow(missing_docs, reason = "a benchmark has no public items")]

use cpu_time::ThreadTime;
use headstack::{NoFiles, Results, Simulation, Workload, load_rig};
use headstack_sim::Rig;

/// Requests of each simulation.
const REQUESTS: u64 = 300_000;

/// Requests of a simulation in its turn.
const REQUESTS_PER_TURN: u64 = 5_000;

/// Steps between two looks at the number of requests.
const STEPS: usize = 64;

/// Repetitions, of which each begins with new simulations.
const REPETITIONS: usize = 5;

/// Drives, and the period for the random and for the skewed load.
const DRIVES: [(&str, [&str; 2]); 2] = [("hp-c2247a", ["3300", "3200"]), ("atlas-10k", ["1500", "1300"])];

/// Requests of 8 KiB to blocks with popularity by Zipf's law, eight outstanding.
fn simulation(rig: &Rig, exponent: &str) -> Simulation<'static> {
    let load = format!(
        "requests = {REQUESTS}\n[[blocks]]\ndepth = 8\nrequest_bytes = 8192\ngroup_bytes = 8192\nread_share = 0.5\n\
         popularity = \"zipf({exponent})\"\n"
    );
    let load = Workload::load_file(&load, "load.toml").expect("the load is right");
    Simulation::new(rig, load, 1).expect("the load fits the drive")
}

/// Nanoseconds of processor time for each request of a turn; `None` once the load has ended.
fn turn(simulation: &mut Simulation<'_>) -> Option<f64> {
    let first = simulation.progress().completed;
    let start = ThreadTime::now();
    while simulation.progress().completed < first + REQUESTS_PER_TURN {
        for _ in 0..STEPS {
            if !simulation.step() {
                return None;
            }
        }
    }
    let requests = simulation.progress().completed - first;
    Some(start.elapsed().as_nanos() as f64 / requests as f64)
}

/// The times of a request without and with rearrangement in each pair of turns, and the results with it.
fn pairs(rigs: [&Rig; 2], exponent: &str) -> (Vec<[f64; 2]>, Results) {
    let [mut without, mut with] = rigs.map(|rig| simulation(rig, exponent));
    let mut pairs = Vec::new();
    loop {
        // Each is first in every second pair, so that what a turn leaves in the caches favours neither.
        let (time_without, time_with) = match pairs.len() % 2 {
            0 => (turn(&mut without), turn(&mut with)),
            _ => {
                let time_with = turn(&mut with);
                (turn(&mut without), time_with)
            }
        };
        let (Some(time_without), Some(time_with)) = (time_without, time_with) else { break };
        pairs.push([time_without, time_with]);
    }
    (pairs, with.finish().expect("the load is right"))
}

/// The value below which this share of the values lie.
fn quantile(values: impl Iterator<Item = f64>, share: f64) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values[(values.len() as f64 * share) as usize]
}

fn main() {
    println!("{:<18} {:>8} {:>8} {:>8}  {:<14} copies", "load", "without", "with", "ratio", "middle half");
    for (drive, periods_s) in DRIVES {
        for ((kind, exponent), period_s) in [("random", "0.01"), ("skewed", "1.2")].into_iter().zip(periods_s)
        {
            let plain = load_rig(drive, &NoFiles).expect("the drive ships");
            let mut with = plain.clone();
            with.set("rearrange.period_s", period_s).expect("it is a key");
            with.set("rearrange.when", "at-once").expect("it is a key");
            let (mut all, mut copies) = (Vec::new(), 0);
            for _ in 0..REPETITIONS {
                let (pairs, results) = pairs([&plain, &with], exponent);
                copies = results.volumes[0].rearrange.as_ref().expect("it is in the rig").view.copies;
                all.extend(pairs);
            }
            let time = |which: usize| quantile(all.iter().map(|pair| pair[which]), 0.5);
            let ratio = |share| quantile(all.iter().map(|pair| pair[0] / pair[1]), share);
            let spread = format!("{:.3} to {:.3}", ratio(0.25), ratio(0.75));
            println!(
                "{:<18} {:>5.0} ns {:>5.0} ns {:>8.3}  {spread:<14} {copies}",
                format!("{drive}, {kind}"),
                time(0),
                time(1),
                ratio(0.5),
            );
        }
    }
}
