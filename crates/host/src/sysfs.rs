//! The location of a block device on its disk, and the disk's identity, from sysfs.

#![allow(clippy::disallowed_methods, reason = "the system tells of its devices in files")]

use headstack_model::Lbn;
use headstack_tracks::map::{ForeignMap, Identity};
use rustix::fs::{major, minor};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Unit of sysfs in bytes, for any disk.
const UNIT: u64 = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Disk,
    /// A loop device or a partition of it. The disk below it has no name.
    Loop,
    /// Made of other devices: device mapper, RAID, bcache.
    Made,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    number: String,
    /// Its start in bytes from the start of the disk.
    start: u64,
}

/// A block device and its location.
#[derive(Clone, Debug)]
pub struct DeviceLocation {
    name: String,
    kind: Kind,
    part: Option<Part>,
    start: u64,
    bytes: u64,
    /// Bytes of the whole disk, if the system reports them.
    disk_bytes: Option<u64>,
    /// Bytes of a block of the disk, and of a physical sector.
    block: Option<(u64, u64)>,
    /// The bytes of the disk that each of its arms serves, upward; none where the system reports no ranges.
    arms: Vec<Range<u64>>,
    /// Bytes of a zone, of a disk whose zones its host writes in sequence.
    zone_bytes: Option<u64>,
    /// Whether the system sends commands with duration limits to the disk.
    has_duration_limits: bool,
    names: (Option<String>, Option<String>),
}

/// Why the location of a device on the disk of a map is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum LocationError {
    /// The system has no such device.
    #[error("it is no block device that the system tells of")]
    NoDevice,
    /// An attribute that sysfs lacks.
    #[error("the system does not tell {}", .0.display())]
    MissingAttribute(PathBuf),
    /// A device made of others: its blocks may lie anywhere.
    #[error("{0} is made of other devices")]
    MadeOfOthers(String),
    /// The disk's size is not that of the map.
    #[error(
        "the map is of another disk, of {sectors} sectors of {sector_bytes} bytes; the disk of {name} has {bytes} bytes"
    )]
    OtherSize {
        name: String,
        /// Bytes of its disk.
        bytes: u64,
        /// Sectors of the map's disk.
        sectors: u64,
        /// Bytes of each.
        sector_bytes: u32,
    },
    /// It begins or ends within a sector of the map's disk.
    #[error("{name} begins within a sector of {sector_bytes} bytes: the map is of another disk")]
    WithinSector {
        name: String,
        /// Bytes of a sector.
        sector_bytes: u32,
    },
    /// The disk's identity is not that of the map.
    #[error("{0}")]
    Foreign(#[from] ForeignMap),
}

impl DeviceLocation {
    /// Finds a device by its number. A loop device counts as the disk, or as its part from `losetup --offset` on.
    ///
    /// *Errors:* sysfs lacks the device or an attribute.
    pub fn find(device: u64) -> Result<DeviceLocation, LocationError> {
        let link = format!("/sys/dev/block/{}:{}", major(device), minor(device));
        DeviceLocation::read_folder(&fs::canonicalize(&link).map_err(|_| LocationError::NoDevice)?)
    }

    fn read_folder(folder: &Path) -> Result<DeviceLocation, LocationError> {
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let must = |folder: &Path, name: &str| {
            number(folder, name).ok_or_else(|| LocationError::MissingAttribute(folder.join(name)))
        };
        let part = match text(folder, "partition") {
            Some(number) => Some(Part { number, start: must(folder, "start")? }),
            None => None,
        };
        let disk = folder.parent().filter(|_| part.is_some()).unwrap_or(folder);
        let kind = match () {
            () if disk.join("loop").exists() => Kind::Loop,
            () if is_made_of_others(disk) => Kind::Made,
            () => Kind::Disk,
        };
        let offset = number(disk, "loop/offset").unwrap_or(0);
        let own = must(disk, "size")? * UNIT;
        let disk_bytes = match kind {
            // The device may show a part of the file, so the size of the disk is the file's.
            Kind::Loop => backing_bytes(disk).or((offset == 0).then_some(own)),
            _ => Some(own),
        };
        let block = number(disk, "queue/logical_block_size").filter(|block| *block > 0);
        let physical = number(disk, "queue/physical_block_size");
        Ok(DeviceLocation {
            name,
            kind,
            start: offset + part.as_ref().map_or(0, |part| part.start * UNIT),
            part,
            bytes: must(folder, "size")? * UNIT,
            disk_bytes,
            arms: access_ranges(disk),
            zone_bytes: zone_bytes(disk),
            has_duration_limits: has_duration_limits(disk),
            block: block.map(|block| (block, physical.unwrap_or(block))),
            names: own_names(disk),
        })
    }

    /// Name of the device.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes of the device.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The first bytes, on this device, of the ranges that the disk's arms serve. 0 alone for a disk with one arm, and where the system
    /// reports no ranges or some that leave a part of the disk out.
    pub fn arm_firsts(&self) -> Vec<u64> {
        let end = self.start + self.bytes;
        let covers = |from: u64| {
            let ends = self.arms.iter().try_fold(0, |at, arm| (arm.start == at).then_some(arm.end));
            ends.is_some_and(|all| all >= from)
        };
        if self.kind != Kind::Disk || !covers(end) {
            return vec![0];
        }
        let within = self.arms.iter().filter(|arm| arm.start < end && arm.end > self.start);
        within.map(|arm| arm.start.saturating_sub(self.start)).collect()
    }

    /// Size of the zones of a disk that refuses writes out of sequence; none if the zones do not begin at multiples of it on this device.
    pub fn zone_bytes(&self) -> Option<u64> {
        self.zone_bytes.filter(|bytes| self.start.is_multiple_of(*bytes))
    }

    /// Whether the system passes command duration limits to the disk, which requires that the disk has them and that they are enabled.
    pub fn has_duration_limits(&self) -> bool {
        self.kind == Kind::Disk && self.has_duration_limits
    }

    /// Whether only the creator of the device knows which disk or part is behind it: so for a whole loop device and for a device that
    /// is composed of others.
    pub fn may_be_any_part(&self) -> bool {
        self.kind == Kind::Made || (self.kind == Kind::Loop && self.part.is_none())
    }

    /// Its model and serial number. For a partition, the model also has the partition's position, so that a map of the partition is
    /// not taken for one of the disk, or the reverse.
    pub(crate) fn own_names(&self) -> (Option<String>, Option<String>) {
        let (model, serial) = self.names.clone();
        (part_name(model.as_deref(), self.part.as_ref()), serial)
    }

    /// The device's sectors on the disk of a map; all of them, if the map was probed on this very partition.
    ///
    /// *Errors:* the disk is another one, or its blocks lie elsewhere.
    pub fn on(&self, map: &Identity) -> Result<Range<Lbn>, LocationError> {
        if self.kind == Kind::Made {
            return Err(LocationError::MadeOfOthers(self.name.clone()));
        }
        if self.is_all_of(map) {
            return Ok(Lbn(0)..Lbn(map.sectors));
        }
        let sector = u64::from(map.sector_bytes);
        let name = self.name.clone();
        match self.disk_bytes {
            // Names first: their error is more specific.
            Some(bytes) if self.kind == Kind::Disk => {
                map.admits(&self.identity(bytes, self.names.clone()))?
            }
            Some(bytes) if bytes != map.sectors * sector => {
                let (sectors, sector_bytes) = (map.sectors, map.sector_bytes);
                return Err(LocationError::OtherSize { name, bytes, sectors, sector_bytes });
            }
            _ => {}
        }
        if !self.start.is_multiple_of(sector) || !self.bytes.is_multiple_of(sector) {
            return Err(LocationError::WithinSector { name, sector_bytes: map.sector_bytes });
        }
        Ok(Lbn(self.start / sector)..Lbn((self.start + self.bytes) / sector))
    }

    /// Whether a map is of this partition by its name.
    fn is_all_of(&self, map: &Identity) -> bool {
        // A partition always has a name, so that different names are refused.
        self.part.is_some()
            && map.name.is_some()
            && map.admits(&self.identity(self.bytes, self.own_names())).is_ok()
    }

    fn identity(&self, bytes: u64, (name, serial): (Option<String>, Option<String>)) -> Identity {
        let (block, physical) = self.block.unwrap_or((UNIT, UNIT));
        let physical_sectors = (physical / block) as u32;
        Identity { physical_sectors, name, serial, ..Identity::new(bytes / block, block as u32) }
    }
}

/// The ranges of a disk that its arms serve independently, as Linux reports them from version 5.16 on.
fn access_ranges(disk: &Path) -> Vec<Range<u64>> {
    let Ok(folders) = fs::read_dir(disk.join("queue/independent_access_ranges")) else { return Vec::new() };
    let range = |folder: PathBuf| {
        let [first, count] = ["sector", "nr_sectors"].map(|name| number(&folder, name));
        Some(first? * UNIT..(first? + count?) * UNIT)
    };
    let mut ranges: Vec<_> = folders.flatten().filter_map(|entry| range(entry.path())).collect();
    ranges.sort_unstable_by_key(|range| range.start);
    ranges
}

/// Bytes of a zone, of a disk that refuses writes out of sequence.
fn zone_bytes(disk: &Path) -> Option<u64> {
    let is_managed = text(disk, "queue/zoned").is_some_and(|model| model == "host-managed");
    let sectors = number(disk, "queue/chunk_sectors").filter(|sectors| is_managed && *sectors > 0)?;
    Some(sectors * UNIT)
}

/// Whether the command duration limits of a disk are enabled, as Linux reports it from version 6.5 on.
fn has_duration_limits(disk: &Path) -> bool {
    ["device/cdl_supported", "device/cdl_enable"].iter().all(|name| number(disk, name) == Some(1))
}

fn is_made_of_others(disk: &Path) -> bool {
    let has_any = |folder: PathBuf| fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    disk.join("dm").exists() || has_any(disk.join("slaves"))
}

/// Bytes of a loop device's file; the device may show a part of it.
fn backing_bytes(disk: &Path) -> Option<u64> {
    let path = fs::read_to_string(disk.join("loop/backing_file")).ok()?;
    let found = fs::metadata(path.trim_end_matches('\n')).ok()?;
    found.is_file().then_some(found.len())
}

/// Model and serial number of the disk of this sysfs folder.
fn own_names(folder: &Path) -> (Option<String>, Option<String>) {
    let serial = ["device/serial", "device/wwid", "wwid"].into_iter().find_map(|name| text(folder, name));
    (text(folder, "device/model"), serial)
}

/// The name of a disk, or of a partition by its number and its start in units of 512 bytes.
fn part_name(model: Option<&str>, part: Option<&Part>) -> Option<String> {
    let part = part.map(|Part { number, start }| format!("partition {number} from sector {start}"));
    match (model, part) {
        (Some(model), Some(part)) => Some(format!("{model}, {part}")),
        (model, part) => part.or(model.map(str::to_string)),
    }
}

/// An attribute of a device: the text of a file in its folder.
fn text(folder: &Path, name: &str) -> Option<String> {
    let text = fs::read_to_string(folder.join(name)).ok()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" ")).filter(|text| !text.is_empty())
}

fn number(folder: &Path, name: &str) -> Option<u64> {
    text(folder, name)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder like one of sysfs: contents of files by path.
    fn sysfs(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("there is room for a folder");
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("it lies in the folder")).expect("it is writable");
            fs::write(path, format!("{text}\n")).expect("it is writable");
        }
        folder
    }

    fn location(folder: &tempfile::TempDir, device: &str) -> DeviceLocation {
        DeviceLocation::read_folder(&folder.path().join(device)).expect("all attributes are there")
    }

    fn on(found: &DeviceLocation, sectors: u64, sector_bytes: u32) -> Option<(u64, u64)> {
        let range = found.on(&Identity::new(sectors, sector_bytes)).ok()?;
        Some((range.start.0, range.end - range.start))
    }

    const DISK: [(&str, &str); 4] = [
        ("sda/size", "80000"),
        ("sda/sda2/partition", "2"),
        ("sda/sda2/size", "4000"),
        ("sda/sda2/start", "2048"),
    ];

    #[test]
    fn partition_begins_at_its_sysfs_sector() {
        let found = location(&sysfs(&DISK), "sda/sda2");
        assert_eq!((found.name(), found.bytes(), found.may_be_any_part()), ("sda2", 4000 * 512, false));
        assert_eq!(on(&found, 80_000, 512), Some((2048, 4000)));
        assert_eq!(on(&found, 80_001, 512), None, "another disk");
        let large = [&DISK[..], &[("sda/queue/logical_block_size", "4096")]].concat();
        assert_eq!(
            on(&location(&sysfs(&large), "sda/sda2"), 10_000, 4096),
            Some((256, 500)),
            "sysfs counts in 512"
        );
        assert_eq!(on(&location(&sysfs(&DISK), "sda"), 80_000, 512), Some((0, 80_000)));
        let untold = DeviceLocation::read_folder(&sysfs(&DISK[..3]).path().join("sda/sda2"));
        assert!(untold.is_err_and(|reported| reported.to_string().contains("sda2/start")));
    }

    #[test]
    fn duration_limits_are_sent_only_where_they_are_enabled() {
        let limits = |supported: &str, enabled: &str| {
            let own = [("sda/device/cdl_supported", supported), ("sda/device/cdl_enable", enabled)];
            location(&sysfs(&[&DISK[..], &own].concat()), "sda/sda2").has_duration_limits()
        };
        assert!(limits("1", "1"));
        assert!(!limits("1", "0") && !limits("0", "0"));
        assert!(!location(&sysfs(&DISK), "sda").has_duration_limits(), "an older kernel");
    }

    #[test]
    fn ranges_of_arms_are_those_of_the_system_within_the_device() {
        let ranges = "sda/queue/independent_access_ranges";
        let two = |upper: &str, count: &str| {
            let own =
                [("0/sector", "0"), ("0/nr_sectors", "3000"), ("1/sector", upper), ("1/nr_sectors", count)];
            let own = own.map(|(name, text)| (format!("{ranges}/{name}"), text.to_string()));
            let disk = DISK.map(|(name, text)| (name.to_string(), text.to_string()));
            let all: Vec<_> = disk.into_iter().chain(own).collect();
            sysfs(&all.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect::<Vec<_>>())
        };
        let both = two("3000", "77000");
        assert_eq!(location(&both, "sda").arm_firsts(), [0, 3000 * 512]);
        assert_eq!(location(&both, "sda/sda2").arm_firsts(), [0, 952 * 512], "the partition begins at 2048");
        assert_eq!(location(&two("3001", "76999"), "sda").arm_firsts(), [0], "a sector is no arm's");
        assert_eq!(
            location(&two("3000", "76000"), "sda").arm_firsts(),
            [0],
            "the end of the disk is no arm's"
        );
        assert_eq!(location(&sysfs(&DISK), "sda").arm_firsts(), [0]);
    }

    #[test]
    fn zones_are_those_of_a_host_managed_disk() {
        let zoned = |model: &'static str| {
            let own = [("sda/queue/zoned", model), ("sda/queue/chunk_sectors", "1024")];
            sysfs(&[&DISK[..], &own].concat())
        };
        assert_eq!(location(&zoned("host-managed"), "sda").zone_bytes(), Some(1024 * 512));
        assert_eq!(
            location(&zoned("host-managed"), "sda/sda2").zone_bytes(),
            Some(1024 * 512),
            "it begins with one"
        );
        assert_eq!(location(&zoned("host-aware"), "sda").zone_bytes(), None, "it accepts other writes");
        assert_eq!(location(&sysfs(&DISK), "sda").zone_bytes(), None);
    }

    #[test]
    fn loop_device_offset_is_added_to_the_start() {
        let image = tempfile::NamedTempFile::new().expect("there is room for a file");
        image.as_file().set_len(8000 * 512).expect("it may have holes");
        let folder = sysfs(&[
            ("loop1/size", "4000"),
            ("loop1/loop/offset", "1048576"),
            ("loop1/loop/backing_file", image.path().to_str().expect("its name is UTF-8")),
            ("loop1/loop1p1/partition", "1"),
            ("loop1/loop1p1/start", "100"),
            ("loop1/loop1p1/size", "50"),
        ]);
        let part = location(&folder, "loop1/loop1p1");
        assert_eq!(on(&part, 8000, 512), Some((2148, 50)));
        assert_eq!(on(&part, 4000, 512), None, "the disk is the file, not what the device shows of it");
        assert!(location(&folder, "loop1").may_be_any_part() && !part.may_be_any_part());
        image.close().expect("it can be removed");
        let part = location(&folder, "loop1/loop1p1");
        assert_eq!(on(&part, 1 << 30, 512), Some((2148, 50)), "a disk without a known size");
    }

    #[test]
    fn device_mapped_over_others_is_rejected() {
        for made_of in ["dm-0/slaves/sda/size", "dm-0/dm/name"] {
            let found = location(&sysfs(&[("dm-0/size", "4000"), (made_of, "8000")]), "dm-0");
            assert!(found.may_be_any_part());
            let reported =
                found.on(&Identity::new(4000, 512)).expect_err("its blocks lie anywhere").to_string();
            assert!(reported.contains("other devices"), "{reported}");
        }
    }

    #[test]
    fn partition_name_differs_from_its_disk_name() {
        let folder = sysfs(&[&DISK[..], &[("sda/device/model", "ST3000"), ("sda/wwid", "x")]].concat());
        let (disk, part) = (location(&folder, "sda"), location(&folder, "sda/sda2"));
        assert_eq!(disk.own_names(), (Some("ST3000".to_string()), Some("x".to_string())));
        let name = "ST3000, partition 2 from sector 2048".to_string();
        assert_eq!(part.own_names(), (Some(name), Some("x".to_string())));
        let nameless = location(&sysfs(&DISK), "sda/sda2").own_names();
        assert_eq!(nameless, (Some("partition 2 from sector 2048".to_string()), None));
    }

    #[test]
    fn map_of_another_disk_or_partition_is_rejected() {
        let folder = sysfs(&[&DISK[..], &[("sda/device/model", "ST3000")]].concat());
        let part = location(&folder, "sda/sda2");
        let of =
            |name: &str, sectors| Identity { name: Some(name.to_string()), ..Identity::new(sectors, 512) };
        assert_eq!(part.on(&of("ST3000, partition 2 from sector 2048", 4000)), Ok(Lbn(0)..Lbn(4000)));
        assert_eq!(part.on(&of("ST3000", 80_000)), Ok(Lbn(2048)..Lbn(6048)));
        for (name, sectors) in [
            ("ST3000, partition 1 from sector 2048", 4000),
            ("ST3000, partition 2 from sector 2056", 4000),
            ("ST3000, partition 2 from sector 2048", 4001),
            ("partition 2 from sector 2048", 4000),
            ("ST4000", 80_000),
            ("ST3000", 4000),
        ] {
            assert!(part.on(&of(name, sectors)).is_err(), "{name}, {sectors}");
        }
        assert!(part.on(&Identity::new(4000, 512)).is_err(), "it does not say what it is of");
        assert!(location(&folder, "sda").on(&of("ST3000, partition 2 from sector 2048", 4000)).is_err());
    }
}
