//! Buses and controllers: their keys, their checks, what of them is simulated, and what belongs to a drive.

use super::links;
use super::resolve::{Checked, check_names, link, within};
use super::spec::RigSpec;
use crate::controller::{ControllerCacheSpec, ControllerKind, ControllerSetup, ControllerSpec};
use headstack_model::DriveSpec;
use headstack_model::spec::Fault;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the drives on a bus share it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// Not shared: each drive has such a bus of its own.
    #[default]
    None,
    /// Transfers interleave. They share `mb_s` if it is given, and else do not delay each other.
    Interleaved,
    /// One drive at a time has the bus, for a command, for data or for a status, and must win it each time.
    Exclusive,
}

/// Which of several drives wins an exclusive bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ArbitrationRule {
    /// The one that has waited longest.
    #[default]
    Fifo,
    /// The last drive in the rig, as the highest SCSI id does.
    Priority,
}

/// The kind of a bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BusKind {
    /// Transfers cross it one at a time (parallel SCSI, ATA).
    #[default]
    Parallel,
    /// A ring of links that carry frames in both directions at once (SSA): adapter, first drive, second drive and so on, in the
    /// order of the file, and the adapter again. Two routes lead to each drive.
    SsaLoop,
}

/// A bus between drives and controller. The time of a sector is the maximum of the times of drive, bus and controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RigBusSpec {
    /// Its name.
    pub name: String,
    /// How the drives share it.
    pub sharing: Sharing,
    /// Time a sector takes to the host.
    pub read_us_per_sector: f64,
    /// Time a sector takes from the host.
    pub write_us_per_sector: f64,
    /// Time to win the bus, each time.
    pub arbitration_us: f64,
    /// Which waiting drive wins the bus.
    pub arbitration: ArbitrationRule,
    /// Rate in 10⁶ bytes a second that all transfers on an `interleaved` bus share: each gets what earlier transfers leave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mb_s: Option<f64>,
    /// The kind of the bus.
    pub kind: BusKind,
    /// Rate of a loop's link in each direction, in 10⁶ bytes a second. Default: 20 (SSA).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_mb_s: Option<f64>,
    /// Bytes in a loop's frame. Default: 128 (SSA).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame_bytes: Option<u32>,
    /// Links of a loop that are cut: 0 joins the adapter to the first drive, 1 the first drive to the second, and so on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cut_links: Vec<u32>,
    /// Time that a loop's adapter takes for each command; it handles one command at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command_us: Option<f64>,
    /// Name of the bus's controller; required only if the rig has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<String>,
}

impl Default for RigBusSpec {
    fn default() -> RigBusSpec {
        RigBusSpec {
            name: "bus".to_string(),
            sharing: Sharing::None,
            read_us_per_sector: 0.0,
            write_us_per_sector: 0.0,
            arbitration_us: 0.0,
            arbitration: ArbitrationRule::Fifo,
            mb_s: None,
            kind: BusKind::Parallel,
            link_mb_s: None,
            frame_bytes: None,
            cut_links: Vec::new(),
            command_us: None,
            controller: None,
        }
    }
}

/// Checks that buses and controllers fit each other and the drives.
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
        within(&key("read_us_per_sector"), bus.read_us_per_sector, 0.0, 1e6, "µs")?;
        within(&key("write_us_per_sector"), bus.write_us_per_sector, 0.0, 1e6, "µs")?;
        within(&key("arbitration_us"), bus.arbitration_us, 0.0, 1e6, "µs")?;
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
    within(&key("us_per_sector"), controller.us_per_sector, 0.0, 1e6, "µs")?;
    within(&key("delay_us"), controller.delay_us, 0.0, 1e6, "µs")?;
    if controller.kind == ControllerKind::PassThrough {
        let set = [
            ("queue_depth", controller.queue_depth.is_some()),
            ("order", controller.order.is_some()),
            ("merge", controller.merge.is_some()),
            ("drive_depth", controller.drive_depth.is_some()),
            ("cache", controller.cache.is_some()),
        ];
        if let Some((name, _)) = set.iter().find(|(_, is_set)| *is_set) {
            return Err(Fault::new(key(name), "is for a controller of `kind = \"smart\"`"));
        }
    }
    for (name, depth) in [("queue_depth", controller.queue_depth), ("drive_depth", controller.drive_depth)] {
        within(&key(name), f64::from(depth.unwrap_or(1)), 1.0, 65_536.0, "commands")?;
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
    within(&key("cache.sectors"), cache.sectors as f64, 1.0, 1e12, "sectors")?;
    within(&key("cache.line_sectors"), f64::from(cache.line_sectors.unwrap_or(1)), 1.0, 1e6, "sectors")?;
    within(&key("cache.protected_ratio"), cache.protected_ratio, 0.0, 0.95, "of the lines")?;
    within(&key("cache.flush_period_ms"), cache.flush_period_ms.unwrap_or(1.0), 1e-3, 1e9, "ms")?;
    within(&key("cache.flush_idle_ms"), cache.flush_idle_ms.unwrap_or(0.0), 0.0, 1e9, "ms")?;
    within(&key("cache.flush_cluster_lines"), f64::from(cache.flush_cluster_lines), 1.0, 4096.0, "lines")?;
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
        ("protected_ratio", cache.protected_ratio > 0.0),
        ("flush_period_ms", cache.flush_period_ms.is_some()),
        ("flush_cluster_lines", cache.flush_cluster_lines > 1),
    ];
    if let Some((of_memory, _)) = set.iter().find(|(_, is_set)| *is_set) {
        return Err(Fault::new(
            key(&format!("cache.{of_memory}")),
            "is for a cache in memory, not on a drive",
        ));
    }
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

/// The numbers of the drives on a controller.
fn drives_of(rig: &RigSpec, controller: &ControllerSpec) -> Vec<u32> {
    let on_it = |group: usize| path(rig, group).1.is_some_and(|other| other.name == controller.name);
    let drives = rig.drives().enumerate().filter(|(_, drive)| on_it(drive.group));
    drives.map(|(number, _)| number as u32).collect()
}

/// The smart controllers, each with the numbers of its drives and, if one of those is its cache, the indices of the cache drive
/// and of the cached drive among them.
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

/// The bus of a kind of drives and its controller.
pub(super) fn path(rig: &RigSpec, group: usize) -> (Option<&RigBusSpec>, Option<&ControllerSpec>) {
    let on = &rig.drive[group].keys.on;
    let bus = rig.bus.iter().find(|bus| on.as_ref().is_none_or(|name| *name == bus.name));
    let wanted = bus.and_then(|bus| bus.controller.as_ref());
    let controller = rig.controller.iter().find(|one| wanted.is_none_or(|name| *name == one.name));
    (bus, controller)
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
    let interface = rig.host.interface.as_ref().map_or(0.0, |host| host.us_per_sector(spec.sector_bytes));
    let through = slowest.fold(through.max(interface), f64::max);
    spec.bus.read_us_per_sector = spec.bus.read_us_per_sector.max(read).max(through);
    spec.bus.write_us_per_sector = spec.bus.write_us_per_sector.max(write).max(through);
    spec
}
