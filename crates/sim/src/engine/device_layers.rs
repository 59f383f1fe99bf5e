//! Layers that stand between devices and volumes: controllers with their ports, and arrays.

use super::branch::{ChildPort, LayerKind, LayerRole};
use super::tree::{LayerTree, Volume};
use crate::array::{ArrayLayer, ArrayVolume};
use crate::controller::{Controller, ControllerSetup};
use crate::os::{HostQueueSpec, HostSpec, PortQueue};
use headstack_model::spec::Fault;

/// Makes arrays volumes in place of their members.
pub(super) fn add_arrays(tree: &mut LayerTree, arrays: Vec<ArrayVolume>, kind: LayerKind) {
    let mut is_member = vec![false; tree.devices.len()];
    for device in arrays.iter().flat_map(ArrayVolume::devices) {
        assert!(
            !std::mem::replace(&mut is_member[*device as usize], true),
            "device {device} is in one array"
        );
    }
    let roots: Vec<u32> = tree.volumes.iter().map(|volume| volume.root).collect();
    tree.volumes.retain(|volume| !is_member[volume.device as usize]);
    for array in arrays {
        tree.arm_groups.add(&array, &mut tree.devices);
        let device = array.devices()[0];
        let first = tree.devices[device as usize].device();
        let (sector_bytes, sectors) = (first.sector_bytes(), array.sectors());
        let members = array.devices().iter().map(|device| tree.devices[*device as usize].device().sectors());
        let member_sectors = members.max().unwrap_or(0);
        let child = |device: &u32| ChildPort { node: roots[*device as usize], port: 0 };
        let children = array.devices().iter().map(child).collect();
        let layer = Box::new(ArrayLayer::new(array, member_sectors, sector_bytes));
        let root = tree.add(layer, children, device, kind, tree.volumes.len() as u32);
        tree.volumes.push(Volume { root, device, sectors, sector_bytes });
    }
}

/// Puts drives behind a controller, each behind a port of it with the host's queue for the drive.
///
/// *Errors:* a key of the queue in front of the controller, or of its own, is invalid.
pub(super) fn add_controller(
    tree: &mut LayerTree,
    setup: &ControllerSetup<'_>,
    host: &HostSpec,
    kind: LayerKind,
) -> Result<(), Fault> {
    let ControllerSetup { spec, drives, cache } = setup;
    let (order, merge, depth) = (spec.order.clone(), spec.merge, spec.drive_depth);
    let queue = HostQueueSpec { order, merge, depth, ..HostQueueSpec::default() };
    let depth = spec.queue_depth.map_or(usize::MAX, |depth| depth as usize);
    let sectors = drives.iter().map(|device| tree.devices[*device as usize].device().sectors()).collect();
    let layer = Box::new(Controller::new(spec, sectors, *cache));
    let controller = tree.add(layer, Vec::new(), drives[0], kind, tree.branches.len() as u32);
    // A port wakes before its controller.
    let port_kind = LayerKind { wakes: kind.wakes - 1, role: LayerRole::Drive, ..kind };
    for (port, &device) in drives.iter().enumerate() {
        let drive = tree.devices[device as usize].device();
        let (sectors, sector_bytes) = (drive.sectors(), drive.sector_bytes());
        let layer = Box::new(PortQueue::new(sectors, sector_bytes, depth, &[], &host.queue.of_arm())?);
        let node = tree.add_above(device, layer, device, port_kind, device);
        tree.branch_mut(node).children = vec![ChildPort { node: controller, port: port as u32 }];
        tree.devices[device as usize].put_behind_controller(&queue, spec.late_choice)?;
    }
    tree.branch_mut(controller).children =
        drives.iter().map(|device| ChildPort { node: *device, port: 0 }).collect();
    Ok(())
}
