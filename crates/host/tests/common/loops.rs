//! Loop devices, where a test may have them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A loop device on a file, which goes away with it.
pub(crate) struct Loop {
    pub(crate) device: PathBuf,
}

impl Loop {
    /// Nothing where the system has none left, or none at all.
    pub(crate) fn on(file: &Path, options: &[&str]) -> Option<Loop> {
        let output = losetup().args(["-f", "--show"]).args(options).arg(file).output();
        match output {
            Ok(output) if output.status.success() => {
                let device = String::from_utf8(output.stdout).expect("a device has a name");
                Some(Loop { device: device.trim().into() })
            }
            other => {
                headstack_prerequisites::skip(format_args!("no loop device: {other:?}"));
                None
            }
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = losetup().arg("-d").arg(&self.device).status();
    }
}

fn losetup() -> Command {
    let mut command = Command::new("losetup");
    command.env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin");
    command
}
