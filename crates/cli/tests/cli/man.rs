//! Completion scripts and manual pages: both know every command.

use crate::common::{commands, printed, refused};
use crate::tools::{attempt, folder, have, text};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Writes all pages into a folder that does not exist yet.
fn pages(folder: &Path) {
    let said = printed(&["man", "--out", text(folder)]);
    let count = fs::read_dir(folder).expect("it was made").count();
    assert_eq!(said, format!("{count} pages in {}\n", folder.display()));
}

#[test]
fn completion_scripts_name_every_command() {
    let commands = commands();
    assert!(commands.len() > 40, "{commands:?}");
    for shell in ["bash", "zsh", "fish"] {
        let script = printed(&["completions", shell]);
        let words: BTreeSet<&str> = script.split(|c: char| !c.is_alphanumeric() && c != '-').collect();
        for name in commands.iter().filter_map(|command| command.last()) {
            assert!(words.contains(name.as_str()), "{shell} does not complete {name}");
        }
    }
}

#[test]
fn bash_accepts_its_completion_script() {
    let folder = folder();
    let script = folder.path().join("headstack");
    fs::write(&script, printed(&["completions", "bash"])).expect("the folder is writable");
    assert_eq!(attempt("bash", &["-n", text(&script)]), Ok(String::new()));
}

#[test]
fn every_command_has_a_manual_page_with_its_name_and_options() {
    let folder = folder();
    let folder = folder.path().join("man");
    pages(&folder);
    let entries = fs::read_dir(&folder).expect("it was made");
    let written: BTreeSet<String> = entries
        .map(|entry| entry.expect("it is readable").file_name().to_string_lossy().into_owned())
        .collect();
    let name = |words: Vec<String>| [vec!["headstack".to_string()], words].concat().join("-") + ".1";
    let expected: BTreeSet<String> = commands().into_iter().map(name).collect();
    assert_eq!(written, expected);
    let page = fs::read_to_string(folder.join("headstack-sim.1")).expect("it was written");
    assert!(
        page.starts_with(".") && page.contains("headstack\\-sim") && page.contains("\\-\\-requests"),
        "{page}"
    );
}

#[test]
fn main_page_goes_to_standard_output_and_equals_the_written_one() {
    let folder = folder();
    pages(folder.path());
    let written = fs::read_to_string(folder.path().join("headstack.1")).expect("it was written");
    assert_eq!(printed(&["man"]), written);
}

#[test]
fn mandoc_accepts_every_page() {
    if !have(&["mandoc"]) {
        return;
    }
    let folder = folder();
    pages(folder.path());
    for entry in fs::read_dir(folder.path()).expect("it was made") {
        let page = entry.expect("it is readable").path();
        assert_eq!(attempt("mandoc", &["-Tlint", "-Werror", text(&page)]), Ok(String::new()));
    }
}

#[test]
fn unknown_shell_and_a_file_for_the_folder_are_rejected_in_one_line() {
    assert!(refused(&["completions", "csh"], 2).contains("bash, zsh, fish"));
    let file = tempfile::NamedTempFile::new().expect("there is room for a file");
    refused(&["man", "--out", text(file.path())], 2);
}
