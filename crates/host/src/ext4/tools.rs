//! Running the programs that know ext4.

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

/// Where they are looked for; the path of a user may leave out those of the system.
const FOLDERS: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How long after its start, and then how often, is looked whether a program has ended.
const FIRST_LOOK: Duration = Duration::from_millis(1);
const LAST_LOOK: Duration = Duration::from_millis(50);

/// Characters of what a program said that are passed on.
const MOST_SAID: usize = 400;

pub(super) struct Said {
    /// How it ended; a signal is -1.
    pub(super) code: i32,
    pub(super) out: String,
    pub(super) err: String,
}

impl Said {
    pub(super) fn complaint(&self) -> String {
        let lines = self.err.lines().chain(self.out.lines()).map(str::trim).filter(|line| !line.is_empty());
        // The first is its version.
        let is_version = |line: &str| {
            ["mke2fs 1.", "e2fsck 1.", "debugfs 1."].iter().any(|version| line.starts_with(version))
        };
        let said: String = lines.filter(|line| !is_version(line)).collect::<Vec<_>>().join("; ");
        let most: String = said.chars().take(MOST_SAID).collect();
        format!("{most} (exit code {})", self.code)
    }
}

/// Looks whether all these programs are here.
///
/// *Errors:* the first that is not.
pub(super) fn look_for(programs: &[&'static str]) -> Result<(), Ext4Error> {
    let is_here = |program: &str| FOLDERS.split(':').any(|folder| Path::new(folder).join(program).exists());
    match programs.iter().find(|program| !is_here(program)) {
        Some(program) => Err(Ext4Error::Missing(program)),
        None => Ok(()),
    }
}

/// Runs one, whatever comes of it.
///
/// *Errors:* it cannot be started.
pub(super) fn run<S: AsRef<OsStr>>(program: &'static str, args: &[S]) -> Result<Said, Ext4Error> {
    run_unless(program, args, &|| false)
}

/// The same, ended once somebody asks for it.
///
/// *Errors:* it cannot be started, or was ended.
pub(super) fn run_unless<S: AsRef<OsStr>>(
    program: &'static str,
    args: &[S],
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Said, Ext4Error> {
    // In files, which take all that it says while nobody reads.
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

/// A file for what a program says, to read from and to hand over.
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

/// A program that does not outlive this one: what it would go on to make would be taken for whole. Keys that end the one do not reach
/// the other.
fn command<S: AsRef<OsStr>>(program: &str, args: &[S]) -> Command {
    let mut command = Command::new(program);
    command.args(args).env("PATH", FOLDERS).env("LC_ALL", "C").stdin(Stdio::null()).process_group(0);
    let parent = getpid();
    let die_with_parent = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // It may have gone before that was said.
        if getppid() == Some(parent) { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
    };
    // SAFETY: between fork and exec it makes three system calls and allocates nothing.
    unsafe { command.pre_exec(die_with_parent) };
    command
}
