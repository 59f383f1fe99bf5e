//! Checks that no output overwrites an input or another output.

use crate::failure::Failure;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The identity of a file, independent of its path.
#[derive(PartialEq, Eq)]
enum Place {
    /// An existing file: its device and inode number.
    File(u64, u64),
    /// A new file: its folder and name.
    New(PathBuf),
    Standard,
}

/// The identity of an output; none for a device or a pipe, which several outputs may share.
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

/// Checks that no output, each with its option, is an input of the command, or another output.
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
