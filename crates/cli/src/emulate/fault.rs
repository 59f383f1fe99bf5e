//! `--fault`: what goes wrong with the disks.

use headstack_host::disk::EmulatorFaults;
use headstack_model::Nanos;
use headstack_model::spec::did_you_mean;
use std::str::FromStr;

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The power goes at a time.
    PowerCut(Nanos),
    /// FLUSH and FUA are said to be done, and are not.
    IgnoreFlush,
}

/// How each is written, and what it does.
const FORMS: [(&str, &str); 2] = [("power-cut", "power-cut@TIME"), ("ignore-flush", "ignore-flush")];

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Fault, String> {
        let (name, value) = match text.split_once('@') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        match (name, value) {
            ("power-cut", Some(value)) => time(value).map(Fault::PowerCut),
            ("ignore-flush", None) => Ok(Fault::IgnoreFlush),
            _ => Err(wrong(name)),
        }
    }
}

/// What to say of a text that is no fault.
fn wrong(name: &str) -> String {
    if let Some((_, form)) = FORMS.iter().find(|(known, _)| *known == name) {
        return format!("must be written as {form}");
    }
    let forms = FORMS.map(|(_, form)| form).join(", ");
    format!("no such fault{}: there are {forms}", did_you_mean(name, FORMS.iter().map(|(name, _)| *name)))
}

/// A time of the disk's, such as `30s`.
fn time(text: &str) -> Result<Nanos, String> {
    let time = humantime::parse_duration(text).map_err(|error| format!("`{text}`: {error} (such as 30s)"))?;
    u64::try_from(time.as_nanos()).map(Nanos).map_err(|_| format!("`{text}` is beyond 500 years"))
}

/// What all of them together make of each disk.
pub(super) fn of_all(faults: &[Fault]) -> EmulatorFaults {
    faults.iter().fold(EmulatorFaults::default(), |sum, fault| match *fault {
        Fault::PowerCut(at) => {
            EmulatorFaults { power_cut: Some(sum.power_cut.map_or(at, |other| other.min(at))), ..sum }
        }
        Fault::IgnoreFlush => EmulatorFaults { ignore_flush: true, ..sum },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn are_faults_read_and_others_refused_with_the_nearest() {
        assert_eq!("power-cut@1m 30s".parse(), Ok(Fault::PowerCut(Nanos::from_secs(90))));
        assert_eq!("ignore-flush".parse(), Ok(Fault::IgnoreFlush));
        let error = |text: &str| text.parse::<Fault>().expect_err("it is no fault");
        assert_eq!(error("power-cut"), "must be written as power-cut@TIME");
        assert_eq!(error("ignore-flush@3s"), "must be written as ignore-flush");
        assert!(error("powercut@3s").starts_with("no such fault; did you mean `power-cut`?"));
        assert!(error("power-cut@soon").contains("such as 30s"));
    }

    #[test]
    fn does_the_first_power_cut_count() {
        let faults = [Fault::PowerCut(Nanos(9)), Fault::IgnoreFlush, Fault::PowerCut(Nanos(5))];
        assert_eq!(of_all(&faults), EmulatorFaults { power_cut: Some(Nanos(5)), ignore_flush: true });
    }
}
