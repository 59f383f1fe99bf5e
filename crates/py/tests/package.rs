//! The Python package passes its own tests and its types hold, with the extension of this build.
//!
//! A virtual environment with the libraries from the Python index is made once, in the target folder. `make test-python` tests the
//! wheel instead.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests read files, run programs and share what they make"
)]

use headstack_prerequisites::{have_tool, skip};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// What the tests need from the Python index; `python/pyproject.toml` has the same list as the extra `test`.
const LIBRARIES: [&str; 13] = [
    "numpy",
    "pandas",
    "pyarrow",
    "polars",
    "matplotlib",
    "tqdm",
    "pytest",
    "hypothesis",
    "mypy",
    "nbclient",
    "nbformat",
    "ipykernel",
    "distributed>=2025.1",
];

fn target() -> &'static Path {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).parent();
    folder.expect("cargo's folder for tests is inside the target folder")
}

fn python_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../python")
        .canonicalize()
        .expect("the package has a folder")
}

/// Runs a program; its output as the error if it fails.
fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{:?}: {error}", command.get_program()))?;
    let text =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    if output.status.success() { Ok(text) } else { Err(text) }
}

/// The interpreter of the virtual environment, which is made if it is not there.
fn environment() -> Result<PathBuf, String> {
    let folder = target().join("python/venv");
    let (python, stamp) = (folder.join("bin/python"), folder.join("installed.txt"));
    let wanted = LIBRARIES.join(" ");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-cache-dir"])
        .args(LIBRARIES);
    run(&mut pip)?;
    fs::write(&stamp, wanted).map_err(|error| error.to_string())?;
    Ok(python)
}

/// The interpreter with the package of this build; nothing, and a recorded skip, where this machine cannot have it.
fn interpreter() -> Option<Command> {
    static MADE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let made = MADE.get_or_init(|| environment().inspect(|_| install_package()));
    let found =
        made.as_ref().map(|_| ()).map_err(|error| error.lines().last().unwrap_or_default().to_string());
    if !have_tool("python3 with venv, and the Python index", found) {
        return None;
    }
    let mut command = Command::new(made.as_ref().expect("it was found"));
    command
        .env("PYTHONPATH", package_folder())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(package_folder());
    let built = target().join("debug/headstack");
    if env::var_os("HEADSTACK_COMMAND").is_none() && built.exists() {
        command.env("HEADSTACK_COMMAND", built);
    }
    Some(command)
}

fn package_folder() -> PathBuf {
    target().join("python/package")
}

/// Puts the Python sources and the extension of this build together.
fn install_package() {
    let package = package_folder().join("headstack");
    fs::create_dir_all(&package).expect("the target folder can be written");
    for entry in fs::read_dir(python_folder().join("headstack")).expect("the package has sources") {
        let path = entry.expect("the folder can be read").path();
        if path.is_file() {
            let name = path.file_name().expect("a file has a name");
            fs::copy(&path, package.join(name)).expect("the target folder can be written");
        }
    }
    let program = env::current_exe().expect("a test has a program");
    let built = program.with_file_name("lib_native.so");
    fs::copy(built, package.join("_native.abi3.so")).expect("cargo has built the extension");
}

#[test]
fn python_tests_pass() {
    let Some(mut python) = interpreter() else { return };
    if env::var_os("HEADSTACK_COMMAND").is_none() && !target().join("debug/headstack").exists() {
        skip("the command `headstack` is not built: the Python tests that run it");
    }
    let python = python
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "headstack.pytest_plugin", "-c"])
        .arg(python_folder().join("pyproject.toml"))
        .arg(python_folder().join("tests"));
    let output = run(python).unwrap_or_else(|output| panic!("{output}"));
    assert!(output.contains(" passed"), "{output}");
}

#[test]
fn types_of_the_package_hold() {
    let Some(mut python) = interpreter() else { return };
    let (cache, notebooks) = (target().join("python/mypy"), target().join("python/notebooks"));
    let mut write = interpreter().expect("it was found");
    write.arg(python_folder().join("tests/test_notebooks.py")).arg(&notebooks);
    run(&mut write).unwrap_or_else(|output| panic!("{output}"));
    let python = python
        .args(["-m", "mypy", "--strict", "--cache-dir"])
        .arg(cache)
        .arg("--config-file")
        .arg(python_folder().join("pyproject.toml"))
        .arg("headstack")
        .arg(python_folder().join("tests"))
        .arg(python_folder().join("bench"))
        .arg(notebooks);
    run(python).unwrap_or_else(|output| panic!("{output}"));
}

#[test]
fn stubs_agree_with_the_extension() {
    let Some(mut python) = interpreter() else { return };
    python.args(["-m", "mypy.stubtest", "headstack._native"]);
    run(&mut python).unwrap_or_else(|output| panic!("{output}"));
}
