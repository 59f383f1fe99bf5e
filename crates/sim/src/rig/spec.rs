//! The rig file: its keys.
//!
//! A field here is the key in the file, its doc comment the key's documentation. The keys of a drive are those of the drive file.

use super::array_spec::ArraySpec;
use super::bus_spec::RigBusSpec;
use super::node_queue_spec::NodeQueueSpec;
use crate::controller::ControllerSpec;
use crate::os::HostSpec;
use headstack_model::DriveSpec;
use headstack_streams::rearrange::RearrangeSpec;
use headstack_streams::streams;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// A resolved rig: the file, the keys set over it, and the contents of the presets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RigSpec {
    /// Description of the rig, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Sources of the numbers: a short word used in the comments after them, and the full source.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, String>,
    /// Assigns the devices of a replayed trace to volumes: the device's name in the trace, and the volume's name. Default: the
    /// first device that appears goes to the first volume, and so on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub devices: BTreeMap<String, String>,
    /// The order of the layers in front of each volume, from the top: all of `host.page_cache`, `host.cgroup`, `node`,
    /// `host.partition_start` and `rearrange` that the rig has. Blocks are rearranged below a partition. Default: this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<String>,
    /// The drives, kind by kind.
    #[serde(default, deserialize_with = "one_by_one")]
    #[schemars(with = "Vec<GroupKeys>")]
    pub drive: Vec<DriveGroup>,
    /// The buses between drives and controllers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bus: Vec<RigBusSpec>,
    /// The controllers between buses and host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub controller: Vec<ControllerSpec>,
    /// The arrays made of drives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub array: Vec<ArraySpec>,
    /// The host between the load and the drives.
    #[serde(default, skip_serializing_if = "is_off")]
    pub host: HostSpec,
    /// The storage node in front of the volumes: a stream scheduler for each of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<streams::Config>,
    /// Block rearrangement in front of each volume: often used blocks are copied to a reserved region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rearrange: Option<RearrangeSpec>,
    /// The node's queue in front of each drive, below the scheduler and the rearranger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_queue: Option<NodeQueueSpec>,
}

fn is_off(host: &HostSpec) -> bool {
    *host == HostSpec::default()
}

/// Drives are parsed one by one over their presets, and never with the rig; this field only makes the key known.
fn one_by_one<'de, D: Deserializer<'de>>(_: D) -> Result<Vec<DriveGroup>, D::Error> {
    Ok(Vec::new())
}

/// A drive of a rig.
#[derive(Clone, Debug)]
pub struct NamedDrive<'a> {
    /// The name of its volume, or the name that it would have if no array held it.
    pub name: String,
    /// Its number in the rig, equal to its device's.
    pub number: usize,
    /// Its kind: the index in [`RigSpec::drive`].
    pub group: usize,
    /// The drive itself.
    pub spec: &'a DriveSpec,
}

impl RigSpec {
    /// Every single drive, in the order of the file.
    pub fn drives(&self) -> impl Iterator<Item = NamedDrive<'_>> {
        let each = self
            .drive
            .iter()
            .enumerate()
            .flat_map(|(group, drives)| (0..drives.keys.count).map(move |index| (group, drives, index)));
        each.enumerate().map(|(number, (group, drives, index))| {
            let name = match &drives.keys.volume {
                None => format!("disk{number}"),
                Some(name) if drives.keys.count == 1 => name.clone(),
                Some(name) => format!("{name}{index}"),
            };
            NamedDrive { name, number, group, spec: &drives.spec }
        })
    }
}

/// Drives of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DriveGroup {
    /// The rig's keys for these drives, in addition to the drive's own keys.
    #[serde(flatten)]
    pub keys: GroupKeys,
    /// The drive.
    #[serde(flatten)]
    pub spec: DriveSpec,
}

/// Drives of one kind. In addition to these keys the table takes every key of the [drive file](drive-file.md), which overrides the
/// preset's. Without a preset it must be a complete drive. A load numbers the volumes of a rig in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GroupKeys {
    /// A shipped drive (`headstack drive list`), or the path of a drive file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// Number of such drives.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1024), extend("x-unit" = "drives"))]
    pub count: u32,
    /// Name of the drive's volume; several drives get numbers after the name, from 0 on. Default: `disk` and the drive's number in
    /// the rig.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
    /// Name of the drives' bus; required only if the rig has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
}

fn one() -> u32 {
    1
}

impl GroupKeys {
    /// The keys by name; all other keys in the table are the drive's.
    pub(super) const NAMES: [&str; 4] = ["preset", "count", "volume", "on"];
}

impl Default for GroupKeys {
    fn default() -> GroupKeys {
        GroupKeys { preset: None, count: one(), volume: None, on: None }
    }
}
