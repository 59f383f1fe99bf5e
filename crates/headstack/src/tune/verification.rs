//! Turns a load's fio job file into one for a real device, to measure before and after advice is applied.

/// A fio job file whose jobs run on one device for a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FioVerification {
    /// The job file.
    pub text: String,
    /// Whether a job writes or discards.
    pub writes: bool,
}

/// Keys that name the files of a job or say how long it runs, which the verification sets.
const REPLACED: [&str; 9] = [
    "filename",
    "directory",
    "filename_format",
    "nrfiles",
    "runtime",
    "timeout",
    "time_based",
    "group_reporting",
    "ramp_time",
];

/// The values of `rw` that neither write nor discard.
const READS: [&str; 2] = ["read", "randread"];

impl FioVerification {
    /// The jobs of a job file on `device` for `seconds` seconds.
    ///
    /// *Errors:* it replays a log, whose requests name files of their own, or it includes another file.
    pub fn new(text: &str, device: &str, seconds: u64) -> Result<FioVerification, String> {
        let own = format!("filename={device}\ntime_based\nruntime={seconds}\ngroup_reporting\n");
        let mut out = String::from("[global]\n") + &own + "\n";
        let mut writes = false;
        for line in text.trim_start_matches('\u{feff}').lines() {
            let (key, value) = line.split_once('=').unwrap_or((line, ""));
            let (key, value) = (key.trim(), value.trim());
            if key == "read_iolog" || key.starts_with("include ") {
                return Err(format!("`{key}` cannot be verified on a device; write the jobs into one file"));
            }
            if REPLACED.contains(&key) {
                continue;
            }
            let pattern = value.split(':').next().unwrap_or_default();
            writes |= matches!(key, "rw" | "readwrite") && !READS.contains(&pattern);
            out.push_str(line);
            out.push('\n');
        }
        Ok(FioVerification { text: out, writes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verification_runs_the_same_jobs_on_the_device_for_a_time() {
        let job = "[global]\nfilename=/dev/sdX\ndirect=1\nruntime=60\n\n[a]\nrw=randread:8\nbs=4k\n[b]\nfilename = /tmp/x\nrw=read\n";
        let made = FioVerification::new(job, "/dev/sdc", 20).expect("it can be verified");
        let own = "[global]\nfilename=/dev/sdc\ntime_based\nruntime=20\ngroup_reporting\n";
        let kept = "\n[global]\ndirect=1\n\n[a]\nrw=randread:8\nbs=4k\n[b]\nrw=read\n";
        assert_eq!(made, FioVerification { text: format!("{own}{kept}"), writes: false });
    }

    #[test]
    fn job_that_writes_is_recognized_and_a_replay_is_refused() {
        for pattern in ["write", "randrw", "rw", "randwrite:4", "trimwrite", "randtrim"] {
            let made = FioVerification::new(&format!("[a]\nrw = {pattern}\n"), "/dev/sdc", 1);
            assert!(made.expect("it can be verified").writes, "{pattern}");
        }
        let refused = FioVerification::new("[a]\nread_iolog=x.log\n", "/dev/sdc", 1);
        assert!(refused.expect_err("it names other files").contains("`read_iolog` cannot be verified"));
    }
}
