//! The stripe of a rig's array: the data in it, and a partition's start that is aligned to it.

use headstack_sim::rig::Rig;

/// The unit in which the start of a partition is given.
pub(super) const UNIT_BYTES: u64 = 512;

/// The start that partitioning programs choose for a partition today: 1 MiB, in units of 512 bytes. *Source:* parted, sfdisk.
const USUAL_START: u64 = 2048;

/// Drives' worth of data in a stripe of the rig's only array; none where there is no stripe over whole drives.
pub(super) fn data_drives(rig: &Rig) -> Option<u64> {
    let spec = rig.resolved();
    let [array] = &spec.array[..] else { return None };
    let members = array.member_count(spec) as u64;
    array.organisation.data_members(members, array.copies)
}

/// The first start of a partition, at or after the usual one, at which a stripe of the rig's only array begins.
pub(super) fn partition_start(rig: &Rig) -> Option<u64> {
    let spec = rig.resolved();
    let unit_sectors = spec.array.first()?.stripe_unit_sectors?;
    let sector_bytes = u64::from(spec.drive.first()?.spec.sector_bytes);
    let stripe_bytes = data_drives(rig)?.checked_mul(unit_sectors)?.checked_mul(sector_bytes)?;
    let is_whole = stripe_bytes > 0 && stripe_bytes.is_multiple_of(UNIT_BYTES);
    let stripe = is_whole.then_some(stripe_bytes / UNIT_BYTES)?;
    USUAL_START.div_ceil(stripe).checked_mul(stripe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::NoFiles;
    use crate::rig::load_rig;

    #[test]
    fn partition_starts_with_the_first_stripe_from_1_mib_on() {
        let mut raid = load_rig("raid5", &NoFiles).expect("it ships");
        // Four drives' worth of data: 256 KiB a stripe, then 2 MiB, then 12 KiB.
        for (unit, start) in [("128", 2048), ("1024", 4096), ("6", 2064)] {
            raid.set("array.stripe_unit_sectors", unit).expect("the array takes it");
            assert_eq!(partition_start(&raid), Some(start), "{unit}");
        }
        assert_eq!(partition_start(&load_rig("workstation", &NoFiles).expect("it ships")), None);
    }
}
