//! Ranges of the keys of `[queue]`.

use super::{Checked, within};
use crate::spec::{DurationLimits, QueueSpec, Tagging};

pub(super) fn queue(spec: &QueueSpec, tagging: Tagging) -> Checked {
    within("queue.depth", f64::from(spec.depth), 1.0, 1024.0, "commands")?;
    if tagging == Tagging::Ncq {
        within("queue.depth", f64::from(spec.depth), 1.0, f64::from(Tagging::NCQ_TAGS), "tags of NCQ")?;
    }
    within("queue.choice_ms", spec.choice_ms, 0.0, 1e3, "ms")?;
    within("queue.stream_hold_ms", spec.stream_hold_ms.unwrap_or(0.0), 0.0, 1e4, "ms")?;
    within("queue.stream_holds", f64::from(spec.stream_holds), 1.0, 1e3, "times")?;
    within("queue.committed", f64::from(spec.committed), 1.0, 256.0, "commands")?;
    let urgent = spec.committed_urgent.unwrap_or(spec.committed);
    within("queue.committed_urgent", f64::from(urgent), 1.0, f64::from(spec.committed), "commands")?;
    if let Some(window) = spec.window {
        within("queue.window", f64::from(window), 1.0, 1024.0, "commands")?;
    }
    if let Some(limit) = spec.age_limit_ms {
        within("queue.age_limit_ms", limit, 1.0, 1e7, "ms")?;
    }
    if let Some(limits) = &spec.duration_limits { duration_limits(limits) } else { Ok(()) }
}

fn duration_limits(spec: &DurationLimits) -> Checked {
    let place = |name: &str| format!("queue.duration_limits.{name}");
    within(&place("performance_percent"), spec.performance_percent, 0.0, 100.0, "%")?;
    for (name, limits) in [("reads", &spec.reads), ("writes", &spec.writes)] {
        within(&place(name), limits.len() as f64, 0.0, DurationLimits::MOST as f64, "limits")?;
        for (index, limit) in limits.iter().enumerate() {
            let key = |part: &str| place(&format!("{name}[{index}].{part}"));
            let times = [
                ("inactive", limit.inactive_ms),
                ("active", limit.active_ms),
                ("guideline", limit.guideline_ms),
            ];
            for (part, ms) in times {
                if let Some(ms) = ms {
                    within(&key(&format!("{part}_ms")), ms, 20.0, 655_350.0, "ms")?;
                }
            }
        }
    }
    Ok(())
}
