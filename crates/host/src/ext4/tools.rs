//! Runs the programs of e2fsprogs.

use super::Ext4Error;
use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// Folders of the programs; a user's `PATH` may lack those of the system.
const FOLDERS: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// First delay before a check whether a program has ended; it doubles each time.
const FIRST_LOOK: Duration = Duration::from_millis(1);
/// Longest such delay.
const LAST_LOOK: Duration = Duration::from_millis(50);

/// Maximum characters of a program's output in an error.
const MOST_SAID: usize = 400;

pub(super) struct Said {
    /// Exit code; -1 after a signal.
    pub(super) code: i32,
    pub(super) out: String,
    pub(super) err: String,
}

impl Said {
    pub(super) fn complaint(&self) -> String {
        let lines = self.err.lines().chain(self.out.lines()).map(str::trim).filter(|line| !line.is_empty());
        // The first line is its version.
        let is_version = |line: &str| {
            ["mke2fs 1.", "e2fsck 1.", "debugfs 1."].iter().any(|version| line.starts_with(version))
        };
        let said: String = lines.filter(|line| !is_version(line)).collect::<Vec<_>>().join("; ");
        let most: String = said.chars().take(MOST_SAID).collect();
        format!("{most} (exit code {})", self.code)
    }
}

/// Checks that all these programs are installed.
pub(super) fn look_for(programs: &[&'static str]) -> Result<(), Ext4Error> {
    let is_here = |program: &str| FOLDERS.split(':').any(|folder| Path::new(folder).join(program).exists());
    match programs.iter().find(|program| !is_here(program)) {
        Some(program) => Err(Ext4Error::Missing(program)),
        None => Ok(()),
    }
}

/// Runs a program; a failure exit is not an error.
///
/// *Errors:* it cannot be started.
pub(super) fn run<S: AsRef<OsStr>>(program: &'static str, args: &[S]) -> Result<Said, Ext4Error> {
    run_unless(program, args, &|| false)
}

/// As [`run`], but ends the program when cancelled.
///
/// *Errors:* it cannot be started, or was ended.
pub(super) fn run_unless<S: AsRef<OsStr>>(
    program: &'static str,
    args: &[S],
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Said, Ext4Error> {
    // The output goes to files, because a full pipe would block the program.
    let (out, to_out) = said().map_err(Ext4Error::File)?;
    let (err, to_err) = said().map_err(Ext4Error::File)?;
    let mut command = command(program, args);
    let mut child = command.stdout(to_out).stderr(to_err).spawn().map_err(|_| Ext4Error::Missing(program))?;
    let mut pause = FIRST_LOOK;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(Ext4Error::File)? {
            break status;
        }
        if is_cancelled() {
            child.kill().and_then(|()| child.wait()).map_err(Ext4Error::File)?;
            return Err(Ext4Error::Interrupted);
        }
        #[allow(clippy::disallowed_methods, reason = "programs take their time")]
        thread::sleep(pause);
        pause = LAST_LOOK.min(pause * 2);
    };
    let (out, err) = (text(out).map_err(Ext4Error::File)?, text(err).map_err(Ext4Error::File)?);
    Ok(Said { code: status.code().unwrap_or(-1), out, err })
}

/// A file for a program's output: one handle to read, one to pass on.
fn said() -> io::Result<(File, File)> {
    let file = tempfile::tempfile()?;
    let other = file.try_clone()?;
    Ok((file, other))
}

fn text(mut file: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A command that does not outlive this process: a result that it finished alone would be taken for complete. Signals from the
/// terminal do not reach it.
fn command<S: AsRef<OsStr>>(program: &str, args: &[S]) -> Command {
    let mut command = Command::new(program);
    command.args(args).env("PATH", FOLDERS).env("LC_ALL", "C").stdin(Stdio::null()).process_group(0);
    let parent = getpid();
    let die_with_parent = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have ended before this.
        if getppid() == Some(parent) { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
    };
    // SAFETY: between fork and exec it makes three system calls and allocates nothing.
    unsafe { command.pre_exec(die_with_parent) };
    command
}
