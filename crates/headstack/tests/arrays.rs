//! Arrays whose drives die during a run.

use headstack::{NoFiles, Results, Simulation, Workload, load_rig};

const JOB: &str = "[j]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=8\ntime_based=1\nruntime=20\n";

/// The results of a load on RAID-5 with this key of the array.
fn run(key: &str, value: &str) -> Results {
    let mut rig = load_rig("raid5", &NoFiles).expect("it ships");
    rig.set(key, value).unwrap_or_else(|error| panic!("{error}"));
    let workload = Workload::fio_job(JOB, "job.fio", &NoFiles).expect("it is well formed");
    Simulation::new(&rig, workload, 1).expect("it fits").run().expect("it ends")
}

fn failed(results: &Results) -> bool {
    results.workload.remarks.iter().any(|remark| remark.contains("requests failed"))
}

#[test]
fn array_whose_drive_dies_midway_has_the_rates_of_a_whole_and_of_a_degraded_one() {
    let whole = run("array.read_choice", "nearest");
    let degraded = run("array.failed", "[\"data1\"]");
    let midway = run("array.fails", "[{ drive = \"data1\", at_s = 10.0 }]");
    let expected = (whole.iops() + degraded.iops()) / 2.0;
    assert!((midway.iops() / expected - 1.0).abs() < 0.05, "{} for {expected}", midway.iops());
    assert!(degraded.iops() < 0.95 * whole.iops());
    assert!(![&whole, &degraded, &midway].into_iter().any(failed));
}

#[test]
fn requests_that_an_array_cannot_serve_are_remarked_on() {
    let two = run("array.fails", "[{ drive = \"data1\", at_s = 5.0 }, { drive = \"data2\", at_s = 10.0 }]");
    assert!(failed(&two), "{:?}", two.workload.remarks);
}
