//! Volumes: what a load asks, as devices. A volume is one device, or an array of several.
//!
//! A request for an array forks into pieces, one for each access of a device, in phases: the pieces of a phase are asked
//! together, and the next phase begins when the last of them has come back. The request ends with its slowest piece. Its
//! time split is that of the slowest piece of each phase, one after the other, so that it adds up.
//!
//! What an array does for a request is [`headstack_policy::stripe`]'s to say; here is what it takes to do it.

use crate::device::{Completion, TimeSplit};
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
}

/// Devices that look like one.
#[derive(Debug)]
pub(crate) struct ArrayVolume {
    array: Array,
    /// The device of each member.
    devices: Vec<u32>,
}

impl ArrayVolume {
    pub(crate) fn new(array: Array, devices: Vec<u32>) -> ArrayVolume {
        ArrayVolume { array, devices }
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
            self.all.push(Forked { plan, phase: 0, began: now, parts, like });
            (self.all.len() - 1) as u32
        });
        let fork = &mut self.all[number as usize];
        (fork.phase, fork.began, fork.parts, fork.like) = (0, now, TimeSplit::default(), like);
        number
    }

    pub(crate) fn plan_of(&mut self, fork: u32) -> &mut Plan {
        &mut self.all[fork as usize].plan
    }

    /// Has the devices of `array` do the next phase; says how many pieces will come back, 0 if there is no next phase.
    pub(crate) fn ask_next(
        &mut self,
        now: Nanos,
        fork: u32,
        array: &ArrayVolume,
        stations: &mut [Station],
        touched: &mut Vec<u32>,
    ) -> u32 {
        let Forked { plan, phase, began, like, .. } = &mut self.all[fork as usize];
        let Some(accesses) = plan.phases().nth(*phase) else { return 0 };
        (*phase, *began) = (*phase + 1, now);
        let mut pieces = 0;
        for Access { member, request } in accesses {
            let device = array.devices[*member as usize];
            pieces += stations[device as usize].issue(now, Piece { request: *request, ..*like });
            if touched.last() != Some(&device) {
                touched.push(device);
            }
        }
        pieces
    }

    /// Adds to the account where the phase that ends with `last` spent its time.
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
