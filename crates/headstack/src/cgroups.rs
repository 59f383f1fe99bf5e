//! Control groups: the rig has their limits, and a fio job names the group that it is in.

use crate::load::WorkloadInfo;
use headstack_sim::Engine;
use headstack_sim::os::CgroupSpec;

/// Limits the requests of jobs that are in one of the rig's groups. Adds a remark for each group that a job names and the rig lacks, and for
/// each group of the rig without a job.
pub(crate) fn limit_groups(engine: &mut Engine, groups: &[CgroupSpec], info: &mut WorkloadInfo) {
    let place = |name: &String| groups.iter().position(|group| group.name == *name);
    let mut missing: Vec<&String> =
        info.cgroup_of.iter().flatten().filter(|name| place(name).is_none()).collect();
    missing.sort_unstable();
    missing.dedup();
    let no_limit = missing
        .into_iter()
        .map(|name| format!("cgroup {name}: the rig has no limits for it ([[host.cgroup]])"));
    let is_empty = |group: &&CgroupSpec| !info.cgroup_of.iter().flatten().any(|name| *name == group.name);
    let no_job = groups
        .iter()
        .filter(is_empty)
        .map(|group| format!("no job is in the control group `{}` of the rig", group.name));
    let remarks: Vec<String> = no_limit.chain(no_job).collect();
    let group_of: Vec<Option<usize>> =
        info.cgroup_of.iter().map(|name| name.as_ref().and_then(place)).collect();
    if group_of.iter().any(Option::is_some) {
        engine.limit_groups(groups, &group_of);
    }
    info.remarks.extend(remarks);
}

#[cfg(test)]
mod tests {
    use crate::files::NoFiles;
    use crate::load::Workload;
    use crate::rig::load_rig;
    use crate::simulation::Simulation;
    use crate::tune::TuneFigures;
    use headstack_sim::rig::Rig;

    const JOBS: &str = "[global]\nioengine=libaio\nbs=64k\nsize=100g\nruntime=20\ntime_based\ndirect=1\n\
        [reader]\nrw=randread\n[backup]\nrw=read\niodepth=8\ncgroup=backup\n";

    fn rig(keys: &str) -> Rig {
        let mut rig = load_rig("workstation", &NoFiles).expect("it ships");
        if !keys.is_empty() {
            rig.set("host.cgroup", keys).expect("the keys are good");
        }
        rig
    }

    /// MB/s of a job, and the remarks.
    fn run(rig: &Rig, job: &str) -> (f64, Vec<String>) {
        let workload = Workload::fio_job(JOBS, "jobs.fio", &NoFiles).expect("it is well formed");
        let results = Simulation::new(rig, workload, 1).expect("it fits").run().expect("it ends");
        let rate = TuneFigures::of_job(&results, job).expect("it has requests");
        (rate.get(crate::tune::TuneMetric::Throughput), results.workload.remarks.clone())
    }

    #[test]
    fn group_gets_its_limit_and_the_jobs_outside_what_it_leaves() {
        let limited = rig(r#"[{ name = "backup", rbps = 10000000 }]"#);
        let (backup, remarks) = run(&limited, "backup");
        assert!((backup - 10.0).abs() < 0.2, "{backup} MB/s");
        assert_eq!(remarks, [""; 0]);
        let (with, without) = (run(&limited, "reader").0, run(&rig(""), "reader").0);
        assert!(with > 1.5 * without, "{with} and {without} MB/s");
    }

    #[test]
    fn reads_are_limited_by_requests_a_second_and_not_by_a_limit_of_writes() {
        let (backup, _) = run(&rig(r#"[{ name = "backup", riops = 100 }]"#), "backup");
        assert!((backup - 6.55).abs() < 0.1, "{backup} MB/s");
        let (free, _) = run(&rig(""), "backup");
        assert_eq!(run(&rig(r#"[{ name = "backup", wiops = 100 }]"#), "backup").0, free);
    }

    #[test]
    fn group_without_a_job_and_job_without_a_group_get_a_remark() {
        let (_, remarks) = run(&rig(r#"[{ name = "bakcup", rbps = 10000000 }]"#), "backup");
        assert_eq!(
            remarks,
            [
                "cgroup backup: the rig has no limits for it ([[host.cgroup]])",
                "no job is in the control group `bakcup` of the rig"
            ]
        );
    }

    #[test]
    fn page_cache_answers_a_limited_group_from_memory_at_any_rate() {
        let jobs = "[warm]\nrw=read\nbs=64k\nsize=64m\nloops=4\ncgroup=backup\n";
        let seconds = |rate: u64| {
            let rig = rig(&format!(r#"[{{ name = "backup", rbps = {rate} }}]"#));
            let workload = Workload::fio_job(jobs, "jobs.fio", &NoFiles).expect("it is well formed");
            let results = Simulation::new(&rig, workload, 1).expect("it fits").run().expect("it ends");
            results.counted_s()
        };
        // 64 MiB come from the disk once, at 16 MiB a second; three more passes are hits.
        let all = seconds(16 << 20);
        assert!((4.0..4.5).contains(&all), "{all} s");
    }
}
