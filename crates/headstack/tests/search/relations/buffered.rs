//! Files read through Linux's page cache.

use super::streams::media_rate;
use super::{Case, Relation, Verdict, at_least};
use crate::bench::{Bench, Machine};
use crate::draw::{Draw, KIB, MIB, timed_stream};
use crate::job_text::{JobKeys, bytes};
use headstack::model::spec::ReadAhead;

pub(super) fn relations() -> Vec<Relation> {
    vec![Relation {
        name: "file_is_read_at_the_medias_rate",
        bound: "with Linux's defaults a file in order is read at 0.8 of the rate of reads of 1 MiB or more",
        draw: draw_file,
        judge: judge_file,
    }]
}

/// Drives since 2000 that read ahead.
fn draw_file(draw: &mut Draw<'_>) -> Option<Case> {
    if !draw.is_from(2000) || draw.spec.cache.read_ahead == ReadAhead::None {
        return None;
    }
    let machine = Machine::new(&draw.spec.name).with("host.page_cache.memory_mb", "512");
    let elevator = draw.pick(&["", "deadline", "mq-deadline"]);
    let machine = if elevator.is_empty() { machine } else { machine.with("host.queue.elevator", elevator) };
    let block = draw.pick(&[4 * KIB, 16 * KIB, 64 * KIB, 128 * KIB, MIB]);
    let job = JobKeys::new("cp").with("rw", "read").with("bs", bytes(block)).with("direct", 0);
    let job = job.with("ioengine", "psync").with("fadvise_hint", 0).with("offset", bytes(draw.offset()));
    Some(Case::new(machine, timed_stream(draw.spec, MIB, vec![job])))
}

/// 0.8: `cp` and `dd` read a file at a disk's rate with `read_ahead_kb` 128.
fn judge_file(bench: &mut Bench, case: &Case) -> Result<Verdict, String> {
    if case.load.jobs.len() != 1 || case.load.jobs.iter().any(|job| job.text("direct") != Some("0")) {
        return Ok(Verdict::Elsewhere);
    }
    let media = media_rate(bench, case)?;
    let rate = case.figures(bench)?.mb_s();
    Ok(at_least(
        "read through the page cache:",
        rate,
        0.8 * media,
        "MB/s",
        &format!("reads of 1 MiB give {media:.1}"),
    ))
}
