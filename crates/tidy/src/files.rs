//! The files of the repository, and what is in them.

use crate::scan;
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

    fn scanned(&self, text: &str) -> Code {
        let crate_name = self.crate_name().to_string();
        Code { crate_name, path: self.path.clone(), lines: scan::lines(text) }
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

/// The entries of a folder, sorted by name.
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

/// All files of the repository, without those that tools generate.
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

/// The Markdown files of the root, of `docs/`, of `studies/`, and each crate's README.
pub fn pages() -> Vec<PathBuf> {
    let mut folders = vec![root().join("docs"), root().join("studies")];
    let mut found: Vec<PathBuf> =
        ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"].map(|name| root().join(name)).into();
    found.extend(crate_readmes());
    while let Some(folder) = folders.pop() {
        for path in entries(&folder) {
            match path.extension().and_then(|end| end.to_str()) {
                _ if path.is_dir() => folders.push(path),
                Some("md") => found.push(path),
                _ => {}
            }
        }
    }
    found
}

fn crate_readmes() -> impl Iterator<Item = PathBuf> {
    let readmes = entries(&root().join("crates")).into_iter().map(|folder| folder.join("README.md"));
    readmes.filter(|path| path.exists())
}

/// A Rust file of any kind, split into code, comments and strings.
pub struct Code {
    /// The name of the crate's folder.
    pub crate_name: String,
    /// Where it is.
    pub path: PathBuf,
    /// Its lines.
    pub lines: Vec<scan::Line>,
}

impl Code {
    /// The file's name without its ending, or its folder's where that is `mod`.
    pub fn stem(&self) -> &str {
        let path = if self.path.ends_with("mod.rs") { self.path.parent() } else { Some(self.path.as_path()) };
        path.and_then(|path| path.file_stem()).and_then(|stem| stem.to_str()).unwrap_or_default()
    }
}

/// All Rust files of the crates, tests and examples too.
pub fn all_code() -> Vec<Code> {
    let is_rust = |path: &PathBuf| {
        path.starts_with(root().join("crates")) && path.extension().is_some_and(|end| end == "rs")
    };
    let files = all_files().into_iter().filter(is_rust);
    files.map(|path| Source { text: read(&path), path }).map(|source| source.scanned(&source.text)).collect()
}

/// The Rust files that are part of a program, without their tests.
pub fn program_code() -> Vec<Code> {
    sources().iter().map(|source| source.scanned(without_tests(&source.text))).collect()
}

/// A source without the unit tests at its end.
pub fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text)
}
