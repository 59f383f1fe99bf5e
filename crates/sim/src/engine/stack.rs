//! The layers that there are, as data, and the builder that stacks those that a rig asks for.

use super::branch::{LayerKind, LayerRole};
use super::device_layers::{add_arrays, add_controller};
use super::tree::{LayerTree, Volume};
use crate::array::{ArrayLayer, ArrayVolume};
use crate::controller::ControllerSetup;
use crate::device::{Device, Drive};
use crate::layer::{Layer, Submission};
use crate::os::{CallLayer, CgroupSpec, CopyCost, DriveSafety, HostSpec, PageCache, PortQueue};
use crate::partition_layer::{self, PartitionLayer};
use crate::rearrange_layer::RearrangeLayer;
use crate::stream_layer::StreamLayer;
use crate::throttle_layer::ThrottleLayer;
use headstack_model::spec::Fault;
use headstack_streams::position::PositionQueue;
use headstack_streams::streams::Config;
use std::sync::Arc;

/// Builds the rearranger of a volume from its drive, if it is a single one, its sectors, and the bytes of a sector.
pub(crate) type MakeRearranger<'a> =
    dyn Fn(Option<&Arc<Drive>>, u64, u32) -> Result<RearrangeLayer, Fault> + 'a;

/// Builds the node's queue in front of a drive, by its number.
pub(crate) type MakeNodeQueue<'a> = dyn Fn(u32) -> Result<PositionQueue<Submission>, Fault> + 'a;

/// The sections that ask for layers.
pub(crate) struct StackSpec<'a> {
    pub(crate) host: &'a HostSpec,
    pub(crate) controllers: Vec<ControllerSetup<'a>>,
    pub(crate) arrays: Vec<ArrayVolume>,
    /// What the host knows of each drive's writes; empty if every FLUSH and FUA of the load reaches the devices.
    pub(crate) drives: Vec<DriveSafety>,
    pub(crate) rearranger: Option<Box<MakeRearranger<'a>>>,
    pub(crate) node: Option<&'a Config>,
    pub(crate) node_queue: Option<Box<MakeNodeQueue<'a>>>,
    /// The control groups, and the group of each source.
    pub(crate) groups: Option<(&'a [CgroupSpec], &'a [Option<usize>])>,
    /// The layers of a volume that the rig puts in an order of its own, from the top: names of entries of [`ALL`].
    pub(crate) layers: &'a [String],
}

impl<'a> StackSpec<'a> {
    /// A host in front of devices.
    pub(crate) fn of_host(host: &'a HostSpec) -> StackSpec<'a> {
        let (controllers, arrays, drives) = (Vec::new(), Vec::new(), Vec::new());
        let (rearranger, node, node_queue, groups, layers) = (None, None, None, None, &[][..]);
        StackSpec { host, controllers, arrays, drives, rearranger, node, node_queue, groups, layers }
    }
}

/// A kind of layer.
struct LayerEntry {
    /// The section or key that asks for it.
    name: &'static str,
    /// Its place among layers with events at one time, which wake in this order: results depend on it where two events coincide.
    wakes: u8,
    is_wanted: fn(&StackSpec<'_>) -> bool,
    build: Build,
}

/// How a layer is built.
enum Build {
    /// One in front of each volume.
    Volumes(fn(&StackSpec<'_>, &VolumeBelow<'_>) -> Result<VolumeLayer, Fault>),
    /// Between devices and volumes.
    Devices(fn(&mut StackSpec<'_>, &mut LayerTree, LayerKind) -> Result<(), Fault>),
}

/// All layers, from the top of a volume to the devices. A new layer needs an entry here, and a section of the rig that asks for it.
const ALL: &[LayerEntry] = &[
    LayerEntry {
        name: "host.clients",
        wakes: 0,
        is_wanted: |spec| spec.host.call_cost().is_some(),
        build: Build::Volumes(calls),
    },
    LayerEntry {
        name: "host.page_cache",
        wakes: 1,
        is_wanted: |spec| spec.host.page_cache.is_some(),
        build: Build::Volumes(page_cache),
    },
    LayerEntry {
        name: GROUPS,
        wakes: 2,
        is_wanted: |spec| spec.groups.is_some(),
        build: Build::Volumes(throttle),
    },
    LayerEntry {
        name: "node",
        wakes: 5,
        is_wanted: |spec| spec.node.is_some(),
        build: Build::Volumes(streams),
    },
    LayerEntry {
        name: "host.partition_start",
        wakes: 3,
        is_wanted: |spec| spec.host.partition_start > 0,
        build: Build::Volumes(partition),
    },
    LayerEntry {
        name: "rearrange",
        wakes: 6,
        is_wanted: |spec| spec.rearranger.is_some(),
        build: Build::Volumes(rearranger),
    },
    LayerEntry {
        name: "node_queue",
        wakes: 11,
        is_wanted: |spec| spec.node_queue.is_some(),
        build: Build::Volumes(node_queue),
    },
    LayerEntry {
        name: DURABILITY,
        wakes: 10,
        is_wanted: |spec| !spec.drives.is_empty(),
        build: Build::Devices(|spec, tree, kind| {
            tree.keep_durable(&spec.drives, &spec.controllers, kind);
            Ok(())
        }),
    },
    LayerEntry {
        name: "host.queue.whole_disk",
        wakes: 7,
        is_wanted: |spec| spec.host.queue.whole_disk,
        build: Build::Volumes(disk_queue),
    },
    LayerEntry {
        name: "array",
        wakes: 4,
        is_wanted: |spec| !spec.arrays.is_empty(),
        build: Build::Devices(|spec, tree, kind| {
            add_arrays(tree, std::mem::take(&mut spec.arrays), kind);
            Ok(())
        }),
    },
    LayerEntry {
        name: "controller",
        wakes: 9,
        is_wanted: |spec| !spec.controllers.is_empty(),
        build: Build::Devices(|spec, tree, kind| {
            let mut controllers = spec.controllers.iter();
            controllers.try_for_each(|setup| add_controller(tree, setup, spec.host, kind))
        }),
    },
];

/// The name of the limits of control groups, which are known only with the load.
pub(super) const GROUPS: &str = "host.cgroup";

/// The name of the rules for FLUSH and FUA.
pub(super) const DURABILITY: &str = "host.fua";

/// Stacks the layers that a rig asks for, from the devices up.
///
/// *Errors:* a key of a section is invalid.
pub(super) fn build(tree: &mut LayerTree, spec: &mut StackSpec<'_>) -> Result<(), Fault> {
    tree.stack = from_top(spec.layers);
    let wanted = tree.stack.iter().rev().copied().filter(|entry| (ALL[*entry].is_wanted)(spec));
    wanted.collect::<Vec<_>>().into_iter().try_for_each(|entry| add(tree, spec, entry))?;
    tree.rank();
    Ok(())
}

/// Adds one kind of layer to a stack that has been built.
///
/// *Errors:* a key of its section is invalid.
pub(super) fn add_named(tree: &mut LayerTree, spec: &mut StackSpec<'_>, name: &str) -> Result<(), Fault> {
    add(tree, spec, entry_of(name))?;
    tree.rank();
    Ok(())
}

fn entry_of(name: &str) -> usize {
    ALL.iter().position(|entry| entry.name == name).expect("the layer is listed")
}

/// All layers from the top, by their places in [`ALL`], with those that are named in this order: they share the places that they have
/// otherwise.
fn from_top(named: &[String]) -> Vec<usize> {
    let mut all: Vec<usize> = (0..ALL.len()).collect();
    let entries: Vec<usize> = named.iter().map(|name| entry_of(name)).collect();
    let places = all.clone().into_iter().filter(|entry| entries.contains(entry));
    places.zip(&entries).for_each(|(place, entry)| all[place] = *entry);
    all
}

fn add(tree: &mut LayerTree, spec: &mut StackSpec<'_>, entry: usize) -> Result<(), Fault> {
    let LayerEntry { wakes, build, .. } = &ALL[entry];
    let place = tree.stack.iter().position(|other| *other == entry).unwrap_or(entry);
    // Own layers are above all.
    let kind = LayerKind { place: place as u8 + 1, wakes: *wakes, role: LayerRole::Plain };
    match build {
        Build::Devices(add) => add(spec, tree, kind),
        Build::Volumes(layer) => (0..tree.volumes.len()).try_for_each(|volume| {
            let VolumeLayer { layer, hidden_sectors } = layer(spec, &VolumeBelow { tree, number: volume })?;
            tree.volumes[volume].sectors -= hidden_sectors;
            tree.add_to_volume(volume, layer, kind, volume as u32);
            Ok(())
        }),
    }
}

/// A layer in front of a volume, and the sectors that it hides.
struct VolumeLayer {
    layer: Box<dyn Layer>,
    hidden_sectors: u64,
}

impl VolumeLayer {
    /// A layer that hides no sectors.
    fn new(layer: impl Layer) -> VolumeLayer {
        VolumeLayer { layer: Box::new(layer), hidden_sectors: 0 }
    }
}

/// A volume with the layers that it has so far.
struct VolumeBelow<'a> {
    tree: &'a LayerTree,
    number: usize,
}

impl VolumeBelow<'_> {
    fn volume(&self) -> Volume {
        self.tree.volumes[self.number]
    }

    fn layer<L: Layer>(&self) -> Option<&L> {
        self.tree.layer_of(self.number)
    }

    /// Its first device.
    fn device(&self) -> &Device {
        self.tree.devices[self.volume().device as usize].device()
    }

    /// The device that has the same blocks.
    fn only_device(&self) -> Option<&Device> {
        self.tree.only_device(self.number).map(|only| self.tree.devices[only].device())
    }
}

fn calls(spec: &StackSpec<'_>, below: &VolumeBelow<'_>) -> Result<VolumeLayer, Fault> {
    let cost = spec.host.call_cost().unwrap_or_default();
    Ok(VolumeLayer::new(CallLayer::new(cost, below.volume().sector_bytes)))
}

fn page_cache(spec: &StackSpec<'_>, below: &VolumeBelow<'_>) -> Result<VolumeLayer, Fault> {
    let Volume { sectors, sector_bytes, .. } = below.volume();
    let copies = CopyCost::new(spec.host, sector_bytes);
    let cache = spec.host.page_cache.clone().unwrap_or_default();
    let stripe_bytes = below.layer::<ArrayLayer>().and_then(ArrayLayer::stripe_bytes);
    Ok(VolumeLayer::new(PageCache::new(&cache, copies, (sectors, sector_bytes), stripe_bytes)))
}

fn throttle(spec: &StackSpec<'_>, below: &VolumeBelow<'_>) -> Result<VolumeLayer, Fault> {
    let (groups, group_of) = spec.groups.unwrap_or_default();
    Ok(VolumeLayer::new(ThrottleLayer::new(groups, group_of, below.volume().sector_bytes)))
}

fn streams(spec: &StackSpec<'_>, below: &VolumeBelow<'_>) -> Result<VolumeLayer, Fault> {
    let Volume { sectors, sector_bytes, .. } = below.volume();
    let config = spec.node.cloned().unwrap_or_default();
    let mut layer = StreamLayer::new(&config, sectors, sector_bytes).map_err(|fault| fault.below("node"))?;
    // The members of a concatenation have an arm each. A rearranger moves blocks from one to another.
    let array = below.layer::<ArrayLayer>().filter(|_| below.layer::<RearrangeLayer>().is_none());
    if let Some(starts) = array.and_then(ArrayLayer::concatenated_starts) {
        layer.set_arms(starts);
    }
    let only = below.only_device();
    if let Some(zones) = only.and_then(Device::zones) {
        layer.set_write_zones(zones.layout().zone_sectors);
    }
    layer.set_read_limits(only.map_or(&[][..], Device::reads_without_abort).iter().copied());
    Ok(VolumeLayer::new(layer))
}

fn partition(spec: &StackSpec<'_>, below: &VolumeBelow<'_>) -> Result<VolumeLayer, Fault> {
    let Volume { sectors, sector_bytes, .. } = below.volume();
    let first = partition_layer::first_sector(spec.host.partition_start, sectors, sector_bytes);
    let first = first.map_err(|message| Fault::new("host.partition_start", message))?;
    Ok(VolumeLayer { hidden_sectors: first, ..VolumeLayer::new(PartitionLayer { first }) })
}

fn rearranger(spec: &StackSpec<'_>, below: &VolumeBelow<'_>) -> Result<VolumeLayer, Fault> {
    let Volume { sectors, sector_bytes, .. } = below.volume();
    let drive = below.layer::<ArrayLayer>().is_none().then(|| below.device().drive());
    let make = spec.rearranger.as_ref().expect("the section is there");
    let layer = make(drive, sectors, sector_bytes)?;
    Ok(VolumeLayer { hidden_sectors: sectors - layer.visible_sectors(), ..VolumeLayer::new(layer) })
}

fn node_queue(spec: &StackSpec<'_>, below: &VolumeBelow<'_>) -> Result<VolumeLayer, Fault> {
    let make = spec.node_queue.as_ref().expect("the section is there");
    Ok(VolumeLayer::new(make(below.volume().device)?))
}

/// The host's queue in front of a disk with several arms. The disk accepts as many commands as the controller of its arms, or as all of them.
fn disk_queue(spec: &StackSpec<'_>, below: &VolumeBelow<'_>) -> Result<VolumeLayer, Fault> {
    let Volume { device, sectors, sector_bytes, .. } = below.volume();
    let Some((arms, starts)) = below.layer::<ArrayLayer>().and_then(ArrayLayer::arms) else {
        let message = format!(
            "volume {} is no disk with several arms: no concatenation, and no striping with `track_aligned`",
            below.number
        );
        return Err(Fault::new("host.queue.whole_disk", message));
    };
    // The arms of a disk are alike.
    let own = arms * below.device().depth();
    let depth = below.tree.port(device as usize).map_or(own, |port| port.depth().min(own));
    let queue = PortQueue::new(sectors, sector_bytes, depth, starts, &spec.host.queue)?;
    Ok(VolumeLayer::new(queue))
}
