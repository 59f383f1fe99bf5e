//! Programs of this machine: checks that they exist, runs them, and waits for their effects.

pub(crate) use headstack_prerequisites::have_programs as have;
use headstack_prerequisites::{PROGRAM_FOLDERS, have_devices, have_root};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Whether these programs exist, disks can be mounted as files, and loop devices can be attached.
pub(crate) fn have_loops_and(programs: &[&str]) -> bool {
    // Only root attaches loop devices.
    have_root()
        && have_devices(&["/dev/fuse", "/dev/loop-control"])
        && have(&["losetup", "mount", "umount"])
        && have(programs)
}

/// A command that is not started yet. The program is searched for in all of [`PROGRAM_FOLDERS`].
pub(crate) fn program(name: &str, args: &[&str]) -> Command {
    let mut command = Command::new(name);
    command.args(args).env("PATH", PROGRAM_FOLDERS).stdin(Stdio::null());
    command
}

/// Runs a program and returns its output and exit status, even if it fails.
pub(crate) fn output(name: &str, args: &[&str]) -> Output {
    program(name, args).output().unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Runs a program and returns its output, or all it printed if it fails.
pub(crate) fn attempt(name: &str, args: &[&str]) -> Result<String, String> {
    let Output { status, stdout, stderr } = output(name, args);
    let (out, err) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    if status.success() {
        Ok(out.into_owned())
    } else {
        Err(format!("{name} {args:?}: {status}\n{out}{err}"))
    }
}

/// Runs a program, which must succeed, and returns its output.
pub(crate) fn run(name: &str, args: &[&str]) -> String {
    attempt(name, args).unwrap_or_else(|error| panic!("{error}"))
}

/// A path as the text of an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("temporary folders have names in UTF-8")
}

/// A temporary folder, deleted when the value is dropped.
pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("there is room for a folder")
}

/// The longest wait for anything that takes moments on an idle machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Calls `look` until it returns a value. Panics with `what` after [`PATIENCE`].
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
