//! The disks to emulate: those of all named drives and rigs, with unique volume names.

use super::EmulateTarget;
use crate::failure::Failure;
use crate::rig;
use headstack_sim::rig::Rig;
use headstack_workload::VolumeInfo;

/// The name of a disk that takes no time.
const NULL: &str = "null";

/// A disk: one drive, or the drives that share parts of a rig. Each disk has its own thread.
pub(super) struct Plan {
    pub(super) title: String,
    pub(super) volumes: Vec<VolumeInfo>,
    /// The model; none for a disk that takes no time.
    pub(super) rig: Option<Rig>,
}

impl Plan {
    /// Whether the rig has block rearrangement.
    pub(super) fn rearranges(&self) -> bool {
        self.rig.as_ref().is_some_and(|rig| rig.resolved().rearrange.is_some())
    }

    /// The disk to which each volume's data belong: the drive, or the drives of an array.
    pub(super) fn owners(&self) -> Vec<String> {
        let Some(rig) = &self.rig else { return vec![NULL.to_string(); self.volumes.len()] };
        let names: Vec<String> = rig.resolved().drives().map(|drive| drive.spec.name.clone()).collect();
        let owner = |members: Vec<usize>| {
            let mut found: Vec<(&str, usize)> = Vec::new();
            for member in members {
                match found.last_mut() {
                    Some((name, count)) if *name == names[member] => *count += 1,
                    _ => found.push((&names[member], 1)),
                }
            }
            let named = found.iter().map(|(name, count)| match count {
                1 => name.to_string(),
                count => format!("{count} {name}"),
            });
            named.collect::<Vec<_>>().join(", ")
        };
        rig.volume_drives().into_iter().map(owner).collect()
    }
}

/// The disks of all named drives and rigs.
///
/// *Errors:* an unknown drive or rig; an unknown key; a size without a null disk.
pub(super) fn plans(target: &EmulateTarget) -> Result<Vec<Plan>, Failure> {
    if target.size.is_some() && target.names.iter().all(|name| name != NULL) {
        return Err(Failure::Input("--size is for the disk `null`; others have their own".to_string()));
    }
    let mut plans = Vec::new();
    for name in &target.names {
        match name.as_str() {
            NULL => plans.push(null(target.size.unwrap_or(NULL_BYTES))?),
            name => plans.extend(of_rig(name, |rig| target.rig.apply(rig))?),
        }
    }
    name_apart(plans.iter_mut().flat_map(|plan| &mut plan.volumes));
    Ok(plans)
}

/// The disks of a single unmodified drive or rig.
///
/// *Errors:* an unknown drive or rig.
pub(super) fn of_name(name: &str) -> Result<Vec<Plan>, Failure> {
    match name {
        NULL => Ok(vec![null(NULL_BYTES)?]),
        name => of_rig(name, |_| Ok(())),
    }
}

/// Default size of a disk that takes no time.
const NULL_BYTES: u64 = 100 << 30;

fn null(bytes: u64) -> Result<Plan, Failure> {
    let sector_bytes = 512;
    if !bytes.is_multiple_of(u64::from(sector_bytes)) {
        return Err(Failure::Input(format!("--size {bytes}: must be a multiple of {sector_bytes} bytes")));
    }
    if i64::try_from(bytes).is_err() {
        let most = i64::MAX as u64 / u64::from(sector_bytes) * u64::from(sector_bytes);
        return Err(Failure::Input(format!("--size {bytes}: is outside {sector_bytes} to {most} bytes")));
    }
    let info = VolumeInfo {
        name: "disk0".to_string(),
        sectors: bytes / u64::from(sector_bytes),
        sector_bytes,
        zones: None,
    };
    let title = "a disk that takes no time".to_string();
    Ok(Plan { title, volumes: vec![info], rig: None })
}

fn of_rig(name: &str, change: impl FnOnce(&mut Rig) -> Result<(), Failure>) -> Result<Vec<Plan>, Failure> {
    let mut rig = rig::load::load(name)?;
    change(&mut rig)?;
    let plan = |part: Rig| Plan { title: title(&part), volumes: part.volumes(), rig: Some(part) };
    Ok(rig.parts().into_iter().map(plan).collect())
}

/// The title of a disk: the drive's if it is one, else the rig's.
fn title(part: &Rig) -> String {
    let mut drives = part.resolved().drives();
    match (drives.next(), drives.next()) {
        (Some(drive), None) => drive.spec.title.clone(),
        _ => part.title(),
    }
}

/// Makes volume names unique: a repeated name gets the first free number as a suffix.
fn name_apart<'a>(volumes: impl Iterator<Item = &'a mut VolumeInfo>) {
    let mut met: Vec<String> = Vec::new();
    for volume in volumes {
        if met.contains(&volume.name) {
            let stem = volume.name.trim_end_matches(|letter: char| letter.is_ascii_digit()).to_string();
            let mut names = (0u32..).map(|number| format!("{stem}{number}"));
            volume.name = names.find(|name| !met.contains(name)).expect("numbers do not end");
        }
        met.push(volume.name.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_volume_gets_a_unique_name() {
        let named =
            |name: &str| VolumeInfo { name: name.to_string(), sectors: 1, sector_bytes: 512, zones: None };
        let mut volumes = ["disk0", "disk0", "data", "disk1", "data"].map(named);
        name_apart(volumes.iter_mut());
        let names: Vec<&str> = volumes.iter().map(|volume| volume.name.as_str()).collect();
        assert_eq!(names, ["disk0", "disk1", "data", "disk2", "data0"]);
    }
}
