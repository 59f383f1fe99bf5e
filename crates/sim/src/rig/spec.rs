//! The rig file: its keys.
//!
//! A field here is the key in the file; its doc comment is its documentation. The keys of a drive are those of the drive
//! file and are defined there.

use super::array::ArraySpec;
use super::attach::RigBusSpec;
use crate::controller::ControllerSpec;
use crate::os::HostSpec;
use headstack_model::DriveSpec;
use headstack_policy::streams;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// A rig with everything resolved: what the file says, what was set over it, and all that the presets hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RigSpec {
    /// What the rig is, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Where the numbers come from: a short word used in the comments beside them, and the full source.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, String>,
    /// Which device of a trace goes to which volume when the trace is replayed: the device as the trace calls it, and the
    /// volume's name. Without it the first device that appears goes to the first volume, and so on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub devices: BTreeMap<String, String>,
    /// The drives, kind by kind.
    #[serde(default, deserialize_with = "one_by_one")]
    #[schemars(skip)]
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
    /// What lies between the load and the drives.
    #[serde(default, skip_serializing_if = "is_off")]
    pub host: HostSpec,
    /// The storage node before the volumes: a stream scheduler for each of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<streams::Config>,
}

fn is_off(host: &HostSpec) -> bool {
    *host == HostSpec::default()
}

/// Drives are read one by one, over their presets, and never with the rig; it only has to know the key.
fn one_by_one<'de, D: Deserializer<'de>>(_: D) -> Result<Vec<DriveGroup>, D::Error> {
    Ok(Vec::new())
}

/// A drive of a rig.
#[derive(Clone, Debug)]
pub struct NamedDrive<'a> {
    /// The name of the volume that it is, or that it would be if no array held it.
    pub name: String,
    /// Its number in the rig, which is its device's.
    pub number: usize,
    /// Its kind: the place in [`RigSpec::drive`].
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
    /// What the rig says of them beside the drive's own keys.
    #[serde(flatten)]
    pub keys: GroupKeys,
    /// The drive.
    #[serde(flatten)]
    pub spec: DriveSpec,
}

/// Drives of one kind. Beside these keys the table takes every key of the [drive file](drive-file.md), which then counts in
/// place of the preset's; without a preset it must hold a whole drive. A load numbers the volumes of a rig in the order of
/// the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GroupKeys {
    /// A shipped drive (`headstack drive list`), or the path of a drive file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// How many of them there are.
    #[serde(default = "one")]
    pub count: u32,
    /// Name of the volume that the drive is; with more than one of them, each has its number behind it, from 0 on. Without it
    /// the volumes are called `disk` and their number in the rig.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
    /// Name of the bus that they are on; needed only where the rig has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
}

fn one() -> u32 {
    1
}

impl GroupKeys {
    /// The keys by name: the others in the table are the drive's.
    pub(super) const NAMES: [&str; 4] = ["preset", "count", "volume", "on"];
}

impl Default for GroupKeys {
    fn default() -> GroupKeys {
        GroupKeys { preset: None, count: one(), volume: None, on: None }
    }
}
