//! The commands that build a striped array with a unit on Linux.

use crate::failure::Failure;
use headstack_model::DriveSpec;
use serde::Serialize;
use std::io::Write;

/// The smallest chunk of md, LVM and dm-stripe in KiB: a page.
const LEAST_KIB: u64 = 4;

/// The size of LVM's extents in KiB unless `vgcreate --physicalextentsize` sets another. No stripe may be larger.
const EXTENT_KIB: u64 = 4096;

/// One command for each of Linux's ways to stripe. The disks are called DISK1, DISK2 and so on, LVM's volume group VG.
#[derive(Serialize)]
pub(super) struct LinuxCommands {
    /// The unit that the commands have, in KiB: the advised one, or the smallest that Linux takes.
    chunk_kib: u64,
    mdadm: String,
    /// None where the unit is larger than LVM's extents.
    lvm: Option<String>,
    dm_stripe: String,
}

impl LinuxCommands {
    /// The commands for an array of `disks` of these drives with a unit of `unit_kib`.
    pub(super) fn new(unit_kib: f64, disks: u32, spec: &DriveSpec) -> LinuxCommands {
        let chunk_kib = (unit_kib as u64).max(LEAST_KIB);
        let names: Vec<String> = (1..=disks).map(|disk| format!("DISK{disk}")).collect();
        // Device mapper counts in 512 B whatever the disk's sector, and takes whole chunks only.
        let chunk = 2 * chunk_kib;
        let of_disk = spec.capacity_sectors * u64::from(spec.sector_bytes) / 512 / chunk * chunk;
        let parts: Vec<String> = names.iter().map(|name| format!("{name} 0")).collect();
        let lvm = format!(
            "lvcreate --type striped --stripes {disks} --stripesize {chunk_kib}k --extents 100%FREE --name striped VG"
        );
        LinuxCommands {
            chunk_kib,
            mdadm: format!(
                "mdadm --create /dev/md0 --level=0 --raid-devices={disks} --chunk={chunk_kib}K {}",
                names.join(" ")
            ),
            lvm: (chunk_kib <= EXTENT_KIB).then_some(lvm),
            dm_stripe: format!(
                "dmsetup create striped --table '0 {} striped {disks} {chunk} {}'",
                of_disk * u64::from(disks),
                parts.join(" ")
            ),
        }
    }

    /// Prints the commands. `advisor`: whose unit they have.
    pub(super) fn print(&self, advisor: &str, out: &mut dyn Write) -> Result<(), Failure> {
        writeln!(out, "\nOn Linux, with the unit of {advisor} ({} KiB), one of:", self.chunk_kib)?;
        for command in [Some(&self.mdadm), self.lvm.as_ref(), Some(&self.dm_stripe)].into_iter().flatten() {
            writeln!(out, "  {command}")?;
        }
        Ok(())
    }
}
