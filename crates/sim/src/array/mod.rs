//! Arrays: several devices that look like one.
//!
//! A [`Layer`] whose children are the members, then the spares. A request becomes accesses of members, in phases: the accesses of
//! a phase are submitted together, and the next phase begins when the last of them completes. The request completes with its
//! slowest access. Its time split sums, over the phases, that of the slowest access of each.
//!
//! A member whose command comes back dead has failed: it gets no command any more. Each request that has an access there, or that would
//! have one in a later phase, is planned again for what is left, when its accesses in flight are done; its time split then continues. An
//! idle spare replaces the member, and is rebuilt from then on. Where nothing replaces the member, its accesses, and their requests, end as
//! dead. Not modelled: recovery from blocks that cannot be read, whose requests end with that outcome.
//!
//! A spare is rebuilt in steps that no request waits for. Each step begins when the previous one is done and the rate allows it,
//! until the load ends.
//!
//! [`headstack_policy::stripe`] plans the accesses of a request; this layer carries them out.

use crate::device::{Completion, Outcome, TimeSplit};
use crate::layer::{Completed, Layer, Out, Submission};
use headstack_model::{Instant, Lbn, Nanos, Op, Request};
use headstack_policy::stripe::{Access, Array, Members, Plan};

/// Devices that look like one: an array's members, and its spares.
#[derive(Debug)]
pub struct ArrayVolume {
    array: Array,
    /// The device of each member, then of each spare.
    devices: Vec<u32>,
    rebuild_rate: Option<u64>,
    /// Share of the overlap of two members' seeks by which the later seek takes longer.
    interference_ratio: f64,
}

impl ArrayVolume {
    /// An array whose members, and then spares, are the devices of these numbers.
    pub fn new(array: Array, devices: Vec<u32>) -> ArrayVolume {
        ArrayVolume { array, devices, rebuild_rate: None, interference_ratio: 0.0 }
    }

    /// The same, with spares filled at this rate at most.
    pub fn rebuilt_at(self, bytes_a_second: u64) -> ArrayVolume {
        ArrayVolume { rebuild_rate: Some(bytes_a_second), ..self }
    }

    /// The same, whose members are arms of one disk: of two seeks that overlap, the later one takes longer by this share of the overlap.
    pub fn with_interference(self, ratio: f64) -> ArrayVolume {
        ArrayVolume { interference_ratio: ratio, ..self }
    }

    pub(crate) fn interference_ratio(&self) -> f64 {
        self.interference_ratio
    }

    /// The numbers of its devices.
    pub fn devices(&self) -> &[u32] {
        &self.devices
    }

    /// Blocks that a load can address.
    pub(crate) fn sectors(&self) -> u64 {
        self.array.sectors()
    }
}

#[derive(Debug)]
struct Rebuild {
    /// The largest rebuild rate; `None` for no limit.
    bytes_a_second: Option<u64>,
    sector_bytes: u32,
    /// When the last step began, and its blocks.
    began: Instant,
    sectors: u64,
    /// When the next step begins; `Instant::MAX` while one runs, and when all is filled.
    next: Instant,
    is_running: bool,
}

impl Rebuild {
    /// Blocks of a step: a MiB, where sectors have 512 bytes.
    const SECTORS: u64 = 2048;

    /// When the rate allows the step after the last one.
    fn allowed(&self) -> Instant {
        let Some(rate) = self.bytes_a_second else { return self.began };
        let bytes = u128::from(self.sectors) * u128::from(self.sector_bytes);
        let takes = (bytes * 1_000_000_000).div_ceil(u128::from(rate.max(1)));
        self.began + Nanos(u64::try_from(takes).unwrap_or(u64::MAX / 2))
    }
}

/// A request of the array, or a step of filling spares, in progress.
#[derive(Debug)]
struct Fork {
    plan: Plan,
    /// The phase in progress, from 1 on.
    phase: usize,
    submitted: Instant,
    began: Instant,
    left: u32,
    /// The time split of the previous phases.
    parts: TimeSplit,
    outcome: Outcome,
    /// Whether a member of the plan has failed, so that what is left must serve the request again.
    is_outdated: bool,
    /// Reads in flight by member, if some accesses wait for their own member only; else empty.
    reads: Vec<u32>,
    /// The request; `None` for a step of a rebuild.
    origin: Option<Submission>,
}

/// The array of a volume.
#[derive(Debug)]
pub struct ArrayLayer {
    array: Array,
    members: u32,
    /// Blocks of the largest member: every member refuses requests from there on.
    member_sectors: u64,
    rebuild: Rebuild,
    /// Kept after they end, for their allocations.
    forks: Vec<Fork>,
    free: Vec<u32>,
}

impl ArrayLayer {
    /// The layer of an array whose largest member has `member_sectors` blocks of `sector_bytes`.
    pub(crate) fn new(volume: ArrayVolume, member_sectors: u64, sector_bytes: u32) -> ArrayLayer {
        let ArrayVolume { array, devices, rebuild_rate, .. } = volume;
        let next = if array.progress().1 > 0 { Instant::ZERO } else { Instant::MAX };
        let (began, sectors, is_running) = (Instant::ZERO, 0, false);
        let rebuild =
            Rebuild { bytes_a_second: rebuild_rate, sector_bytes, began, sectors, next, is_running };
        let members = devices.len() as u32;
        let (forks, free) = (Vec::new(), Vec::new());
        ArrayLayer { array, members, member_sectors, rebuild, forks, free }
    }

    /// Blocks of spares that have been filled, and those of all spares that replace a member.
    pub fn rebuilt(&self) -> (u64, u64) {
        self.array.progress()
    }

    /// The first block of each member of a concatenation.
    pub(crate) fn concatenated_starts(&self) -> Option<&[u64]> {
        self.array.concatenated_starts()
    }

    /// Bytes of data in a stripe, if it has stripe units of one length.
    pub(crate) fn stripe_bytes(&self) -> Option<u64> {
        self.array.stripe_sectors()?.checked_mul(self.rebuild.sector_bytes.into())
    }

    /// Number of its members, if they may be the arms of one disk, and the first block of each arm, if each serves a range of blocks.
    pub(crate) fn arms(&self) -> Option<(usize, &[u64])> {
        match self.array.concatenated_starts() {
            Some(starts) => Some((starts.len(), starts)),
            None => self.array.is_striped_by_tracks().then_some((self.members as usize, &[])),
        }
    }

    /// Plans a request. One outside the array is passed to its first member that has not failed, which refuses it.
    fn plan(&mut self, request: &Request, fork: u32, out: &Out<'_>) {
        let plan = &mut self.forks[fork as usize].plan;
        let end = request.lbn.0.saturating_add(u64::from(request.sectors));
        if request.op != Op::Flush && (request.sectors == 0 || end > self.array.sectors()) {
            let request = Request { lbn: Lbn(self.member_sectors), ..*request };
            let member = (0..self.members).find(|member| !self.array.has_failed(*member)).unwrap_or(0);
            return plan.set(Access { member, request });
        }
        self.array.plan(request, &MemberView(out), plan);
    }

    /// Creates a fork with an empty plan.
    fn open(&mut self, now: Instant, origin: Option<Submission>) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.forks.push(Fork::new());
            (self.forks.len() - 1) as u32
        });
        let fork = &mut self.forks[number as usize];
        (fork.phase, fork.submitted, fork.began, fork.left) = (0, now, now, 0);
        (fork.parts, fork.outcome, fork.origin) = (TimeSplit::default(), Outcome::Done, origin);
        fork.is_outdated = false;
        fork.reads.clear();
        number
    }

    /// Submits the first accesses of a new plan.
    fn begin(&mut self, now: Instant, number: u32, out: &mut Out<'_>) {
        let fork = &mut self.forks[number as usize];
        let is_early = !fork.plan.early().is_empty();
        if is_early {
            fork.reads.resize(self.members as usize, 0);
        }
        fork.submit_phase(now, number, out);
        for member in (0..self.members).take_while(|_| is_early) {
            fork.submit_early(member, number, out);
        }
    }

    /// Ends a fork whose last access is `last`.
    fn end(&mut self, now: Instant, number: u32, last: &Completion, out: &mut Out<'_>) {
        self.free.push(number);
        let Fork { submitted, parts, outcome, origin, .. } = &self.forks[number as usize];
        let completion = Completion { submitted: *submitted, parts: *parts, outcome: *outcome, ..*last };
        match origin {
            Some(Submission { id, .. }) => {
                out.up(Completed { id: *id, completion, cached: false });
            }
            None => {
                self.rebuild.is_running = false;
                self.rebuild.next = match outcome {
                    Outcome::Dead => {
                        self.array.give_up_rebuild();
                        now
                    }
                    _ => {
                        self.array.rebuilt();
                        now.max(self.rebuild.allowed())
                    }
                };
                out.wake_at(self.rebuild.next);
            }
        }
    }

    fn step(&mut self, now: Instant, out: &mut Out<'_>) {
        self.rebuild.next = Instant::MAX;
        let number = self.open(now, None);
        self.begin_step(now, number, out);
    }

    /// Begins a step of filling spares, if there is anything left to fill.
    fn begin_step(&mut self, now: Instant, number: u32, out: &mut Out<'_>) {
        let planned = self.array.plan_rebuild(Rebuild::SECTORS, &mut self.forks[number as usize].plan);
        self.rebuild.is_running = planned.is_some();
        match planned {
            Some(sectors) => {
                (self.rebuild.began, self.rebuild.sectors) = (now, sectors);
                self.begin(now, number, out);
            }
            None => self.free.push(number),
        }
    }

    /// A member, or a spare, is dead: whether the array survives it. The rebuilding of an idle spare begins.
    #[cold]
    fn fail(&mut self, now: Instant, child: u32, out: &mut Out<'_>) -> bool {
        if self.array.has_failed(child) || !self.array.fail(child) {
            return self.array.has_failed(child);
        }
        let in_progress = self.forks.iter_mut().filter(|fork| fork.left > 0);
        in_progress.for_each(|fork| fork.is_outdated |= fork.will_use(child));
        if !self.rebuild.is_running && self.rebuild.next == Instant::MAX {
            self.rebuild.next = now;
            out.wake_at(now);
        }
        true
    }

    /// Serves a request, or fills spares, with a new plan, since a member of the last one has failed.
    #[cold]
    fn begin_again(&mut self, now: Instant, number: u32, out: &mut Out<'_>) {
        let fork = &mut self.forks[number as usize];
        (fork.phase, fork.is_outdated) = (0, false);
        fork.reads.clear();
        match fork.origin {
            Some(Submission { request, .. }) => {
                self.plan(&request, number, out);
                self.begin(now, number, out);
            }
            None => self.begin_step(now, number, out),
        }
    }
}

impl Fork {
    fn new() -> Fork {
        Fork {
            plan: Plan::default(),
            phase: 0,
            submitted: Instant::ZERO,
            began: Instant::ZERO,
            left: 0,
            parts: TimeSplit::default(),
            outcome: Outcome::Done,
            is_outdated: false,
            reads: Vec::new(),
            origin: None,
        }
    }

    /// Whether it has accesses of a member that are not submitted yet.
    fn will_use(&self, member: u32) -> bool {
        let early = self.reads.get(member as usize).is_some_and(|reads| *reads > 0);
        let early = self.plan.early().iter().filter(|_| early);
        self.plan.phases().skip(self.phase).flatten().chain(early).any(|access| access.member == member)
    }

    fn submit_phase(&mut self, now: Instant, number: u32, out: &mut Out<'_>) {
        let Some(accesses) = self.plan.phases().nth(self.phase) else { return };
        if self.phase == 0 || self.reads.is_empty() {
            self.began = now;
        }
        self.phase += 1;
        for access in accesses {
            if let Some(reads) = self.reads.get_mut(access.member as usize) {
                *reads += u32::from(access.request.op == Op::Read);
            }
            out.down(access.member, submission(access, number, self.origin.as_ref()));
            self.left += 1;
        }
    }

    /// Submits accesses that wait only for reads of the same member, once those are done.
    fn submit_early(&mut self, member: u32, number: u32, out: &mut Out<'_>) {
        if self.reads[member as usize] > 0 {
            return;
        }
        for access in self.plan.early().iter().filter(|access| access.member == member) {
            out.down(access.member, submission(access, number, self.origin.as_ref()));
            self.left += 1;
        }
    }

    /// A read of a member completed: submits the accesses that waited for it.
    fn end_read(&mut self, now: Instant, member: u32, number: u32, out: &mut Out<'_>) {
        self.reads[member as usize] -= 1;
        let all = self.reads.iter().all(|reads| *reads == 0);
        self.submit_early(member, number, out);
        if all {
            self.submit_phase(now, number, out);
        }
    }
}

/// An access of a member, for a request or for filling spares.
fn submission(access: &Access, id: u32, origin: Option<&Submission>) -> Submission {
    let request = access.request;
    match origin {
        Some(origin) => Submission { id, request, ..*origin },
        None => Submission { sync: false, ..Submission::new(id, request) },
    }
}

struct MemberView<'a, 'b>(&'a Out<'b>);

impl Members for MemberView<'_, '_> {
    fn outstanding(&self, member: u32) -> usize {
        self.0.child(member).outstanding()
    }

    fn distance(&self, member: u32, lbn: Lbn) -> u64 {
        u64::from(self.0.child(member).cylinders_to(lbn))
    }
}

impl Layer for ArrayLayer {
    fn submit(&mut self, now: Instant, submission: Submission, out: &mut Out<'_>) {
        let fork = self.open(now, Some(submission));
        self.plan(&submission.request, fork, out);
        self.begin(now, fork, out);
        let left = self.forks[fork as usize].left;
        assert!(left > 0, "an array has something to do for {:?}", submission.request);
    }

    fn complete(&mut self, now: Instant, child: u32, answer: &Completed, out: &mut Out<'_>) {
        let (number, how) = (answer.id, &answer.completion);
        let is_replaced = how.outcome == Outcome::Dead && self.fail(now, child, out);
        let fork = &mut self.forks[number as usize];
        fork.is_outdated |= is_replaced;
        if how.outcome != Outcome::Done && !is_replaced {
            fork.outcome = how.outcome;
        }
        fork.left -= 1;
        if !fork.reads.is_empty() && how.request.op == Op::Read && !fork.is_outdated {
            fork.end_read(now, child, number, out);
        }
        if fork.left > 0 {
            return;
        }
        fork.parts += how.parts;
        fork.parts.queued += how.submitted - fork.began;
        fork.began = now;
        if !fork.is_outdated {
            fork.submit_phase(now, number, out);
        } else if fork.outcome == Outcome::Done {
            return self.begin_again(now, number, out);
        }
        if fork.left == 0 {
            self.end(now, number, how, out);
        }
    }

    fn wake(&mut self, now: Instant, out: &mut Out<'_>) {
        if self.rebuild.next <= now {
            self.step(now, out);
        }
        out.wake_at(self.rebuild.next);
    }

    fn first_wake(&self) -> Instant {
        self.rebuild.next
    }
}
