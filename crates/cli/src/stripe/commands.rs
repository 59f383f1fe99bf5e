//! The commands that build a striped array with a unit on Linux.

use crate::failure::Failure;
use headstack_model::DriveSpec;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::Write;

/// The smallest chunk of md, LVM and dm-stripe in KiB: a page.
const LEAST_KIB: u64 = 4;

/// The size of LVM's extents in KiB unless `vgcreate --physicalextentsize` sets another. No stripe may be larger.
const EXTENT_KIB: u64 = 4096;

/// The RAID level of an array that a command builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum RaidLevel {
    /// Striping without parity.
    #[value(name = "0")]
    Zero,
    /// Striping with rotated parity.
    #[value(name = "5")]
    Five,
}

impl RaidLevel {
    /// Its number in mdadm's options.
    pub(super) fn number(self) -> u32 {
        match self {
            RaidLevel::Zero => 0,
            RaidLevel::Five => 5,
        }
    }
}

/// One command for each of Linux's ways to stripe. The disks are called DISK1, DISK2 and so on, LVM's volume group VG.
#[derive(JsonSchema, Serialize)]
pub(super) struct LinuxCommands {
    /// The unit that the commands have, in KiB: the advised one, or the smallest that Linux takes.
    chunk_kib: u64,
    mdadm: String,
    /// `null` where the unit is larger than LVM's extents.
    lvm: Option<String>,
    /// `null` for RAID-5, which the target `striped` is not.
    dm_stripe: Option<String>,
}

impl LinuxCommands {
    /// The commands for an array of `disks` of these drives with a unit of `unit_kib`.
    pub(super) fn new(unit_kib: f64, disks: u32, level: RaidLevel, spec: &DriveSpec) -> LinuxCommands {
        let chunk_kib = (unit_kib as u64).max(LEAST_KIB);
        let names: Vec<String> = (1..=disks).map(|disk| format!("DISK{disk}")).collect();
        // LVM counts the stripes of data: parity is one more disk.
        let (kind, stripes) = match level {
            RaidLevel::Zero => ("striped", disks),
            RaidLevel::Five => ("raid5", disks - 1),
        };
        let lvm = format!(
            "lvcreate --type {kind} --stripes {stripes} --stripesize {chunk_kib}k --extents 100%FREE --name striped VG"
        );
        LinuxCommands {
            chunk_kib,
            mdadm: format!(
                "mdadm --create /dev/md0 --level={} --raid-devices={disks} --chunk={chunk_kib}K {}",
                level.number(),
                names.join(" ")
            ),
            lvm: (chunk_kib <= EXTENT_KIB).then_some(lvm),
            dm_stripe: (level == RaidLevel::Zero).then(|| dm_stripe(chunk_kib, &names, spec)),
        }
    }

    /// Prints the commands. `advisor` names who advised the unit in them.
    pub(super) fn print(&self, advisor: &str, out: &mut dyn Write) -> Result<(), Failure> {
        writeln!(out, "\nOn Linux, with the unit of {advisor} ({} KiB), one of:", self.chunk_kib)?;
        let commands = [Some(&self.mdadm), self.lvm.as_ref(), self.dm_stripe.as_ref()];
        for command in commands.into_iter().flatten() {
            writeln!(out, "  {command}")?;
        }
        Ok(())
    }
}

/// The command for the device mapper's target `striped`.
fn dm_stripe(chunk_kib: u64, names: &[String], spec: &DriveSpec) -> String {
    let disks = names.len() as u64;
    // Device mapper counts in units of 512 B whatever the disk's sector size, and accepts only whole chunks.
    let chunk = 2 * chunk_kib;
    let of_disk = spec.capacity_sectors * u64::from(spec.sector_bytes) / 512 / chunk * chunk;
    let parts: Vec<String> = names.iter().map(|name| format!("{name} 0")).collect();
    format!(
        "dmsetup create striped --table '0 {} striped {disks} {chunk} {}'",
        of_disk * disks,
        parts.join(" ")
    )
}
