//! `headstack tune --verify`: measures the load with fio on the real device, before and after the advised settings.

mod device;
mod fio;

use super::Tuned;
use crate::failure::{Failure, print_line};
use crate::files;
use crate::interrupt::Interrupt;
use crate::report::Table;
use crate::sim::load::LoadArgs;
use crate::units::significant;
use device::{SCHEDULER, VerifiedDisk};
use fio::FioJobRun;
use headstack::WorkloadKind;
use headstack::tune::{
    FioVerification, Gain, KNOBS, Knob, KnobOwner, SettingChoice, TuneFigures, TuneMetric, TuneOutcome,
    change_to_json,
};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Number of pairs of runs, one before the change of settings and one after it: the smallest number that gives a useful confidence interval.
const PAIRS: usize = 3;

/// The options of a verification.
#[derive(clap::Args)]
pub(super) struct VerifyArgs {
    /// Run the load with fio on this device before and after, with the advised settings that can be set while it runs; then restore them. Reads
    /// only. Needs root, fio and a fio job.
    #[arg(long, value_name = "DEVICE")]
    verify: Option<PathBuf>,
    /// Let fio write to the device of --verify: its data are lost.
    #[arg(long, requires = "verify")]
    write: bool,
    /// Seconds of each of the six runs of --verify.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=3600))]
    verify_seconds: u64,
}

/// A verification that can run: its device, job and fio were found.
pub(super) struct PreparedVerification {
    disk: VerifiedDisk,
    job: FioVerification,
    seconds: u64,
}

/// A setting with its values before and after.
struct LiveSetting {
    knob: &'static Knob,
    /// None for a parameter of a scheduler that is yet to be chosen.
    before: Option<String>,
    after: &'static str,
}

/// What was measured.
pub(super) struct Verified {
    device: PathBuf,
    seconds: u64,
    settings: Vec<LiveSetting>,
    /// Advised settings that cannot be set while the system runs, each with the reason.
    left_out: Vec<(&'static str, String)>,
    before: Vec<TuneFigures>,
    after: Vec<TuneFigures>,
}

impl VerifyArgs {
    /// Checks everything that can be checked before the search.
    ///
    /// *Errors:* the device, the load or fio does not allow a verification.
    pub(super) fn prepare(
        &self,
        load: &str,
        options: &LoadArgs,
    ) -> Result<Option<PreparedVerification>, Failure> {
        let Some(device) = &self.verify else { return Ok(None) };
        if !matches!(options.kind(load)?.0, WorkloadKind::FioJob) {
            return Err(Failure::Input(format!("--verify: {load} is no fio job, which fio could run")));
        }
        let disk = VerifiedDisk::find(device)?;
        let text = files::read_text(Path::new(load))?;
        let job = FioVerification::new(&text, &disk.device().display().to_string(), self.verify_seconds);
        let job = job.map_err(|error| Failure::Input(format!("--verify: {load}: {error}")))?;
        if job.writes && !self.write {
            let device = device.display();
            let what = format!("--verify: {load} writes, and the data on {device} would be lost");
            return Err(Failure::Input(format!("{what}; --write allows it")));
        }
        if job.writes {
            disk.require_unused()?;
        }
        fio::require_fio()?;
        Ok(Some(PreparedVerification { disk, job, seconds: self.verify_seconds }))
    }
}

impl PreparedVerification {
    /// Measures in pairs: runs before and after the change alternate, so that a slow drift of the system affects both equally.
    ///
    /// *Errors:* fio fails, a setting is refused, a signal.
    pub(super) fn run(&self, tuned: &Tuned<'_>, interrupt: &Interrupt) -> Result<Verified, Failure> {
        let (settings, left_out) = self.settings(tuned);
        let mut verified = Verified {
            device: self.disk.device().to_path_buf(),
            seconds: self.seconds,
            settings,
            left_out,
            before: Vec::new(),
            after: Vec::new(),
        };
        if verified.settings.is_empty() {
            return Ok(verified);
        }
        let folder = tempfile::tempdir().map_err(Failure::input)?;
        let run = FioJobRun { folder: folder.path(), job: &self.job.text, reads_only: !self.job.writes };
        let attributes: Vec<&str> = verified.settings.iter().map(|setting| setting.knob.attribute).collect();
        let _restored = self.disk.keep(&attributes);
        for pair in 0..2 * PAIRS {
            let is_after = pair % 2 == 1;
            for setting in &verified.settings {
                if let Some(value) = if is_after { Some(setting.after) } else { setting.before.as_deref() } {
                    self.set(setting.knob, value)?;
                }
            }
            let Some(figures) = run.run(interrupt)? else { break };
            let runs = if is_after { &mut verified.after } else { &mut verified.before };
            runs.push(figures);
        }
        match interrupt.received() {
            Some(signal) => Err(Failure::StoppedWithoutResult(signal)),
            None => Ok(verified),
        }
    }

    /// Sets a value, and the companion attribute that must be set with it, if there is one.
    fn set(&self, knob: &Knob, value: &str) -> Result<(), Failure> {
        let all = [Some((knob.attribute, value)), knob.companion(value)];
        all.into_iter()
            .flatten()
            .try_for_each(|(attribute, value)| self.disk.set(attribute, value))
            .map_err(Failure::Input)
    }

    /// Warns that BFQ will differ from the simulation if the kernel takes the disk for a non-rotational one.
    fn warn_of_no_rotation(&self, settings: &[LiveSetting]) {
        let is_bfq =
            settings.iter().any(|setting| setting.knob.attribute == SCHEDULER && setting.after == "bfq");
        if is_bfq && self.disk.value("queue/rotational").is_some_and(|value| value == "0") {
            let device = self.disk.device().display();
            print_line(&format!(
                "--verify: {device} has queue/rotational 0, with which bfq waits for no process; write 1 before the scheduler is chosen"
            ));
        }
    }

    /// The advised settings that can be set while the system runs, in the order in which they must be set; and the others, each with the reason.
    fn settings(&self, tuned: &Tuned<'_>) -> (Vec<LiveSetting>, Vec<(&'static str, String)>) {
        let (mut settings, mut left_out) = (Vec::new(), Vec::new());
        let mut choices: Vec<SettingChoice> = tuned.outcome.advised.iter().map(|one| one.choice).collect();
        choices.sort_unstable();
        let is_new_scheduler = choices.iter().any(|choice| KNOBS[choice.knob].attribute == SCHEDULER);
        for choice in choices {
            let knob = &KNOBS[choice.knob];
            // The parameters of a scheduler exist once it is chosen.
            let will_exist = is_new_scheduler && knob.scheduler.is_some();
            let reason = match knob.owner {
                KnobOwner::Disk | KnobOwner::Volume
                    if will_exist || self.disk.value(knob.attribute).is_some() =>
                {
                    None
                }
                KnobOwner::Disk | KnobOwner::Volume => {
                    Some(format!("{} has no {}", self.disk.device().display(), knob.attribute))
                }
                KnobOwner::Array => Some("mdadm rewrites the array for it".to_string()),
                KnobOwner::Partition => {
                    Some("it needs a new partition table, which loses the data".to_string())
                }
                KnobOwner::OtherJobs => Some("it belongs to processes, not to the disk".to_string()),
                KnobOwner::Node => Some("a node reads it at its start".to_string()),
            };
            match reason {
                Some(reason) => left_out.push((knob.name, reason)),
                None => {
                    let before = (!will_exist).then(|| knob.value_in(&tuned.rig));
                    settings.push(LiveSetting { knob, before, after: choice.text() });
                }
            }
        }
        for (name, reason) in &left_out {
            print_line(&format!("--verify: without {name}: {reason}"));
        }
        self.warn_of_no_rotation(&settings);
        (settings, left_out)
    }
}

impl Verified {
    /// The measured change of a figure; none where nothing was measured.
    fn change(&self, metric: TuneMetric) -> Option<Gain> {
        Gain::of_pairs(metric, &self.before, &self.after)
    }

    fn means(&self) -> Option<(TuneFigures, TuneFigures)> {
        let is_measured = !self.before.is_empty() && !self.after.is_empty();
        is_measured.then(|| (TuneFigures::mean(&self.before), TuneFigures::mean(&self.after)))
    }

    /// The verification as text.
    pub(super) fn to_text(&self, outcome: &TuneOutcome) -> String {
        let device = self.device.display();
        let Some((before, after)) = self.means() else {
            return format!(
                "Nothing was measured on {device}: no advised setting can be set while it runs.\n"
            );
        };
        let settings: Vec<String> = self.settings.iter().map(LiveSetting::text).collect();
        let mut text = format!(
            "Measured by fio on {device}, {PAIRS} runs of {} s before and {PAIRS} after: {}.\n\n",
            self.seconds,
            settings.join(", ")
        );
        let headings = ["figure", "predicted", "measured", "predicted", "measured", "predicted", "measured"];
        let mut table = Table::new("Verification", headings);
        let columns = ["", "now", "now", "advised", "advised", "change", "change"];
        table.row(columns.map(str::to_string));
        for (metric, predicted) in &outcome.by_metric {
            let value =
                |figures: &TuneFigures| format!("{} {}", significant(figures.get(*metric), 4), metric.unit());
            let measured = self.change(*metric).expect("there are pairs of runs");
            table.row([
                metric.name().to_string(),
                value(&outcome.before),
                value(&before),
                value(&outcome.after),
                value(&after),
                super::text::percent(*metric, predicted),
                super::text::percent(*metric, &measured),
            ]);
        }
        text += &table.to_text();
        for (name, reason) in &self.left_out {
            let _ = writeln!(text, "Without {name}, which is in the predicted figures: {reason}.");
        }
        text
    }

    /// The verification as JSON.
    pub(super) fn to_json(&self) -> Value {
        let settings = self.settings.iter().map(
            |setting| json!({"setting": setting.knob.name, "before": setting.before, "after": setting.after}),
        );
        let left_out = self.left_out.iter().map(|(name, reason)| json!({"setting": name, "reason": reason}));
        let figures = self.means().map(|(before, after)| {
            let figure = |metric: TuneMetric| {
                let change = self.change(metric).map(|gain| change_to_json(metric, &gain));
                let value = json!({
                    "unit": metric.unit(),
                    "now": before.get(metric),
                    "advised": after.get(metric),
                    "change": change,
                });
                (metric.name().to_string(), value)
            };
            TuneMetric::OF_WHOLE_LOAD.into_iter().map(figure).collect::<Map<_, _>>()
        });
        json!({
            "device": self.device,
            "seconds": self.seconds,
            "pairs": self.before.len(),
            "changed_settings": settings.collect::<Vec<_>>(),
            "left_out": left_out.collect::<Vec<_>>(),
            "figures": figures,
        })
    }
}

impl LiveSetting {
    fn text(&self) -> String {
        let before = self.before.as_deref().map_or(String::new(), |before| format!("{before} to "));
        format!("{} {before}{}", self.knob.name, self.after)
    }
}
