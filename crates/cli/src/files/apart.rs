//! That no output of a command is written over an input, or over another output.

use crate::failure::Failure;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What a path leads to, whatever it is called.
#[derive(PartialEq, Eq)]
enum Place {
    /// A file that is there: its device and number.
    File(u64, u64),
    /// One that is not: its folder and name.
    New(PathBuf),
    Standard,
}

/// Where an output goes; none for a device or a pipe, which takes what several write.
fn identity_of(path: &Path) -> Option<Place> {
    if super::is_standard(path) {
        return Some(Place::Standard);
    }
    match fs::metadata(path) {
        Ok(found) if found.is_file() => Some(Place::File(found.dev(), found.ino())),
        Ok(_) => None,
        Err(_) => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = fs::canonicalize(folder.unwrap_or(Path::new("."))).ok()?;
            Some(Place::New(folder.join(path.file_name()?)))
        }
    }
}

/// Checks that no output, each with its option, is one of the files that the command reads, or another output.
///
/// *Errors:* one is; the option is named.
pub(crate) fn check_apart(inputs: &[&Path], outputs: &[(&str, Option<&Path>)]) -> Result<(), Failure> {
    let read: Vec<Place> =
        inputs.iter().filter(|input| input.exists()).filter_map(|input| identity_of(input)).collect();
    let mut written: Vec<(&str, Place)> = Vec::new();
    for (option, path) in outputs {
        let Some(path) = path else { continue };
        let Some(place) = identity_of(path) else { continue };
        let option_and_path = format!("{option} {}", path.display());
        if read.contains(&place) {
            return Err(Failure::Input(format!(
                "{}: the command reads this file, and would write over it; name another",
                option_and_path.trim()
            )));
        }
        if let Some((other, _)) = written.iter().find(|(_, other)| *other == place) {
            return Err(Failure::Input(format!(
                "{}: {other} goes there, too; name another file",
                option_and_path.trim()
            )));
        }
        written.push((option, place));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_over_an_input_or_another_output_is_rejected() {
        let folder = tempfile::tempdir().expect("there is room for a folder");
        let at = |name: &str| folder.path().join(name);
        super::super::write_whole(&at("job"), b"").unwrap_or_else(|failure| panic!("{failure}"));
        fs::hard_link(at("job"), at("other-name")).expect("the folder is writable");
        std::os::unix::fs::symlink(at("job"), at("link")).expect("the folder is writable");
        let job = at("job");
        let said = |outputs: &[(&str, Option<&Path>)]| {
            check_apart(&[&job], outputs).err().map(|failure| failure.to_string())
        };
        for name in ["job", "other-name", "link", "./job"] {
            let refused = said(&[("--json", Some(&at(name)))]).expect(name);
            assert!(refused.contains("the command reads this file"), "{refused}");
        }
        let new = at("new");
        let refused = said(&[("--json", Some(&new)), ("--requests", Some(&at("./new")))]).expect("one place");
        assert!(refused.contains("--requests") && refused.contains("--json goes there, too"), "{refused}");
        let twice = said(&[("--json", Some(Path::new("-"))), ("--requests", Some(Path::new("-")))]);
        assert!(twice.is_some_and(|refused| refused.contains("--json goes there, too")));
        let null = Path::new("/dev/null");
        assert_eq!(
            said(&[("--json", Some(null)), ("--requests", Some(null)), ("--report", Some(&new))]),
            None
        );
    }
}
