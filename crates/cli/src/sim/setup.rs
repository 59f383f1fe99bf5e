//! Settings of a rig on the command line.

use crate::failure::Failure;
use crate::units::parse_whole;
use headstack_sim::rig::Rig;

/// The options of every command that runs a load on a rig.
#[derive(clap::Args)]
pub(crate) struct RigArgs {
    /// Seed of all random numbers.
    #[arg(long, default_value_t = 0, allow_negative_numbers = true, value_parser = parse_whole)]
    pub seed: u64,
    /// Override a key of the rig file: drive.order=sptf, drive.queue_depth=32. May be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl RigArgs {
    pub(crate) fn apply(&self, rig: &mut Rig) -> Result<(), Failure> {
        set_all(rig, &self.set)
    }
}

/// Sets the keys of these options, and checks them together.
pub(crate) fn set_all(rig: &mut Rig, settings: &[String]) -> Result<(), Failure> {
    let pair = |setting: &'_ String| {
        let wrong =
            || Failure::Input(format!("--set {setting}: must be KEY=VALUE, such as drive.order=sptf"));
        split(setting).map(|(key, value)| (key.to_string(), value.to_string())).ok_or_else(wrong)
    };
    let pairs: Vec<(String, String)> = settings.iter().map(pair).collect::<Result<_, Failure>>()?;
    let pairs = pairs.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    rig.set_all(pairs).map_err(Failure::input)
}

/// The two sides of `KEY=VALUE`, if neither is empty.
pub(crate) fn split(setting: &str) -> Option<(&str, &str)> {
    let (path, value) = setting.split_once('=')?;
    let (path, value) = (path.trim(), value.trim());
    (!path.is_empty() && !value.is_empty()).then_some((path, value))
}
