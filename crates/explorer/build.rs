//! Builds the simulator for WebAssembly and packs it, for `src/lib.rs`. Without the feature `module`, or where the target or the
//! simulator's crate is missing, the module is empty and the page says how to get it.

#![allow(clippy::disallowed_methods, reason = "a build script reads files and the environment")]

use flate2::Compression;
use flate2::write::GzEncoder;
use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "wasm32-unknown-unknown";
/// The crates that the module consists of, and what they read, next to this crate.
const SOURCES: [&str; 9] = [
    "explorer-wasm",
    "headstack",
    "sim",
    "workload",
    "policy",
    "model",
    "../drives",
    "../firmware",
    "../rigs",
];
/// Variables that would make the inner build differ from run to run, or that belong to the outer one.
const OUTER: [&str; 8] = [
    "CARGO_BUILD_TARGET",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_TARGET_DIR",
    "RUSTFLAGS",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTDOCFLAGS",
    "CARGO_PROFILE_RELEASE_LTO",
];

fn variable(name: &str) -> PathBuf {
    PathBuf::from(env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name}")))
}

fn main() {
    let crates = variable("CARGO_MANIFEST_DIR").join("..");
    let simulator = crates.join("explorer-wasm");
    let out = variable("OUT_DIR");
    let mut packed = Vec::new();
    println!("cargo::rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_MODULE").is_some() && simulator.join("Cargo.toml").exists() {
        for source in SOURCES.map(|source| crates.join(source)) {
            let parts = if source.join("src").exists() { ["src", "Cargo.toml"].as_slice() } else { &[""] };
            parts.iter().for_each(|part| println!("cargo::rerun-if-changed={}", source.join(part).display()));
        }
        let components = target_components();
        if let Some(components) = &components {
            println!("cargo::rerun-if-changed={}", components.display());
        }
        if components.is_some_and(|components| has_target(&components)) {
            packed = pack(&build(&simulator, &out));
        } else {
            println!(
                "cargo::warning=without `headstack explore`: run `rustup target add {TARGET}`, then build again"
            );
        }
    }
    fs::write(out.join("module.wasm.gz"), packed).expect("the build folder is writable");
}

/// The file in which rustup lists the targets that are installed.
fn target_components() -> Option<PathBuf> {
    let output = Command::new(variable("RUSTC")).args(["--print", "sysroot"]).output().ok()?;
    let root = String::from_utf8(output.stdout).ok()?;
    Some(Path::new(root.trim()).join("lib/rustlib/components")).filter(|file| file.exists())
}

fn has_target(components: &Path) -> bool {
    components.parent().is_some_and(|folder| folder.join(TARGET).join("lib").exists())
}

/// Builds the module in a target folder of its own: the outer cargo has locked its folder.
fn build(simulator: &Path, out: &Path) -> Vec<u8> {
    let profile = if env::var_os("PROFILE").is_some_and(|outer| outer == "release") {
        "explorer"
    } else {
        "explorer-debug"
    };
    // OUT_DIR is TARGET/PROFILE/build/PACKAGE/out.
    let folder = out.ancestors().nth(4).expect("cargo has this layout").join("explorer");
    let mut cargo = Command::new(variable("CARGO"));
    cargo.args(["build", "--lib", "--profile", profile, "--target", TARGET]);
    cargo.arg("--manifest-path").arg(simulator.join("Cargo.toml")).arg("--target-dir").arg(&folder);
    OUTER.iter().for_each(|name| {
        cargo.env_remove(name);
    });
    let output = cargo.output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let module = folder.join(TARGET).join(profile).join("headstack_explorer_wasm.wasm");
    fs::read(&module).unwrap_or_else(|error| panic!("{}: {error}", module.display()))
}

fn pack(module: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(module).expect("memory takes all");
    packer.finish().expect("memory takes all")
}
