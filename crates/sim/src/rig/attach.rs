//! Buses and controllers: their checks, the smart controllers to simulate, and the limits that the path to the host sets to a drive.

use super::bus_spec::RigBusSpec;
use super::checks::{Checked, check_names, link, unused};
use super::links::{self, path};
use super::spec::RigSpec;
use crate::controller::{ControllerCacheSpec, ControllerKind, ControllerSetup, ControllerSpec};
use headstack_model::DriveSpec;
use headstack_model::spec::{Fault, within};

pub(super) fn check(rig: &RigSpec) -> Checked {
    let buses = rig.bus.iter().enumerate();
    check_names("buses", buses.map(|(index, bus)| (format!("bus[{index}].name"), bus.name.clone())))?;
    let controllers = rig.controller.iter().enumerate();
    check_names(
        "controllers",
        controllers.map(|(index, one)| (format!("controller[{index}].name"), one.name.clone())),
    )?;
    for (index, bus) in rig.bus.iter().enumerate() {
        let key = |name: &str| format!("bus[{index}].{name}");
        let names = rig.controller.iter().map(|controller| controller.name.as_str());
        link(&key("controller"), "controller", bus.controller.as_deref(), names)?;
    }
    for (index, group) in rig.drive.iter().enumerate() {
        let names = rig.bus.iter().map(|bus| bus.name.as_str());
        link(&format!("drive[{index}].on"), "bus", group.keys.on.as_deref(), names)?;
    }
    // Everything that depends on the checks above.
    for (index, controller) in rig.controller.iter().enumerate() {
        check_controller(rig, controller, index)?;
    }
    links::check(rig)
}

fn check_controller(rig: &RigSpec, controller: &ControllerSpec, index: usize) -> Checked {
    let key = |name: &str| format!("controller[{index}].{name}");
    if controller.kind == ControllerKind::PassThrough {
        let set = [
            ("queue_depth", controller.queue_depth.is_some()),
            ("order", controller.order.is_some()),
            ("merge", controller.merge.is_some()),
            ("drive_depth", controller.drive_depth.is_some()),
            ("late_choice", controller.late_choice),
            ("cache", controller.cache.is_some()),
        ];
        unused(key, &set, "is for a controller of `kind = \"smart\"`")?;
    }
    if let Some(order) = &controller.order {
        headstack_policy::order::built_in(order)
            .map_err(|error| Fault::new(key("order"), error.to_string()))?;
    }
    match &controller.cache {
        Some(cache) => check_cache(rig, controller, cache, key),
        None => Ok(()),
    }
}

fn check_cache(
    rig: &RigSpec,
    controller: &ControllerSpec,
    cache: &ControllerCacheSpec,
    key: impl Fn(&str) -> String,
) -> Checked {
    let Some(name) = &cache.drive else {
        let lines =
            cache.sectors / u64::from(cache.line_sectors.unwrap_or(ControllerCacheSpec::LINE_SECTORS));
        within(&key("cache.sectors"), lines as f64, 2.0, ControllerCacheSpec::LINES_MAX as f64, "lines")?;
        let most = (cache.sectors / 2) as f64;
        return within(
            &key("cache.read_ahead_sectors"),
            f64::from(cache.read_ahead_sectors),
            0.0,
            most,
            "sectors",
        );
    };
    let set = [
        ("line_sectors", cache.line_sectors.is_some()),
        ("read_ahead_sectors", cache.read_ahead_sectors > 0),
        ("read_ahead_evicts", cache.read_ahead_evicts),
        ("protected_ratio", cache.protected_ratio > 0.0),
        ("flush_period_ms", cache.flush_period_ms.is_some()),
        ("flush_cluster_lines", cache.flush_cluster_lines > 1),
    ];
    unused(|name| key(&format!("cache.{name}")), &set, "is for a cache in memory, not on a drive")?;
    within(&key("cache.sectors"), cache.sectors as f64, 1.0, f64::from(u32::MAX), "sectors")?;
    let names: Vec<String> = rig.drives().map(|drive| drive.name).collect();
    link(&key("cache.drive"), "drive", Some(name), names.iter().map(String::as_str))?;
    let own = drives_of(rig, controller);
    if own.len() != 2 || own.iter().all(|number| names[*number as usize] != *name) {
        let message = format!(
            "a cache on a drive needs two drives on the controller, `{name}` and the one that it caches; it has {}",
            own.len()
        );
        return Err(Fault::new(key("cache.drive"), message));
    }
    Ok(())
}

fn drives_of(rig: &RigSpec, controller: &ControllerSpec) -> Vec<u32> {
    let on_it = |group: usize| path(rig, group).1.is_some_and(|other| other.name == controller.name);
    let drives = rig.drives().enumerate().filter(|(_, drive)| on_it(drive.group));
    drives.map(|(number, _)| number as u32).collect()
}

/// The smart controllers, each with its drives and, if one of these is its cache, the indices of that drive and of the cached one.
pub(super) fn controllers(rig: &RigSpec) -> Vec<ControllerSetup<'_>> {
    let names: Vec<String> = rig.drives().map(|drive| drive.name).collect();
    let works = |one: &&ControllerSpec| one.kind == ControllerKind::Smart || one.delay_us > 0.0;
    let setup = |spec| {
        let drives = drives_of(rig, spec);
        let cache = spec.cache.as_ref().and_then(|cache| cache.drive.as_ref());
        let place = cache.and_then(|name| drives.iter().position(|drive| names[*drive as usize] == *name));
        ControllerSetup { spec, drives, cache: place.map(|place| (place as u32, 1 - place as u32)) }
    };
    let all = rig.controller.iter().filter(works).map(setup);
    all.filter(|setup| !setup.drives.is_empty()).collect()
}

/// A drive of a kind, with the limits of its path to the host.
pub(super) fn attached(rig: &RigSpec, group: usize) -> DriveSpec {
    let mut spec = rig.drive[group].spec.clone();
    let (bus, controller) = path(rig, group);
    let through = controller.map_or(0.0, |controller| controller.us_per_sector);
    let (read, write) = bus.map_or((0.0, 0.0), |bus| (bus.read_us_per_sector, bus.write_us_per_sector));
    let above = controller.and_then(|controller| links::above(rig, controller));
    let rates = [
        bus.and_then(RigBusSpec::link_rate),
        bus.and_then(RigBusSpec::rate),
        above.and_then(RigBusSpec::rate),
    ];
    let slowest = rates.into_iter().flatten().map(|rate| f64::from(spec.sector_bytes) * 1e6 / rate as f64);
    let through = slowest.fold(through, f64::max);
    let [host_read, host_write] = rig.host.us_per_sector(spec.sector_bytes);
    spec.bus.read_us_per_sector = spec.bus.read_us_per_sector.max(read).max(through).max(host_read);
    spec.bus.write_us_per_sector = spec.bus.write_us_per_sector.max(write).max(through).max(host_write);
    spec
}
