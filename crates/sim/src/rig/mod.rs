//! Rigs: drives with the buses, arrays and host around them, as one TOML document, and the engine that is built from it.
//!
//! A rig names its drives by preset and sets keys of its own over theirs. Any key can be set from outside by its path
//! ([`Rig::set`]). [`Rig::resolved`] has all of it together, for results to store.

mod array;
mod array_spec;
mod attach;
mod bus_spec;
mod checks;
mod document;
mod layers;
mod links;
mod node_queue;
mod node_queue_spec;
mod partition;
mod parts;
mod paths;
mod rearrange;
mod resolve;
mod setting;
pub mod shipped;
mod spec;

pub use crate::controller::{ControllerCacheSpec, ControllerKind, ControllerSpec, ControllerWrites};
pub use array_spec::{ArrayFailure, ArraySpec};
pub use bus_spec::{ArbitrationRule, BusKind, RigBusSpec, Sharing};
pub use document::{lay, value};
pub use node_queue_spec::NodeQueueSpec;
pub use paths::{ALIASES, all as all_paths, json_schema};
pub use spec::{DriveGroup, GroupKeys, NamedDrive, RigSpec};

use crate::array::ArrayVolume;
use crate::device::{self, Device, DeviceError, DeviceOptions, DriveSource, NewDrives};
use crate::engine::{Engine, MakeNodeQueue, MakeRearranger, StackSpec};
use crate::os::DriveSafety;
use crate::partition_layer;
use headstack_model::spec::Fault;
use headstack_model::{DriveSpec, Lbn, Nanos, SpecError};
pub use headstack_policy::stripe::{Organisation, ReadChoice, Rotation, WriteOrder};
use headstack_workload::{VolumeInfo, VolumeZones};
use resolve::resolve;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use toml::{Table, Value};

/// Why a rig cannot be loaded. Displays as one line: `file:line: key: what is wrong`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RigError {
    /// The file, or a key set over it, is invalid.
    #[error(transparent)]
    Fault(#[from] SpecError),
}

/// Finds a drive by the name that a rig gives it.
pub type DriveLookup<'a> = dyn FnMut(&str) -> Result<DriveSpec, SpecError> + 'a;

/// A rig.
#[derive(Clone, Debug)]
pub struct Rig {
    origin: String,
    /// The text of its file, in which faults are located.
    text: String,
    /// The file, and the keys set over it.
    document: Table,
    presets: BTreeMap<String, DriveSpec>,
    resolved: RigSpec,
    /// The number of each drive in the rig of which this one is a part; empty in a whole rig.
    seeds: Vec<usize>,
}

impl Rig {
    /// Parses and checks a rig. `origin` (the file's name) goes into errors, `find` returns presets.
    ///
    /// *Errors:* the first fault found, with its line, its key and what is allowed.
    pub fn parse(text: &str, origin: &str, find: &mut DriveLookup<'_>) -> Result<Rig, RigError> {
        let document = document::read(text, origin)?;
        let mut presets = BTreeMap::new();
        let resolved = resolve(&document, &mut presets, find)
            .map_err(|fault| document::locate(fault, text, &document, origin))?;
        let (origin, text) = (origin.to_string(), text.to_string());
        Ok(Rig { origin, text, document, presets, resolved, seeds: Vec::new() })
    }

    /// The rig of a single drive.
    pub fn from_drive(spec: DriveSpec) -> Rig {
        let name = spec.name.clone();
        let group = Table::from_iter([("preset".to_string(), Value::String(name.clone()))]);
        let list = Value::Array(vec![Value::Table(group)]);
        let keys = GroupKeys { preset: Some(name.clone()), ..GroupKeys::default() };
        Rig {
            origin: name.clone(),
            text: String::new(),
            document: Table::from_iter([("drive".to_string(), list)]),
            presets: BTreeMap::from([(name, spec.clone())]),
            resolved: RigSpec { drive: vec![DriveGroup { keys, spec }], ..RigSpec::default() },
            seeds: Vec::new(),
        }
    }

    /// The file it came from, or the name of its drive.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Its title, or the titles of its drives if it has none.
    pub fn title(&self) -> String {
        if !self.resolved.title.is_empty() {
            return self.resolved.title.clone();
        }
        let groups = self.resolved.drive.iter().map(|group| match group.keys.count {
            1 => group.spec.title.clone(),
            count => format!("{count} × {}", group.spec.title),
        });
        groups.collect::<Vec<_>>().join(", ")
    }

    /// The preset of a kind of drives, without the keys that the rig sets over it; `None` if the rig has the whole drive.
    pub fn preset(&self, group: usize) -> Option<&DriveSpec> {
        self.presets.get(self.resolved.drive.get(group)?.keys.preset.as_ref()?)
    }

    /// The same rig without block rearrangement.
    pub fn without_rearrangement(&self) -> Rig {
        let mut rig = self.clone();
        rig.document.remove("rearrange");
        rig.resolved.rearrange = None;
        rig.resolved.layers.retain(|name| name != "rearrange");
        if let Some(order) = rig.document.get_mut("layers").and_then(Value::as_array_mut) {
            order.retain(|name| name.as_str() != Some("rearrange"));
        }
        rig
    }

    /// The whole rig, with the contents of its presets.
    pub fn resolved(&self) -> &RigSpec {
        &self.resolved
    }

    /// The resolved rig as a rig file that needs no presets.
    pub fn to_toml(&self) -> String {
        let mut whole = self.resolved.clone();
        whole.drive.iter_mut().for_each(|group| group.keys.preset = None);
        document::text(&whole)
    }

    /// The volumes, in the order in which a load numbers them. Drives outside arrays come first.
    pub fn volumes(&self) -> Vec<VolumeInfo> {
        let rig = &self.resolved;
        let volumes = whole_volumes(rig).into_iter().map(|WholeVolume { mut info, drive }| {
            info.sectors =
                rearrange::visible_sectors(rig, drive.as_ref(), &info).expect("the rig was checked");
            info.sectors -= partition::first_sector(rig, &info).expect("the rig was checked");
            info
        });
        volumes.collect()
    }

    /// The blocks of a volume that each of its arms serves: more than one range for a concatenation, as a disk with two arms is.
    ///
    /// *Source:* the concurrent positioning ranges that such a disk reports (log page 47h of ATA, VPD page B9h of SCSI).
    pub fn access_ranges(&self, volume: &VolumeInfo) -> Vec<Range<Lbn>> {
        let rig = &self.resolved;
        // A rearranger moves blocks from the range of one arm to that of another.
        let array = rig.array.iter().find(|array| array.name == volume.name && rig.rearrange.is_none());
        let planned = array.map(|array| {
            let drives = array.drives(rig).expect("the rig was checked");
            array.planned(&drives).expect("the rig was checked")
        });
        let starts = planned.as_ref().and_then(|array| array.concatenated_starts()).unwrap_or(&[0]);
        // A partition may begin behind the blocks of the first arm.
        let first = rig.host.partition_start.saturating_mul(partition_layer::UNIT_BYTES)
            / u64::from(volume.sector_bytes);
        let starts = starts.iter().map(|start| start.saturating_sub(first));
        let ends = starts.clone().skip(1).chain([volume.sectors]);
        let ranges = starts.zip(ends).filter(|(start, end)| start < end);
        ranges.map(|(start, end)| Lbn(start)..Lbn(end)).collect()
    }

    /// The drives that each volume has, spares among them, by their numbers, which are those of the engine's devices.
    pub fn volume_drives(&self) -> Vec<Vec<usize>> {
        let rig = &self.resolved;
        let members = |spec: &ArraySpec| -> Vec<usize> {
            spec.drives(rig).expect("the rig was checked").numbers().collect()
        };
        let arrays: Vec<Vec<usize>> = rig.array.iter().map(members).collect();
        let bare = (0..rig.drives().count()).filter(|number| !arrays.iter().flatten().any(|of| of == number));
        bare.map(|number| vec![number]).chain(arrays.clone()).collect()
    }

    /// The assignment of a trace's devices to volumes, by number, if the rig has one.
    pub fn trace_devices(&self) -> Option<BTreeMap<String, u32>> {
        let volumes = self.volumes();
        let number = |name: &String| volumes.iter().position(|volume| volume.name == *name);
        let devices = self.resolved.devices.iter();
        let numbered = devices.filter_map(|(device, name)| Some((device.clone(), number(name)? as u32)));
        (!self.resolved.devices.is_empty()).then(|| numbered.collect())
    }

    /// The engine with all drives idle at time 0. Each has a seed of its own.
    ///
    /// *Errors:* a drive, or the host, that cannot be built.
    pub fn build(&self, seed: u64) -> Result<Engine, RigError> {
        self.build_with(seed, &NewDrives)
    }

    /// As [`Rig::build`], with the fixed parts of the drives from `source`, which may share them between rigs.
    ///
    /// *Errors:* as [`Rig::build`].
    pub fn build_with(&self, seed: u64, source: &dyn DriveSource) -> Result<Engine, RigError> {
        let located = |fault: Fault| document::locate(fault, &self.text, &self.document, &self.origin);
        let mut devices = Vec::new();
        for (index, group) in self.resolved.drive.iter().enumerate() {
            let fault =
                |error: DeviceError| located(Fault::new(format!("drive[{index}]"), error.to_string()));
            let spec = attach::attached(&self.resolved, index);
            let drive = source.drive(&spec)?;
            for _ in 0..group.keys.count {
                // The first drive has the seed itself, so that a rig of one is that drive.
                let place = self.seed_place(devices.len()) as u64;
                let seed = seed.wrapping_add(place.wrapping_mul(SEED_STEP));
                let options = DeviceOptions { seed, ..DeviceOptions::default() };
                devices.push(Device::with_drive(Arc::clone(&drive), &spec, &options).map_err(fault)?);
            }
        }
        let stack = self.stack(&devices, seed);
        let mut engine = Engine::with_stack(devices, stack, links::links(&self.resolved)).map_err(located)?;
        for array in &self.resolved.array {
            let drives = array.drives(&self.resolved).expect("the rig was checked");
            for (number, from) in array.failures(&drives).expect("the rig was checked") {
                let dead = device::Fault::Dead { from, timeout: Nanos::ZERO };
                engine.inject(number, dead).expect("every drive can die");
            }
        }
        Ok(engine)
    }

    /// The sections that ask for layers in front of these devices.
    fn stack(&self, devices: &[Device], seed: u64) -> StackSpec<'_> {
        let rig = &self.resolved;
        let rearranger = rig.rearrange.as_ref().map(|spec| -> Box<MakeRearranger<'_>> {
            Box::new(move |drive, sectors, sector_bytes| {
                let layer = rearrange::layer(spec, drive, sectors, sector_bytes);
                layer.map_err(|fault| fault.below("rearrange"))
            })
        });
        let node_queue = rig.node_queue.as_ref().map(|spec| -> Box<MakeNodeQueue<'_>> {
            Box::new(move |drive| node_queue::queue(rig, spec, drive))
        });
        StackSpec {
            controllers: attach::controllers(rig),
            arrays: self.arrays(devices, seed),
            drives: rig.drives().map(|drive| DriveSafety::of(drive.spec, &rig.host)).collect(),
            rearranger,
            node: rig.node.as_ref(),
            node_queue,
            layers: &rig.layers,
            ..StackSpec::of_host(&rig.host)
        }
    }

    /// The number of a drive from which its seed is computed.
    fn seed_place(&self, number: usize) -> usize {
        self.seeds.get(number).copied().unwrap_or(number)
    }

    fn arrays(&self, devices: &[Device], seed: u64) -> Vec<ArrayVolume> {
        let array = |spec: &ArraySpec| {
            let drives = spec.drives(&self.resolved).expect("the rig was checked");
            let first = &devices[drives.members[0].number];
            let tracks = if spec.track_aligned { array::tracks(&first.drive().geometry) } else { Vec::new() };
            let array = spec.array(&drives, tracks, seed).expect("the rig was checked");
            let volume = ArrayVolume::new(array, drives.numbers().map(|number| number as u32).collect())
                .with_interference(spec.interference_ratio);
            match spec.rebuild_mb_s {
                Some(rate) => volume.rebuilt_at((rate * 1e6) as u64),
                None => volume,
            }
        };
        self.resolved.array.iter().map(array).collect()
    }
}

/// A volume with all its sectors, reserved ones among them.
struct WholeVolume<'a> {
    info: VolumeInfo,
    /// Its drive, if it is a single one.
    drive: Option<NamedDrive<'a>>,
}

/// The volumes of a rig without faults: drives outside arrays, then arrays.
fn whole_volumes(rig: &RigSpec) -> Vec<WholeVolume<'_>> {
    let mut bare: Vec<Option<NamedDrive<'_>>> = rig.drives().map(Some).collect();
    let mut arrays = Vec::new();
    for spec in &rig.array {
        let drives = spec.drives(rig).expect("the rig was checked");
        drives.numbers().for_each(|number| bare[number] = None);
        let sectors = spec.planned(&drives).expect("the rig was checked").sectors();
        let sector_bytes = drives.members[0].spec.sector_bytes;
        let info = VolumeInfo { name: spec.name.clone(), sectors, sector_bytes, zones: None };
        arrays.push(WholeVolume { info, drive: None });
    }
    let bare = bare.into_iter().flatten().map(|drive| {
        let (sectors, sector_bytes) = (drive.spec.capacity_sectors, drive.spec.sector_bytes);
        let zones = VolumeZones::from_spec(drive.spec);
        let info = VolumeInfo { name: drive.name.clone(), sectors, sector_bytes, zones };
        WholeVolume { info, drive: Some(drive) }
    });
    bare.chain(arrays).collect()
}

/// The difference of the seeds of two neighbouring drives: an odd number without a pattern.
const SEED_STEP: u64 = 0x9E37_79B9_7F4A_7C15;

#[cfg(test)]
mod tests;
