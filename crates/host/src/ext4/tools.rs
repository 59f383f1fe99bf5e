//! Running the programs that know ext4.

use super::Ext4Error;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

/// Where they are looked for; the path of a user may leave out those of the system.
const FOLDERS: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Characters of what a program said that are passed on.
const MOST_SAID: usize = 400;

/// What a program did.
pub(super) struct Said {
    /// How it ended; a signal is -1.
    pub(super) code: i32,
    pub(super) out: String,
    pub(super) err: String,
}

impl Said {
    /// What it complained of, in one line.
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
    let mut command = Command::new(program);
    command.args(args).env("PATH", FOLDERS).env("LC_ALL", "C").stdin(Stdio::null());
    let done = command.output().map_err(|_| Ext4Error::Missing(program))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(Said { code: done.status.code().unwrap_or(-1), out: text(&done.stdout), err: text(&done.stderr) })
}
