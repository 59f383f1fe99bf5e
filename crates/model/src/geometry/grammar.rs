//! Places to tracks for the layout `extents`: a grammar of repeated runs.
//!
//! A look-up descends from the disk to a track, one group a level: it finds the run by the place, divides by the length of what
//! the run repeats, and adds up cylinders and angles. Not checked: that no two runs claim one sector.

use super::TrackSpan;
use super::finder::Finder;
use super::fixed::{Divisor, SectorWidth, Turns};
use super::pieces::{Move, Pieces};
use crate::Angle;
use crate::spec::{ExtentRemap, ExtentRun, Extents, Fault, GeometrySpec, Repeated, TrackKind};

/// Groups within groups; real layouts need two.
const DEEPEST: u32 = 16;

/// A run, with the totals of its child.
#[derive(Clone, Debug)]
struct Run {
    of: Repeated,
    /// First place within the group.
    first: u64,
    /// Places of one child.
    length: Divisor,
    times: u64,
    cylinder: i64,
    cylinder_step: i64,
    angle: Turns,
    angle_step: Turns,
    /// Lowest and highest cylinder of one child, relative to the child's own cylinder.
    child: (i64, i64),
    /// Highest cylinder of this run and of all runs with a lower lowest cylinder, for the search by cylinder.
    reach: i64,
}

impl Run {
    /// Lowest and highest cylinder, relative to the group's cylinder.
    fn span(&self) -> (i64, i64) {
        let last = self.cylinder.saturating_add(self.cylinder_step.saturating_mul(self.times as i64 - 1));
        (
            self.cylinder.min(last).saturating_add(self.child.0),
            self.cylinder.max(last).saturating_add(self.child.1),
        )
    }
}

#[derive(Clone, Debug)]
struct Group {
    by_place: Finder,
    runs: Vec<Run>,
    by_cylinder: Vec<u32>,
    places: u64,
    /// Lowest and highest cylinder.
    span: (i64, i64),
    depth: u32,
}

#[derive(Clone, Copy, Debug)]
struct Kind {
    kind: TrackKind,
    width: SectorWidth,
}

/// A run of remapped blocks on spare sectors, which are not places of their track.
#[derive(Clone, Copy, Debug)]
struct Elsewhere {
    /// Its first place, beyond those of the disk.
    first: u64,
    sectors: u32,
    cylinder: u32,
    head: u32,
    sector: u32,
    kind: Kind,
    /// Angle of the track's sector 0.
    angle: Angle,
}

#[derive(Clone, Debug)]
pub(super) struct Grammar {
    kinds: Vec<Kind>,
    groups: Vec<Group>,
    elsewhere: Vec<Elsewhere>,
}

impl Grammar {
    pub(super) fn new(spec: &GeometrySpec, extents: &Extents) -> Result<Grammar, Fault> {
        let mut kinds = Vec::new();
        for (index, kind) in extents.tracks.iter().enumerate() {
            let end = kind.first_sector.checked_add(kind.sectors);
            let fits = end.is_some_and(|end| end <= kind.sectors_per_track);
            if kind.sectors == 0 || !fits || kind.sectors_per_track > 65_535 {
                let message = "[first, sectors, sectors of the track]: 1 to 65535 sectors, within the track";
                return Err(Fault::new(format!("geometry.extents.tracks[{index}]"), message));
            }
            kinds.push(Kind { kind: *kind, width: SectorWidth::new(kind.sectors_per_track) });
        }
        let mut grammar = Grammar { kinds, groups: Vec::new(), elsewhere: Vec::new() };
        for (index, runs) in extents.groups.iter().enumerate() {
            let group = grammar.group(runs, spec.heads).map_err(|(run, message)| {
                Fault::new(format!("geometry.extents.groups[{index}][{run}]"), message)
            })?;
            grammar.groups.push(group);
        }
        let Some(disk) = grammar.groups.last() else {
            return Err(Fault::new("geometry.extents.groups", "there is none; the last is the disk"));
        };
        if disk.span.0 < 0 || disk.span.1 >= i64::from(spec.cylinders) {
            let (low, high) = disk.span;
            let message =
                format!("the runs cover cylinders {low} to {high}, the disk has {}", spec.cylinders);
            return Err(Fault::new("geometry.extents.groups", message));
        }
        Ok(grammar)
    }

    /// Builds a group from runs of track kinds and of earlier groups.
    ///
    /// *Errors:* the index of the faulty run, and what is wrong.
    fn group(&self, runs: &[ExtentRun], heads: u32) -> Result<Group, (usize, String)> {
        let mut group = Vec::new();
        let (mut places, mut depth) = (0u64, 0);
        for (index, run) in runs.iter().enumerate() {
            let at = |message: &str| (index, message.to_string());
            let (length, child, below) = match run.of {
                Repeated::Track { head, .. } if head >= heads => {
                    return Err((index, format!("head {head} of {heads}")));
                }
                Repeated::Track { kind, .. } => {
                    let kind = self.kinds.get(kind as usize).ok_or_else(|| at("no such kind of track"))?;
                    (u64::from(kind.kind.sectors), (0, 0), 0)
                }
                Repeated::Group(group) => {
                    let group =
                        self.groups.get(group as usize).ok_or_else(|| at("no such group before this"))?;
                    (group.places, group.span, group.depth)
                }
            };
            let sectors = length.checked_mul(u64::from(run.times)).and_then(|n| n.checked_add(places));
            let Some(end) = sectors.filter(|end| *end < 1 << 50 && run.times > 0) else {
                return Err(at("its blocks are none or too many"));
            };
            if !run.angle_turns.is_finite() || !run.angle_step_turns.is_finite() {
                return Err(at("angles are finite"));
            }
            if run.times > 1 && run.cylinder_step == 0 {
                return Err(at("repeated without a step of cylinders, it lies upon itself"));
            }
            depth = depth.max(below + 1);
            group.push(Run {
                of: run.of,
                first: places,
                length: Divisor::new(length),
                times: u64::from(run.times),
                cylinder: i64::from(run.cylinder),
                cylinder_step: i64::from(run.cylinder_step),
                angle: Turns::of_turns(run.angle_turns),
                angle_step: Turns::of_turns(run.angle_step_turns),
                child,
                reach: 0,
            });
            places = end;
            let (low, high) = group[index].span();
            if low < -(1 << 40) || high > 1 << 40 {
                return Err(at("its cylinders are too many"));
            }
        }
        if group.is_empty() || depth > DEEPEST {
            return Err((0, format!("a group has runs, and at most {DEEPEST} levels below it")));
        }
        Ok(Group::new(group, places, depth))
    }

    fn disk(&self) -> &Group {
        self.groups.last().expect("a grammar has a last group")
    }

    /// Sectors that hold data.
    pub(super) fn places(&self) -> u64 {
        self.disk().places
    }

    #[inline]
    pub(super) fn span_at(&self, place: u64) -> TrackSpan {
        let mut group = self.disk();
        if place >= group.places {
            return self.elsewhere(place);
        }
        let (mut rest, mut cylinder, mut turns) = (place, 0i64, Turns::default());
        loop {
            let index = group.by_place.find(rest).expect("the first run begins at place 0");
            let run = &group.runs[index];
            let (times, into) = run.length.divide(rest - run.first);
            cylinder += run.cylinder + run.cylinder_step * times as i64;
            turns = turns.plus(run.angle).plus(run.angle_step.times(times));
            rest = into;
            match run.of {
                Repeated::Group(index) => group = &self.groups[index as usize],
                Repeated::Track { head, kind } => {
                    let Kind { kind, width } = self.kinds[kind as usize];
                    return TrackSpan {
                        start: place - rest,
                        places: kind.sectors,
                        first_sector: kind.first_sector,
                        sectors_per_track: kind.sectors_per_track,
                        cylinder: cylinder as u32,
                        head,
                        angle: turns.angle() - width.start(kind.first_sector),
                        width,
                    };
                }
            }
        }
    }

    fn elsewhere(&self, place: u64) -> TrackSpan {
        let index = self.elsewhere.partition_point(|run| run.first <= place);
        let run = &self.elsewhere[index - 1];
        TrackSpan {
            start: run.first,
            places: run.sectors,
            first_sector: run.sector,
            sectors_per_track: run.kind.kind.sectors_per_track,
            cylinder: run.cylinder,
            head: run.head,
            angle: run.angle,
            width: run.kind.width,
        }
    }

    /// The place of a sector, if it has one.
    pub(super) fn find(&self, cylinder: u32, head: u32, sector: u32) -> Option<u64> {
        let on = |run: &&Elsewhere| (run.cylinder, run.head) == (cylinder, head);
        let holds = |run: &&Elsewhere| (run.sector..run.sector + run.sectors).contains(&sector);
        if let Some(run) = self.elsewhere.iter().filter(on).find(holds) {
            return Some(run.first + u64::from(sector - run.sector));
        }
        let wanted = Wanted { head, sector: Some(sector) };
        let (first, kind) = self.search(self.disk(), i64::from(cylinder), wanted)?;
        Some(first + u64::from(sector - self.kinds[kind as usize].kind.first_sector))
    }

    /// First place and kind of a track in a group; if `wanted` names a sector, of the part of the track that holds it.
    fn search(&self, group: &Group, cylinder: i64, wanted: Wanted) -> Option<(u64, u32)> {
        let candidates =
            group.by_cylinder.partition_point(|run| group.runs[*run as usize].span().0 <= cylinder);
        for index in group.by_cylinder[..candidates].iter().rev() {
            let run = &group.runs[*index as usize];
            if run.reach < cylinder {
                break;
            }
            if let Repeated::Track { head, .. } = run.of
                && head != wanted.head
            {
                continue;
            }
            for times in run.children_over(cylinder) {
                let offset = run.first + times * run.length.value();
                let found = match run.of {
                    Repeated::Track { kind, .. } => {
                        let TrackKind { first_sector, sectors, .. } = self.kinds[kind as usize].kind;
                        let holds = |sector: u32| sector >= first_sector && sector - first_sector < sectors;
                        wanted.sector.is_none_or(holds).then_some((0, kind))
                    }
                    Repeated::Group(child) => {
                        let own = run.cylinder + run.cylinder_step * times as i64;
                        self.search(&self.groups[child as usize], cylinder - own, wanted)
                    }
                };
                if let Some((first, kind)) = found {
                    return Some((offset + first, kind));
                }
            }
        }
        None
    }

    /// Applies the remaps to blocks below `sectors`.
    ///
    /// *Errors:* blocks that are not there or remapped twice; spares that are off the tracks or not free.
    pub(super) fn remap(
        &mut self,
        pieces: &mut Pieces,
        remaps: &[ExtentRemap],
        sectors: u64,
    ) -> Result<(), Fault> {
        let mut moves: Vec<Move> = Vec::new();
        for (index, remap) in remaps.iter().enumerate() {
            let fault = |what| Fault::new(format!("geometry.extents.remaps[{index}]"), what);
            let end = remap.lbn.checked_add(u64::from(remap.sectors)).filter(|end| *end <= sectors);
            let end = end.ok_or_else(|| fault(format!("its blocks are not all below {sectors}")))?;
            self.check_free(pieces, remap).map_err(fault)?;
            let place = self.reserve(remap).map_err(fault)?;
            let mut first = remap.lbn;
            while first < end {
                let to = end.min(pieces.home_end(first));
                let place = place + (first - remap.lbn);
                moves.push(Move { first, sectors: to - first, zone: 0, place, push: 0 });
                first = to;
            }
        }
        moves.sort_unstable_by_key(|step| step.first);
        if let Some(pair) = moves.windows(2).find(|pair| pair[0].first + pair[0].sectors > pair[1].first) {
            let message = format!("block {} is remapped twice", pair[1].first);
            return Err(Fault::new("geometry.extents.remaps", message));
        }
        if !moves.is_empty() {
            pieces.remap(&moves);
        }
        Ok(())
    }

    /// Checks that no block lies on the spare sectors of a remap.
    fn check_free(&self, pieces: &Pieces, remap: &ExtentRemap) -> Result<(), String> {
        // Sectors beyond the longest track are for `reserve` to refuse.
        for sector in remap.sector..remap.sector.saturating_add(remap.sectors.min(65_536)) {
            let taken = self
                .find(remap.cylinder, remap.head, sector)
                .is_some_and(|place| place >= self.places() || pieces.resident(0, place).is_some());
            if taken {
                return Err(format!("sector {sector} of its track is not free"));
            }
        }
        Ok(())
    }

    /// Adds the spares of a remap as places beyond those of the disk; returns the first.
    fn reserve(&mut self, remap: &ExtentRemap) -> Result<u64, String> {
        let ExtentRemap { sectors, cylinder, head, sector, .. } = *remap;
        let wanted = Wanted { head, sector: None };
        let found = self.search(self.disk(), i64::from(cylinder), wanted);
        let (track, kind) = found.ok_or("its track is none of the layout")?;
        let kind = self.kinds[kind as usize];
        let end = sector.checked_add(sectors).filter(|end| *end <= kind.kind.sectors_per_track);
        if end.is_none() || sectors == 0 {
            return Err(format!("{sectors} sectors from {sector} on are not on their track"));
        }
        let last = self.elsewhere.last();
        let first = last.map_or(self.places(), |run| run.first + u64::from(run.sectors));
        let angle = self.span_at(track).angle;
        self.elsewhere.push(Elsewhere { first, sectors, cylinder, head, sector, kind, angle });
        Ok(first)
    }
}

#[derive(Clone, Copy)]
struct Wanted {
    head: u32,
    sector: Option<u32>,
}

impl Group {
    fn new(mut runs: Vec<Run>, places: u64, depth: u32) -> Group {
        let mut by_cylinder: Vec<u32> = (0..runs.len() as u32).collect();
        by_cylinder.sort_by_key(|index| runs[*index as usize].span().0);
        let mut reach = i64::MIN;
        for index in &by_cylinder {
            let run = &mut runs[*index as usize];
            reach = reach.max(run.span().1);
            run.reach = reach;
        }
        let low = runs[by_cylinder[0] as usize].span().0;
        let by_place = Finder::new(runs.iter().map(|run| run.first).collect());
        Group { by_place, runs, by_cylinder, places, span: (low, reach), depth }
    }
}

impl Run {
    /// Numbers of the children whose cylinders include `cylinder`.
    fn children_over(&self, cylinder: i64) -> std::ops::Range<u64> {
        // cylinder − child.1 <= self.cylinder + step · n <= cylinder − child.0
        let (low, high) = (cylinder - self.child.1 - self.cylinder, cylinder - self.child.0 - self.cylinder);
        let (low, high, step) = match self.cylinder_step {
            0 if low <= 0 && high >= 0 => return 0..self.times,
            0 => return 0..0,
            step if step < 0 => (-high, -low, -step),
            step => (low, high, step),
        };
        if high < 0 {
            return 0..0;
        }
        let from = if low <= 0 { 0 } else { (low as u64).div_ceil(step as u64) };
        let to = (high as u64 / step as u64 + 1).min(self.times);
        from..to.max(from)
    }
}
