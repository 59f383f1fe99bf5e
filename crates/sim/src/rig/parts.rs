//! Splits a rig into parts that share nothing, so that they can run separately.

use super::attach;
use super::links::{self, path};
use super::spec::{DriveGroup, GroupKeys, RigSpec};
use super::{ArraySpec, Rig};

impl Rig {
    /// Rigs that together are this one and share nothing with each other: no array, no bus that drives compete for, no smart
    /// controller, no processor of the host. Volumes and drives keep their names and their random numbers. Set keys before the
    /// split, not in a part.
    pub fn parts(&self) -> Vec<Rig> {
        let mut groups = Groups::new(self.resolved.drives().count());
        for array in &self.resolved.array {
            groups.join(&array_numbers(array, &self.resolved));
        }
        links::shared(&self.resolved).iter().for_each(|drives| groups.join(drives));
        for setup in attach::controllers(&self.resolved) {
            groups.join(&setup.drives.iter().map(|number| *number as usize).collect::<Vec<_>>());
        }
        match groups.lists() {
            lists if lists.len() == 1 => vec![self.clone()],
            lists => lists.iter().map(|drives| self.part(drives)).collect(),
        }
    }

    fn part(&self, numbers: &[usize]) -> Rig {
        let whole = &self.resolved;
        let all: Vec<_> = whole.drives().collect();
        let group = |number: &usize| {
            let drive = &all[*number];
            let on = whole.drive[drive.group].keys.on.clone();
            let preset = whole.drive[drive.group].keys.preset.clone();
            let keys = GroupKeys { preset, count: 1, volume: Some(drive.name.clone()), on };
            DriveGroup { keys, spec: drive.spec.clone() }
        };
        let named = |list: &[usize]| list.iter().map(|number| all[*number].name.clone()).collect();
        let arrays = whole.array.iter().filter_map(|array| {
            let [members, spares] = array_parts(array, whole);
            let is_here = members.iter().all(|number| numbers.contains(number));
            is_here.then(|| ArraySpec { drives: named(&members), spares: named(&spares), ..array.clone() })
        });
        let mut spec = RigSpec {
            drive: numbers.iter().map(group).collect(),
            array: arrays.collect(),
            devices: Default::default(),
            ..whole.clone()
        };
        let paths = numbers.iter().map(|number| path(whole, all[*number].group));
        let (buses, controllers): (Vec<_>, Vec<_>) = paths.unzip();
        spec.controller.retain(|one| controllers.iter().flatten().any(|used| used.name == one.name));
        let above: Vec<_> = spec.controller.iter().filter_map(|one| one.on.clone()).collect();
        spec.bus.retain(|bus| {
            buses.iter().flatten().any(|used| used.name == bus.name) || above.contains(&bus.name)
        });
        let seeds = numbers.iter().map(|number| self.seed_place(*number)).collect();
        Rig { resolved: spec, seeds, ..self.clone() }
    }
}

fn array_parts(array: &ArraySpec, rig: &RigSpec) -> [Vec<usize>; 2] {
    let drives = array.drives(rig).expect("the rig was checked");
    let members: Vec<usize> = drives.members.iter().map(|drive| drive.number).collect();
    let spares = drives.numbers().skip(members.len()).collect();
    [members, spares]
}

fn array_numbers(array: &ArraySpec, rig: &RigSpec) -> Vec<usize> {
    array_parts(array, rig).concat()
}

/// Numbers in disjoint groups.
struct Groups(Vec<usize>);

impl Groups {
    fn new(count: usize) -> Groups {
        Groups((0..count).collect())
    }

    /// Joins the groups of these numbers into one.
    fn join(&mut self, numbers: &[usize]) {
        let Groups(group) = self;
        let Some(first) = numbers.iter().map(|number| group[*number]).min() else { return };
        let joined: Vec<usize> = numbers.iter().map(|number| group[*number]).collect();
        group.iter_mut().filter(|of| joined.contains(of)).for_each(|of| *of = first);
    }

    /// The groups, by their first numbers.
    fn lists(&self) -> Vec<Vec<usize>> {
        let Groups(group) = self;
        let members = |first: usize| (0..group.len()).filter(move |number| group[*number] == first).collect();
        (0..group.len()).map(members).filter(|list: &Vec<usize>| !list.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::rig::{Rig, shipped};
    use headstack_model::{Instant, drives};
    use headstack_workload::{Closed, Load, Pattern, Region, Shape};

    fn rig(text: &str) -> Rig {
        Rig::parse(text, "rig", &mut |name| drives::load(name)).expect("the rig is good")
    }

    fn names(rig: &Rig) -> Vec<Vec<String>> {
        let parts = rig.parts();
        parts.iter().map(|part| part.volumes().into_iter().map(|volume| volume.name).collect()).collect()
    }

    #[test]
    fn every_drive_of_a_node_is_a_separate_part() {
        let node = shipped::load("node").expect("it is shipped");
        let parts = names(&node);
        assert_eq!(parts.len(), 12);
        assert_eq!(
            (&parts[0][..], &parts[11][..]),
            (&["data0".to_string()][..], &["data11".to_string()][..])
        );
    }

    #[test]
    fn drives_with_shared_resources_stay_in_one_part() {
        let arrays = "[[drive]]\npreset = \"wd800jd\"\ncount = 5\nvolume = \"d\"\n[[array]]\nname = \"a\"\n\
                      organisation = \"mirroring\"\ndrives = [\"d1\", \"d3\"]\n[[array]]\nname = \"b\"\n\
                      organisation = \"mirroring\"\ndrives = [\"d2\", \"d4\"]\n";
        assert_eq!(names(&rig(arrays)), [["d0"], ["a"], ["b"]]);
        let interface = format!("{arrays}[host.interface]\nkind = \"pio-0\"\n");
        assert_eq!(names(&rig(&interface)).len(), 1);
        let bus = "[drive]\npreset = \"wd800jd\"\ncount = 3\n[bus]\nsharing = \"exclusive\"\n";
        assert_eq!(names(&rig(bus)), [["disk0", "disk1", "disk2"]]);
        for one in ["smart-controller", "ssa-loop", "raid5", "mirror"] {
            assert_eq!(shipped::load(one).expect("it is shipped").parts().len(), 1, "{one}");
        }
    }

    /// The completion times of a load's requests to one volume.
    fn times(rig: &Rig, volume: u32) -> Vec<Instant> {
        let sectors = rig.volumes()[volume as usize].sectors;
        let region = Region::whole(sectors);
        let shape = Shape { region, pattern: Pattern::Random, sectors: 8, alignment: 8, read_share: 0.5 };
        let load: Box<dyn Load> = Box::new(Closed::new(shape, 4, 200, 7).expect("it fits"));
        let member = headstack_workload::Member { load, device: volume, sources: 1 };
        let mut load =
            headstack_workload::Mix::new(vec![member], 200, Instant::MAX).expect("it has a member");
        let mut times = Vec::new();
        let mut engine = rig.build(5).expect("the rig is good");
        engine.run(&mut load, &mut |finished| times.push(finished.completion.completed));
        times
    }

    #[test]
    fn part_completes_requests_as_in_the_whole_rig() {
        let text = "[[drive]]\npreset = \"wd800jd\"\ncount = 3\n[[drive]]\npreset = \"exos-x18\"\n[[array]]\n\
                    organisation = \"striping\"\nstripe_unit_sectors = 64\ndrives = [\"disk0\", \"disk2\"]\n";
        let whole = rig(text);
        let parts = whole.parts();
        let all: Vec<_> = whole.volumes();
        assert_eq!(parts.len(), 3);
        for part in &parts {
            let volume = &part.volumes()[0];
            let number = all.iter().position(|one| one == volume).expect("it is in the whole");
            assert_eq!(times(part, 0), times(&whole, number as u32), "{}", volume.name);
        }
    }
}
