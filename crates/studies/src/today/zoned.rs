//! A host-managed shingled disk: zones written and read in sequence.
//!
//! Modelled: the Ultrastar HC620; requests of 1 MiB, four outstanding, from the start of its first sequential zone.
//! *Source:* westerndigitalcorporation/zonedstorage.io, docs/benchmarking/fio/smr-fio.md.

use super::run_job;
use crate::judge::Measured;
use crate::study::{Setting, StudyError};

const DRIVE: &str = "ultrastar-hc620";
/// The write cache takes 512 MiB of the writes at once.
const COUNT: u64 = 40_000;

/// The rows of both directions.
pub(super) fn measure(setting: &Setting<'_>) -> Result<Vec<Measured>, StudyError> {
    let count = setting.length.pick(COUNT, COUNT / 4);
    let directions = [("read", "read"), ("write", "written")];
    setting.map(&directions, |(rw, name)| {
        let job = format!(
            "[zones]\nrw={rw}\nbs=1m\nioengine=libaio\niodepth=4\noffset=131g\nnumber_ios={count}\nend_fsync=1\n"
        );
        let seconds = run_job(DRIVE, &job)?.seconds();
        Ok(Measured::new(format!("{DRIVE}.{name}_mb_s"), count as f64 * f64::from(1 << 20) / seconds / 1e6))
    })
}
