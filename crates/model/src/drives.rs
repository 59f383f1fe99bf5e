//! The shipped drives: every file of `drives/`, built into the crate.

use crate::spec::{DriveSpec, SpecError, did_you_mean};

/// Name and text of each drive file, by name.
static ALL: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/drives.rs"));

/// All shipped drives, in the order of their names: name and drive file.
pub fn all() -> &'static [(&'static str, &'static str)] {
    ALL
}

/// Reads the shipped drive `name`.
///
/// *Errors:* no such drive; the error names the nearest one.
pub fn load(name: &str) -> Result<DriveSpec, SpecError> {
    if let Some((_, text)) = ALL.iter().find(|(known, _)| *known == name) {
        return DriveSpec::parse(text, &format!("drives/{name}.toml"));
    }
    let hint = did_you_mean(name, ALL.iter().map(|(known, _)| *known));
    let shown: String = name.chars().take(60).collect();
    Err(SpecError {
        origin: "drives".to_string(),
        line: 0,
        key: String::new(),
        message: format!("no drive `{shown}`{hint}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_drive_loads_by_its_name() {
        for (name, _) in all() {
            let spec = load(name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(spec.name, *name);
        }
    }

    #[test]
    fn unknown_drive_is_rejected_with_the_nearest_name() {
        let error = load("Atlas10k").expect_err("hyphens are missing");
        assert_eq!(error.to_string(), "drives: no drive `Atlas10k`; did you mean `atlas-10k`?");
    }
}
