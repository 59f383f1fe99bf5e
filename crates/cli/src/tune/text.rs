//! The advice as text.

use super::{ARRAY_PLACEHOLDER, Tuned};
use crate::report::Table;
use crate::units::{grouped, significant};
use headstack::tune::{
    AdvisedSetting, Gain, KNOBS, KnobOwner, NOT_TUNED, RebuildCommand, TuneMetric, evidence,
};
use std::fmt::Write;

/// The whole output.
pub(super) fn to_text(tuned: &Tuned<'_>) -> String {
    let outcome = &tuned.outcome;
    let mut text = String::new();
    let metric = tuned.goal.metric;
    for loss in outcome.losses() {
        let _ = writeln!(text, "Mind: with this advice {loss}.");
    }
    if !text.is_empty() {
        let _ = writeln!(
            text,
            "A limit keeps a figure: --bound 'p99<200', of a job --bound 'NAME.iops>5', with --job also --bound 'others>5'.\n"
        );
    }
    if outcome.advised.is_empty() {
        let within = if tuned.goal.bounds.is_empty() { "" } else { " within the limits" };
        let name = metric.name();
        let _ = writeln!(text, "No setting improves {name} beyond chance{within}: leave all as they are.\n");
    } else {
        let _ = writeln!(text, "{}", settings(tuned));
        let _ = writeln!(text, "Together: {} {}.\n", metric.name(), percent(metric, &outcome.whole));
    }
    let _ = writeln!(text, "{}", figures(tuned));
    if let Some(job) = &tuned.goal.job {
        let _ = writeln!(
            text,
            "The figures are those of the job {job}; others is the throughput of the other jobs.\n"
        );
    }
    if outcome.jobs().next().is_some() {
        let _ = writeln!(text, "{}", jobs(tuned));
    }
    for bound in tuned.goal.bounds.iter().filter(|bound| !bound.is_kept_by(&outcome.after)) {
        let near = match bound.value_in(&outcome.after) {
            Some(value) => format!("{} {} is as near", significant(value, 4), bound.metric.unit()),
            None => "a job that completes nothing is as near".to_string(),
        };
        let _ =
            writeln!(text, "The limit {bound} is not kept: {near} as the settings that were tried come.\n");
    }
    if !outcome.advised.is_empty() {
        text += &commands(tuned);
    }
    let _ = writeln!(
        text,
        "{} runs, as long as {} whole ones; all combinations would be {}. Changes are means over seven seeds on which nothing was chosen;\nin brackets is what chance leaves open (95 %). The error of the model is not in them: {}.",
        outcome.runs,
        significant(outcome.whole_runs, 3),
        grouped(outcome.combinations as u64),
        evidence(&tuned.rig)
    );
    if let Some(verified) = &tuned.verified {
        let _ = writeln!(text, "\n{}", verified.to_text(outcome));
    }
    let _ = writeln!(text, "Not simulated, so nothing is said of them: {}.", NOT_TUNED.join(", "));
    text
}

/// The commands that apply the advised settings.
fn commands(tuned: &Tuned<'_>) -> String {
    let outcome = &tuned.outcome;
    let mut text = String::new();
    let commands = outcome.commands(&tuned.devices);
    if !commands.is_empty() {
        let is_of_device = |one: &AdvisedSetting| {
            matches!(KNOBS[one.choice.knob].owner, KnobOwner::Disk | KnobOwner::Volume)
        };
        let lasts = if outcome.advised.iter().all(is_of_device) { " until the next start" } else { "" };
        let _ = writeln!(text, "To set them{lasts}:");
    }
    for command in commands {
        let _ = writeln!(text, "  {command}");
    }
    let is_any_of = |owner| outcome.advised.iter().any(|one| KNOBS[one.choice.knob].owner == owner);
    if is_any_of(KnobOwner::OtherJobs) {
        let what = "Put the number of each process of the other jobs in place of PID; fio has prioclass=3 and cgroup=others for them.";
        let _ = writeln!(text, "{what}");
    }
    for RebuildCommand { command, destroys } in outcome.rebuild_commands(&tuned.rig, &tuned.devices) {
        let what = if destroys {
            "This writes a new partition table and so LOSES ALL DATA behind it; copy them first"
        } else {
            "This moves all data of the array, which takes hours to days"
        };
        let _ = writeln!(text, "{what}:\n  {command}");
    }
    let is_of_array = |owner: KnobOwner| matches!(owner, KnobOwner::Array | KnobOwner::Volume);
    let names_array = outcome.advised.iter().any(|one| is_of_array(KNOBS[one.choice.knob].owner));
    if names_array && tuned.devices.volume() == ARRAY_PLACEHOLDER {
        let _ =
            writeln!(text, "Put the array's name in place of {ARRAY_PLACEHOLDER}, or name it with --array.");
    }
    if let Some(layout) = outcome.array_layout(&tuned.rig) {
        let _ = writeln!(
            text,
            "A new file system on it: mkfs.ext4 {} or mkfs.xfs {}, in a partition that starts at a multiple of {} KiB.",
            layout.ext4_options(),
            layout.xfs_options(),
            grouped(layout.stripe_kib())
        );
    }
    text.push('\n');
    text
}

fn settings(tuned: &Tuned<'_>) -> String {
    let mut table =
        Table::new("Settings", ["setting", "now", "advised", tuned.goal.metric.name(), "what it is"])
            .with_words(5);
    for (advised, value) in tuned.outcome.advised.iter().zip(tuned.outcome.advised_values(&tuned.rig)) {
        let knob = &KNOBS[advised.choice.knob];
        table.row([
            knob.name.to_string(),
            knob.value_in(&tuned.rig),
            value,
            percent(tuned.goal.metric, &advised.gain),
            knob.summary.to_string(),
        ]);
    }
    table.to_text()
}

fn figures(tuned: &Tuned<'_>) -> String {
    let mut table = Table::new("Figures", ["figure", "now", "advised", "change", ""]);
    for (metric, change) in &tuned.outcome.by_metric {
        let value = |value: f64| format!("{} {}", significant(value, 4), metric.unit());
        table.row([
            metric.name().to_string(),
            value(tuned.outcome.before.get(*metric)),
            value(tuned.outcome.after.get(*metric)),
            percent(*metric, change),
            verdict(change).to_string(),
        ]);
    }
    table.to_text()
}

fn jobs(tuned: &Tuned<'_>) -> String {
    let headings = ["job", "IOPS now", "advised", "mean ms now", "advised", "p99 ms now", "advised", ""];
    let mut table = Table::new("Jobs", headings);
    for change in tuned.outcome.jobs() {
        let (now, advised) = (change.now, &change.advised);
        let pairs = [(now.iops, advised.iops), (now.mean_ms, advised.mean_ms), (now.p99_ms, advised.p99_ms)];
        let figures =
            pairs.into_iter().flat_map(|(now, advised)| [now, advised]).map(|value| significant(value, 4));
        let verdict = if change.is_loss() { "loses" } else { "" };
        let name = std::iter::once(now.name.clone());
        table.rows.push(name.chain(figures).chain([verdict.to_string()]).collect());
    }
    table.to_text()
}

/// Whether a change exceeds chance, and whether it is a gain or a loss.
fn verdict(gain: &Gain) -> &'static str {
    match gain {
        gain if gain.is_loss() => "worse",
        gain if gain.is_real() => "better",
        _ => "",
    }
}

/// The figure's change, `+18.0 % (15.2 to 20.9)`; without an interval where the load draws nothing at random.
pub(super) fn percent(metric: TuneMetric, gain: &Gain) -> String {
    // Adding zero makes a negative zero positive.
    let [mean, least, most] =
        gain.change_percent(metric).map(|percent| (10.0 * percent).round() / 10.0 + 0.0);
    if gain.is_without_chance() {
        format!("{mean:+.1} % (the same with each seed)")
    } else {
        format!("{mean:+.1} % ({least:.1} to {most:.1})")
    }
}
