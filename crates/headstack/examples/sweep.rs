//! Random reads of 4 KiB over queue depth: `cargo run --release -p headstack --example sweep`

use headstack::{AccessPattern, Error, NoFiles, PatternSpec, Results, Simulation, Workload, load_rig};

fn main() -> Result<(), Error> {
    for depth in [1, 2, 4, 8, 16, 32] {
        let results = random_reads(depth)?;
        let p99_ms = results.response().p99().as_ms();
        println!("depth {depth:2}: {:4.0} IOPS, p99 {p99_ms:6.1} ms", results.iops());
    }
    Ok(())
}

/// Five thousand reads with `depth` of them outstanding.
pub(crate) fn random_reads(depth: u32) -> Result<Results, Error> {
    let mut rig = load_rig("st2000dm006", &NoFiles)?;
    rig.set("drive.queue_depth", &depth.to_string())?;
    let reads = PatternSpec { count: 5000, ..PatternSpec::closed(AccessPattern::Random, depth) };
    Simulation::new(&rig, Workload::pattern(reads), 1)?.run()
}
