//! The importer against every file of the reference, and against broken ones.

mod reference;

use reference::import_file;
use std::path::{Path, PathBuf};

fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the reference has this folder");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == ending));
    files.sort();
    assert!(!files.is_empty(), "no .{ending} in {}", folder.display());
    files
}

/// Files of which no drive can be made, and why.
const NO_DRIVE: [(&str, &str); 4] = [
    ("maxtor300g-layout.model", "no drive here"),
    ("maxtor300g.model", "dm_layout_g4"),
    ("maxtor300g.diskspecs", "dm_layout_g4"),
    ("synthsimpledisk.parv", "no drive here"),
];

#[test]
fn is_every_reference_file_imported() {
    let Some(folder) = reference::disksim() else { return };
    for (part, ending) in [("specs", "diskspecs"), ("specs", "model"), ("rigs", "parv")] {
        for path in files(&folder.join(part), ending) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let expected = NO_DRIVE.iter().find(|(file, _)| *file == name);
            match (import_file(&folder, &path), expected) {
                (Ok(imported), None) => {
                    imported.spec.check().unwrap_or_else(|error| panic!("{name}: {error}"));
                    for note in imported.not_carried {
                        assert!(!note.why.contains("not a key known"), "{name}: {note}");
                    }
                }
                (Err(error), Some((_, why))) => assert!(error.message.contains(why), "{name}: {error}"),
                (Ok(_), Some(_)) => panic!("{name}: no error"),
                (Err(error), None) => panic!("{name}: {error}"),
            }
        }
    }
}
