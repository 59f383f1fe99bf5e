//! The shipped rigs: every file of `rigs/`, built into the crate.

use super::{Rig, RigError};
use headstack_model::spec::did_you_mean;
use headstack_model::{SpecError, drives};

/// Name and text of each rig file, by name.
static ALL: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/rigs.rs"));

/// All shipped rigs, in the order of their names: name and rig file.
pub fn all() -> &'static [(&'static str, &'static str)] {
    ALL
}

/// The shipped rig `name`, or else the rig of the shipped drive `name`.
///
/// *Errors:* neither; the nearest name is given.
pub fn load(name: &str) -> Result<Rig, RigError> {
    if let Some((_, text)) = ALL.iter().find(|(known, _)| *known == name) {
        return Rig::parse(text, &format!("rigs/{name}.toml"), &mut |drive| drives::load(drive));
    }
    if drives::all().iter().any(|(known, _)| *known == name) {
        return Ok(Rig::from_drive(drives::load(name)?));
    }
    let known = ALL.iter().chain(drives::all()).map(|(known, _)| *known);
    let hint = did_you_mean(name, known);
    let shown: String = name.chars().take(60).collect();
    Err(RigError::Fault(SpecError {
        origin: "rigs".to_string(),
        line: 0,
        key: String::new(),
        message: format!("no rig or drive `{shown}`{hint}"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_rig_builds_by_name() {
        assert!(!all().is_empty());
        for (name, _) in all() {
            let rig = load(name).unwrap_or_else(|error| panic!("{error}"));
            assert!(!rig.resolved().title.is_empty(), "{name} has no title");
            rig.build(1).unwrap_or_else(|error| panic!("{error}"));
            assert!(drives::all().iter().all(|(drive, _)| drive != name), "{name} is a drive, too");
        }
    }

    #[test]
    fn drive_name_loads_as_rig_and_unknown_name_is_rejected() {
        assert_eq!(load("atlas-10k").expect("it is a drive").volumes().len(), 1);
        let error = load("singel").expect_err("there is none");
        assert_eq!(error.to_string(), "rigs: no rig or drive `singel`; did you mean `single`?");
    }
}
