//! Arrays: their keys, what they must keep, and what is built of them.

use super::resolve::{Checked, check_names, within};
use super::spec::{NamedDrive, RigSpec};
use headstack_model::spec::{Fault, nearest};
use headstack_policy::stripe::{Array, Organisation, Policy, ReadChoice, Rotation, Shape, ShapeError, Unit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Drives that a load sees as one volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArraySpec {
    /// Name of the volume that it is.
    #[serde(default = "array")]
    pub name: String,
    /// How it lays its blocks on drives.
    pub organisation: Organisation,
    /// The drives by the names of their volumes; the name of drives of one kind stands for all of them.
    pub drives: Vec<String>,
    /// Blocks of a stripe unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stripe_unit_sectors: Option<u64>,
    /// Blocks of a unit of parity, where it is not the stripe unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parity_unit_sectors: Option<u64>,
    /// Copies, with `mirroring`.
    #[serde(default = "two")]
    pub copies: u32,
    /// Which copy is read.
    #[serde(default)]
    pub read_choice: ReadChoice,
    /// How parity wanders, with `raid-5` and `raid-6`.
    #[serde(default)]
    pub rotation: Rotation,
    /// Share of all drives up to which a write that touches fewer of them reads old data and parity, and from which on it
    /// reads the rest of the stripe. Without it a write does what takes fewer reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_modify_write_ratio: Option<f64>,
    /// The drives that have failed, all of which it must survive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
}

fn array() -> String {
    "array".to_string()
}

fn two() -> u32 {
    2
}

impl ArraySpec {
    /// All its drives.
    ///
    /// *Errors:* a name that no drive of the rig has, or one twice; sectors of two sizes.
    pub(super) fn members<'a>(&self, rig: &'a RigSpec) -> Result<Vec<NamedDrive<'a>>, Fault> {
        let kind_of = |group: usize| rig.drive[group].keys.volume.as_deref();
        let mut members: Vec<NamedDrive<'a>> = Vec::new();
        for name in &self.drives {
            let before = members.len();
            members.extend(
                rig.drives().filter(|drive| drive.name == *name || kind_of(drive.group) == Some(name)),
            );
            if members.len() == before {
                let known: Vec<String> = rig.drives().map(|drive| drive.name).collect();
                let near = nearest(name, known.iter().map(String::as_str));
                let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                return Err(Fault::new("drives", format!("no drive is called `{name}`{hint}")));
            }
        }
        let bytes = members[0].spec.sector_bytes;
        if let Some(other) = members.iter().find(|drive| drive.spec.sector_bytes != bytes) {
            let (name, others) = (&other.name, other.spec.sector_bytes);
            let message =
                format!("`{name}` has sectors of {others} bytes, and `{}` of {bytes}", members[0].name);
            return Err(Fault::new("drives", message));
        }
        let mut met = BTreeSet::new();
        match members.iter().find(|drive| !met.insert(drive.number)) {
            Some(twice) => Err(Fault::new("drives", format!("`{}` stands there twice", twice.name))),
            None => Ok(members),
        }
    }

    /// The places in the array of the drives that have failed.
    fn failed_members(&self, members: &[NamedDrive<'_>]) -> Result<Vec<u32>, Fault> {
        let mut failed = Vec::new();
        for name in &self.failed {
            let Some(member) = members.iter().position(|drive| drive.name == *name) else {
                let near = nearest(name, members.iter().map(|drive| drive.name.as_str()));
                let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                return Err(Fault::new("failed", format!("the array has no drive `{name}`{hint}")));
            };
            if failed.contains(&(member as u32)) {
                return Err(Fault::new("failed", format!("`{name}` stands there twice")));
            }
            failed.push(member as u32);
        }
        Ok(failed)
    }

    /// The machine that maps it.
    ///
    /// *Errors:* its drives do not make one, or a key does not hold.
    pub(super) fn array(&self, members: &[NamedDrive<'_>], seed: u64) -> Result<Array, Fault> {
        for (name, unit) in [
            ("stripe_unit_sectors", self.stripe_unit_sectors),
            ("parity_unit_sectors", self.parity_unit_sectors),
        ] {
            within(name, unit.unwrap_or(1) as f64, 1.0, 1e12, "sectors")?;
        }
        within(
            "read_modify_write_ratio",
            self.read_modify_write_ratio.unwrap_or(0.0),
            0.0,
            1.0,
            "of a stripe",
        )?;
        let shape = Shape {
            organisation: self.organisation,
            members: members.iter().map(|drive| drive.spec.capacity_sectors).collect(),
            unit: self.stripe_unit_sectors.map_or(Unit::Member, Unit::Sectors),
            copies: self.copies,
            read_choice: self.read_choice,
            rotation: self.rotation,
            parity_unit_sectors: self.parity_unit_sectors,
            policy: self.read_modify_write_ratio.map_or(Policy::FewestReads, Policy::Threshold),
            failed: self.failed_members(members)?,
            spares: 0,
            seed,
        };
        Array::new(shape).map_err(|ShapeError { key, message }| Fault::new(key, message))
    }
}

/// Whether the arrays fit their drives.
pub(super) fn check(rig: &RigSpec) -> Checked {
    check_names("array", rig.array.iter().map(|array| &array.name))?;
    let mut taken = BTreeSet::new();
    for (index, array) in rig.array.iter().enumerate() {
        let at = |fault: Fault| Fault::new(format!("array[{index}].{}", fault.key), fault.message);
        let members = array.members(rig).map_err(at)?;
        array.array(&members, 0).map_err(at)?;
        if let Some(twice) = members.iter().find(|drive| !taken.insert(drive.number)) {
            let message = format!("`{}` is in another array, too", twice.name);
            return Err(at(Fault::new("drives", message)));
        }
    }
    Ok(())
}
