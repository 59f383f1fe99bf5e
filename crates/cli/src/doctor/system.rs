//! Reads the state of the system. The checks judge it elsewhere, so that tests can apply them to the states of other machines.

use crate::files;
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::process::{Resource, getrlimit};
use std::fs;
use std::path::{Path, PathBuf};

/// Programs that Headstack starts, or that its guide uses.
pub(super) const PROGRAMS: [&str; 4] = ["fusermount3", "fio", "qemu-nbd", "nbd-client"];
/// Folders that are searched for programs after `PATH`, which lacks these for most users.
const PROGRAM_FOLDERS: [&str; 2] = ["/usr/sbin", "/sbin"];
/// Kernel modules that turn exports into block devices. Each has a name, and a file that exists once it is loaded or built in.
const MODULES: [(&str, &str); 2] = [("nbd", "/dev/nbd0"), ("ublk_drv", "/dev/ublk-control")];
/// Prefixes of the names of block devices that have no medium.
const VIRTUAL_DISKS: [&str; 7] = ["loop", "ram", "zram", "nbd", "ublk", "dm-", "md"];
const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0";

/// The access of the effective user to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileAccess {
    Absent,
    Refused,
    ReadOnly,
    Full,
}

/// A whole disk of the system.
#[derive(Clone, Debug)]
pub(super) struct DiskAccess {
    pub(super) name: String,
    pub(super) access: FileAccess,
    pub(super) is_rotational: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModuleState {
    Loaded,
    /// `modprobe` would load it.
    Installed,
    Absent,
}

/// A machine as the checks see it.
#[derive(Clone, Debug)]
pub(super) struct SystemState {
    pub(super) is_root: bool,
    pub(super) fuse: FileAccess,
    /// Programs that are installed, and their paths.
    pub(super) programs: Vec<(&'static str, PathBuf)>,
    /// The system's refusal of io_uring, if it refuses.
    pub(super) io_uring: Result<(), String>,
    /// The sysctl `kernel.io_uring_disabled`, on kernels that have it.
    pub(super) io_uring_disabled: Option<String>,
    pub(super) disks: Vec<DiskAccess>,
    pub(super) modules: Vec<(&'static str, ModuleState)>,
    pub(super) clock_source: Option<String>,
    pub(super) clock_sources: Vec<String>,
    pub(super) is_real_time: bool,
    /// Largest real-time priority of the user; none where there is no limit.
    pub(super) priority_limit: Option<u64>,
    /// Access to the file with which a program keeps processors out of deep sleep states.
    pub(super) cpu_latency: FileAccess,
}

impl SystemState {
    pub(super) fn read() -> SystemState {
        let line = |path: &str| files::read_text(Path::new(path)).ok().map(|text| text.trim().to_string());
        let clock = |file: &str| line(&format!("{CLOCK_SOURCE}/{file}"));
        let sources = clock("available_clocksource").unwrap_or_default();
        SystemState {
            is_root: rustix::process::geteuid().is_root(),
            fuse: access_of(Path::new("/dev/fuse")),
            programs: PROGRAMS.into_iter().filter_map(|name| Some((name, program(name)?))).collect(),
            io_uring: headstack_host::facilities::try_io_uring().map_err(|error| error.to_string()),
            io_uring_disabled: line("/proc/sys/kernel/io_uring_disabled"),
            disks: disks(),
            modules: modules(line("/proc/sys/kernel/osrelease").as_deref()),
            clock_source: clock("current_clocksource"),
            clock_sources: sources.split_whitespace().map(str::to_string).collect(),
            is_real_time: headstack_host::facilities::try_real_time(),
            priority_limit: getrlimit(Resource::Rtprio).current,
            cpu_latency: access_of(Path::new("/dev/cpu_dma_latency")),
        }
    }
}

fn access_of(path: &Path) -> FileAccess {
    let may = |what| accessat(CWD, path, what, AtFlags::EACCESS).is_ok();
    match () {
        () if !path.exists() => FileAccess::Absent,
        () if may(Access::READ_OK | Access::WRITE_OK) => FileAccess::Full,
        () if may(Access::READ_OK) => FileAccess::ReadOnly,
        () => FileAccess::Refused,
    }
}

/// The path of an installed program.
fn program(name: &str) -> Option<PathBuf> {
    #[allow(clippy::disallowed_methods, reason = "the command meets the operating system")]
    let path = std::env::var("PATH").unwrap_or_default();
    let folders = path.split(':').filter(|folder| !folder.is_empty()).chain(PROGRAM_FOLDERS);
    folders.map(|folder| Path::new(folder).join(name)).find(|path| path.is_file())
}

/// The disks of the system, sorted by name, without those that the system builds from other devices or from memory.
fn disks() -> Vec<DiskAccess> {
    let blocks = Path::new("/sys/block");
    let mut found: Vec<DiskAccess> = names_in(blocks)
        .into_iter()
        .filter(|name| !VIRTUAL_DISKS.iter().any(|begin| name.starts_with(begin)))
        .map(|name| {
            let rotational = files::read_text(&blocks.join(&name).join("queue/rotational"));
            // Sysfs writes a / in a device's name as !.
            let access = access_of(&Path::new("/dev").join(name.replace('!', "/")));
            DiskAccess { access, is_rotational: rotational.is_ok_and(|text| text.trim() == "1"), name }
        })
        .collect();
    found.sort_by(|left, right| left.name.cmp(&right.name));
    found
}

fn modules(release: Option<&str>) -> Vec<(&'static str, ModuleState)> {
    let folder = Path::new("/lib/modules").join(release.unwrap_or_default());
    let lists = ["modules.dep", "modules.builtin"].map(|list| files::read_text(&folder.join(list)));
    let state = |name: &str, sign: &str| {
        let file = format!("/{name}.ko");
        let is_listed = lists.iter().flatten().any(|list| list.contains(&file));
        match Path::new(sign).exists() || Path::new("/sys/module").join(name).exists() {
            true => ModuleState::Loaded,
            false if is_listed => ModuleState::Installed,
            false => ModuleState::Absent,
        }
    };
    MODULES.into_iter().map(|(name, sign)| (name, state(name, sign))).collect()
}

fn names_in(folder: &Path) -> Vec<String> {
    #[allow(clippy::disallowed_methods, reason = "the command meets the operating system")]
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
}
