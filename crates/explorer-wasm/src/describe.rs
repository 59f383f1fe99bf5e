//! The facts about a rig and its workload that a page shows and that do not change during a run.

use headstack::Simulation;
use headstack::model::Lbn;
use headstack::sim::rig::Rig;
use headstack::sim::{Device, Engine};
use headstack::workload::VolumeInfo;
use headstack_policy::order;
use serde_json::{Value, json};

/// Blocks of a disk at which the number of sectors per track is sampled for the picture of its zones.
const SAMPLES: u64 = 512;

/// The rig and the workload as JSON.
pub(crate) fn describe(rig: &Rig, simulation: &Simulation<'_>) -> Value {
    let (resolved, engine) = (rig.resolved(), simulation.engine());
    let devices = resolved.drives().map(|drive| {
        let (spec, device) = (drive.spec, engine.device(drive.number));
        json!({
            "name": drive.name,
            "title": spec.title,
            "rpm": spec.mechanics.rpm,
            "periodNs": device.drive().mechanics.spindle().period().0,
            "cylinders": spec.geometry.cylinders,
            "heads": spec.geometry.heads,
            "sectors": device.sectors(),
            "sectorBytes": device.sector_bytes(),
            "depth": device.depth(),
            "order": spec.queue.order,
            "isShingled": spec.shingled.is_some(),
            "hasZones": device.zones().is_some(),
            "zoneCount": zone_count(device),
            "zones": radial_zones(device),
        })
    });
    let volumes = rig.volumes();
    let volumes =
        volumes.iter().zip(rig.volume_drives()).map(|(volume, devices)| with_devices(volume, &devices));
    let host_order = resolved.host.queue.order.clone();
    let order_key = if host_order.is_some() { "host.queue.order" } else { "drive.order" };
    let drive_order = resolved.drives().next().map(|drive| drive.spec.queue.order.clone());
    json!({
        "title": rig.title(),
        "devices": devices.collect::<Vec<_>>(),
        "volumes": volumes.collect::<Vec<_>>(),
        "orderKey": order_key,
        "order": host_order.or(drive_order),
        "orders": order::all().iter().map(|entry| entry.name).collect::<Vec<_>>(),
        "load": simulation.workload().name,
    })
}

/// A running emulated disk as JSON: its volumes and the devices of its engine.
pub fn describe_running(volumes: &[VolumeInfo], engine: &Engine) -> Value {
    let is_bare = engine.devices() == volumes.len();
    let devices = (0..engine.devices()).map(|number| {
        let device = engine.device(number);
        let name = if is_bare { volumes[number].name.clone() } else { format!("disk{number}") };
        json!({
            "title": name,
            "name": name,
            "periodNs": device.drive().mechanics.spindle().period().0,
            "cylinders": last_cylinder(device) + 1,
            "sectors": device.sectors(),
            "sectorBytes": device.sector_bytes(),
            "depth": device.depth(),
            "isShingled": device.is_shingled(),
            "hasZones": device.zones().is_some(),
            "zoneCount": zone_count(device),
            "zones": radial_zones(device),
        })
    });
    let volumes_json = volumes.iter().enumerate().map(|(number, volume)| {
        let devices = if is_bare { vec![number] } else { (0..engine.devices()).collect() };
        with_devices(volume, &devices)
    });
    json!({
        "title": "running disk",
        "heading": volumes.iter().map(|volume| volume.name.as_str()).collect::<Vec<_>>().join(", "),
        "devices": devices.collect::<Vec<_>>(),
        "volumes": volumes_json.collect::<Vec<_>>(),
        "order": "of the disk",
        "orders": [],
    })
}

/// Number of zones, conventional ones included; 0 for a disk without zones.
fn zone_count(device: &Device) -> u32 {
    device.zones().map_or(0, |zones| zones.layout().zones())
}

/// A volume as JSON, with the numbers of its devices.
fn with_devices(volume: &VolumeInfo, devices: &[usize]) -> Value {
    json!({ "name": volume.name, "sectors": volume.sectors, "sectorBytes": volume.sector_bytes, "devices": devices })
}

/// The greatest cylinder of a sample of blocks. The last block does not suffice, because it may lie on an outer cylinder.
fn last_cylinder(device: &Device) -> u32 {
    let geometry = &device.drive().geometry;
    let sample = |index: u64| geometry.extent_at(Lbn((device.sectors() - 1) / SAMPLES * index)).cylinder;
    (0..=SAMPLES).map(sample).max().unwrap_or(0)
}

/// Runs of cylinders with one number of sectors per track: first cylinder and that number, from the outside in.
fn radial_zones(device: &Device) -> Vec<(u32, u32)> {
    let geometry = &device.drive().geometry;
    let sample = |index: u64| {
        let extent = geometry.extent_at(Lbn((device.sectors() - 1) / SAMPLES * index));
        (extent.cylinder, extent.sectors_per_track)
    };
    let mut samples: Vec<(u32, u32)> = (0..SAMPLES).map(sample).collect();
    samples.sort_unstable();
    samples.dedup_by_key(|(_, sectors)| *sectors);
    samples
}
