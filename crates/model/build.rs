//! Lists the drive files of `drives/` for `src/drives.rs`, so that a file added there cannot be forgotten.

#![allow(clippy::disallowed_methods, reason = "a build script reads files")]

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

fn main() {
    let root = env::var("CARGO_MANIFEST_DIR").expect("cargo names the crate's folder");
    let folder = Path::new(&root).join("../../drives");
    println!("cargo::rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(&folder).expect("the workspace has a folder `drives`");
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.expect("`drives` can be listed").file_name().into_string().ok())
        .filter_map(|file| file.strip_suffix(".toml").map(str::to_string))
        .collect();
    names.sort();
    let mut list = "&[\n".to_string();
    for name in names {
        let path = folder.join(format!("{name}.toml"));
        writeln!(list, "    ({name:?}, include_str!({path:?})),").expect("a string takes every write");
    }
    list.push(']');
    let out = env::var("OUT_DIR").expect("cargo names the folder for generated files");
    fs::write(Path::new(&out).join("drives.rs"), list).expect("the folder for generated files is writable");
}
