//! A program over a file system, as a load: its calls become requests, some of which it waits for.

use super::buffers::Buffers;
use super::directories::Directories;
use super::file::File;
use super::mover::FileMover;
use super::moves::MoveBatch;
use super::program::{Call, Handle};
use super::read_ahead::{History, ReadSession};
use super::steps::RunningProgram;
use super::{BLOCK_BYTES, GROUP_BLOCKS, Layout, Variant};
use headstack_model::{Instant, Lbn, Nanos, Op, Request};
use headstack_workload::Issue;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// Buffers in memory: 64 MB, which the study does not give.
const BUFFERS: usize = 8192;

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
    /// Writes of names, inodes and indirect blocks.
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

/// The calls of one program on a file system, one after the other, or of several programs at the same time. The only time between calls is
/// that of [`CallCosts`]. Requests go to device 0.
#[derive(Debug)]
pub struct Session<P> {
    pub(super) programs: Vec<RunningProgram<P>>,
    /// The program whose turn it is.
    pub(super) current: usize,
    pub(super) layout: Layout,
    first: Lbn,
    pub(super) buffers: Buffers,
    pub(super) files: BTreeMap<Handle, Open>,
    pub(super) directories: Directories,
    pub(super) history: History,
    pub(super) queue: VecDeque<Issue>,
    pub(super) pending: BTreeMap<u64, Pending>,
    next_id: u64,
    /// Sectors of asynchronous writes in flight, and whether there are too many.
    pub(super) running: u64,
    pub(super) throttled: bool,
    pub(super) late: VecDeque<(Instant, Handle)>,
    pub(super) costs: CallCosts,
    pub(super) counts: Counts,
    pub(super) marks: Vec<Instant>,
    pub(super) state: State,
    pub(super) mover: Option<FileMover>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Running,
    /// The program ended, and its data are being written.
    Ending,
    /// As `Ending`; there was no room for its data.
    Full,
}

#[derive(Clone, Debug)]
pub(super) struct Open {
    pub(super) file: File,
    pub(super) reader: ReadSession,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) op: Op,
    pub(super) first: u64,
    pub(super) sectors: u32,
    pub(super) awaited: bool,
}

impl<P: Iterator<Item = Call>> Session<P> {
    /// A program on an empty file system, the partition of which begins at `first`.
    pub fn new(layout: Layout, first: Lbn, program: P) -> Session<P> {
        let blocks = layout.groups() * GROUP_BLOCKS;
        Session {
            programs: vec![RunningProgram::new(program)],
            current: 0,
            directories: Directories::new(layout.groups()),
            layout,
            first,
            buffers: Buffers::new(blocks, BUFFERS),
            files: BTreeMap::new(),
            history: History::default(),
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
            mover: None,
        }
    }

    /// The same with one more program that runs at the same time.
    pub fn with_program(mut self, program: P) -> Session<P> {
        self.programs.push(RunningProgram::new(program));
        self
    }

    /// The same files, and from now on the rules of another variant.
    pub fn retrofitted(self, variant: Variant) -> Session<P> {
        Session { layout: self.layout.retrofitted(variant), ..self }
    }

    /// Also moves files onto tracks meanwhile, by requests that take at most this share of the time (above 0, at most 1).
    pub fn with_on_line_reorganisation(self, share: f64) -> Session<P> {
        let files = self.files.keys().copied().collect();
        Session { mover: Some(FileMover::new(share, files)), ..self }
    }

    /// Places inodes in the blocks of a directory that hold their names.
    pub fn with_embedded_inodes(self) -> Session<P> {
        Session { directories: self.directories.with_embedded_inodes(), ..self }
    }

    /// Adds a file that existed before the program, in directory 0, of which nothing is in memory.
    pub fn with_file(self, handle: Handle, bytes: u64) -> Session<P> {
        self.with_file_in(handle, bytes, 0)
    }

    /// Adds such a file to the directory of this number.
    pub fn with_file_in(mut self, handle: Handle, bytes: u64, directory: u32) -> Session<P> {
        self.add(handle, directory);
        self.lengthen(handle, bytes);
        self
    }

    /// Lengthens a file as if its data had been written before the program.
    pub(super) fn lengthen(&mut self, handle: Handle, bytes: u64) {
        let Some(mut open) = self.files.remove(&handle) else { return };
        let bytes = open.file.bytes + bytes;
        open.file.bytes = bytes;
        loop {
            while open.file.unplaced() > 0 {
                let wanted = self.layout.complete(&open.file).min(open.file.unplaced());
                if self.layout.allocate(&mut open.file, wanted) == 0 {
                    self.state = State::Full;
                    open.file.bytes = open.file.blocks.len() as u64 * BLOCK_BYTES;
                }
            }
            let missing = self.layout.missing_blocks(&open.file.blocks, bytes);
            if missing == 0 || self.is_full() {
                break;
            }
            open.file.bytes = (open.file.blocks.len() as u64 + missing) * BLOCK_BYTES;
        }
        open.file.written = open.file.placed_sectors();
        open.file.leads_written = open.file.leads.len();
        self.files.insert(handle, open);
    }

    /// Makes calls take processor time.
    pub fn with_costs(self, costs: CallCosts) -> Session<P> {
        Session { costs, ..self }
    }

    /// The transfers to the disk so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// When the program reached each [`Call::Mark`] and, last, when it ended.
    pub fn marks(&self) -> &[Instant] {
        &self.marks
    }

    /// The moves of on-line reorganisation, a batch for each file, in their order.
    pub fn moves(&self) -> &[MoveBatch] {
        self.mover.as_ref().map_or(&[], |mover| &mover.done)
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

    pub(super) fn add(&mut self, handle: Handle, directory: u32) {
        let (entry, group) = self.directories.add(directory, &mut self.layout);
        let file = File { handle, entry, group, last_group: group, ..File::default() };
        self.files.insert(handle, Open { file, reader: ReadSession::default() });
    }

    pub(super) fn remove(&mut self, handle: Handle) {
        let Some(open) = self.files.remove(&handle) else { return };
        for block in open.file.blocks.iter().chain(&open.file.leads) {
            self.buffers.forget(*block);
        }
        self.layout.release(&open.file);
        self.directories.remove(open.file.entry);
    }
}

impl<P> Session<P> {
    /// The block with the name of a file and, unless it lies there too, the one with its inode.
    pub(super) fn metadata_of(&self, handle: Handle) -> Option<(u32, Option<u32>)> {
        self.files.get(&handle).map(|open| self.directories.blocks_of(open.file.entry))
    }

    pub(super) fn change(&mut self, handle: Handle, change: impl FnOnce(&mut Open)) {
        if let Some(open) = self.files.get_mut(&handle) {
            change(open);
        }
    }

    /// Calls `act` on a file that is out of the list meanwhile; true if there is no such file.
    pub(super) fn with(&mut self, handle: Handle, act: impl FnOnce(&mut Self, &mut Open) -> bool) -> bool {
        let Some(mut open) = self.files.remove(&handle) else { return true };
        let done = act(self, &mut open);
        self.files.insert(handle, open);
        done
    }

    /// Sends a request to the disk; returns its number.
    pub(super) fn issue(&mut self, op: Op, first: u64, sectors: u32, awaited: bool) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.pending.insert(id, Pending { op, first, sectors, awaited });
        if !awaited {
            self.running += u64::from(sectors);
        }
        let Range { start, end } = self.layout.disk_sectors(first..first + u64::from(sectors));
        let request = Request { op, lbn: self.first + start, sectors: (end - start) as u32, fua: false };
        self.queue.push_back(Issue::new(0, request, id));
        id
    }
}
