//! The checks of `headstack doctor`. From the state of a system, each says whether a facility works, and how to get it if it does not.

use super::system::{DiskAccess, FileAccess, ModuleState, SystemState};
use schemars::JsonSchema;
use serde::Serialize;

/// Sources of time that are read without a system call. *Source:* the kernel's "Timekeeping", and its vDSO of each architecture.
const FAST_CLOCKS: [&str; 4] = ["tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page"];
/// Real-time priority that the emulator requests; also the `LimitRTPRIO` of the systemd units.
const PRIORITY: u64 = 50;

#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum CheckState {
    Works,
    Limited,
    Missing,
}

impl CheckState {
    pub(super) fn word(self) -> &'static str {
        match self {
            CheckState::Works => "works",
            CheckState::Limited => "limited",
            CheckState::Missing => "missing",
        }
    }
}

/// A facility of the system and what is known of it.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(super) struct SystemCheck {
    pub(super) name: &'static str,
    pub(super) state: CheckState,
    pub(super) found: String,
    pub(super) used_by: &'static str,
    /// What does not work, or works worse, where the state is not `works`.
    pub(super) consequence: &'static str,
    /// How to get it; `null` where it works.
    pub(super) remedy: Option<String>,
}

impl SystemCheck {
    /// The same check with another state, and a remedy.
    fn but(self, state: CheckState, remedy: impl Into<String>) -> SystemCheck {
        SystemCheck { state, remedy: Some(remedy.into()), ..self }
    }
}

pub(super) fn all(system: &SystemState) -> Vec<SystemCheck> {
    let mut checks = vec![fuse(system), io_uring(system), disks(system)];
    checks.extend(system.modules.iter().map(|(name, state)| module(name, *state)));
    checks.extend([clock(system), real_time(system), processor_sleep(system), fio(system), qemu_nbd(system)]);
    checks
}

fn path_of<'a>(system: &'a SystemState, name: &str) -> Option<std::path::Display<'a>> {
    system.programs.iter().find(|(known, _)| *known == name).map(|(_, path)| path.display())
}

fn fuse(system: &SystemState) -> SystemCheck {
    let helper = path_of(system, "fusermount3");
    let device = match system.fuse {
        FileAccess::Absent => "no /dev/fuse",
        FileAccess::Full => "/dev/fuse opens",
        FileAccess::Refused | FileAccess::ReadOnly => "/dev/fuse is closed to this user",
    };
    let helper_text = helper.as_ref().map_or("no fusermount3".to_string(), |path| path.to_string());
    let check = SystemCheck {
        name: "FUSE",
        state: CheckState::Works,
        found: format!("{device}, {helper_text}"),
        used_by: "emulate --mount",
        consequence: "disks cannot be mounted as files; NBD works",
        remedy: None,
    };
    match system.fuse {
        FileAccess::Absent => {
            check.but(CheckState::Missing, "modprobe fuse; a container needs --device /dev/fuse")
        }
        FileAccess::Refused | FileAccess::ReadOnly => {
            check.but(CheckState::Missing, "chmod 666 /dev/fuse, as root")
        }
        FileAccess::Full if helper.is_none() && !system.is_root => {
            check.but(CheckState::Missing, "apt install fuse3, or run as root")
        }
        FileAccess::Full => check,
    }
}

fn io_uring(system: &SystemState) -> SystemCheck {
    let check = SystemCheck {
        name: "io_uring",
        state: CheckState::Works,
        found: "a ring was set up".to_string(),
        used_by: "serve",
        consequence: "a node uses threads for each disk, which cost processor time",
        remedy: None,
    };
    let Err(refusal) = &system.io_uring else { return check };
    let check = SystemCheck { found: format!("refused: {refusal}"), ..check };
    match system.io_uring_disabled.as_deref() {
        Some(value @ ("1" | "2")) => check.but(
            CheckState::Limited,
            format!("sysctl kernel.io_uring_disabled=0 (it is {value})"),
        ),
        _ => check.but(
            CheckState::Limited,
            "Linux 5.15 or later; a container needs a seccomp profile with io_uring_setup, io_uring_enter and io_uring_register",
        ),
    }
}

fn disks(system: &SystemState) -> SystemCheck {
    let names = |access: FileAccess| -> Vec<String> {
        let of_access = system.disks.iter().filter(|disk| disk.access == access);
        of_access.map(disk_name).collect()
    };
    let groups = [
        ("read and write", names(FileAccess::Full)),
        ("read", names(FileAccess::ReadOnly)),
        ("no access", names(FileAccess::Refused)),
        ("no device file", names(FileAccess::Absent)),
    ];
    let filled = groups.iter().filter(|(_, names)| !names.is_empty());
    let found: Vec<String> = filled.map(|(what, names)| format!("{what}: {}", names.join(", "))).collect();
    let check = SystemCheck {
        name: "block devices",
        state: CheckState::Works,
        found: if found.is_empty() { "none".to_string() } else { found.join("; ") },
        used_by: "serve, probe, rearrange",
        consequence: "not every disk can be served or probed; files and emulated disks can",
        remedy: None,
    };
    let is_full = |disk: &DiskAccess| disk.access == FileAccess::Full;
    match &system.disks[..] {
        [] => check.but(CheckState::Missing, "a machine with disks; a container needs --device /dev/sdb"),
        disks if disks.iter().all(is_full) => check,
        disks => {
            let closed = disks.iter().find(|disk| !is_full(disk)).map_or("", |disk| disk.name.as_str());
            let state = if disks.iter().any(is_full) { CheckState::Limited } else { CheckState::Missing };
            check.but(
                state,
                format!("for one disk chgrp GROUP /dev/{closed} and chmod g+rw /dev/{closed}; for all: usermod --append --groups disk USER, and log in again"),
            )
        }
    }
}

fn disk_name(disk: &DiskAccess) -> String {
    if disk.is_rotational { format!("{} (rotational)", disk.name) } else { disk.name.clone() }
}

fn module(name: &'static str, state: ModuleState) -> SystemCheck {
    let (title, used_by, consequence) = match name {
        "nbd" => (
            "kernel module nbd",
            "nbd-client on an export",
            "an export cannot be a block device /dev/nbd0; programs that read NBD themselves can use it",
        ),
        _ => (
            "kernel module ublk_drv",
            "block devices of programs",
            "programs cannot make block devices by ublk; Headstack itself does not use it",
        ),
    };
    let found = match state {
        ModuleState::Loaded => "loaded",
        ModuleState::Installed => "installed, not loaded",
        ModuleState::Absent => "not in this kernel",
    };
    let check = SystemCheck {
        name: title,
        state: CheckState::Works,
        found: found.to_string(),
        used_by,
        consequence,
        remedy: None,
    };
    match state {
        ModuleState::Loaded => check,
        ModuleState::Installed => check.but(CheckState::Limited, format!("modprobe {name}, as root")),
        ModuleState::Absent => check
            .but(CheckState::Missing, format!("a kernel with the module {name}; a container has its host's")),
    }
}

fn clock(system: &SystemState) -> SystemCheck {
    let check = SystemCheck {
        name: "clock source",
        state: CheckState::Works,
        found: system.clock_source.clone().unwrap_or_else(|| "unknown".to_string()),
        used_by: "emulate, probe",
        consequence: "reading the time takes a system call of up to some microseconds, which shows in response times",
        remedy: None,
    };
    let is_fast = |name: &str| FAST_CLOCKS.contains(&name);
    match &system.clock_source {
        Some(name) if is_fast(name) => check,
        _ => match system.clock_sources.iter().find(|name| is_fast(name)) {
            Some(fast) => check.but(
                CheckState::Limited,
                format!(
                    "echo {fast} > /sys/devices/system/clocksource/clocksource0/current_clocksource, as root"
                ),
            ),
            None => check.but(
                CheckState::Limited,
                "the kernel distrusts the processor's counter: see dmesg | grep -i tsc",
            ),
        },
    }
}

fn real_time(system: &SystemState) -> SystemCheck {
    let limit = system.priority_limit.map_or("unlimited".to_string(), |limit| limit.to_string());
    let check = SystemCheck {
        name: "real-time priority",
        state: CheckState::Works,
        found: format!("{}, RLIMIT_RTPRIO {limit}", if system.is_real_time { "granted" } else { "refused" }),
        used_by: "emulate, probe",
        consequence: "threads wake late on a busy machine, and answers of emulated disks come late",
        remedy: None,
    };
    if system.is_real_time {
        return check;
    }
    match system.priority_limit {
        Some(limit) if limit < PRIORITY => check.but(
            CheckState::Limited,
            format!("a line `USER - rtprio {PRIORITY}` in /etc/security/limits.d, LimitRTPRIO={PRIORITY} in a unit, or run as root"),
        ),
        _ => check.but(CheckState::Limited, "a container needs --cap-add SYS_NICE and a share of cpu.rt_runtime_us"),
    }
}

fn processor_sleep(system: &SystemState) -> SystemCheck {
    let found = match system.cpu_latency {
        FileAccess::Absent => "no /dev/cpu_dma_latency",
        FileAccess::Full => "/dev/cpu_dma_latency opens",
        FileAccess::Refused | FileAccess::ReadOnly => "/dev/cpu_dma_latency is closed to this user",
    };
    let check = SystemCheck {
        name: "processors awake",
        state: CheckState::Works,
        found: found.to_string(),
        used_by: "emulate, probe",
        consequence: "idle processors sleep, and waking one adds some 50 µs to a request",
        remedy: None,
    };
    match system.cpu_latency {
        FileAccess::Full => check,
        FileAccess::Absent => {
            check.but(CheckState::Limited, "a container needs --device /dev/cpu_dma_latency")
        }
        FileAccess::Refused | FileAccess::ReadOnly => {
            check.but(CheckState::Limited, "run as root, or open the file to a group by a udev rule")
        }
    }
}

fn fio(system: &SystemState) -> SystemCheck {
    let check = program(system, "fio", "fio", "loads on emulated disks");
    SystemCheck {
        consequence: "no fio runs on emulated disks; `headstack sim` reads fio jobs itself",
        ..check
    }
}

fn qemu_nbd(system: &SystemState) -> SystemCheck {
    let check = program(system, "qemu-nbd", "qemu-utils", "images of virtual machines");
    SystemCheck {
        consequence: "an image of a virtual machine cannot be served, or an export be attached by qemu-nbd",
        ..check
    }
}

fn program(system: &SystemState, name: &'static str, package: &str, used_by: &'static str) -> SystemCheck {
    let path = path_of(system, name);
    let check = SystemCheck {
        name,
        state: CheckState::Works,
        found: path.as_ref().map_or("not installed".to_string(), |path| path.to_string()),
        used_by,
        consequence: "",
        remedy: None,
    };
    match path {
        Some(_) => check,
        None => check.but(CheckState::Missing, format!("apt install {package}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::system::PROGRAMS;
    use super::*;

    /// A machine on which everything works.
    fn whole() -> SystemState {
        let disk = DiskAccess { name: "sdb".to_string(), access: FileAccess::Full, is_rotational: true };
        SystemState {
            is_root: false,
            fuse: FileAccess::Full,
            programs: PROGRAMS.map(|name| (name, format!("/usr/bin/{name}").into())).to_vec(),
            io_uring: Ok(()),
            io_uring_disabled: Some("0".to_string()),
            disks: vec![disk],
            modules: vec![("nbd", ModuleState::Loaded), ("ublk_drv", ModuleState::Loaded)],
            clock_source: Some("tsc".to_string()),
            clock_sources: ["tsc", "hpet", "acpi_pm"].map(str::to_string).to_vec(),
            is_real_time: true,
            priority_limit: Some(60),
            cpu_latency: FileAccess::Full,
        }
    }

    /// The check of this name on a machine that differs from [`whole`] by `change`.
    fn check(name: &str, change: impl Fn(&mut SystemState)) -> SystemCheck {
        let mut system = whole();
        change(&mut system);
        all(&system).into_iter().find(|check| check.name == name).unwrap_or_else(|| panic!("no check {name}"))
    }

    fn assert_remedy(check: &SystemCheck, state: CheckState, remedy: &str) {
        let found = check.remedy.as_deref().unwrap_or_default();
        assert!(check.state == state && found.contains(remedy), "{check:?}");
    }

    #[test]
    fn whole_machine_has_no_remedy() {
        for check in all(&whole()) {
            assert_eq!((check.state, &check.remedy), (CheckState::Works, &None), "{}", check.name);
        }
    }

    #[test]
    fn every_fault_has_a_remedy_and_a_consequence() {
        let nothing = SystemState {
            fuse: FileAccess::Absent,
            programs: Vec::new(),
            io_uring: Err("Function not implemented (os error 38)".to_string()),
            io_uring_disabled: None,
            disks: Vec::new(),
            modules: vec![("nbd", ModuleState::Absent), ("ublk_drv", ModuleState::Absent)],
            clock_source: None,
            clock_sources: Vec::new(),
            is_real_time: false,
            priority_limit: Some(0),
            cpu_latency: FileAccess::Absent,
            ..whole()
        };
        for check in all(&nothing) {
            assert!(check.state != CheckState::Works && check.remedy.is_some(), "{check:?}");
            assert!(!check.consequence.is_empty(), "{check:?}");
        }
    }

    #[test]
    fn fuse_without_helper_serves_root_only() {
        let without_helper = |system: &mut SystemState| system.programs.clear();
        assert_remedy(&check("FUSE", without_helper), CheckState::Missing, "apt install fuse3");
        let as_root = |system: &mut SystemState| {
            system.programs.clear();
            system.is_root = true;
        };
        assert_eq!(check("FUSE", as_root).state, CheckState::Works);
        let closed = |system: &mut SystemState| system.fuse = FileAccess::Refused;
        assert_remedy(&check("FUSE", closed), CheckState::Missing, "chmod 666 /dev/fuse");
    }

    #[test]
    fn refused_io_uring_names_the_sysctl_only_where_it_forbids() {
        let refuse = |system: &mut SystemState| system.io_uring = Err("Operation not permitted".to_string());
        assert_remedy(&check("io_uring", refuse), CheckState::Limited, "seccomp");
        let forbid = |system: &mut SystemState| {
            refuse(system);
            system.io_uring_disabled = Some("2".to_string());
        };
        assert_remedy(&check("io_uring", forbid), CheckState::Limited, "kernel.io_uring_disabled=0");
    }

    #[test]
    fn closed_disk_is_named_among_open_ones() {
        let add = |system: &mut SystemState| {
            system.disks.push(DiskAccess {
                name: "sdc".to_string(),
                access: FileAccess::Refused,
                is_rotational: false,
            });
        };
        let some = check("block devices", add);
        assert_remedy(&some, CheckState::Limited, "/dev/sdc");
        assert_eq!(some.found, "read and write: sdb (rotational); no access: sdc");
        let close = |system: &mut SystemState| system.disks[0].access = FileAccess::ReadOnly;
        assert_remedy(&check("block devices", close), CheckState::Missing, "--groups disk");
    }

    #[test]
    fn module_that_is_installed_is_one_modprobe_away() {
        let unload = |system: &mut SystemState| system.modules[0].1 = ModuleState::Installed;
        assert_remedy(&check("kernel module nbd", unload), CheckState::Limited, "modprobe nbd");
    }

    #[test]
    fn slow_clock_source_is_replaced_by_an_available_fast_one() {
        let slow = |system: &mut SystemState| system.clock_source = Some("hpet".to_string());
        assert_remedy(&check("clock source", slow), CheckState::Limited, "echo tsc >");
        let only_slow = |system: &mut SystemState| {
            slow(system);
            system.clock_sources = vec!["hpet".to_string()];
        };
        assert_remedy(&check("clock source", only_slow), CheckState::Limited, "dmesg");
    }

    #[test]
    fn low_priority_limit_and_a_container_have_different_remedies() {
        let limit = |system: &mut SystemState| {
            system.is_real_time = false;
            system.priority_limit = Some(0);
        };
        assert_remedy(&check("real-time priority", limit), CheckState::Limited, "rtprio 50");
        let contain = |system: &mut SystemState| {
            system.is_real_time = false;
            system.priority_limit = None;
        };
        assert_remedy(&check("real-time priority", contain), CheckState::Limited, "SYS_NICE");
    }
}
