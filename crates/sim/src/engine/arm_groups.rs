//! Arms of one disk that delay each other's seeks.

use crate::array::ArrayVolume;
use crate::os::DeviceQueue;

/// The devices that are arms of one disk, by disk; none in most rigs.
#[derive(Debug, Default)]
pub(super) struct ArmGroups {
    groups: Vec<Vec<u32>>,
}

impl ArmGroups {
    /// Lets the members of an array delay each other's seeks, if its interference ratio is not 0.
    pub(super) fn add(&mut self, array: &ArrayVolume, devices: &mut [DeviceQueue]) {
        let ratio = array.interference_ratio();
        if ratio > 0.0 {
            let members = array.devices();
            members.iter().for_each(|device| devices[*device as usize].device_mut().interfere(ratio));
            self.groups.push(members.to_vec());
        }
    }

    /// Notifies the other arms of a device's disk of its last seek.
    #[inline]
    pub(super) fn report_seek(&self, device: u32, devices: &mut [DeviceQueue]) {
        if !self.groups.is_empty() {
            self.report_seek_to_others(device, devices);
        }
    }

    #[cold]
    fn report_seek_to_others(&self, device: u32, devices: &mut [DeviceQueue]) {
        let Some(arm) = devices[device as usize].device_mut().interference() else { return };
        let seek = arm.own_seek();
        let group = self.groups.iter().find(|group| group.contains(&device));
        for other in group.into_iter().flatten().filter(|other| **other != device) {
            let arm = devices[*other as usize].device_mut().interference();
            arm.into_iter().for_each(|arm| arm.observe(device, seek.clone()));
        }
    }
}
