//! The table of a log that is flushed after each write, with a row for each kind of tags.

use headstack::report::Table;
use headstack::{KindResult, NoFiles, Results, Simulation, Workload, load_rig, significant};

/// 16 random reads and writes, and a log that is flushed after each write.
const JOB: &str = include_str!("../../../../../jobs/mixed-oltp.fio");

/// The name of each row, and the drive keys that it sets.
const ROWS: [(&str, &[(&str, &str)]); 3] = [
    ("`\"ncq\"`, as the drive is", &[]),
    ("`\"tcq\"` (`drive.bus.interface=sas`)", &[("drive.bus.interface", "sas")]),
    ("the same, `drive.order=sptf`", &[("drive.bus.interface", "sas"), ("drive.order", "sptf")]),
];

fn run(keys: &[(&str, &str)]) -> Result<Results, String> {
    let mut rig = load_rig("exos-x18", &NoFiles).map_err(|error| error.to_string())?;
    for (key, value) in keys {
        rig.set(key, value).map_err(|error| error.to_string())?;
    }
    let workload = Workload::fio_job(JOB, "mixed-oltp.fio", &NoFiles).map_err(|error| error.to_string())?;
    let simulation = Simulation::new(&rig, workload, 1).map_err(|error| error.to_string())?;
    simulation.run().map_err(|error| error.to_string())
}

/// The statistics of a job's requests of one kind.
fn kind<'a>(results: &'a Results, job: &str, kind: &str) -> Result<KindResult<'a>, String> {
    let found = results.jobs().find(|found| found.name == job);
    let found = found.and_then(|found| found.kinds().find(|of_kind| of_kind.name == kind));
    found.ok_or_else(|| format!("job {job} has no {kind}"))
}

pub(super) fn flushes() -> Result<String, String> {
    let mut table = Table::new("Tags", ["tags", "reads/s", "mean ms", "p99 ms", "log writes/s"]);
    for (name, keys) in ROWS {
        let results = run(keys)?;
        let (reads, log) = (kind(&results, "tables", "read")?, kind(&results, "log", "write")?);
        let responses = &reads.statistics.responses;
        table.row([
            name.to_string(),
            significant(reads.iops(), 4),
            significant(responses.mean_ms(), 4),
            significant(responses.p99().as_ms(), 4),
            significant(log.iops(), 4),
        ]);
    }
    Ok(table.to_markdown())
}
