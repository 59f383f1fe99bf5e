//! A disk of one unit with two arms: each arm serves its half of the LBNs, and both work at once.

use headstack::sim::rig::shipped;
use headstack::{NoFiles, Results, Simulation, Workload};

/// Random reads of 4 KiB on a shipped rig, with these lines in the job.
fn random_reads(rig: &str, depth: u32, lines: &str) -> Results {
    let job =
        format!("[r]\nrw=randread\nbs=4k\nioengine=libaio\niodepth={depth}\nnumber_ios=2000\n{lines}\n");
    let workload = Workload::fio_job(&job, "job", &NoFiles).expect("the job holds");
    let rig = shipped::load(rig).expect("the rig ships");
    Simulation::new(&rig, workload, 1).and_then(Simulation::run).expect("the job ends")
}

/// Commands that each arm ended.
fn ended(results: &Results) -> [u64; 2] {
    let ended: Vec<u64> = results.devices.iter().map(|device| device.activity.ended()).collect();
    ended.try_into().expect("it has two arms")
}

fn rate(results: &Results) -> f64 {
    results.statistics.completed() as f64 / results.end.as_secs()
}

#[test]
fn each_arm_does_half_of_a_symmetric_load() {
    let results = random_reads("exos-2x18-sata", 32, "");
    let [lower, upper] = ended(&results);
    assert_eq!(lower + upper, 2000);
    // Three standard deviations of a coin thrown 2,000 times.
    assert!(lower.abs_diff(upper) < 135, "{lower} and {upper}");
}

#[test]
fn arm_of_the_other_half_is_idle() {
    assert_eq!(ended(&random_reads("exos-2x18-sata", 8, "size=50%")), [2000, 0]);
    assert_eq!(ended(&random_reads("exos-2x18-sata", 8, "offset=50%")), [0, 2000]);
}

#[test]
fn both_arms_work_while_both_have_commands() {
    // An arm is without one of 32 commands once in a thousand million choices.
    let results = random_reads("exos-2x18-sata", 32, "");
    for device in &results.devices {
        let share = results.utilisation(device);
        assert!(share > 0.97, "{}: {share}", device.name);
    }
}

#[test]
fn tag_space_is_shared_by_both_arms() {
    // 200 outstanding are no more than 32 in the disk, and the rest wait in front of it.
    let [full, more] = [32, 200].map(|depth| rate(&random_reads("exos-2x18-sata", depth, "")));
    assert!((more / full - 1.0).abs() < 0.05, "{full} and {more} requests a second");
}

#[test]
fn second_arm_gains_nothing_with_one_request_outstanding() {
    let [whole, half] = ["", "size=50%"].map(|lines| rate(&random_reads("exos-2x18-sata", 1, lines)));
    assert!((whole / half - 1.0).abs() < 0.03, "{whole} and {half} requests a second");
}
