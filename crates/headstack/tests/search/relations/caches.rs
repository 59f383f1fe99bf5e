//! What a write cache may cost, and what it cannot gain.

use super::streams::random_load;
use super::{Case, MARGIN, Relation, Verdict, at_least};
use crate::bench::Bench;
use crate::draw::{Draw, GIB, KIB, MIB};
use crate::job_text::JobText;
use headstack::model::spec::WriteCache;

pub(super) fn relations() -> Vec<Relation> {
    vec![
        Relation {
            name: "write_cache_halves_no_rate",
            bound: "writes with the write cache on run at 0.5 of their rate without it or more",
            draw: draw_writes,
            judge: |bench, case| judge_cache(bench, case, 0.5),
        },
        Relation {
            name: "destages_in_a_region_cost_no_more_than_its_writes",
            bound: "random writes within 4 GiB with the write cache on run at 0.9 of their rate without it or more",
            draw: draw_short_writes,
            judge: |bench, case| judge_cache(bench, case, 0.9),
        },
        Relation {
            name: "destaging_orders_no_more_than_its_descriptors",
            bound: "drives before 2012 write small blocks at random at 2.5 times the rate of reads at depth 1 or less",
            draw: draw_old_writes,
            judge: judge_window,
        },
        Relation {
            name: "random_rate_is_that_of_the_sheet",
            bound: "random 4 KiB at depth 16 over the whole disk run within 15 % of the data sheet's rate",
            draw: draw_sheet,
            judge: judge_sheet,
        },
    ]
}

/// Drives whose cache takes any write. One that destages each write before other work (`segment`) has one write to choose from, where the
/// queue without a cache has as many as wait.
fn draw_writes(draw: &mut Draw<'_>) -> Option<Case> {
    let is_full = draw.spec.cache.write_cache == WriteCache::Full;
    let machine = is_full.then(|| draw.machine_with_cache())?;
    let block = draw.block(512, MIB);
    let depth = if draw.chance(0.3) { 1 } else { draw.depth(block) };
    let load = if draw.chance(0.4) {
        draw.stream("write", block, depth)
    } else {
        random_load(draw, "randwrite", block, depth)
    };
    Some(Case::new(machine, load))
}

/// The write cache answers before the media are written, and may write in any order, so it can only gain; what it may cost is the
/// difference between two orders.
fn judge_cache(bench: &mut Bench, case: &Case, share: f64) -> Result<Verdict, String> {
    let is_write = |load: &JobText| load.jobs.iter().all(|job| job.rw().ends_with("write"));
    if case.machine.has_no_write_cache() || !is_write(&case.load) {
        return Ok(Verdict::Elsewhere);
    }
    let on = case.figures(bench)?.iops();
    let off = case.figures_on(bench, &case.machine.without_write_cache())?.iops();
    Ok(at_least("write cache on:", on, share * off, "IOPS", &format!("off gives {off:.1}")))
}

/// As for [`draw_writes`].
fn draw_short_writes(draw: &mut Draw<'_>) -> Option<Case> {
    if draw.spec.cache.write_cache != WriteCache::Full {
        return None;
    }
    let machine = draw.machine_with_cache();
    let block = draw.pick(&[4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB]);
    let depth = draw.pick(&[1, 4, 16, 32, 64]);
    let size = draw.pick(&["1g", "3g", "4g"]);
    let load = random_load(draw, "randwrite", block, depth).without_each("offset").with_each("size", size);
    Some(Case::new(machine, load))
}

/// Drives before 2012 with a cache for any write: each cached write takes a descriptor, of which there are some 64, whatever its size.
fn draw_old_writes(draw: &mut Draw<'_>) -> Option<Case> {
    if draw.is_from(2012) || draw.spec.cache.write_cache != WriteCache::Full {
        return None;
    }
    let machine = draw.machine_with_cache();
    let depth = draw.pick(&[1, 4, 32]);
    let load = random_load(draw, "randwrite", 4 * KIB, depth);
    let load = load.without_each("offset").without_each("size");
    let load = if draw.chance(0.5) { load.with_each("size", draw.pick(&["1g", "16g"])) } else { load };
    Some(Case::new(machine, load))
}

/// 2.5: a Samsung HD103UJ wrote 148 a second where it read 72 (fio-plot, `benchmark_data`), a WD740GD 230 where it read 123, and a
/// ST3500418AS within 1 GiB 152 where it read 166.
fn judge_window(bench: &mut Bench, case: &Case) -> Result<Verdict, String> {
    let [job] = &case.load.jobs[..] else { return Ok(Verdict::Elsewhere) };
    if job.rw() != "randwrite"
        || job.block_bytes() > 4 * KIB
        || job.number("size").is_some_and(|size| size < GIB)
    {
        return Ok(Verdict::Elsewhere);
    }
    let writes = case.figures(bench)?.iops();
    let reads = case.load.with_each("rw", "randread").with_each("iodepth", 1);
    let reads = case.figures_of(bench, &reads)?.iops();
    let most = (1.0 + MARGIN) * 2.5 * reads;
    Ok(Verdict::unless(writes <= most, writes / most, || {
        format!(
            "{writes:.1} random writes a second, at most {:.1} expected: reads at depth 1 give {reads:.1}",
            most
        )
    }))
}

/// Drive, direction and IOPS of random 4 KiB at depth 16. *Source:* the data sheets that the drive files cite.
const SHEET_RATES: [(&str, &str, f64); 4] = [
    ("exos-x16", "randread", 170.0),
    ("exos-x16", "randwrite", 440.0),
    ("exos-x18", "randread", 170.0),
    ("exos-x18", "randwrite", 550.0),
];

fn draw_sheet(draw: &mut Draw<'_>) -> Option<Case> {
    let rates: Vec<_> = SHEET_RATES.into_iter().filter(|(drive, ..)| *drive == draw.spec.name).collect();
    let (_, rw, _) = if rates.is_empty() { return None } else { draw.pick(&rates) };
    let load = random_load(draw, rw, 4 * KIB, 16).without_each("offset").without_each("size");
    Some(Case::new(draw.machine_with_cache(), load.with_shared("ramp_time", 20)))
}

fn judge_sheet(bench: &mut Bench, case: &Case) -> Result<Verdict, String> {
    let [job] = &case.load.jobs[..] else { return Ok(Verdict::Elsewhere) };
    let is_as_in_the_sheet = job.block_bytes() == 4 * KIB && job.depth() == 16 && job.text("size").is_none();
    let of_job = |(drive, rw, _): &(&str, &str, f64)| *drive == case.machine.drive && *rw == job.rw();
    let Some((.., sheet)) = SHEET_RATES.into_iter().find(of_job).filter(|_| is_as_in_the_sheet) else {
        return Ok(Verdict::Elsewhere);
    };
    let rate = case.figures(bench)?.iops();
    let most = 3.0 * MARGIN;
    Ok(Verdict::unless((rate / sheet - 1.0).abs() <= most, f64::max(rate / sheet, sheet / rate), || {
        format!("{rate:.1} IOPS, within {:.0} % of {sheet} expected: the data sheet", most * 100.0)
    }))
}
