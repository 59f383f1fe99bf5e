//! Runs fio and reads its figures.

#![allow(clippy::disallowed_methods, reason = "fio is another program, and reads and writes files")]

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use headstack::tune::TuneFigures;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

/// Time between two checks whether fio has ended or a signal arrived.
const POLL: Duration = Duration::from_millis(50);

/// A fio job that may run several times.
pub(super) struct FioJobRun<'a> {
    /// A folder for its files.
    pub(super) folder: &'a Path,
    /// The job file's text.
    pub(super) job: &'a str,
    /// Whether fio refuses to write.
    pub(super) reads_only: bool,
}

/// Checks that fio can be started.
pub(super) fn require_fio() -> Result<(), Failure> {
    let started = Command::new("fio").arg("--version").stdin(Stdio::null()).output();
    started.map(|_| ()).map_err(|error| Failure::Input(format!("--verify: fio does not start: {error}")))
}

impl FioJobRun<'_> {
    /// Runs it once; none if a signal ended it.
    ///
    /// *Errors:* fio fails, or its output has no figures.
    pub(super) fn run(&self, interrupt: &Interrupt) -> Result<Option<TuneFigures>, Failure> {
        let [job, results, errors] =
            ["verify.fio", "results.json", "errors"].map(|name| self.folder.join(name));
        let fault = |error| Failure::Input(format!("fio: {error}"));
        fs::write(&job, self.job).map_err(fault)?;
        let stderr = File::create(&errors).map_err(fault)?;
        let mut command = Command::new("fio");
        command.args(["--output-format=json", "--output"]).arg(&results);
        command.args(self.reads_only.then_some("--readonly")).arg(&job);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
        let mut child = command.spawn().map_err(fault)?;
        let status = wait(&mut child, interrupt).map_err(fault)?;
        if interrupt.received().is_some() {
            return Ok(None);
        }
        let output = fs::read_to_string(&results).unwrap_or_default();
        if !status.success() {
            let said = fs::read_to_string(&errors).unwrap_or_default() + &output;
            let line = said.lines().find(|line| line.contains("fio:")).unwrap_or("it says nothing");
            return Err(Failure::Input(format!("fio failed ({status}): {}", line.trim())));
        }
        let figures = figures(&output);
        figures
            .map(Some)
            .ok_or_else(|| Failure::Input("fio: its output has no completed request".to_string()))
    }
}

/// Waits until fio ends. Terminates it when a signal arrives; fio then ends the processes of its jobs itself.
fn wait(child: &mut Child, interrupt: &Interrupt) -> std::io::Result<ExitStatus> {
    let mut is_ended = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if interrupt.received().is_some() && !is_ended {
            is_ended = true;
            // It may have ended already.
            let _ = kill_process(Pid::from_child(child), Signal::TERM);
        }
        thread::sleep(POLL);
    }
}

/// The figures of all jobs and directions: rates are summed, the mean is weighted by requests, flushes count with the writes, and the 99th
/// percentile is the largest.
///
/// *Source:* fio's documentation, "JSON output".
fn figures(output: &str) -> Option<TuneFigures> {
    let document: Value = serde_json::from_str(&output[output.find('{')?..]).ok()?;
    let (mut iops, mut bytes_per_s, mut requests, mut sum_ns, mut p99_ns) = (0.0, 0.0, 0.0, 0.0, 0.0f64);
    for job in document["jobs"].as_array()? {
        for direction in ["read", "write", "trim"].iter().map(|name| &job[*name]) {
            let number = |place: &str| direction.pointer(place).and_then(Value::as_f64).unwrap_or(0.0);
            let count = number("/total_ios");
            iops += number("/iops");
            bytes_per_s += number("/bw_bytes");
            requests += count;
            sum_ns += count * number("/lat_ns/mean");
            p99_ns = p99_ns.max(number("/clat_ns/percentile/99.000000"));
        }
        // A flush belongs to the writes before it, as in the prediction.
        let flushes = |place: &str| job["sync"].pointer(place).and_then(Value::as_f64).unwrap_or(0.0);
        sum_ns += flushes("/total_ios") * flushes("/lat_ns/mean");
        p99_ns = p99_ns.max(flushes("/lat_ns/percentile/99.000000"));
    }
    (requests > 0.0)
        .then(|| TuneFigures::measured(iops, bytes_per_s / 1e6, sum_ns / requests / 1e6, p99_ns / 1e6))
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstack::tune::TuneMetric;

    #[test]
    fn figures_are_summed_over_jobs_and_directions() {
        let output = r#"note: a line before the document
{"jobs": [
  {"read": {"total_ios": 30, "iops": 3.0, "bw_bytes": 3000000, "lat_ns": {"mean": 10000000.0},
            "clat_ns": {"percentile": {"99.000000": 20000000}}},
   "write": {"total_ios": 0, "iops": 0.0, "bw_bytes": 0}},
  {"read": {"total_ios": 0},
   "write": {"total_ios": 10, "iops": 1.0, "bw_bytes": 1000000, "lat_ns": {"mean": 50000000.0},
             "clat_ns": {"percentile": {"99.000000": 90000000}}},
   "sync": {"total_ios": 10, "lat_ns": {"mean": 40000000.0, "percentile": {"99.000000": 95000000}}}}]}"#;
        let found = figures(output).expect("requests completed");
        let values = TuneMetric::OF_WHOLE_LOAD.map(|metric| found.get(metric));
        assert_eq!(values, [4.0, 4.0, 30.0, 95.0]);
        assert_eq!(figures(r#"{"jobs": [{"read": {"total_ios": 0}}]}"#), None);
        assert_eq!(figures("fio: no such job"), None);
    }
}
