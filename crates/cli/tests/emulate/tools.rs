//! Programs of this machine: which are there, running them, and waiting for what they do.

pub(crate) use headstack_prerequisites::have_programs as have;
use headstack_prerequisites::{PROGRAM_FOLDERS, have_devices, have_root};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Whether these programs are here, and whether disks can be mounted as files and used through loop devices.
pub(crate) fn have_loops_and(programs: &[&str]) -> bool {
    // Only root attaches loop devices.
    have_root()
        && have_devices(&["/dev/fuse", "/dev/loop-control"])
        && have(&["losetup", "mount", "umount"])
        && have(programs)
}

/// A program with arguments, which is not yet started and is found wherever the system keeps it.
pub(crate) fn program(name: &str, args: &[&str]) -> Command {
    let mut command = Command::new(name);
    command.args(args).env("PATH", PROGRAM_FOLDERS).stdin(Stdio::null());
    command
}

/// Runs a program and takes what it did, whatever that was.
pub(crate) fn output(name: &str, args: &[&str]) -> Output {
    program(name, args).output().unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Runs a program and takes what it printed, or what it says of its failure.
pub(crate) fn attempt(name: &str, args: &[&str]) -> Result<String, String> {
    let Output { status, stdout, stderr } = output(name, args);
    let (out, err) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    if status.success() {
        Ok(out.into_owned())
    } else {
        Err(format!("{name} {args:?}: {status}\n{out}{err}"))
    }
}

/// Runs a program, which must do what it is asked, and takes what it printed.
pub(crate) fn run(name: &str, args: &[&str]) -> String {
    attempt(name, args).unwrap_or_else(|error| panic!("{error}"))
}

/// A path as an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("temporary folders have names in UTF-8")
}

/// A folder that goes away with the test.
pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("there is room for a folder")
}

/// How long anything may take that takes moments, on however busy a machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until something is there.
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        thread::sleep(Duration::from_millis(5));
    }
}
