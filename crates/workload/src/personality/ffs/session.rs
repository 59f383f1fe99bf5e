//! A program over a file system, as a load: its calls become requests, some of which it waits for.

use super::buffers::Buffers;
use super::file::File;
use super::program::{Call, Handle};
use super::read_ahead::{History, ReadSession};
use super::{
    BLOCK_BYTES, BLOCK_SECTORS, GROUP_BLOCKS, INODES, INODES_A_BLOCK, Layout, NAMES_A_BLOCK, sector_of,
};
use crate::{Issue, Load, Poll};
use headstack_model::{Instant, Lbn, Nanos, Op, Request};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Buffers in memory: 64 MB, which the study does not give.
const BUFFERS: usize = 8192;

/// Clusters in flight at which writers wait, and at which they continue: 1 MB and 512 KB with clusters of 256 KB, as in FreeBSD.
const MOST_WRITES: u32 = 4;
const FEW_WRITES: u32 = 2;

/// Delay after which unwritten data of a program are written.
const SYNC_DELAY: Nanos = Nanos::from_secs(30);

/// Requests that went to the disk, and their sectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Reads of files.
    pub reads: u64,
    /// Their sectors.
    pub read_sectors: u64,
    /// Writes of files.
    pub writes: u64,
    /// Their sectors.
    pub write_sectors: u64,
    /// Reads of names, inodes and indirect blocks.
    pub metadata_reads: u64,
    /// Writes of these.
    pub metadata_writes: u64,
}

/// Processor time of a program and of the file system for it; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCosts {
    /// Of a call.
    pub call: Nanos,
    /// Of a block that a call reads or appends, whole or in part, in addition to the call.
    pub block: Nanos,
    /// Before each write of a name or inode that the caller waits for.
    pub awaited_write: Nanos,
}

/// A program's calls on a file system, one after the other, without time between but that of its [`CallCosts`]. Requests go to device 0.
#[derive(Debug)]
pub struct Session<P> {
    program: P,
    pub(super) layout: Layout,
    first: Lbn,
    pub(super) buffers: Buffers,
    files: BTreeMap<Handle, Open>,
    /// Numbers of freed inodes, and the next new one.
    numbers: BTreeSet<u32>,
    next_number: u32,
    directory: Vec<u32>,
    pub(super) history: History,
    steps: VecDeque<Step>,
    queue: VecDeque<Issue>,
    pending: BTreeMap<u64, Pending>,
    next_id: u64,
    /// Sectors of asynchronous writes in flight, and whether there are too many.
    running: u64,
    throttled: bool,
    late: VecDeque<(Instant, Handle)>,
    costs: CallCosts,
    pub(super) counts: Counts,
    marks: Vec<Instant>,
    pub(super) state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Running,
    /// The program ended, and its data are being written.
    Ending,
    /// As before; there was no room for its data.
    Full,
}

#[derive(Clone, Debug)]
pub(super) struct Open {
    pub(super) file: File,
    pub(super) reader: ReadSession,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    op: Op,
    first: u64,
    sectors: u32,
    awaited: bool,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// The processor must work for a time, and then until a time.
    Compute(Nanos),
    Until(Instant),
    /// A block must be in memory.
    Need(u32),
    /// A block is written, and the caller waits for it.
    Through(u32),
    Await(u64),
    Begin(Handle),
    Touch(Handle, u32),
    Fetch(Handle, u32),
    Wait(Handle, u32),
    Throttle,
    Grow(Handle, u64),
    Close(Handle),
    Remove(Handle),
    Mark,
}

impl<P: Iterator<Item = Call>> Session<P> {
    /// A program on an empty file system, the partition of which begins at `first`.
    pub fn new(layout: Layout, first: Lbn, program: P) -> Session<P> {
        let blocks = layout.groups() * GROUP_BLOCKS;
        Session {
            program,
            layout,
            first,
            buffers: Buffers::new(blocks, BUFFERS),
            files: BTreeMap::new(),
            numbers: BTreeSet::new(),
            next_number: 0,
            directory: Vec::new(),
            history: History::default(),
            steps: VecDeque::new(),
            queue: VecDeque::new(),
            pending: BTreeMap::new(),
            next_id: 0,
            running: 0,
            throttled: false,
            late: VecDeque::new(),
            costs: CallCosts::default(),
            counts: Counts::default(),
            marks: Vec::new(),
            state: State::Running,
        }
    }

    /// The same with a file that was there before the program and of which nothing is in memory.
    pub fn with_file(mut self, handle: Handle, bytes: u64) -> Session<P> {
        self.add(handle);
        let Some(mut open) = self.files.remove(&handle) else { return self };
        open.file.bytes = bytes;
        while open.file.unplaced() > 0 {
            let wanted = self.layout.complete(&open.file).min(open.file.unplaced());
            if self.layout.allocate(&mut open.file, wanted) == 0 {
                self.state = State::Full;
                open.file.bytes = open.file.blocks.len() as u64 * BLOCK_BYTES;
            }
        }
        open.file.written = open.file.placed_sectors();
        open.file.leads_written = open.file.leads.len();
        self.files.insert(handle, open);
        self
    }

    /// The same where calls take processor time.
    pub fn with_costs(self, costs: CallCosts) -> Session<P> {
        Session { costs, ..self }
    }

    /// The transfers to the disk so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// When the program came to each [`Call::Mark`] and, last, when it ended.
    pub fn marks(&self) -> &[Instant] {
        &self.marks
    }

    /// Whether the program ended early, because the disk was full.
    pub fn is_full(&self) -> bool {
        self.state == State::Full
    }

    /// The blocks of a file, in order; empty if there is no such file.
    pub fn blocks_of(&self, handle: Handle) -> &[u32] {
        self.files.get(&handle).map_or(&[], |open| &open.file.blocks)
    }

    /// The file system's blocks.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    fn add(&mut self, handle: Handle) {
        let number = self.numbers.pop_first().unwrap_or_else(|| {
            self.next_number += 1;
            self.next_number - 1
        });
        let group = (number / INODES).min(self.layout.groups() - 1);
        while self.directory.len() <= (number / NAMES_A_BLOCK) as usize {
            // A full disk has room for names in any block: their place is then wrong by a block.
            self.directory.push(self.layout.place_one(group).unwrap_or_default());
        }
        let file = File { number, group, last_group: group, ..File::default() };
        self.files.insert(handle, Open { file, reader: ReadSession::default() });
    }

    /// The blocks with the name and with the inode of a file.
    fn metadata_of(&self, handle: Handle) -> Option<(u32, u32)> {
        let number = self.files.get(&handle)?.file.number;
        Some((self.directory[(number / NAMES_A_BLOCK) as usize], inode_block(number)))
    }

    fn expand(&mut self, call: Call) {
        if let Call::Create(handle) = call {
            self.add(handle);
        }
        let blocks = match call {
            Call::Read(..) => 1,
            Call::Append(_, bytes) => bytes.div_ceil(BLOCK_BYTES),
            _ => 0,
        };
        if call != Call::Mark {
            self.compute(Nanos(self.costs.call.0 + blocks * self.costs.block.0));
        }
        match call {
            Call::Open(handle) => {
                let Some((name, inode)) = self.metadata_of(handle) else { return };
                self.steps.extend([Step::Need(name), Step::Need(inode), Step::Begin(handle)]);
            }
            Call::Create(handle) => {
                let Some((name, inode)) = self.metadata_of(handle) else { return };
                let before = [Step::Need(name), Step::Need(inode)];
                self.steps.extend(before);
                [inode, name].into_iter().for_each(|block| self.write_through(block));
            }
            Call::Delete(handle) => {
                let Some((name, inode)) = self.metadata_of(handle) else { return };
                for block in [name, inode] {
                    self.steps.push_back(Step::Need(block));
                    self.write_through(block);
                }
                self.steps.push_back(Step::Remove(handle));
            }
            Call::Read(handle, block) => {
                let within =
                    self.files.get(&handle).is_some_and(|open| block < open.file.blocks.len() as u32);
                if within {
                    let steps = [Step::Touch(handle, block), Step::Fetch(handle, block)];
                    self.steps.extend(steps.into_iter().chain([Step::Wait(handle, block)]));
                }
            }
            Call::Append(handle, bytes) => {
                let Some(open) = self.files.get(&handle) else { return };
                let is_part = !open.file.bytes.is_multiple_of(BLOCK_BYTES);
                let last = open.file.blocks.last().filter(|_| is_part && open.file.unplaced() == 0);
                self.steps.extend(last.map(|block| Step::Need(*block)));
                self.steps.extend([Step::Throttle, Step::Grow(handle, bytes)]);
            }
            Call::Close(handle) => self.steps.push_back(Step::Close(handle)),
            Call::Mark => self.steps.push_back(Step::Mark),
        }
    }

    fn compute(&mut self, time: Nanos) {
        if time > Nanos::ZERO {
            self.steps.push_back(Step::Compute(time));
        }
    }

    fn write_through(&mut self, block: u32) {
        self.compute(self.costs.awaited_write);
        self.steps.push_back(Step::Through(block));
    }

    /// Does a step as far as it can be done; whether that is all.
    fn try_step(&mut self, now: Instant, step: Step) -> bool {
        match step {
            Step::Compute(_) => false,
            Step::Until(time) => time <= now,
            Step::Need(block) => self.need(block),
            Step::Through(block) => {
                self.counts.metadata_writes += 1;
                let id = self.issue(Op::Write, sector_of(block), BLOCK_SECTORS, true);
                self.steps[0] = Step::Await(id);
                false
            }
            Step::Await(id) => !self.pending.contains_key(&id),
            Step::Begin(handle) => {
                self.change(handle, |open| open.reader = ReadSession::default());
                true
            }
            Step::Touch(handle, block) => {
                if let Some(open) = self.files.get_mut(&handle) {
                    open.reader.touch(block, &mut self.history);
                }
                true
            }
            Step::Fetch(handle, block) => self.with(handle, |session, open| session.fetch(open, block)),
            Step::Wait(handle, block) => self.with(handle, |session, open| session.wait(open, block)),
            Step::Throttle => {
                let limit = if self.throttled { FEW_WRITES } else { MOST_WRITES };
                self.throttled = self.running > sector_of(limit * self.layout.cluster_blocks());
                !self.throttled
            }
            Step::Grow(handle, bytes) => self.with(handle, |session, open| session.grow(open, bytes)),
            Step::Close(handle) => {
                self.late.push_back((now + SYNC_DELAY, handle));
                self.with(handle, |session, open| session.allocate_block(open, true))
            }
            Step::Remove(handle) => {
                self.remove(handle);
                true
            }
            Step::Mark => {
                self.marks.push(now);
                true
            }
        }
    }

    fn change(&mut self, handle: Handle, change: impl FnOnce(&mut Open)) {
        if let Some(open) = self.files.get_mut(&handle) {
            change(open);
        }
    }

    /// Runs `act` on a file while it is out of the list; true if there is no such file.
    fn with(&mut self, handle: Handle, act: impl FnOnce(&mut Self, &mut Open) -> bool) -> bool {
        let Some(mut open) = self.files.remove(&handle) else { return true };
        let done = act(self, &mut open);
        self.files.insert(handle, open);
        done
    }

    fn remove(&mut self, handle: Handle) {
        let Some(open) = self.files.remove(&handle) else { return };
        for block in open.file.blocks.iter().chain(&open.file.leads) {
            self.buffers.forget(*block);
        }
        self.layout.release(&open.file);
        self.numbers.insert(open.file.number);
    }

    fn write_late(&mut self, now: Instant) {
        while let Some((due, handle)) = self.late.front().copied() {
            if due > now {
                return;
            }
            self.late.pop_front();
            self.with(handle, |session, open| {
                session.drain(&mut open.file, true);
                true
            });
        }
    }

    /// Does everything possible without the disk; returns whether the program has ended.
    fn advance(&mut self, now: Instant) -> bool {
        while self.queue.is_empty() {
            if self.state != State::Running {
                return true;
            }
            match self.steps.front().copied() {
                Some(step) if self.try_step(now, step) => {
                    self.steps.pop_front();
                }
                Some(_) => return false,
                None => match self.program.next() {
                    Some(call) => self.expand(call),
                    None => self.end(now),
                },
            }
        }
        false
    }

    fn end(&mut self, now: Instant) {
        self.state = State::Ending;
        self.marks.push(now);
        self.late.clear();
        let handles: Vec<Handle> = self.files.keys().copied().collect();
        for handle in handles {
            self.with(handle, |session, open| {
                session.allocate_block(open, true);
                session.drain(&mut open.file, true);
                true
            });
        }
    }
}

impl<P> Session<P> {
    /// Sends a request to the disk; its number.
    pub(super) fn issue(&mut self, op: Op, first: u64, sectors: u32, awaited: bool) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.pending.insert(id, Pending { op, first, sectors, awaited });
        if !awaited {
            self.running += u64::from(sectors);
        }
        let request = Request { op, lbn: self.first + first, sectors, fua: false };
        self.queue.push_back(Issue::new(0, request, id));
        id
    }
}

impl<P: Iterator<Item = Call>> Load for Session<P> {
    fn poll(&mut self, now: Instant) -> Poll {
        self.write_late(now);
        let ended = self.advance(now);
        if let Some(issue) = self.queue.pop_front() {
            return Poll::Issue(issue);
        }
        if ended && self.pending.is_empty() {
            return Poll::Done;
        }
        let due = self.late.front().map(|(due, _)| *due).filter(|_| !ended);
        match self.steps.front() {
            Some(Step::Compute(time)) => return Poll::Compute { id: 0, time: *time },
            Some(Step::Until(until)) => return Poll::Later(due.map_or(*until, |due| due.min(*until))),
            _ => {}
        }
        assert!(!self.pending.is_empty(), "a program waits for the disk and the processor alone");
        due.map_or(Poll::Waiting, Poll::Later)
    }

    fn handle_computed(&mut self, _now: Instant, _id: u64, until: Instant) {
        self.steps[0] = Step::Until(until);
    }

    fn handle_completion(&mut self, _now: Instant, id: u64) {
        let Some(ended) = self.pending.remove(&id) else { return };
        if ended.op == Op::Read {
            self.buffers.arrive(ended.first, ended.sectors);
        }
        if !ended.awaited {
            self.running -= u64::from(ended.sectors);
        }
    }
}

fn inode_block(number: u32) -> u32 {
    number / INODES * GROUP_BLOCKS + 2 + number % INODES / INODES_A_BLOCK
}
