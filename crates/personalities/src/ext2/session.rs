//! Programs over an ext2 as a load: their calls become requests to the page cache, for each of which the program waits.

use super::allocate::Ext2Volume;
use super::calls::{BenchmarkPhase, FileCall, FileWorkCosts, ProcessCalls};
use super::metadata::MetadataBuffers;
use headstack_model::{Instant, Lbn, Nanos, Op, Request};
use headstack_workload::{Issue, Load, LoadPhase, Poll};
use std::collections::{BTreeMap, VecDeque};

/// The source of the file system's own writes.
const FILE_SYSTEM: u32 = 0;

#[derive(Clone, Copy, Debug)]
enum FileStep {
    Compute(Nanos),
    Request { request: Request, direct: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProcessState {
    Ready,
    /// The processor must work for this long.
    Computing(Nanos),
    Until(Instant),
    /// Waits for its request.
    Waiting,
    Ended,
}

struct FileProcess {
    calls: ProcessCalls,
    steps: VecDeque<FileStep>,
    state: ProcessState,
    source: u32,
}

/// The benchmark's phases, one after the other, on one volume. Each process is a separate source; source 0 is the file system.
pub struct Ext2Session {
    volume: Ext2Volume,
    first: Lbn,
    sector_bytes: u64,
    waiting: VecDeque<BenchmarkPhase>,
    records: Vec<LoadPhase>,
    processes: Vec<FileProcess>,
    sources: u32,
    metadata: MetadataBuffers,
    queue: VecDeque<Issue>,
    /// The process of each outstanding request; none for a write of the file system's.
    pending: BTreeMap<u64, Option<usize>>,
    next_id: u64,
    costs: FileWorkCosts,
    is_full: bool,
}

impl Ext2Session {
    /// Phases on a volume whose file system begins at block `first` of the device, which has blocks of `sector_bytes` bytes.
    pub fn new(
        volume: Ext2Volume,
        first: Lbn,
        sector_bytes: u32,
        phases: Vec<BenchmarkPhase>,
    ) -> Ext2Session {
        let mut metadata = MetadataBuffers::default();
        // Mounting has read the superblock and the descriptors.
        let geometry = volume.geometry();
        (0..=geometry.descriptor_blocks).for_each(|index| _ = metadata.hold(geometry.first_block + index));
        let record = |phase: &BenchmarkPhase| LoadPhase::new(phase.name, phase.bytes, phase.operations);
        Ext2Session {
            volume,
            first,
            sector_bytes: u64::from(sector_bytes),
            records: phases.iter().map(record).collect(),
            waiting: phases.into(),
            processes: Vec::new(),
            sources: FILE_SYSTEM + 1,
            metadata,
            queue: VecDeque::new(),
            pending: BTreeMap::new(),
            next_id: 0,
            costs: FileWorkCosts::default(),
            is_full: false,
        }
    }

    /// The same where the file system's work takes processor time.
    pub fn with_costs(self, costs: FileWorkCosts) -> Ext2Session {
        Ext2Session { costs, ..self }
    }

    /// Number of sources: the processes of the phases that have not begun, and the file system.
    pub fn sources(&self) -> u32 {
        let processes: usize = self.waiting.iter().map(|phase| phase.processes.len()).sum();
        self.sources + processes as u32
    }

    /// The file system.
    pub fn volume(&self) -> &Ext2Volume {
        &self.volume
    }

    /// Whether a call failed because the file system was full; its process then ended.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    fn block_bytes(&self) -> u64 {
        u64::from(self.volume.geometry().block_bytes)
    }

    /// The sectors of bytes that lie together on the disk, from byte `from` of the file system to `end`.
    fn request(&self, op: Op, from: u64, end: u64) -> Request {
        let lbn = Lbn(self.first.0 + from / self.sector_bytes);
        let sectors = end.div_ceil(self.sector_bytes) - from / self.sector_bytes;
        Request { op, lbn, sectors: sectors as u32, fua: false }
    }

    fn issue(&mut self, request: Request, direct: bool, source: u32, process: Option<usize>) -> Issue {
        let id = self.next_id;
        self.next_id += 1;
        self.pending.insert(id, process);
        Issue { source, direct, ..Issue::new(0, request, id) }
    }

    fn write_metadata(&mut self, now: Instant) {
        if self.metadata.next_search() > now {
            return;
        }
        let bytes = self.block_bytes();
        for run in self.metadata.due(now) {
            let request = self.request(Op::Write, u64::from(run.start) * bytes, u64::from(run.end) * bytes);
            let issue = self.issue(request, true, FILE_SYSTEM, None);
            self.queue.push_back(issue);
        }
    }

    /// Begins the next phase, if the last one is over; false if there is none.
    fn next_phase(&mut self, now: Instant) -> bool {
        let last = self.records.len() - self.waiting.len();
        if let Some(record) = last.checked_sub(1).map(|last| &mut self.records[last]) {
            record.ended = record.ended.or(Some(now));
        }
        let Some(phase) = self.waiting.pop_front() else { return false };
        self.records[last].began = Some(now);
        self.processes.clear();
        for calls in phase.processes {
            let (steps, source) = (VecDeque::new(), self.sources);
            self.sources += 1;
            self.processes.push(FileProcess { calls, steps, state: ProcessState::Ready, source });
        }
        true
    }

    /// Advances a process until it waits; returns the load's answer to the poll for it.
    fn advance(&mut self, now: Instant, number: usize) -> Option<Poll> {
        loop {
            match self.processes[number].state {
                ProcessState::Until(time) if time <= now => {}
                ProcessState::Ready => {}
                ProcessState::Computing(time) => return Some(Poll::Compute { id: number as u64, time }),
                _ => return None,
            }
            self.processes[number].state = ProcessState::Ready;
            match self.processes[number].steps.pop_front() {
                Some(FileStep::Compute(time)) => self.processes[number].state = ProcessState::Computing(time),
                Some(FileStep::Request { request, direct }) => {
                    self.processes[number].state = ProcessState::Waiting;
                    let source = self.processes[number].source;
                    return Some(Poll::Issue(self.issue(request, direct, source, Some(number))));
                }
                None => match self.processes[number].calls.next() {
                    Some(call) => self.expand(now, number, call),
                    None => self.processes[number].state = ProcessState::Ended,
                },
            }
        }
    }

    /// Splits a call into steps.
    fn expand(&mut self, now: Instant, number: usize, call: FileCall) {
        let mut done = Ok(());
        match call {
            FileCall::MakeDirectory(directory) => done = self.volume.make_directory(directory),
            FileCall::Create { file, directory } => done = self.volume.create(file, directory),
            FileCall::Write { file, offset, bytes } => {
                self.compute(number, self.costs.time(bytes));
                done = self.volume.write_to(file, offset + bytes);
            }
            FileCall::Read { .. } | FileCall::ReadDevice { .. } => self.compute(number, self.costs.time(0)),
            FileCall::Close(file) => self.volume.close(file),
            FileCall::Delete(file) => {
                self.volume.delete(file).into_iter().for_each(|block| self.metadata.forget(block));
            }
            FileCall::Compute(time) => self.compute(number, time),
        }
        if done.is_err() {
            self.is_full = true;
            self.processes[number].state = ProcessState::Ended;
        }
        self.change_metadata(now, number);
        match call {
            FileCall::Read { file, offset, bytes } => self.transfer(number, Op::Read, file, offset, bytes),
            FileCall::Write { file, offset, bytes } => self.transfer(number, Op::Write, file, offset, bytes),
            FileCall::ReadDevice { offset, bytes } => {
                let request = self.request(Op::Read, offset, offset + bytes);
                self.processes[number].steps.push_back(FileStep::Request { request, direct: false });
            }
            _ => {}
        }
    }

    fn compute(&mut self, number: usize, time: Nanos) {
        if time > Nanos::ZERO {
            self.processes[number].steps.push_back(FileStep::Compute(time));
        }
    }

    /// Changes the metadata that a call has touched; blocks that are not in memory are read first.
    fn change_metadata(&mut self, now: Instant, number: usize) {
        let bytes = self.block_bytes();
        for (block, is_new) in self.volume.take_touched() {
            if self.metadata.hold(block) && !is_new {
                let request = self.request(Op::Read, u64::from(block) * bytes, u64::from(block + 1) * bytes);
                self.processes[number].steps.push_back(FileStep::Request { request, direct: true });
            }
            self.metadata.change(now, block);
        }
    }

    /// Makes one request of each run of adjacent blocks of a file.
    fn transfer(&mut self, number: usize, op: Op, file: u32, offset: u64, bytes: u64) {
        let block_bytes = self.block_bytes();
        let blocks = self.volume.blocks_of(file);
        let end = (offset + bytes).min(blocks.len() as u64 * block_bytes);
        let mut from = offset;
        while from < end {
            let first = (from / block_bytes) as usize;
            let last = (end.div_ceil(block_bytes)) as usize;
            let follows = |index: &usize| blocks[*index] == blocks[index - 1] + 1;
            let run = (first + 1..last).take_while(follows).count();
            let to = end.min((first + 1 + run) as u64 * block_bytes);
            let start = u64::from(blocks[first]) * block_bytes + from % block_bytes;
            let request = self.request(op, start, start + (to - from));
            self.processes[number].steps.push_back(FileStep::Request { request, direct: false });
            from = to;
        }
    }
}

impl Load for Ext2Session {
    fn poll(&mut self, now: Instant) -> Poll {
        self.write_metadata(now);
        loop {
            if let Some(issue) = self.queue.pop_front() {
                return Poll::Issue(issue);
            }
            for number in 0..self.processes.len() {
                if let Some(poll) = self.advance(now, number) {
                    return poll;
                }
            }
            let has_ended = |process: &FileProcess| process.state == ProcessState::Ended;
            if !self.processes.iter().all(has_ended) {
                break;
            }
            if !self.next_phase(now) {
                return if self.pending.is_empty() { Poll::Done } else { Poll::Waiting };
            }
        }
        let wake = |process: &FileProcess| match process.state {
            ProcessState::Until(time) => time,
            _ => Instant::MAX,
        };
        let first = self.processes.iter().map(wake).min().unwrap_or(Instant::MAX);
        match first.min(self.metadata.next_search()) {
            Instant::MAX => Poll::Waiting,
            time => Poll::Later(time),
        }
    }

    fn handle_computed(&mut self, _now: Instant, id: u64, until: Instant) {
        self.processes[id as usize].state = ProcessState::Until(until);
    }

    fn handle_completion(&mut self, _now: Instant, id: u64) {
        if let Some(Some(process)) = self.pending.remove(&id) {
            self.processes[process].state = ProcessState::Ready;
        }
    }

    fn progress(&self, _now: Instant) -> Option<f64> {
        let ended = self.records.iter().filter(|record| record.ended.is_some()).count();
        Some(ended as f64 / self.records.len().max(1) as f64)
    }

    fn phases(&self) -> &[LoadPhase] {
        &self.records
    }
}
