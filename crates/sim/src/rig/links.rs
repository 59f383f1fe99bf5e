//! The buses, loops and controllers that a rig's drives share on their way to the host.

use super::bus_spec::{ArbitrationRule, BusKind, RigBusSpec, Sharing};
use super::checks::{Checked, link, unused};
use super::spec::RigSpec;
use crate::controller::ControllerSpec;
use crate::link::{Arbitration, Links, RingShape, Way};
use headstack_model::Nanos;
use headstack_model::spec::Fault;

/// Maximum number of nodes of an SSA loop, the adapter included.
const NODES_MAX: usize = 127;

impl RigBusSpec {
    /// Bytes a second on each link of a loop.
    pub(super) fn link_rate(&self) -> Option<u64> {
        (self.kind == BusKind::SsaLoop).then(|| (self.link_mb_s.unwrap_or(20.0) * 1e6).round() as u64)
    }

    fn ring(&self, drives: usize) -> Option<RingShape> {
        Some(RingShape {
            drives: drives as u32,
            link_rate: self.link_rate()?,
            frame_bytes: self.frame_bytes.unwrap_or(128),
            cut: self.cut_links.clone(),
            command: Nanos::from_us(self.command_us.unwrap_or(0.0)),
        })
    }

    /// Bytes a second that all transfers share, for an interleaved bus with a rate.
    pub(super) fn rate(&self) -> Option<u64> {
        self.mb_s.map(|mb_s| (mb_s * 1e6).round() as u64)
    }

    /// How a bus of this kind is won; an interleaved one never is.
    fn arbitration(&self) -> Option<Arbitration> {
        let takes = Nanos::from_us(self.arbitration_us);
        let by_priority = self.arbitration == ArbitrationRule::Priority;
        (self.kind == BusKind::Parallel && self.sharing != Sharing::Interleaved)
            .then_some(Arbitration { takes, by_priority })
    }

    fn check_rate(&self, key: impl Fn(&str) -> String) -> Checked {
        if self.mb_s.is_some() && self.sharing != Sharing::Interleaved {
            return Err(Fault::new(key("mb_s"), "is for a bus of `sharing = \"interleaved\"`"));
        }
        if self.arbitration_us > 0.0 && self.arbitration().is_none() {
            return Err(Fault::new(key("arbitration_us"), "is for a bus that drives have to win"));
        }
        Ok(())
    }

    fn check(&self, names: &[String], key: impl Fn(&str) -> String) -> Checked {
        self.check_rate(&key)?;
        let Some(ring) = self.ring(names.len()) else {
            let set = [
                ("link_mb_s", self.link_mb_s.is_some()),
                ("frame_bytes", self.frame_bytes.is_some()),
                ("cut_links", !self.cut_links.is_empty()),
                ("command_us", self.command_us.is_some()),
            ];
            return unused(key, &set, "is for a bus of `kind = \"ssa-loop\"`");
        };
        if self.sharing != Sharing::None {
            return Err(Fault::new(
                key("sharing"),
                "is for a bus of `kind = \"parallel\"`; a loop is always shared",
            ));
        }
        if names.len() >= NODES_MAX {
            let message = format!("{} drives stand on it, and a loop takes {}", names.len(), NODES_MAX - 1);
            return Err(Fault::new(key("kind"), message));
        }
        if let Some(cut) = ring.cut.iter().find(|cut| **cut > ring.drives) {
            let message = format!("{cut} is beyond the links of this loop, 0 to {}", ring.drives);
            return Err(Fault::new(key("cut_links"), message));
        }
        match ring.unreachable() {
            Some(drive) => {
                let message = format!("leave no route to `{}`", names[drive as usize]);
                Err(Fault::new(key("cut_links"), message))
            }
            None => Ok(()),
        }
    }
}

pub(super) fn path(rig: &RigSpec, group: usize) -> (Option<&RigBusSpec>, Option<&ControllerSpec>) {
    let on = &rig.drive[group].keys.on;
    let bus = rig.bus.iter().find(|bus| on.as_ref().is_none_or(|name| *name == bus.name));
    let wanted = bus.and_then(|bus| bus.controller.as_ref());
    let controller = rig.controller.iter().find(|one| wanted.is_none_or(|name| *name == one.name));
    (bus, controller)
}

/// The drives on a bus, by number in the rig, with their names.
fn drives_on(rig: &RigSpec, bus: usize) -> Vec<(usize, String)> {
    let is_on = |group: usize| path(rig, group).0.is_some_and(|one| one.name == rig.bus[bus].name);
    let each = rig.drives().enumerate().filter(|(_, drive)| is_on(drive.group));
    each.map(|(number, drive)| (number, drive.name)).collect()
}

/// Checks that a drive without a buffer has a path that carries its data sector by sector: neither frames, nor a processor that moves
/// the words of a block at once.
fn check_unbuffered(rig: &RigSpec) -> Checked {
    let unbuffered = |index: &usize| !rig.drive[*index].spec.cache.buffered;
    for index in (0..rig.drive.len()).filter(unbuffered) {
        let key = format!("drive[{index}].cache.buffered");
        if path(rig, index).0.is_some_and(|bus| bus.kind == BusKind::SsaLoop) {
            return Err(Fault::new(key, "false needs a parallel bus; a loop's drives hold whole frames"));
        }
        if rig.host.interface.is_some() {
            return Err(Fault::new(
                key,
                "false is not modelled with `[host.interface]`; remove one of the two",
            ));
        }
    }
    Ok(())
}

pub(super) fn check(rig: &RigSpec) -> Checked {
    check_unbuffered(rig)?;
    for (index, bus) in rig.bus.iter().enumerate() {
        let names: Vec<String> = drives_on(rig, index).into_iter().map(|(_, name)| name).collect();
        bus.check(&names, |name| format!("bus[{index}].{name}"))?;
    }
    for (index, controller) in rig.controller.iter().enumerate() {
        let key = format!("controller[{index}].on");
        let names = rig.bus.iter().map(|bus| bus.name.as_str());
        if let Some(name) = &controller.on {
            link(&key, "bus", Some(name), names)?;
        }
        if let Some(bus) = above(rig, controller).filter(|bus| bus.mb_s.is_none()) {
            let message = format!("`{}` has no `mb_s` for controllers to share", bus.name);
            return Err(Fault::new(key, message));
        }
    }
    Ok(())
}

pub(super) fn above<'a>(rig: &'a RigSpec, controller: &ControllerSpec) -> Option<&'a RigBusSpec> {
    rig.bus.iter().find(|bus| controller.on.as_ref() == Some(&bus.name))
}

/// Groups of drives, by number, that share something.
pub(super) fn shared(rig: &RigSpec) -> Vec<Vec<usize>> {
    let numbers = |bus: usize| drives_on(rig, bus).into_iter().map(|(number, _)| number);
    let is_shared = |bus: &RigBusSpec| {
        bus.kind == BusKind::SsaLoop || bus.sharing == Sharing::Exclusive || bus.mb_s.is_some()
    };
    let mut lists: Vec<Vec<usize>> = Vec::new();
    for (index, bus) in rig.bus.iter().enumerate().filter(|(_, bus)| is_shared(bus)) {
        let controllers = rig.drives().enumerate().filter_map(|(number, drive)| {
            let controller = path(rig, drive.group).1?;
            (controller.on.as_ref() == Some(&bus.name)).then_some(number)
        });
        lists.push(numbers(index).chain(controllers).collect());
    }
    if rig.host.processor().is_some() {
        lists.push((0..rig.drives().count()).collect());
    }
    lists
}

/// The shared links; none if each drive has a path of its own.
pub(super) fn links(rig: &RigSpec) -> Option<Links> {
    let mut links = Links::new(rig.drives().count());
    let rates: Vec<Option<u32>> =
        rig.bus.iter().map(|bus| Some(links.add_rate(&bus.name, bus.rate()?))).collect();
    let rate_of = |wanted: &RigBusSpec| rates[rig.bus.iter().position(|bus| bus.name == wanted.name)?];
    for (index, bus) in rig.bus.iter().enumerate() {
        let drives = drives_on(rig, index);
        let ring = bus.ring(drives.len()).map(|ring| links.add_ring(&bus.name, &ring));
        let arbitration = bus.arbitration();
        let one_for_all = arbitration.filter(|_| bus.sharing == Sharing::Exclusive);
        let shared = one_for_all.map(|arbitration| links.add_bus(&bus.name, arbitration));
        for (place, (number, _)) in drives.iter().enumerate() {
            let (_, controller) = path(rig, rig.drives().nth(*number).map_or(0, |drive| drive.group));
            let above = controller.and_then(|controller| above(rig, controller));
            let own = arbitration.filter(|rule| shared.is_none() && rule.takes > Nanos::ZERO);
            *links.way(*number) = Way {
                ring: ring.map(|ring| (ring, place as u32)),
                bus: shared.or_else(|| own.map(|arbitration| links.add_bus(&bus.name, arbitration))),
                rates: [rate_of(bus), above.and_then(rate_of)],
            };
        }
    }
    rig.host.add_processor(&mut links);
    links.is_any().then_some(links)
}
