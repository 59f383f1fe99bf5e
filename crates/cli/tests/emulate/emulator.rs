//! An emulator that runs for a test: started, waited for, cut off from power, and ended however the test ends.

use crate::nbd::Client;
use crate::tools::{attempt, folder, run, text, wait_for};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use tempfile::TempDir;

fn signal(process: u32, name: &str) {
    run("sh", &["-c", &format!("kill -{name} {process}")]);
}

/// What an emulator is to do.
#[derive(Clone, Copy)]
pub(crate) struct Setup<'a> {
    /// A drive or a rig, or several with blanks between them.
    pub(crate) rig: &'a str,
    /// The file with the data; without one they are kept in memory.
    pub(crate) data: Option<&'a Path>,
    /// How many times faster than real.
    pub(crate) speed: &'a str,
    /// Whether disks are mounted as files, too.
    pub(crate) mounted: bool,
    /// What goes wrong.
    pub(crate) fault: Option<&'a str>,
    /// Whether it shows what its disks do.
    pub(crate) stats: bool,
}

impl Default for Setup<'_> {
    /// A quick disk where only its contents matter.
    fn default() -> Self {
        Setup { rig: "st2000dm006", data: None, speed: "1000", mounted: false, fault: None, stats: false }
    }
}

/// An emulator at work. It ends, and its mount goes, with this value.
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

    /// Whether it answers by every way in. It must not have ended.
    fn answers(&mut self) -> bool {
        if let Some(status) = self.has_ended() {
            panic!("the emulator ended ({status}): {}", self.said());
        }
        Client::connect(&self.socket()).is_ok() && (!self.mounted || !self.files().is_empty())
    }

    /// All it printed.
    pub(crate) fn said(&self) -> String {
        ["out", "err"]
            .map(|name| fs::read_to_string(self.folder.path().join(name)).unwrap_or_default())
            .concat()
    }

    /// Its process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Where it listens.
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// Its first disk, as NBD's clients write it.
    pub(crate) fn uri(&self) -> String {
        self.uri_of("")
    }

    /// A disk by its name, as NBD's clients write it.
    pub(crate) fn uri_of(&self, disk: &str) -> String {
        format!("nbd+unix:///{disk}?socket={}", text(&self.socket()))
    }

    /// A connection to its first disk.
    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.socket()).unwrap_or_else(|error| panic!("{error}: {}", self.said()))
    }

    /// The files that are its disks.
    fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder.path().join("mount")).into_iter().flatten();
        entries.flatten().map(|entry| entry.path()).collect()
    }

    /// The file that is its only disk.
    pub(crate) fn file(&self) -> PathBuf {
        self.files().pop().expect("it was there when the emulator answered")
    }

    /// What cuts the power when it is called.
    pub(crate) fn cutter(&self) -> impl FnOnce() + Send + 'static {
        let process = self.process();
        move || signal(process, "USR1")
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, name: &str) {
        signal(self.process(), name);
    }

    /// How it ended, if it has.
    pub(crate) fn has_ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("it is a child of this process")
    }

    /// Waits until the emulator is gone, its power having been cut.
    pub(crate) fn gone(mut self) {
        self.ended();
    }

    /// Asks the emulator to end in an orderly way, waits until it has, and takes all it printed.
    pub(crate) fn stop(mut self) -> String {
        signal(self.process(), "TERM");
        let status = self.ended();
        let said = self.said();
        assert!(status.success(), "{status}: {said}");
        said
    }

    /// Waits until it has ended.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        wait_for("the emulator ends", || self.has_ended())
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        // It may have ended already, and its mount with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if self.mounted {
            let _ = attempt("umount", &["-l", text(&self.folder.path().join("mount"))]);
        }
    }
}
