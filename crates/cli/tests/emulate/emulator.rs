//! The process of an emulator: a test starts it, waits until it answers and can cut its power. It ends however the test ends.

use crate::nbd::Client;
use crate::tools::{attempt, folder, run, text, wait_for};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use tempfile::TempDir;

fn signal(process: u32, name: &str) {
    run("sh", &["-c", &format!("kill -{name} {process}")]);
}

/// The options with which an emulator starts.
#[derive(Clone, Copy)]
pub(crate) struct Setup<'a> {
    /// A drive or a rig, or several, separated by spaces.
    pub(crate) rig: &'a str,
    /// The file with the data; without one the data are in memory.
    pub(crate) data: Option<&'a Path>,
    /// The factor by which the disk is faster than a real one.
    pub(crate) speed: &'a str,
    /// Whether the disks are also mounted as files.
    pub(crate) mounted: bool,
    /// A fault, as `--fault` takes it.
    pub(crate) fault: Option<&'a str>,
    /// Whether it prints the activity of its disks each 50 ms.
    pub(crate) stats: bool,
}

impl Default for Setup<'_> {
    /// A disk at 1000 times its real speed, for tests in which only the contents matter.
    fn default() -> Self {
        Setup { rig: "st2000dm006", data: None, speed: "1000", mounted: false, fault: None, stats: false }
    }
}

/// A running emulator. Dropping this value kills it and removes its mount.
pub(crate) struct Emulator {
    child: Child,
    folder: TempDir,
    mounted: bool,
}

impl Emulator {
    /// Starts an emulator and waits until it answers.
    pub(crate) fn start(setup: &Setup<'_>) -> Emulator {
        let folder = folder();
        let mount = folder.path().join("mount");
        fs::create_dir(&mount).expect("the folder is new");
        let mut command = Command::new(env!("CARGO_BIN_EXE_headstack"));
        command.arg("emulate").args(setup.rig.split(' ')).args(["--speed", setup.speed, "--data"]);
        command.arg(setup.data.unwrap_or(Path::new("memory")));
        command.arg("--nbd").arg(format!("unix:{}", text(&folder.path().join("socket"))));
        command.arg("--control").arg(folder.path().join("control"));
        if setup.mounted {
            command.arg("--mount").arg(&mount);
        }
        if let Some(fault) = setup.fault {
            command.args(["--fault", fault]);
        }
        if setup.stats {
            command.arg("--stats=50ms");
        }
        let log = |name| fs::File::create(folder.path().join(name)).expect("the folder is writable");
        command.stdin(Stdio::null()).stdout(log("out")).stderr(log("err"));
        let child = command.spawn().expect("the command starts");
        let mut emulator = Emulator { child, folder, mounted: setup.mounted };
        wait_for(&format!("the emulator ({}) answers", setup.rig), || emulator.answers().then_some(()));
        emulator
    }

    /// What `headstack fault` prints for a command to this emulator, or its error.
    pub(crate) fn fault(&self, command: &str) -> Result<String, String> {
        let mut fault = Command::new(env!("CARGO_BIN_EXE_headstack"));
        fault.arg("fault").arg(self.folder.path().join("control")).args(command.split(' '));
        let output = fault.output().expect("the command runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it is text").trim_end().to_string();
        if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
    }

    /// Whether its socket and, if it has one, its mount are usable. Panics if the emulator has ended.
    fn answers(&mut self) -> bool {
        if let Some(status) = self.has_ended() {
            panic!("the emulator ended ({status}): {}", self.said());
        }
        Client::connect(&self.socket()).is_ok() && (!self.mounted || !self.files().is_empty())
    }

    /// Everything it has printed.
    pub(crate) fn said(&self) -> String {
        ["out", "err"]
            .map(|name| fs::read_to_string(self.folder.path().join(name)).unwrap_or_default())
            .concat()
    }

    /// The id of its process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// The path of the socket on which it listens.
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// The NBD URI of its first disk.
    pub(crate) fn uri(&self) -> String {
        self.uri_of("")
    }

    /// The NBD URI of the disk with this name.
    pub(crate) fn uri_of(&self, disk: &str) -> String {
        format!("nbd+unix:///{disk}?socket={}", text(&self.socket()))
    }

    /// A connection to its first disk.
    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.socket()).unwrap_or_else(|error| panic!("{error}: {}", self.said()))
    }

    /// The files in its mount, one for each disk.
    fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder.path().join("mount")).into_iter().flatten();
        entries.flatten().map(|entry| entry.path()).collect()
    }

    /// The file of its only disk.
    pub(crate) fn file(&self) -> PathBuf {
        self.files().pop().expect("it was there when the emulator answered")
    }

    /// A function that cuts the emulator's power.
    pub(crate) fn cutter(&self) -> impl FnOnce() + Send + 'static {
        let process = self.process();
        move || signal(process, "USR1")
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, name: &str) {
        signal(self.process(), name);
    }

    /// Its exit status, if it has ended.
    pub(crate) fn has_ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("it is a child of this process")
    }

    /// Waits until the emulator has ended, after its power was cut.
    pub(crate) fn gone(mut self) {
        self.ended();
    }

    /// Sends SIGTERM, waits until the emulator has ended, which must be with success, and returns everything it printed.
    pub(crate) fn stop(mut self) -> String {
        signal(self.process(), "TERM");
        let status = self.ended();
        let said = self.said();
        assert!(status.success(), "{status}: {said}");
        said
    }

    /// Waits until it has ended, and returns its exit status.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        wait_for("the emulator ends", || self.has_ended())
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        // The emulator may have ended already and removed its mount.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if self.mounted {
            let _ = attempt("umount", &["-l", text(&self.folder.path().join("mount"))]);
        }
    }
}
