//! The results as text.

use super::findings;
use super::ground_truth::Verdict;
use super::task::names;
use super::{Open, Outcome};
use crate::failure::Failure;
use crate::progress::whole_seconds;
use crate::service::machine::Load;
use crate::units::{capacity, count, grouped, significant};
use headstack_model::{Lbn, Nanos};
use headstack_probe::lattice::Verification;
use headstack_probe::learn::{LearnedMechanics, Seeks};
use headstack_tracks::TrackMap;
use std::io::Write;

pub(super) fn print(outcome: &Outcome, out: &mut dyn Write) -> Result<(), Failure> {
    for (name, value) in lines(outcome) {
        writeln!(out, "  {name:<16}{value}")?;
    }
    if let Some(electronics) = &outcome.found.electronics {
        let table = findings::table(electronics);
        writeln!(out, "\n{}", table.title)?;
        out.write_all(table.to_text().as_bytes())?;
    }
    Ok(())
}

pub(super) fn lines(outcome: &Outcome) -> Vec<(&'static str, String)> {
    let Outcome { disk, found, .. } = outcome;
    let info = disk.info;
    let bytes = info.sectors * u64::from(info.sector_bytes);
    let physical = match info.physical_sectors {
        1 => String::new(),
        count => format!(" ({count} to a physical sector)"),
    };
    let mut lines = vec![
        ("disk", format!("{}, {}", disk.name, disk.way)),
        (
            "blocks",
            format!(
                "{} of {} bytes{physical}, {}",
                grouped(info.sectors),
                info.sector_bytes,
                capacity(bytes)
            ),
        ),
    ];
    if let Some(spin) = &found.spin {
        lines.push((
            "speed",
            format!(
                "{} rpm, a turn in {} ms",
                significant(spin.rpm(), 7),
                significant(spin.turn_ns / 1e6, 7)
            ),
        ));
        let cache = match spin.blocks {
            1 => "",
            _ => "; answers from its cache were excluded",
        };
        lines.push(("clock", format!("half of the answers within {} of their turn{cache}", spin.noise)));
    }
    lines.extend(found.map.as_ref().map(|map| ("tracks", tracks(map))));
    lines.extend(found.lattice.as_ref().map(|lattice| ("verified", rechecked(&lattice.verification))));
    lines.extend(found.mended.as_ref().map(|places| ("known map", mended(places))));
    if let Some(learned) = &found.mechanics {
        lines.push(("layout", layout(learned)));
        lines.push(("arm", arm(&learned.seeks)));
    }
    let time = if disk.is_simulated { " simulated" } else { "" };
    let per_track = found.map.as_ref().map(|map| outcome.probes as f64 / map.tracks().max(1) as f64);
    let per_track = per_track.map(|share| format!(", {} a track", significant(share, 2))).unwrap_or_default();
    lines.push((
        "probes",
        format!("{} in {}{time}{per_track}", grouped(outcome.probes), whole_seconds(outcome.took.as_secs())),
    ));
    let busy = outcome.machine.filter(Load::is_high);
    lines.extend(busy.map(|load| ("machine", format!("busy, which makes answers late: {load}"))));
    lines.extend(outcome.open.as_ref().map(|open| ("left open", left_open(open))));
    lines.extend(outcome.not_written.iter().map(|file| ("not written", file.clone())));
    lines.extend(outcome.verdict.as_ref().map(|verdict| ("check", agreement(verdict))));
    lines
}

fn tracks(map: &TrackMap) -> String {
    let sizes = || map.runs().iter().map(|run| run.sectors);
    let (least, most) = (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0));
    format!(
        "{} of {least} to {most} blocks, in {} runs of equal ones",
        grouped(map.tracks()),
        grouped(map.runs().len() as u64)
    )
}

fn rechecked(seen: &Verification) -> String {
    let share = significant(100.0 * seen.error_rate, 2);
    let doubtful: u64 = seen.doubtful.iter().map(|region| region.end - region.start).sum();
    let elsewhere = match doubtful {
        0 => String::new(),
        blocks => format!(
            " outside {} with {} blocks",
            count(seen.doubtful.len(), "doubtful region"),
            grouped(blocks)
        ),
    };
    let (irregular, drawn) = (grouped(seen.irregular.0), grouped(seen.drawn.0));
    format!(
        "{irregular} irregular boundaries and {drawn} sampled ones: at most {share} % are wrong{elsewhere} (95 % sure)"
    )
}

fn mended(places: &[Lbn]) -> String {
    let shown: Vec<String> = places.iter().take(4).map(|lbn| grouped(lbn.0)).collect();
    match places.len() {
        0 => "confirmed".to_string(),
        count => {
            let more = if count > shown.len() { ", …" } else { "" };
            format!("repaired at {}{more}", shown.join(" and "))
        }
    }
}

/// The name of a layout in drive files.
pub(super) fn layout_name(learned: &LearnedMechanics) -> String {
    let name = serde_json::to_value(learned.layout).expect("a layout has a name");
    name.as_str().unwrap_or_default().to_string()
}

fn layout(learned: &LearnedMechanics) -> String {
    let (heads, cylinders) = (learned.heads as usize, learned.cylinders as usize);
    format!("{}, {}, {}", layout_name(learned), count(heads, "head"), count(cylinders, "cylinder"))
}

fn arm(seeks: &Seeks) -> String {
    let ms = |time: Nanos| format!("{} ms", significant(time.as_ms(), 3));
    let mut parts = Vec::new();
    if let (Some(first), Some(last)) = (seeks.reads.first(), seeks.reads.last()) {
        let far = grouped(last.distance.into());
        parts.push(format!(
            "a seek takes {} over {} to {} over {far}",
            ms(first.time),
            first.distance,
            ms(last.time)
        ));
    }
    parts.extend(seeks.head_switch.map(|time| format!("a change of heads {}", ms(time))));
    let settle = seeks.write_settle_ns.map(|time| significant(time as f64 / 1e6, 3));
    parts.extend(settle.map(|settle| format!("a write {settle} ms more")));
    parts.join(", ")
}

fn left_open(open: &Open) -> String {
    format!("{}: {}", names(&open.parts), open.why)
}

fn agreement(verdict: &Verdict) -> String {
    let tracks = verdict.tracks.map(|found| {
        format!(
            "boundaries {}, missed {}, false {}",
            grouped(found.boundaries),
            grouped(found.missed),
            grouped(found.false_ones)
        )
    });
    let speed = verdict.rpm_off_ppm.map(|off| format!("speed off by {off:.1} millionths"));
    let parts: Vec<String> = tracks.into_iter().chain(speed).collect();
    let word = match (verdict.is_good(), verdict.is_whole) {
        (true, _) => "agrees with",
        (false, false) => "NOT WHOLE, so far compared with",
        (false, true) => "DISAGREES with",
    };
    let parts = if parts.is_empty() { "nothing was learned".to_string() } else { parts.join("; ") };
    format!("{word} {}: {parts}", verdict.name)
}
