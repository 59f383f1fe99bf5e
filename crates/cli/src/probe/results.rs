//! The results as JSON.

use super::{Outcome, findings, text};
use crate::versioned;
use headstack_probe::lattice::Verification;
use headstack_probe::learn::{LearnedMechanics, SeekPoint};
use serde_json::{Value, json};

pub(super) fn to_json(outcome: &Outcome) -> String {
    let Outcome { disk, found, .. } = outcome;
    let time = if disk.is_simulated { "simulated_s" } else { "seconds" };
    let mut document = json!({
        "disk": disk.name,
        "sectors": disk.info.sectors,
        "sector_bytes": disk.info.sector_bytes,
        "physical_sectors": disk.info.physical_sectors,
        "depth": disk.info.depth,
        "probes": outcome.probes,
        time: outcome.took.as_secs(),
    });
    let mut put = |key: &str, value: Option<Value>| {
        value.into_iter().for_each(|value| document[key] = value);
    };
    put(
        "speed",
        found.spin.map(|spin| json!({"rpm": spin.rpm(), "turn_ns": spin.turn_ns, "noise_ns": spin.noise.0})),
    );
    put("tracks", found.map.as_ref().map(|map| json!({"tracks": map.tracks(), "runs": map.runs().len()})));
    put("verification", found.lattice.as_ref().map(|lattice| verification(&lattice.verification)));
    put(
        "mended_at",
        found.mended.as_ref().map(|places| places.iter().map(|lbn| lbn.0).collect::<Vec<_>>().into()),
    );
    put(
        "machine",
        outcome.machine.map(|load| json!({"waited_share": load.waited, "stolen_share": load.stolen})),
    );
    put("mechanics", found.mechanics.as_ref().map(mechanics));
    put(
        "electronics",
        found.electronics.as_ref().map(|learned| {
            let mut parts = findings::parts(learned);
            let sure =
                learned.findings.iter().map(|(key, sure)| (key.to_string(), findings::word(sure).into()));
            parts.insert("confidence".to_string(), Value::Object(sure.collect()));
            Value::Object(parts)
        }),
    );
    put(
        "left_open",
        outcome
            .open
            .as_ref()
            .map(|open| open.parts.iter().map(|part| part.name()).collect::<Vec<_>>().into()),
    );
    put("left_open_why", outcome.open.as_ref().map(|open| open.why.to_string().into()));
    put("not_written", (!outcome.not_written.is_empty()).then(|| outcome.not_written.clone().into()));
    put(
        "check",
        outcome.verdict.as_ref().map(|verdict| {
            let mut check =
                json!({"drive": verdict.name, "agrees": verdict.is_good(), "whole": verdict.is_whole});
            if let Some(found) = verdict.tracks {
                check["boundaries"] = found.boundaries.into();
                check["missed"] = found.missed.into();
                check["false"] = found.false_ones.into();
            }
            verdict.rpm_off_ppm.into_iter().for_each(|off| check["rpm_off_ppm"] = off.into());
            check
        }),
    );
    versioned::text(&document)
}

fn verification(seen: &Verification) -> Value {
    let doubtful: Vec<(u64, u64)> =
        seen.doubtful.iter().map(|region| (region.start.0, region.end.0)).collect();
    json!({
        "irregular": seen.irregular.0,
        "irregular_wrong": seen.irregular.1,
        "drawn": seen.drawn.0,
        "drawn_wrong": seen.drawn.1,
        "error_rate_at_most": seen.error_rate,
        "doubtful_blocks": doubtful,
    })
}

fn mechanics(learned: &LearnedMechanics) -> Value {
    let seeks = &learned.seeks;
    let curve = |points: &[SeekPoint]| -> Vec<(u32, f64)> {
        points.iter().map(|point| (point.distance, point.time.as_ms())).collect()
    };
    json!({
        "layout": text::layout_name(learned),
        "heads": learned.heads,
        "cylinders": learned.cylinders,
        "head_switch_ms": seeks.head_switch.map(|time| time.as_ms()),
        "write_settle_ms": seeks.write_settle_ns.map(|time| time as f64 / 1e6),
        "seek_cylinders_ms": curve(&seeks.reads),
        "write_seek_cylinders_ms": curve(&seeks.writes),
    })
}
