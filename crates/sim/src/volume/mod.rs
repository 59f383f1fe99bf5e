//! Volumes: what a load asks, as devices. A volume is one device, or an array of several.
//!
//! A request for an array forks into pieces, one for each access of a device, in phases: the pieces of a phase are asked
//! together, and the next phase begins when the last of them has come back. The request ends with its slowest piece. Its
//! time split is that of the slowest piece of each phase, one after the other, so that it adds up.
//!
//! A spare is filled by steps that nobody waits for, each of which begins when the one before is done and the rate allows it,
//! for as long as the load runs.
//!
//! What an array does for a request is [`headstack_policy::stripe`]'s to say; here is what it takes to do it.

use crate::device::{Completion, Device, TimeSplit};
use crate::host::{Piece, Station};
use headstack_model::{Lbn, Nanos, Op, Request};
use headstack_policy::stripe::{Access, Array, Members, Plan};

/// What a load asks as one run of blocks.
#[derive(Debug)]
pub(crate) enum Volume {
    /// A device by itself.
    Device(u32),
    /// Several as one.
    Array(Box<ArrayVolume>),
}

impl Volume {
    /// The first of its devices.
    pub(crate) fn first_device(&self) -> u32 {
        match self {
            Volume::Device(device) => *device,
            Volume::Array(array) => array.devices[0],
        }
    }

    /// Blocks that a load can ask, where its first device is this one.
    pub(crate) fn sectors(&self, first: &Device) -> u64 {
        match self {
            Volume::Device(_) => first.sectors(),
            Volume::Array(array) => array.sectors(),
        }
    }
}

/// Devices that look like one: an array's members, and its spares.
#[derive(Debug)]
pub struct ArrayVolume {
    array: Array,
    /// The device of each member, and of each spare behind them.
    devices: Vec<u32>,
    rebuild: Rebuild,
}

impl ArrayVolume {
    /// An array whose members, and spares behind them, are the devices of these numbers.
    pub fn new(array: Array, devices: Vec<u32>) -> ArrayVolume {
        ArrayVolume { array, devices, rebuild: Rebuild::default() }
    }

    /// The same, with spares filled at this rate at most.
    pub fn rebuilt_at(self, bytes_a_second: u64) -> ArrayVolume {
        ArrayVolume { rebuild: Rebuild { bytes_a_second: Some(bytes_a_second), ..self.rebuild }, ..self }
    }

    /// The numbers of its devices.
    pub fn devices(&self) -> &[u32] {
        &self.devices
    }

    /// Blocks of spares that have been filled, and those of all spares.
    pub(crate) fn rebuilt(&self) -> (u64, u64) {
        self.array.progress()
    }

    /// Plans the next step of filling spares; none where all is filled.
    pub(crate) fn plan_rebuild(&mut self, now: Nanos, plan: &mut Plan) -> Option<()> {
        let sectors = self.array.plan_rebuild(Rebuild::SECTORS, plan)?;
        (self.rebuild.began, self.rebuild.sectors) = (now, sectors);
        Some(())
    }

    /// A step has come back; says when the next may begin.
    pub(crate) fn end_rebuild(&mut self, now: Nanos, sector_bytes: u32) -> Nanos {
        self.array.rebuilt();
        now.max(self.rebuild.next(sector_bytes))
    }

    /// Blocks that a load can ask.
    pub(crate) fn sectors(&self) -> u64 {
        self.array.sectors()
    }

    /// Plans a request. One that the array does not hold is left to its first device to refuse.
    pub(crate) fn plan(&mut self, request: &Request, stations: &[Station], plan: &mut Plan) {
        let end = request.lbn.0.saturating_add(u64::from(request.sectors));
        if request.op != Op::Flush && (request.sectors == 0 || end > self.array.sectors()) {
            let beyond = Lbn(stations[self.devices[0] as usize].device().sectors());
            let request = Request { lbn: beyond, ..*request };
            return plan.set(Access { member: 0, request });
        }
        self.array.plan(request, &Look { stations, devices: &self.devices }, plan);
    }
}

/// How spares are filled.
#[derive(Debug, Default)]
struct Rebuild {
    /// The most; as fast as it goes, where there is no limit.
    bytes_a_second: Option<u64>,
    /// When the last step began, and its blocks.
    began: Nanos,
    sectors: u64,
}

impl Rebuild {
    /// Blocks of a step: a MiB, where sectors have 512 bytes.
    const SECTORS: u64 = 2048;

    /// When the rate allows the step after the last one.
    fn next(&self, sector_bytes: u32) -> Nanos {
        let Some(rate) = self.bytes_a_second else { return self.began };
        let bytes = u128::from(self.sectors) * u128::from(sector_bytes);
        let takes = (bytes * 1_000_000_000).div_ceil(u128::from(rate.max(1)));
        self.began + Nanos(u64::try_from(takes).unwrap_or(u64::MAX / 2))
    }
}

/// What an array sees of its devices.
struct Look<'a> {
    stations: &'a [Station],
    devices: &'a [u32],
}

impl Look<'_> {
    fn station(&self, member: u32) -> &Station {
        &self.stations[self.devices[member as usize] as usize]
    }
}

impl Members for Look<'_> {
    fn outstanding(&self, member: u32) -> usize {
        self.station(member).outstanding()
    }

    fn distance(&self, member: u32, lbn: Lbn) -> u64 {
        u64::from(self.station(member).device().cylinders_to(lbn))
    }
}

/// An array and what it takes to ask its devices something now.
pub(crate) struct Reach<'a> {
    pub(crate) now: Nanos,
    pub(crate) array: &'a ArrayVolume,
    pub(crate) stations: &'a mut [Station],
    /// The stations that have been asked something.
    pub(crate) touched: &'a mut Vec<u32>,
}

impl Reach<'_> {
    /// Has a member's device do an access; says how many pieces will come back.
    fn ask(&mut self, access: &Access, like: &Piece) -> u32 {
        let device = self.array.devices[access.member as usize];
        if self.touched.last() != Some(&device) {
            self.touched.push(device);
        }
        self.stations[device as usize].issue(self.now, Piece { request: access.request, ..*like })
    }
}

/// What a member was asked for one ask.
#[derive(Clone, Copy, Debug)]
struct Asked {
    /// Pieces of reads that have not come back.
    reads: u32,
    /// When it was asked last.
    at: Nanos,
}

/// An ask of an array that is under way.
#[derive(Debug)]
struct Forked {
    plan: Plan,
    /// The phase under way, from 1 on.
    phase: usize,
    /// When it began.
    began: Nanos,
    /// Where the time of the phases before went.
    parts: TimeSplit,
    /// What each member was asked, where some accesses wait for their own member alone; else empty.
    asked: Vec<Asked>,
    /// What a piece says beside its request.
    like: Piece,
}

/// The asks of arrays that are under way. What they need is kept for later ones.
#[derive(Debug, Default)]
pub(crate) struct Forks {
    all: Vec<Forked>,
    free: Vec<u32>,
}

impl Forks {
    /// No fork.
    pub(crate) const NONE: u32 = u32::MAX;

    /// A place for an ask, with an empty plan.
    pub(crate) fn open(&mut self, now: Nanos, like: Piece) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            let (plan, parts) = (Plan::default(), TimeSplit::default());
            self.all.push(Forked { plan, phase: 0, began: now, parts, asked: Vec::new(), like });
            (self.all.len() - 1) as u32
        });
        let fork = &mut self.all[number as usize];
        (fork.phase, fork.began, fork.parts, fork.like) = (0, now, TimeSplit::default(), like);
        fork.asked.clear();
        number
    }

    /// Has the array's devices do what a new plan begins with; says how many pieces will come back.
    pub(crate) fn ask_first(&mut self, fork: u32, reach: &mut Reach<'_>) -> u32 {
        let Forked { plan, asked, .. } = &mut self.all[fork as usize];
        let is_early = !plan.early().is_empty();
        if is_early {
            asked.resize(reach.array.devices.len(), Asked { reads: 0, at: reach.now });
        }
        let mut pieces = self.ask_next(fork, reach);
        for member in (0..reach.array.devices.len() as u32).take_while(|_| is_early) {
            pieces += self.ask_early(fork, member, reach);
        }
        pieces
    }

    /// Has a member do what waits for its own reads alone, once they have come back.
    fn ask_early(&mut self, fork: u32, member: u32, reach: &mut Reach<'_>) -> u32 {
        let Forked { plan, asked, like, .. } = &mut self.all[fork as usize];
        let Asked { reads, at } = &mut asked[member as usize];
        if *reads > 0 {
            return 0;
        }
        let mut pieces = 0;
        for access in plan.early().iter().filter(|access| access.member == member) {
            *at = reach.now;
            pieces += reach.ask(access, like);
        }
        pieces
    }

    /// A piece came back from a device. Says how many pieces were asked because of it, before the phase is over.
    pub(crate) fn returned(&mut self, fork: u32, device: u32, op: Op, reach: &mut Reach<'_>) -> u32 {
        let Forked { asked, .. } = &mut self.all[fork as usize];
        if asked.is_empty() || op != Op::Read {
            return 0;
        }
        let member = reach.array.devices.iter().position(|other| *other == device);
        let member = member.expect("a piece comes back from a device of the array");
        asked[member].reads -= 1;
        let all = asked.iter().all(|asked| asked.reads == 0);
        let early = self.ask_early(fork, member as u32, reach);
        early + if all { self.ask_next(fork, reach) } else { 0 }
    }

    pub(crate) fn plan_of(&mut self, fork: u32) -> &mut Plan {
        &mut self.all[fork as usize].plan
    }

    /// Has the array's devices do the next phase; says how many pieces will come back, 0 if there is no next phase.
    pub(crate) fn ask_next(&mut self, fork: u32, reach: &mut Reach<'_>) -> u32 {
        let Forked { plan, phase, began, like, asked, .. } = &mut self.all[fork as usize];
        let Some(accesses) = plan.phases().nth(*phase) else { return 0 };
        if *phase == 0 || asked.is_empty() {
            *began = reach.now;
        }
        *phase += 1;
        let mut pieces = 0;
        for access in accesses {
            let count = reach.ask(access, like);
            if let Some(asked) = asked.get_mut(access.member as usize) {
                asked.reads += if access.request.op == Op::Read { count } else { 0 };
                asked.at = reach.now;
            }
            pieces += count;
        }
        pieces
    }

    /// When what a device does for an ask was asked of it.
    pub(crate) fn asked_at(&self, fork: u32, device: u32, array: &ArrayVolume) -> Nanos {
        let fork = &self.all[fork as usize];
        let member = array.devices.iter().position(|other| *other == device);
        member.and_then(|member| fork.asked.get(member)).map_or(fork.began, |asked| asked.at)
    }

    /// Adds to the account where the phase that ends with `last` spent its time; where phases overlap, where all of the time
    /// went.
    pub(crate) fn account(&mut self, fork: u32, last: &Completion) {
        let fork = &mut self.all[fork as usize];
        fork.parts += last.parts;
        fork.parts.queued += last.submitted - fork.began;
    }

    /// Where the time of all phases went; the place is free from now on.
    pub(crate) fn close(&mut self, fork: u32) -> TimeSplit {
        self.free.push(fork);
        self.all[fork as usize].parts
    }
}
