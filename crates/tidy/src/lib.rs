//! *Does the repository keep its own rules?* What the tests of this crate read: the files of the repository.
#![doc = include_str!("../README.md")]
#![allow(clippy::disallowed_methods, reason = "the crate reads the repository")]

use std::fs;
use std::path::{Path, PathBuf};

/// A Rust file that is part of a program, not of its tests.
pub struct Source {
    /// Where it is.
    pub path: PathBuf,
    /// What is in it.
    pub text: String,
}

impl Source {
    /// The name of the crate's folder.
    pub fn crate_name(&self) -> &str {
        let inside = self.path.strip_prefix(root()).expect("sources are found below the root");
        inside.iter().nth(1).and_then(|name| name.to_str()).unwrap_or_default()
    }
}

/// The folder of the repository.
pub fn root() -> &'static Path {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    folder.ancestors().nth(2).expect("the crate lies in the folder crates of the root")
}

/// The text of a file.
///
/// # Panics
///
/// If there is no such file or it is not text.
pub fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What is in a folder, in the order of the names.
///
/// # Panics
///
/// If there is no such folder.
pub fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("the folder can be listed").path()).collect();
    paths.sort();
    paths
}

/// All files of the repository, without those that tools put there.
pub fn all_files() -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(root(), &mut found);
    assert!(found.len() > 100, "the repository is more than {} files", found.len());
    found
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in entries(folder) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_symlink() || [".git", "target", "out", "corpus", "artifacts"].contains(&name) {
            continue;
        }
        if path.is_dir() { collect(&path, found) } else { found.push(path) }
    }
}

/// The Rust files that are part of a program, not of its tests.
pub fn sources() -> Vec<Source> {
    let is_source = |path: &PathBuf| {
        let inside = path.strip_prefix(root()).expect("it was found there");
        let parts: Vec<_> = inside.iter().filter_map(|part| part.to_str()).collect();
        path.extension().is_some_and(|ext| ext == "rs")
            && parts.first() == Some(&"crates")
            && parts.get(2) == Some(&"src")
            && parts.last() != Some(&"tests.rs")
    };
    let read = |path: PathBuf| Source { text: read(&path), path };
    all_files().into_iter().filter(is_source).map(read).collect()
}

/// A source without the unit tests at its foot.
pub fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text)
}
