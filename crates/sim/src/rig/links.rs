//! What the drives of a rig share on their way to the host.

use super::attach::{BusKind, RigBusSpec, Sharing, path};
use super::resolve::{Checked, within};
use super::spec::RigSpec;
use crate::link::{Links, RingShape, Way};
use headstack_model::Nanos;
use headstack_model::spec::Fault;

/// Nodes that an SSA loop may have, the adapter among them.
const NODES_MAX: usize = 127;

impl RigBusSpec {
    /// Bytes a second on each link, of a loop.
    pub(super) fn link_rate(&self) -> Option<u64> {
        (self.kind == BusKind::SsaLoop).then(|| (self.link_mb_s.unwrap_or(20.0) * 1e6).round() as u64)
    }

    /// The loop that it is, with so many drives.
    fn ring(&self, drives: usize) -> Option<RingShape> {
        Some(RingShape {
            drives: drives as u32,
            link_rate: self.link_rate()?,
            frame_bytes: self.frame_bytes.unwrap_or(128),
            cut: self.cut_links.clone(),
            command: Nanos::from_us(self.command_us.unwrap_or(0.0)),
        })
    }

    fn check(&self, names: &[String], key: impl Fn(&str) -> String) -> Checked {
        let Some(ring) = self.ring(names.len()) else {
            let set = [
                ("link_mb_s", self.link_mb_s.is_some()),
                ("frame_bytes", self.frame_bytes.is_some()),
                ("cut_links", !self.cut_links.is_empty()),
                ("command_us", self.command_us.is_some()),
            ];
            return match set.iter().find(|(_, is_set)| *is_set) {
                Some((name, _)) => Err(Fault::new(key(name), "is for a bus of `kind = \"ssa-loop\"`")),
                None => Ok(()),
            };
        };
        within(&key("link_mb_s"), self.link_mb_s.unwrap_or(20.0), 0.001, 1e6, "MB/s")?;
        within(&key("frame_bytes"), f64::from(ring.frame_bytes), 1.0, 1e6, "bytes")?;
        within(&key("command_us"), self.command_us.unwrap_or(0.0), 0.0, 1e6, "µs")?;
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

/// The drives on a bus, by number in the rig, with their names.
fn drives_on(rig: &RigSpec, bus: usize) -> Vec<(usize, String)> {
    let is_on = |group: usize| path(rig, group).0.is_some_and(|one| one.name == rig.bus[bus].name);
    let each = rig.drives().enumerate().filter(|(_, drive)| is_on(drive.group));
    each.map(|(number, drive)| (number, drive.name)).collect()
}

/// Whether shared buses hold.
pub(super) fn check(rig: &RigSpec) -> Checked {
    for (index, bus) in rig.bus.iter().enumerate() {
        let names: Vec<String> = drives_on(rig, index).into_iter().map(|(_, name)| name).collect();
        bus.check(&names, |name| format!("bus[{index}].{name}"))?;
    }
    Ok(())
}

/// What the drives share; none where each has its way to itself.
pub(super) fn links(rig: &RigSpec) -> Option<Links> {
    let mut ways = vec![Way::default(); rig.drives().count()];
    let mut rings = Vec::new();
    for (index, bus) in rig.bus.iter().enumerate() {
        let drives = drives_on(rig, index);
        let Some(ring) = bus.ring(drives.len()) else { continue };
        for (place, (number, _)) in drives.iter().enumerate() {
            ways[*number].ring = Some((rings.len() as u32, place as u32));
        }
        rings.push((bus.name.clone(), ring));
    }
    (!rings.is_empty()).then(|| Links::new(rings, ways))
}
