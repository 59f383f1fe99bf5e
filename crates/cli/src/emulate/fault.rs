//! `--fault`: faults of the disks.

use super::plan::Plan;
use super::rule;
use crate::failure::Failure;
use headstack_host::disk::{Emulator, EmulatorFaults};
use headstack_model::spec::{SlowPeriodSpec, SpecError, did_you_mean};
use headstack_model::{Instant, Lbn, Nanos};
use headstack_sim::{Engine, Fault as DriveFault};
use serde::de::DeserializeOwned;
use std::str::FromStr;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fault {
    /// Its drive; all drives if none.
    drive: Option<String>,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    PowerCut(Instant),
    /// FLUSH and FUA are acknowledged and ignored.
    IgnoreFlush,
    Drive(DriveFault),
    /// Reads under a head fail.
    Head(u32),
}

/// The name of each fault, and its syntax.
const FORMS: [(&str, &str); 8] = [
    ("power-cut", "power-cut@TIME"),
    ("ignore-flush", "ignore-flush"),
    ("dead", "dead@TIME"),
    ("medium-error", "medium-error@LBN[+COUNT] or medium-error@head=N"),
    ("slow", "slow@LBN[+COUNT]:TURNS"),
    ("slow-drive", "slow-drive@TIME+LENGTH:SHARE%:DELAY or slow-drive@{KEY = VALUE, …}"),
    ("stalls", "stalls@{mean_gap_s = SECONDS, mean_stall_ms = MS}"),
    ("slow-pattern", "slow-pattern@{name = \"NAME\"}"),
];

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Fault, String> {
        let (drive, rest) = match text.split_once(':') {
            Some((drive, rest)) if !drive.contains('@') => (Some(drive.to_string()), rest),
            _ => (None, text),
        };
        let what = rest.parse()?;
        match (&drive, what) {
            (Some(_), What::PowerCut(_)) => Err("the power goes for all disks at once".to_string()),
            _ => Ok(Fault { drive, what }),
        }
    }
}

impl FromStr for What {
    type Err = String;

    fn from_str(text: &str) -> Result<What, String> {
        let (name, value) = match text.split_once('@') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        match (name, value) {
            ("power-cut", Some(value)) => match time(value)? {
                Instant::ZERO => {
                    Err(format!("`{value}`: a disk has power at first; a time after 0s is allowed"))
                }
                at => Ok(What::PowerCut(at)),
            },
            ("ignore-flush", None) => Ok(What::IgnoreFlush),
            ("dead", Some(value)) => {
                let from = time(value)?;
                Ok(What::Drive(DriveFault::Dead { from, timeout: Nanos::ZERO }))
            }
            ("medium-error", Some(value)) if value.starts_with("head=") => {
                Ok(What::Head(number(&value["head=".len()..])?))
            }
            ("medium-error", Some(value)) => {
                let (start, end) = blocks(value)?;
                Ok(What::Drive(DriveFault::Medium { start, end, turns: None, stays: false }))
            }
            ("slow", Some(value)) => {
                let (place, turns) = value.split_once(':').ok_or_else(|| wrong(name))?;
                let (start, end) = blocks(place)?;
                let turns = number(turns)?;
                Ok(What::Drive(DriveFault::Slow { start, end, turns }))
            }
            ("slow-drive", Some(keys)) if keys.starts_with('{') => slow_by_keys(keys, DriveFault::SlowPeriod),
            ("slow-drive", Some(value)) => slow_drive(value).ok_or_else(|| wrong(name))?,
            ("stalls", Some(keys)) if keys.starts_with('{') => slow_by_keys(keys, DriveFault::Stalls),
            ("slow-pattern", Some(keys)) if keys.starts_with('{') => {
                slow_by_keys(keys, DriveFault::SlowPattern)
            }
            _ => Err(wrong(name)),
        }
    }
}

/// A fault with the keys of a drive file, as `{from_s = 60, factor = 2}`.
fn slow_by_keys<T: DeserializeOwned>(keys: &str, fault: fn(T) -> DriveFault) -> Result<What, String> {
    #[derive(serde::Deserialize)]
    struct FaultKeys<T> {
        keys: T,
    }
    let text = format!("keys = {keys}");
    let document: FaultKeys<T> =
        toml::from_str(&text).map_err(|error| SpecError::from_toml(&error, &text, "").message)?;
    Ok(What::Drive(fault(document.keys)))
}

/// A period such as `60s+30s:2%:800ms`; none where a part is missing.
fn slow_drive(text: &str) -> Option<Result<What, String>> {
    let (period, effect) = text.split_once(':')?;
    let ((from, length), (share, delay)) = (period.split_once('+')?, effect.split_once(':')?);
    let percent = share.strip_suffix('%')?;
    let parse = || {
        let duration = |text| match time(text)? {
            Instant::ZERO => Err(format!("`{text}`: a time above 0s is allowed")),
            time => Ok(time.since_start()),
        };
        Ok(What::Drive(DriveFault::SlowPeriod(SlowPeriodSpec {
            from_s: time(from)?.as_secs(),
            length_s: Some(duration(length)?.as_ms() / 1e3),
            share: share_of(percent)?,
            delay_ms: Some(duration(delay)?.as_ms()),
            ..SlowPeriodSpec::default()
        })))
    };
    Some(parse())
}

/// A share of the accesses, from 0 to 1.
fn share_of(percent: &str) -> Result<f64, String> {
    let share: f64 = percent.trim().parse().map_err(|_| format!("`{percent}%` is no share (such as 2%)"))?;
    if (0.0001..=100.0).contains(&share) {
        Ok(share / 100.0)
    } else {
        Err(format!("`{percent}%` is outside 0.0001% to 100%"))
    }
}

fn wrong(name: &str) -> String {
    if let Some((_, form)) = FORMS.iter().find(|(known, _)| *known == name) {
        return format!("must be written as {form}");
    }
    let forms = FORMS.map(|(_, form)| form).join(", ");
    format!("no such fault{} (there are {forms})", did_you_mean(name, FORMS.iter().map(|(name, _)| *name)))
}

/// A disk time, such as `30s`.
fn time(text: &str) -> Result<Instant, String> {
    let time = humantime::parse_duration(text).map_err(|error| format!("`{text}`: {error} (such as 30s)"))?;
    u64::try_from(time.as_nanos()).map(Instant).map_err(|_| format!("`{text}` is beyond 500 years"))
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{text}` is no whole number, or too large a one"))
}

/// The first block of `LBN[+COUNT]`, and the block behind the last.
fn blocks(text: &str) -> Result<(Lbn, Lbn), String> {
    let (start, count) = text.split_once('+').unwrap_or((text, "1"));
    let (start, count) = (number::<u64>(start)?, number::<u64>(count)?);
    if count == 0 {
        return Err("COUNT is 0: must be at least 1".to_string());
    }
    let end = start.checked_add(count).ok_or_else(|| format!("`{text}` ends beyond block 2^64"))?;
    Ok((Lbn(start), Lbn(end)))
}

pub(super) struct Faults<'a>(pub(super) &'a [Fault]);

impl Faults<'_> {
    /// Checks that each fault names an existing drive.
    ///
    /// *Errors:* a fault names no existing drive, and the message suggests the nearest name; a fault is for a disk without a model.
    pub(super) fn check(&self, plans: &[Plan]) -> Result<(), Failure> {
        let names: Vec<String> = plans.iter().flat_map(drives).collect();
        for drive in self.0.iter().filter_map(|fault| fault.drive.as_ref()) {
            if !names.contains(drive) {
                let hint = did_you_mean(drive, names.iter().map(String::as_str));
                return Err(Failure::Input(format!("--fault: no drive is called `{drive}`{hint}")));
            }
        }
        let is_for_all = self.0.iter().any(|fault| fault.drive.is_none());
        if is_for_all && plans.iter().any(|plan| plan.rig.is_none()) {
            Err(Failure::Input("--fault: the disk `null` has none".to_string()))
        } else {
            Ok(())
        }
    }

    pub(super) fn power_cut(&self) -> Option<Instant> {
        let times = self.0.iter().filter_map(|fault| match fault.what {
            What::PowerCut(at) => Some(at),
            _ => None,
        });
        times.min()
    }

    /// The faults of a disk as a whole.
    pub(super) fn for_plan(&self, plan: &Plan) -> EmulatorFaults {
        let names = drives(plan);
        let lies = |fault: &Fault| fault.what == What::IgnoreFlush && fault.is_of_one(&names);
        EmulatorFaults { power_cut: self.power_cut(), ignore_flush: self.0.iter().any(lies) }
    }

    /// Sets the faults that are rules in front of the model.
    ///
    /// *Errors:* a head that a drive does not have; a drive that is not a volume by itself.
    pub(super) fn set_rules(&self, plan: &Plan, emulator: &mut Emulator) -> Result<(), Failure> {
        for (volume, name) in drives(plan).iter().enumerate() {
            for fault in self.0.iter().filter(|fault| fault.is_of_one(std::slice::from_ref(name))) {
                if let What::Head(head) = fault.what {
                    let set = rule::fail_head(emulator, volume as u32, head);
                    set.map_err(|error| Failure::Input(format!("--fault: {name}: {error}")))?;
                }
            }
        }
        Ok(())
    }

    /// Injects the faults into the drives of a disk.
    ///
    /// *Errors:* blocks or turns that a drive does not have.
    pub(super) fn inject(&self, plan: &Plan, engine: &mut Engine) -> Result<(), Failure> {
        for (number, name) in drives(plan).iter().enumerate() {
            for fault in self.0.iter().filter(|fault| fault.is_of_one(std::slice::from_ref(name))) {
                if let What::Drive(fault) = fault.what {
                    let reported = engine.inject(number, fault);
                    reported.map_err(|error| Failure::Input(format!("--fault: {name}: {error}")))?;
                }
            }
        }
        Ok(())
    }
}

impl Fault {
    fn is_of_one(&self, drives: &[String]) -> bool {
        self.drive.as_ref().is_none_or(|name| drives.contains(name))
    }
}

/// The drives of a disk, in the order of their numbers: a drive that is a volume has the volume's name.
fn drives(plan: &Plan) -> Vec<String> {
    let Some(rig) = &plan.rig else { return Vec::new() };
    let names: Vec<String> = rig.resolved().drives().map(|drive| drive.name).collect();
    match &plan.volumes[..] {
        [volume] if names.len() == 1 => vec![volume.name.clone()],
        _ => names,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstack_model::spec::{SlowPattern, SlowPatternSpec};

    fn fault(text: &str) -> Fault {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn fault_text_parses_with_its_drive() {
        let seconds = |seconds| Instant::from_secs(seconds);
        assert_eq!(fault("power-cut@1m 30s").what, What::PowerCut(seconds(90)));
        assert_eq!(
            fault("sdb:ignore-flush"),
            Fault { drive: Some("sdb".to_string()), what: What::IgnoreFlush }
        );
        let dead = What::Drive(DriveFault::Dead { from: seconds(3), timeout: Nanos::ZERO });
        assert_eq!(fault("sda:dead@3s"), Fault { drive: Some("sda".to_string()), what: dead });
        assert_eq!(fault("sdb:medium-error@head=2").what, What::Head(2));
        let medium = DriveFault::Medium { start: Lbn(7), end: Lbn(8), turns: None, stays: false };
        assert_eq!(fault("medium-error@7").what, What::Drive(medium));
        let slow = DriveFault::Slow { start: Lbn(7), end: Lbn(17), turns: 4 };
        assert_eq!(fault("slow@7+10:4"), Fault { drive: None, what: What::Drive(slow) });
        let late = DriveFault::SlowPeriod(SlowPeriodSpec {
            from_s: 60.0,
            length_s: Some(30.0),
            share: 0.025,
            delay_ms: Some(800.0),
            ..SlowPeriodSpec::default()
        });
        assert_eq!(fault("slow-drive@60s+30s:2.5%:800ms").what, What::Drive(late));
    }

    #[test]
    fn slow_fault_has_the_keys_of_a_drive_file() {
        let slow =
            SlowPeriodSpec { from_s: 60.0, factor: Some(3.0), head: Some(2), ..SlowPeriodSpec::default() };
        let found = fault("sdb:slow-drive@{from_s = 60, factor = 3, head = 2}");
        assert_eq!(found.what, What::Drive(DriveFault::SlowPeriod(slow)));
        assert_eq!(found.drive.as_deref(), Some("sdb"));
        let pattern = SlowPatternSpec { name: SlowPattern::Vibration, from_s: 0.0 };
        let found = fault("slow-pattern@{name = \"vibration\"}").what;
        assert_eq!(found, What::Drive(DriveFault::SlowPattern(pattern)));
    }

    #[test]
    fn malformed_fault_is_rejected_with_the_nearest_form() {
        let error = |text: &str| text.parse::<Fault>().expect_err("it is no fault");
        assert_eq!(error("power-cut"), "must be written as power-cut@TIME");
        assert_eq!(error("ignore-flush@3s"), "must be written as ignore-flush");
        assert_eq!(error("slow@7+10"), "must be written as slow@LBN[+COUNT]:TURNS");
        assert!(error("powercut@3s").starts_with("no such fault; did you mean `power-cut`?"));
        assert!(error("power-cut@soon").contains("such as 30s"));
        assert!(error("power-cut@0s").contains("a time after 0s"));
        assert_eq!(error("sda:power-cut@3s"), "the power goes for all disks at once");
        assert!(error("medium-error@head=two").contains("`two` is no whole number"));
        assert!(error("medium-error@-7").contains("`-7` is no whole number"));
        assert!(error("medium-error@18446744073709551615").contains("beyond block 2^64"));
        assert!(error("slow@7:many").contains("`many`"));
        assert_eq!(error("medium-error@10+0"), "COUNT is 0: must be at least 1");
        assert_eq!(error("slow@10+0:2"), "COUNT is 0: must be at least 1");
        assert_eq!(
            error("slow-drive@60s:2%:800ms"),
            "must be written as slow-drive@TIME+LENGTH:SHARE%:DELAY or slow-drive@{KEY = VALUE, …}"
        );
        assert!(error("slow-drive@60s+30s:few%:800ms").contains("`few%` is no share"));
        assert!(error("slow-drive@60s+30s:2%:long").contains("such as 30s"));
        assert!(error("slow-drive@{from_s = 1, factr = 2}").contains("`factor`"));
        assert!(error("stalls@{mean_gap_s = 1}").contains("mean_stall_ms"));
        assert!(error("slow-pattern@vibration").starts_with("must be written as slow-pattern@{"));
        for share in ["200%", "-5%", "nan%", "0%"] {
            let found = error(&format!("slow-drive@60s+30s:{share}:800ms"));
            assert_eq!(found, format!("`{share}` is outside 0.0001% to 100%"));
        }
        assert_eq!(error("slow-drive@1s+0s:2%:800ms"), "`0s`: a time above 0s is allowed");
        assert_eq!(error("slow-drive@1s+9s:2%:0ms"), "`0ms`: a time above 0s is allowed");
    }
}
