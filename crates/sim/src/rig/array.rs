//! Arrays: their checks, and how they are built.

use super::array_spec::{ArrayFailure, ArraySpec};
use super::checks::{Checked, unused};
use super::spec::{NamedDrive, RigSpec};
use crate::os::PageCacheSpec;
use headstack_model::spec::{Fault, did_you_mean};
use headstack_model::{Geometry, Instant, Lbn, Nanos};
use headstack_policy::stripe::{Array, Organisation, Policy, Shape, ShapeError, Unit, UnitRun};
use std::collections::BTreeSet;

/// The default read-ahead in KiB of the rig's page cache, if it is the same for all volumes: those of a rig without arrays, or its only array.
pub(super) fn read_ahead_kb(rig: &RigSpec) -> Option<u32> {
    let stripe_bytes = match &rig.array[..] {
        [] => None,
        [array] => {
            let in_array = array.members(rig).ok()?.len() + array.spares.len();
            if in_array < rig.drives().count() {
                return None;
            }
            array.stripe_bytes(rig)
        }
        _ => return None,
    };
    u32::try_from(PageCacheSpec::default().read_ahead_kib(stripe_bytes)).ok()
}

impl ArraySpec {
    /// All its drives, without spares.
    ///
    /// *Errors:* a name that no drive of the rig has, or one twice; sectors of two sizes.
    fn members<'a>(&self, rig: &'a RigSpec) -> Result<Vec<NamedDrive<'a>>, Fault> {
        let members = named(rig, "drives", &self.drives)?;
        if let Some(first) = members.first() {
            let bytes = first.spec.sector_bytes;
            if let Some(other) = members.iter().find(|drive| drive.spec.sector_bytes != bytes) {
                let (name, others) = (&other.name, other.spec.sector_bytes);
                let message =
                    format!("`{name}` has sectors of {others} bytes, and `{}` of {bytes}", first.name);
                return Err(Fault::new("drives", message));
            }
        }
        Ok(members)
    }

    /// Bytes of data in a stripe of units of one length; none for an array without them.
    fn stripe_bytes(&self, rig: &RigSpec) -> Option<u64> {
        let members = self.members(rig).ok()?;
        let sector_bytes = members.first()?.spec.sector_bytes;
        let data = self.organisation.data_members(members.len() as u64, self.copies)?;
        self.stripe_unit_sectors?.checked_mul(data)?.checked_mul(sector_bytes.into())
    }

    /// The number of its drives, without spares, in a rig that was read.
    pub fn member_count(&self, rig: &RigSpec) -> usize {
        self.members(rig).expect("the rig was checked").len()
    }

    /// Its member drives, then its spares.
    ///
    /// *Errors:* as `members`; a spare that is a member, or is smaller than a drive that it may replace; spares of an array that survives no
    /// failed drive.
    pub(super) fn drives<'a>(&self, rig: &'a RigSpec) -> Result<Drives<'a>, Fault> {
        let members = self.members(rig)?;
        let failed = self.failed_members(&members)?;
        let spares = named(rig, "spares", &self.spares)?;
        let fault = |message: String| Err(Fault::new("spares", message));
        if matches!(self.organisation, Organisation::Concatenation | Organisation::Striping)
            && !spares.is_empty()
        {
            return fault(format!("an array of `{}` survives no failed drive", self.organisation));
        }
        // Those that no failed drive needs wait for any that fails during the run.
        let largest =
            (0..members.len() as u32).max_by_key(|member| members[*member as usize].spec.capacity_sectors);
        let replaced = failed.iter().copied().chain(largest.into_iter().cycle());
        for (spare, member) in spares.iter().zip(replaced) {
            let lost = &members[member as usize];
            if members.iter().any(|drive| drive.number == spare.number) {
                return fault(format!("`{}` is one of the array's drives", spare.name));
            }
            if spare.spec.sector_bytes != lost.spec.sector_bytes
                || spare.spec.capacity_sectors < lost.spec.capacity_sectors
            {
                return fault(format!("`{}` cannot hold what `{}` held", spare.name, lost.name));
            }
        }
        Ok(Drives { members, failed, spares })
    }

    /// The drives that die during the run, by their numbers, each with when.
    ///
    /// *Errors:* a drive is neither a member nor a spare.
    pub(super) fn failures(&self, drives: &Drives<'_>) -> Result<Vec<(usize, Instant)>, Fault> {
        let failure = |(index, dying): (usize, &ArrayFailure)| {
            let all = || drives.members.iter().chain(&drives.spares);
            let number = all().find(|drive| drive.name == dying.drive).map(|drive| drive.number);
            let number = number.ok_or_else(|| {
                let hint = did_you_mean(&dying.drive, all().map(|drive| drive.name.as_str()));
                Fault::new(
                    format!("fails[{index}].drive"),
                    format!("`{}` is no drive of the array{hint}", dying.drive),
                )
            })?;
            Ok((number, Instant::ZERO + Nanos::from_ms(dying.at_s * 1e3)))
        };
        self.fails.iter().enumerate().map(failure).collect()
    }

    fn failed_members(&self, members: &[NamedDrive<'_>]) -> Result<Vec<u32>, Fault> {
        let mut failed = Vec::new();
        for name in &self.failed {
            let Some(member) = members.iter().position(|drive| drive.name == *name) else {
                let hint = did_you_mean(name, members.iter().map(|drive| drive.name.as_str()));
                return Err(Fault::new("failed", format!("the array has no drive `{name}`{hint}")));
            };
            if failed.contains(&(member as u32)) {
                return Err(Fault::new("failed", format!("`{name}` stands there twice")));
            }
            failed.push(member as u32);
        }
        Ok(failed)
    }

    /// The array that maps requests; `tracks` are the tracks of its drives.
    ///
    /// *Errors:* its drives do not form such an array, or a key is out of range.
    pub(super) fn array(&self, drives: &Drives<'_>, tracks: Vec<UnitRun>, seed: u64) -> Result<Array, Fault> {
        self.check_use(drives)?;
        let unit = match (self.track_aligned, self.stripe_unit_sectors) {
            (true, Some(_)) => {
                return Err(Fault::new("stripe_unit_sectors", "is not for an array whose units are tracks"));
            }
            (true, None) => Unit::Lengths(tracks),
            (false, unit) => unit.map_or(Unit::Member, Unit::Sectors),
        };
        let shape = Shape {
            organisation: self.organisation,
            members: drives.members.iter().map(|drive| drive.spec.capacity_sectors).collect(),
            unit,
            copies: self.copies,
            read_choice: self.read_choice,
            rotation: self.rotation,
            parity_unit_sectors: self.parity_unit_sectors,
            policy: self.read_modify_write_ratio.map_or(Policy::FewestReads, Policy::Threshold),
            write_order: self.write_order,
            failed: drives.failed.clone(),
            spares: drives.spares.len(),
            seed,
        };
        Array::new(shape).map_err(|ShapeError { key, message }| Fault::new(key, message))
    }

    /// Checks that each optional key has an effect.
    fn check_use(&self, drives: &Drives<'_>) -> Checked {
        use Organisation::{ParityDrive, Raid5, Raid6};
        let has_parity = matches!(self.organisation, ParityDrive | Raid5 | Raid6);
        let key = |name: &str| name.to_string();
        let of_parity = [
            ("parity_unit_sectors", self.parity_unit_sectors.is_some() && !has_parity),
            ("read_modify_write_ratio", self.read_modify_write_ratio.is_some() && !has_parity),
        ];
        unused(key, &of_parity, "is for an array with parity")?;
        let has_arms = match self.organisation {
            Organisation::Concatenation => true,
            Organisation::Striping => self.track_aligned,
            _ => false,
        };
        let of_arms = [("interference_ratio", self.interference_ratio > 0.0 && !has_arms)];
        unused(
            key,
            &of_arms,
            "is for a disk with several arms: a concatenation, or striping with `track_aligned`",
        )?;
        let of_spares = [("rebuild_mb_s", self.rebuild_mb_s.is_some() && drives.spares.is_empty())];
        unused(key, &of_spares, "is for an array with `spares`")?;
        self.failures(drives).map(|_| ())
    }

    /// The array before its drives are built. It assumes that the tracks of a drive together hold as many blocks as the drive.
    ///
    /// *Errors:* as [`ArraySpec::array`]; tracks as units on drives of several kinds.
    pub(super) fn planned(&self, drives: &Drives<'_>) -> Result<Array, Fault> {
        let kind = drives.members.first().map(|drive| drive.spec);
        if self.track_aligned && drives.members.iter().any(|drive| Some(drive.spec) != kind) {
            return Err(Fault::new("track_aligned", "is for drives of one kind"));
        }
        let sectors = drives.members.first().map_or(0, |drive| drive.spec.capacity_sectors);
        self.array(drives, vec![UnitRun { sectors, count: 1 }], 0)
    }
}

pub(super) struct Drives<'a> {
    pub(super) members: Vec<NamedDrive<'a>>,
    failed: Vec<u32>,
    spares: Vec<NamedDrive<'a>>,
}

impl Drives<'_> {
    pub(super) fn numbers(&self) -> impl Iterator<Item = usize> {
        self.members.iter().chain(&self.spares).map(|drive| drive.number)
    }
}

/// The drives of these names; the name of a kind of drives stands for all of them.
fn named<'a>(rig: &'a RigSpec, key: &str, names: &[String]) -> Result<Vec<NamedDrive<'a>>, Fault> {
    let kind_of = |group: usize| rig.drive[group].keys.volume.as_deref();
    let mut found: Vec<NamedDrive<'a>> = Vec::new();
    for name in names {
        let before = found.len();
        let is_meant =
            |drive: &NamedDrive<'_>| drive.name == *name || kind_of(drive.group) == Some(name.as_str());
        found.extend(rig.drives().filter(is_meant));
        if found.len() == before {
            let known: Vec<String> = rig.drives().map(|drive| drive.name).collect();
            let hint = did_you_mean(name, known.iter().map(String::as_str));
            return Err(Fault::new(key, format!("no drive is called `{name}`{hint}")));
        }
    }
    let mut met = BTreeSet::new();
    match found.iter().find(|drive| !met.insert(drive.number)) {
        Some(twice) => Err(Fault::new(key, format!("`{}` stands there twice", twice.name))),
        None => Ok(found),
    }
}

/// The tracks of a drive, as units that follow each other.
pub(super) fn tracks(geometry: &Geometry) -> Vec<UnitRun> {
    let mut runs: Vec<UnitRun> = Vec::new();
    let mut from = Lbn(0);
    while from.0 < geometry.sectors() {
        let end = geometry.next_track_boundary(from).unwrap_or(Lbn(geometry.sectors()));
        let sectors = end - from;
        match runs.last_mut() {
            Some(run) if run.sectors == sectors => run.count += 1,
            _ => runs.push(UnitRun { sectors, count: 1 }),
        }
        from = end;
    }
    runs
}

pub(super) fn check(rig: &RigSpec) -> Checked {
    let all: Vec<NamedDrive<'_>> = rig.drives().collect();
    let mut taken = BTreeSet::new();
    for (index, array) in rig.array.iter().enumerate() {
        let at = |fault: Fault| Fault::new(format!("array[{index}].{}", fault.key), fault.message);
        let drives = array.drives(rig).map_err(at)?;
        array.planned(&drives).map_err(at)?;
        if let Some(twice) = drives.numbers().find(|number| !taken.insert(*number)) {
            let message = format!("`{}` is in another array, too", all[twice].name);
            let is_spare = drives.spares.iter().any(|spare| spare.number == twice);
            return Err(at(Fault::new(if is_spare { "spares" } else { "drives" }, message)));
        }
    }
    Ok(())
}
