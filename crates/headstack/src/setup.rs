//! What decides about a run's figures, in a line: write caches, FUA, orders, depths, the host's scheduler and page cache.

use headstack_model::DriveSpec;
use headstack_model::spec::WriteCache;
use headstack_sim::DeviceOptions;
use headstack_sim::os::{DriveSafety, HostSpec};
use headstack_sim::rig::Rig;

/// Whether a drive reports writes done before they are on its media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteCacheState {
    /// Its write cache is on.
    On,
    /// It has a write cache, which the rig turned off.
    Off,
    /// Its drive file has none.
    None,
}

/// What decides about the figures of drives of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DriveSetup {
    /// Name of the first of these drives in the rig.
    pub name: String,
    /// The state of its write cache.
    pub write_cache: WriteCacheState,
    /// Whether the host uses FUA on it.
    pub fua: bool,
    /// Its order, with its parameters.
    pub order: String,
    /// Commands that it accepts.
    pub depth: u32,
}

/// What decides about a run's figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunSetup {
    /// The kinds of drives; none if the program built the engine.
    pub drives: Vec<DriveSetup>,
    /// The host's elevator or order; none where it only holds requests in order of arrival.
    pub scheduler: Option<String>,
    /// Memory of the page cache of each volume in units of 1,048,576 bytes; none without a page cache.
    pub page_cache_mb: Option<u32>,
}

impl WriteCacheState {
    /// Its word in JSON.
    pub fn word(self) -> &'static str {
        match self {
            WriteCacheState::On => "on",
            WriteCacheState::Off => "off",
            WriteCacheState::None => "none",
        }
    }
}

impl RunSetup {
    /// That of a rig.
    pub fn of_rig(rig: &Rig) -> RunSetup {
        let spec = rig.resolved();
        let host = &spec.host;
        let mut drives: Vec<DriveSetup> = Vec::new();
        let mut groups = Vec::new();
        for drive in spec.drives() {
            if !groups.contains(&drive.group) {
                groups.push(drive.group);
                let file = rig.preset(drive.group).unwrap_or(drive.spec);
                drives.push(DriveSetup::new(drive.name.clone(), drive.spec, file, host));
            }
        }
        RunSetup {
            drives,
            scheduler: host.queue.elevator.clone().or_else(|| host.queue.order.clone()),
            page_cache_mb: host.page_cache.as_ref().map(|cache| cache.memory_mb),
        }
    }

    /// That of a single drive with these options.
    pub(crate) fn of_drive(drive: &DriveSpec, options: &DeviceOptions) -> RunSetup {
        let mut setup = DriveSetup::new(drive.name.clone(), drive, drive, &HostSpec::default());
        setup.depth = options.depth.unwrap_or(setup.depth);
        setup.order = options.order.clone().unwrap_or(setup.order);
        RunSetup { drives: vec![setup], ..RunSetup::default() }
    }

    /// The setup as a line; `None` if the program built the engine. Drives that differ are named.
    pub fn line(&self) -> Option<String> {
        let of_drive = |drive: &DriveSetup| drive.text();
        let all_equal = self.drives.windows(2).all(|pair| of_drive(&pair[0]) == of_drive(&pair[1]));
        let drives = match &self.drives[..] {
            [] => return None,
            [first, ..] if all_equal => first.text(),
            all => {
                all.iter().map(|one| format!("{}: {}", one.name, one.text())).collect::<Vec<_>>().join("; ")
            }
        };
        let scheduler = match self.scheduler.as_deref() {
            None => "no scheduler".to_string(),
            Some(name) => format!("scheduler {name}"),
        };
        let page_cache = match self.page_cache_mb {
            None => "no page cache".to_string(),
            Some(memory) => format!("page cache of {memory} MiB"),
        };
        Some(format!("{drives}; host: {scheduler}, {page_cache}"))
    }
}

impl DriveSetup {
    fn new(name: String, drive: &DriveSpec, file: &DriveSpec, host: &HostSpec) -> DriveSetup {
        let state = match (drive.cache.write_cache, file.cache.write_cache) {
            (WriteCache::None, WriteCache::None) => WriteCacheState::None,
            (WriteCache::None, _) => WriteCacheState::Off,
            _ => WriteCacheState::On,
        };
        DriveSetup {
            name,
            write_cache: state,
            fua: DriveSafety::of(drive, host).has_fua,
            order: drive.queue.order.clone(),
            depth: drive.queue.depth,
        }
    }

    fn text(&self) -> String {
        let cache = match (self.write_cache, self.fua) {
            (WriteCacheState::On, true) => "write cache on, with FUA",
            (WriteCacheState::On, false) => "write cache on, without FUA",
            (WriteCacheState::Off, _) => "write cache off",
            (WriteCacheState::None, _) => "no write cache",
        };
        format!("{cache}, order {}, depth {}", self.order, self.depth)
    }
}
