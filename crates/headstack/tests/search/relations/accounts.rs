//! Figures of one run that must fit each other.

use super::streams::random_load;
use super::{Case, MARGIN, Relation, Verdict};
use crate::bench::{Bench, Figures, Machine};
use crate::draw::{Draw, KIB, MIB};
use crate::job_text::{JobKeys, JobText, bytes};

pub(super) fn relations() -> Vec<Relation> {
    vec![
        Relation {
            name: "saturated_drive_is_busy",
            bound: "while requests wait, arm, transfers and overheads take 0.95 of the run or more",
            draw: draw_closed,
            judge: judge_busy,
        },
        Relation {
            name: "figures_of_a_run_fit_each_other",
            bound: "parts add up to responses, bytes are requests times size, quantiles rise, and closed jobs keep Little's law (5 %)",
            draw: draw_any,
            judge: judge_figures,
        },
        Relation {
            name: "job_transfers_its_size",
            bound: "a job without runtime transfers `size` bytes, with zones or without",
            draw: draw_sized,
            judge: judge_size,
        },
        Relation {
            name: "final_flush_counts",
            bound: "with end_fsync=1 the rate of the writes is at most 1.02 of their bytes over the job's runtime",
            draw: draw_final_flush,
            judge: judge_final_flush,
        },
    ]
}

fn draw_closed(draw: &mut Draw<'_>) -> Option<Case> {
    let machine = draw.machine();
    let block = draw.block(4 * KIB, MIB);
    let depth = if draw.chance(0.3) { 1 } else { draw.depth(block) };
    let rw = draw.pick(&["randread", "randwrite", "randrw", "read", "write"]);
    let load = match rw {
        "read" | "write" => draw.stream(rw, block, depth),
        _ => random_load(draw, rw, block, depth),
    };
    Some(Case::new(machine, load))
}

/// A drive with a request outstanding at all times moves its arm, passes sectors, transfers data or works on a command.
fn judge_busy(bench: &mut Bench, case: &Case) -> Result<Verdict, String> {
    if !case.load.jobs.iter().all(JobKeys::is_closed) {
        return Ok(Verdict::Elsewhere);
    }
    let Figures { arm_share, port_share, .. } = case.figures(bench)?;
    Ok(Verdict::unless(arm_share + port_share >= 1.0 - MARGIN, 1.0 / (arm_share + port_share), || {
        format!("the arm works for {arm_share:.3} of the run, overheads and transfers take {port_share:.3}")
    }))
}

fn draw_any(draw: &mut Draw<'_>) -> Option<Case> {
    let machine = draw.machine();
    Some(Case::new(machine, draw.any_load(8)))
}

fn judge_figures(bench: &mut Bench, case: &Case) -> Result<Verdict, String> {
    let figures = case.figures(bench)?;
    let mut faults = Vec::new();
    if (figures.parts_ratio - 1.0).abs() > 0.001 {
        faults.push(format!("parts are {:.4} of the responses", figures.parts_ratio));
    }
    for (job, done) in case.load.jobs.iter().zip(&figures.jobs) {
        for kind in &done.kinds {
            let block = if kind.name == "flush" { 0 } else { job.block_bytes() };
            if kind.bytes != kind.count * block {
                faults
                    .push(format!("{} {}s of {block} bytes are {} bytes", kind.count, kind.name, kind.bytes));
            }
            let [p50, p90, p99, max] = kind.quantiles_ms;
            // Quantiles are right to a hundredth.
            if !(p50 <= p90 && p90 <= p99 && p99 <= max * 1.01 && kind.mean_ms <= max * 1.01) {
                faults.push(format!(
                    "{}: mean {}, p50 {p50}, p90 {p90}, p99 {p99}, max {max} ms",
                    kind.name, kind.mean_ms
                ));
            }
        }
        faults.extend(little(job, &done.kinds));
    }
    Ok(Verdict::unless(faults.is_empty(), 1.0, || faults.join("; ")))
}

/// What contradicts Little's law: a closed job keeps its depth of requests outstanding, so rate times mean response is its depth. At
/// both ends of the run up to a depth of requests count or are missing.
fn little(job: &JobKeys, kinds: &[crate::bench::KindFigures]) -> Option<String> {
    let seconds = kinds.iter().map(|kind| kind.seconds).fold(0.0, f64::max);
    let count: u64 = kinds.iter().map(|kind| kind.count).sum();
    if !job.is_closed() || count < 20 * job.depth() {
        return None;
    }
    let waited_s: f64 = kinds.iter().map(|kind| kind.count as f64 * kind.mean_ms / 1e3).sum();
    let longest_s = kinds.iter().map(|kind| kind.max_ms() / 1e3).fold(0.0, f64::max);
    let depth = job.depth() as f64;
    let outstanding = waited_s / seconds;
    let allowed = MARGIN + 2.0 * longest_s / seconds;
    let fits = (outstanding / depth - 1.0).abs() <= allowed;
    (!fits).then(|| format!("job {} has {outstanding:.3} requests outstanding, depth {depth}", job.name))
}

/// A job that ends when it has transferred its size.
fn draw_sized(draw: &mut Draw<'_>) -> Option<Case> {
    let block = draw.pick(&[4 * KIB, 16 * KIB]);
    let rw = draw.pick(&["read", "write", "randread"]);
    let size = if rw == "randread" { 2 * MIB } else { 16 * MIB };
    let job =
        JobKeys::new("sized").with("rw", rw).with("bs", bytes(block)).with("iodepth", draw.pick(&[1, 4]));
    let job = job.with("size", bytes(size));
    let job = if draw.chance(0.5) && rw != "randread" {
        job.with("zonemode", "strided").with("zonesize", "64k").with("zonerange", "1m").with("zoneskip", "1m")
    } else {
        job
    };
    Some(Case::new(Machine::new(&draw.spec.name), JobText::whole(vec![job])))
}

/// `size` is the bytes that a job transfers (fio 3.33, HOWTO), also where zones leave holes.
fn judge_size(bench: &mut Bench, case: &Case) -> Result<Verdict, String> {
    let [job] = &case.load.jobs[..] else { return Ok(Verdict::Elsewhere) };
    let Some(size) = job.number("size").filter(|_| case.load.shared_number("runtime").is_none()) else {
        return Ok(Verdict::Elsewhere);
    };
    let figures = case.figures(bench)?;
    let done: u64 = figures.jobs[0].kinds.iter().map(|kind| kind.bytes).sum();
    Ok(Verdict::unless(done == size, 1.0, || format!("{done} of {size} bytes")))
}

/// Writes in order that a cache answers, then a flush.
fn draw_final_flush(draw: &mut Draw<'_>) -> Option<Case> {
    let size = if draw.is_from(2007) { 256 * MIB } else { 16 * MIB };
    let block = draw.pick(&[64 * KIB, 128 * KIB, MIB]);
    let job = JobKeys::new("file").with("rw", "write").with("bs", bytes(block)).with("size", bytes(size));
    Some(Case::new(Machine::new(&draw.spec.name), JobText::whole(vec![job.with("end_fsync", 1)])))
}

/// fio flushes before it stops a job's clock (`do_io`).
fn judge_final_flush(bench: &mut Bench, case: &Case) -> Result<Verdict, String> {
    if case.load.jobs.iter().any(|job| job.text("end_fsync").is_none()) {
        return Ok(Verdict::Elsewhere);
    }
    let writes = case.figures(bench)?.fio_writes.expect("a job ends with a flush");
    let whole = writes.bytes / writes.job_runtime_s.max(1e-3);
    Ok(Verdict::unless(writes.bytes_per_s <= 1.02 * whole, writes.bytes_per_s / whole, || {
        let seconds = writes.job_runtime_s;
        format!(
            "{:.2} MB/s, but {} bytes in {seconds} s are {:.2}",
            writes.bytes_per_s / 1e6,
            writes.bytes,
            whole / 1e6
        )
    }))
}
