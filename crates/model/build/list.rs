//! Lists the TOML files of a folder of the crate, so that one added there is built in. The folder is a link into the workspace, and a
//! folder in a published crate.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

/// Writes the names and texts of the TOML files in `folder`, by name, as a list of pairs to the generated file `out`.
pub(crate) fn write(folder: &str, out: &str) {
    let root = env::var("CARGO_MANIFEST_DIR").expect("cargo names the crate's folder");
    let folder = Path::new(&root).join(folder);
    println!("cargo::rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(&folder).expect("the crate has the folder");
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.expect("the folder can be listed").file_name().into_string().ok())
        .filter_map(|file| file.strip_suffix(".toml").map(str::to_string))
        .collect();
    names.sort();
    let mut list = "&[\n".to_string();
    for name in names {
        let path = folder.join(format!("{name}.toml"));
        writeln!(list, "    ({name:?}, include_str!({path:?})),").expect("a string takes every write");
    }
    list.push(']');
    let generated = env::var("OUT_DIR").expect("cargo names the folder for generated files");
    fs::write(Path::new(&generated).join(out), list).expect("the folder for generated files is writable");
}
