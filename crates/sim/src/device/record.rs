//! The media-write log: which written data are on the media. When the power fails, the rest is lost.
//!
//! An access is computed whole when it starts, as passes. If the log is enabled, the device keeps them until the access ends, and
//! then reports each as a [`MediaWrite`]. When the power fails in between, it reports the sectors that have passed under the head
//! by then.
//! A destage writes what the cache holds when it starts. If a younger write over blocks that an older one made dirty, or still waits to
//! write, has arrived completely by then, both accesses write the younger one's data.
//!
//! *Assumptions:* of two writes to a block, the younger is the one submitted later, even if the drive accepts its data first:
//! blocks that were read meanwhile do not change again. A drive has enough energy to finish the physical sector under its head,
//! and none for more. A drive that must read a physical sector before it writes part of it has it in its buffer then.

use super::drive::Drive;
use super::job::Job;
use super::pass::Pass;
use headstack_model::{Instant, Lbn, Nanos};
use std::collections::VecDeque;
use std::ops::Range;

/// Blocks written to the media one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaWrite {
    /// First block.
    pub start: Lbn,
    /// Block after the last.
    pub end: Lbn,
    /// When the last of them had passed under the head.
    pub at: Instant,
    /// When the write with these data was submitted to the drive. Data of an earlier write to the same blocks are then no longer
    /// on the media.
    pub submitted: Instant,
}

/// Blocks, and the write whose data they have.
#[derive(Clone, Copy, Debug)]
struct Piece {
    start: Lbn,
    end: Lbn,
    submitted: Instant,
    /// Rank of the write in the order of arrival.
    order: u64,
}

impl Piece {
    fn touches(&self, other: &Piece) -> bool {
        self.start < other.end && other.start < self.end
    }

    /// Whether another piece's data replace it.
    fn is_older(&self, other: &Piece) -> bool {
        (self.submitted, self.order) < (other.submitted, other.order)
    }
}

/// A write that makes older data stale once its data have arrived.
#[derive(Clone, Copy, Debug)]
struct Younger {
    piece: Piece,
    here: Instant,
}

/// The state of dirty data, of the access in progress, and of the media.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    /// The writes whose data the dirty runs have, by the run's number, and those of commands that wait to be written, by slot.
    runs: Vec<Vec<Piece>>,
    commands: Vec<Vec<Piece>>,
    /// Writes that arrived since the last access began.
    younger: Vec<Younger>,
    orders: u64,
    /// The passes of the access in progress, in the order of time, their data, and their delay.
    passes: Vec<Pass>,
    bears: Vec<Piece>,
    delay: Nanos,
    /// The part of the data of the access in progress that is on the media.
    on_media: Vec<Range<Lbn>>,
    pub(super) written: VecDeque<MediaWrite>,
}

impl Record {
    /// Records a write that arrived, to be written from `list`.
    pub(super) fn add(&mut self, list: List, job: &Job) {
        self.orders += 1;
        let request = job.command.request;
        let (start, end, here) =
            (request.lbn, request.end(), job.arriving.time_of(u64::from(request.sectors)));
        let piece = Piece { start, end, submitted: job.submitted, order: self.orders };
        let list = self.list(list);
        let others = list.len();
        list.push(piece);
        // A write that was submitted later may have arrived first, and then replaces none.
        for index in 0..others {
            let other = list[index];
            give(list, others, &other);
        }
        self.younger.push(Younger { piece, here });
    }

    /// Drops a write that waited as a command and is not written.
    pub(super) fn drop_command(&mut self, slot: u32) {
        self.list(List::Command(slot)).clear();
    }

    fn list(&mut self, list: List) -> &mut Vec<Piece> {
        let (lists, index) = match list {
            List::Run(id) => (&mut self.runs, id as usize),
            List::Command(slot) => (&mut self.commands, slot as usize),
        };
        if index >= lists.len() {
            lists.resize_with(index + 1, Vec::new);
        }
        &mut lists[index]
    }

    /// Begins the access for what waits in `list`.
    pub(super) fn begin(&mut self, list: List, begins: Instant) {
        self.begin_younger(begins);
        let mut bears = std::mem::take(&mut self.bears);
        bears.clear();
        std::mem::swap(&mut bears, self.list(list));
        self.bears = bears;
    }

    /// Assigns blocks to the younger writes whose data have arrived when an access begins.
    fn begin_younger(&mut self, begins: Instant) {
        let Record { runs, commands, younger, .. } = self;
        younger.retain(|one| {
            let waits = one.here > begins;
            if !waits {
                runs.iter_mut().chain(commands.iter_mut()).for_each(|list| give(list, 0, &one.piece));
            }
            waits
        });
        self.passes.clear();
        self.on_media.clear();
        self.delay = Nanos::ZERO;
    }

    /// Begins the access for what waits in several lists, which calls of [`Record::bear`] name.
    pub(super) fn begin_several(&mut self, begins: Instant) {
        self.begin_younger(begins);
        self.bears.clear();
    }

    /// Adds to the access `blocks` of what waits in `list`; the rest continues to wait.
    pub(super) fn bear(&mut self, list: List, blocks: Range<Lbn>) {
        let mut bears = std::mem::take(&mut self.bears);
        let waiting = self.list(list);
        for piece in std::mem::take(waiting) {
            let (start, end) = (piece.start.max(blocks.start), piece.end.min(blocks.end));
            let parts = [
                Piece { end: piece.end.min(blocks.start), ..piece },
                Piece { start: piece.start.max(blocks.end), ..piece },
            ];
            waiting.extend(parts.into_iter().filter(|part| part.start < part.end));
            bears.extend((start < end).then_some(Piece { start, end, ..piece }));
        }
        self.bears = bears;
    }

    pub(super) fn see(&mut self, pass: Pass) {
        self.passes.push(pass);
    }

    pub(super) fn put_off(&mut self, time: Nanos) {
        self.delay += time;
    }

    pub(super) fn end_access(&mut self, drive: &Drive) {
        for index in 0..self.passes.len() {
            self.tell(drive, index, self.passes[index].sectors);
        }
        self.passes.clear();
    }

    /// Records that the data of the access in progress reached the log on the media at `at`: safe, but not at their own place.
    pub(super) fn tell_logged(&mut self, at: Instant) {
        let told =
            |piece: Piece| MediaWrite { start: piece.start, end: piece.end, at, submitted: piece.submitted };
        self.written.extend(self.bears.drain(..).map(told));
    }

    /// Tears the access in progress: the sectors that have passed at `now`, and the physical sector under the head, are on
    /// the media.
    pub(super) fn tear(&mut self, drive: &Drive, now: Instant, physical: u64) {
        let before = now.saturating_sub(self.delay);
        for index in 0..self.passes.len() {
            let pass = self.passes[index];
            let whole = pass.gone_by(drive, before);
            let is_under_way = pass.begins < before && pass.end_of(drive, whole) < before;
            let torn = pass.first + u64::from(whole) + u64::from(is_under_way);
            let count = Lbn(torn.0.next_multiple_of(physical)).min(pass.end_lbn()) - pass.first;
            self.tell(drive, index, if whole == 0 && !is_under_way { 0 } else { count as u32 });
        }
        self.passes.clear();
    }

    /// Reports that the first `count` sectors of a pass are on the media.
    fn tell(&mut self, drive: &Drive, index: usize, count: u32) {
        let pass = self.passes[index];
        let (mut from, end) = (pass.first, pass.first + u64::from(count));
        while from < end {
            let holds = |piece: &&Piece| piece.start <= from && from < piece.end;
            let piece = self.bears.iter().find(holds).expect("each block that is written has its data");
            let to = piece.end.min(end);
            let at = pass.end_of(drive, (to - pass.first) as u32) + self.delay;
            self.written.push_back(MediaWrite { start: from, end: to, at, submitted: piece.submitted });
            self.on_media.push(from..to);
            from = to;
        }
    }

    /// The first of these blocks that a write still waits to write; the end of the blocks if there is none. A write in progress
    /// must have been torn before.
    pub(super) fn first_waiting(&self, blocks: Range<Lbn>) -> Lbn {
        let mut first = blocks.end;
        for piece in self.runs.iter().chain(&self.commands).flatten() {
            if piece.start < first && piece.end > blocks.start {
                first = piece.start.max(blocks.start);
            }
        }
        for piece in &self.bears {
            let mut lbn = piece.start.max(blocks.start);
            while let Some(part) = self.on_media.iter().find(|part| part.contains(&lbn)) {
                lbn = part.end;
            }
            if lbn < piece.end.min(first) {
                first = lbn;
            }
        }
        first
    }
}

/// The list in which a piece waits to be written.
pub(super) enum List {
    Run(u32),
    Command(u32),
}

/// Assigns to a younger write the blocks that it shares with older pieces of a list, from `index` on.
fn give(list: &mut Vec<Piece>, mut index: usize, younger: &Piece) {
    while index < list.len() {
        let piece = list[index];
        index += 1;
        if !(piece.touches(younger) && piece.is_older(younger)) {
            continue;
        }
        let (start, end) = (piece.start.max(younger.start), piece.end.min(younger.end));
        list[index - 1] = Piece { start, end, ..*younger };
        let rest = [Piece { end: start, ..piece }, Piece { start: end, ..piece }];
        list.extend(rest.into_iter().filter(|rest| rest.start < rest.end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_submitted_later_stays_though_its_data_arrived_first() {
        let piece = |start, end, submitted, order| Piece {
            start: Lbn(start),
            end: Lbn(end),
            submitted: Instant::from_ms(submitted),
            order,
        };
        let (first, second) = (piece(0, 8, 5.0, 1), piece(4, 12, 3.0, 2));
        let writes_of = |list: &[Piece], lbn| -> Vec<u64> {
            let holds = |piece: &&Piece| piece.start <= lbn && lbn < piece.end;
            list.iter().filter(holds).map(|piece| piece.order).collect()
        };
        let mut list = vec![second];
        give(&mut list, 0, &first);
        assert_eq!((writes_of(&list, Lbn(5)), writes_of(&list, Lbn(9))), (vec![1], vec![2]));
        let mut list = vec![first];
        give(&mut list, 0, &second);
        assert_eq!((writes_of(&list, Lbn(5)), writes_of(&list, Lbn(9))), (vec![1], vec![]));
    }
}
