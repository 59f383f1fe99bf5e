//! Arms of one disk that delay each other's seeks.

use super::tree::LayerTree;
use crate::array::ArrayVolume;

impl LayerTree {
    /// Lets the members of an array delay each other's seeks, if its interference ratio is not 0.
    pub(super) fn add_arm_group(&mut self, array: &ArrayVolume) {
        let ratio = array.interference_ratio();
        if ratio > 0.0 {
            let devices = array.devices();
            devices.iter().for_each(|device| self.devices[*device as usize].device_mut().interfere(ratio));
            self.arm_groups.push(devices.to_vec());
        }
    }

    /// Notifies the other arms of a device's disk of its last seek.
    #[inline]
    pub(super) fn report_seek(&mut self, device: u32) {
        if !self.arm_groups.is_empty() {
            self.report_seek_to_others(device);
        }
    }

    #[cold]
    fn report_seek_to_others(&mut self, device: u32) {
        let Some(arm) = self.devices[device as usize].device_mut().interference() else { return };
        let seek = arm.own_seek();
        let group = self.arm_groups.iter().find(|group| group.contains(&device));
        for other in group.into_iter().flatten().filter(|other| **other != device) {
            let arm = self.devices[*other as usize].device_mut().interference();
            arm.into_iter().for_each(|arm| arm.observe(device, seek.clone()));
        }
    }
}
