//! Off-line reorganisation: all files of a file system are moved to where an empty one would have them.
//!
//! Target blocks are filled in ascending order, in batches that fit into memory. A batch reads the data that belong there, wherever they
//! are, and the data that are there and belong elsewhere. Then it writes both: the latter to the highest free blocks.
//!
//! *Source:* Schindler, Griffin, Lumb and Ganger 2002, section 3.3, which names off-line reorganisation and retrofitting; the order is ours.

use super::layout::Layout;
use super::moves::{MoveBatch, MovedBlock};
use super::program::Handle;
use super::session::Session;
use std::collections::{BTreeMap, BTreeSet};

/// Target blocks of a batch: 16 MB, so that a batch and what it displaces take half of 64 MB.
const BATCH_BLOCKS: usize = 2048;

/// Where each block lies while it is moved.
struct Moving {
    /// By place, the target block of the data that are there.
    targets: BTreeMap<u32, u32>,
    /// By target block, the place where its data are.
    places: BTreeMap<u32, u32>,
    free: BTreeSet<u32>,
}

impl Moving {
    /// Moves data together; each goes from its place to a place that is then free.
    fn apply(&mut self, batch: &MoveBatch, targets: &[u32]) {
        for moved in batch {
            self.targets.remove(&moved.from);
            self.free.insert(moved.from);
        }
        for (moved, target) in batch.iter().zip(targets) {
            self.targets.insert(moved.to, *target);
            self.places.insert(*target, moved.to);
            self.free.remove(&moved.to);
        }
    }

    /// The moves that fill these places with the data that belong there, and the target of each moved data.
    fn batch(&self, area: &[u32]) -> (MoveBatch, Vec<u32>) {
        let mut batch = MoveBatch::new();
        let mut targets = Vec::new();
        let inside: BTreeSet<u32> = area.iter().copied().collect();
        for target in area {
            let from = self.places[target];
            if from != *target {
                batch.push(MovedBlock { from, to: *target });
                targets.push(*target);
            }
        }
        let leaves: Vec<u32> = area
            .iter()
            .filter(|place| self.targets.get(place).is_some_and(|target| !inside.contains(target)))
            .copied()
            .collect();
        // Places that contents of this batch leave are free by then.
        let left = batch.iter().map(|moved| moved.from).filter(|from| !inside.contains(from));
        let mut free: BTreeSet<u32> = self.free.difference(&inside).copied().collect();
        free.extend(left);
        for from in leaves {
            let to =
                free.pop_last().expect("what leaves a batch has as many places as what comes to it leaves");
            batch.push(MovedBlock { from, to });
            targets.push(self.targets[&from]);
        }
        (batch, targets)
    }
}

/// Moves all files to where an empty file system with the layout `target` would have them; `None`, with nothing moved, if they do
/// not fit there. Returns the moves in their order. Nothing of the files may be in memory or wait to be written.
pub fn reorganize<P>(session: &mut Session<P>, target: Layout) -> Option<Vec<MoveBatch>> {
    let mut layout = target;
    let mut directories = session.directories.clone();
    directories.place_again(&mut layout)?;
    let mut placed = Vec::new();
    for handle in in_directory_order(session) {
        let mut file = session.files.get(&handle)?.file.unplaced_copy();
        while file.unplaced() > 0 {
            let wanted = layout.complete(&file).min(file.unplaced());
            if layout.allocate(&mut file, wanted) == 0 {
                return None;
            }
        }
        file.written = file.placed_sectors();
        file.leads_written = file.leads.len();
        placed.push((handle, file));
    }
    let blocks = session.directories.paired_blocks(&directories);
    let mut pairs: Vec<MovedBlock> = blocks.into_iter().map(|(from, to)| MovedBlock { from, to }).collect();
    for (handle, file) in &placed {
        let before = &session.files[handle].file;
        let (from, to) = (before.blocks.iter().chain(&before.leads), file.blocks.iter().chain(&file.leads));
        pairs.extend(from.zip(to).map(|(from, to)| MovedBlock { from: *from, to: *to }));
    }
    let batches = batches_of(&pairs, session.layout.groups() * super::GROUP_BLOCKS);
    for (handle, file) in placed {
        session.change(handle, |open| open.file = file);
    }
    (session.layout, session.directories) = (layout, directories);
    session.buffers.forget_all();
    Some(batches)
}

fn in_directory_order<P>(session: &Session<P>) -> Vec<Handle> {
    let mut handles: Vec<(u32, Handle)> =
        session.files.iter().map(|(handle, open)| (open.file.group, *handle)).collect();
    handles.sort_unstable();
    handles.into_iter().map(|(_, handle)| handle).collect()
}

/// The moves, in batches, that bring each block to its place on a disk of `blocks` blocks.
fn batches_of(pairs: &[MovedBlock], blocks: u32) -> Vec<MoveBatch> {
    let is_head = |block: &u32| block % super::GROUP_BLOCKS < super::GROUP_HEAD_BLOCKS;
    let mut moving = Moving {
        targets: pairs.iter().map(|pair| (pair.from, pair.to)).collect(),
        places: pairs.iter().map(|pair| (pair.to, pair.from)).collect(),
        free: (0..blocks).filter(|block| !is_head(block)).collect(),
    };
    for pair in pairs {
        moving.free.remove(&pair.from);
    }
    let mut all: Vec<u32> = pairs.iter().map(|pair| pair.to).collect();
    all.sort_unstable();
    let mut batches = Vec::new();
    for area in all.chunks(BATCH_BLOCKS) {
        let (batch, targets) = moving.batch(area);
        moving.apply(&batch, &targets);
        if !batch.is_empty() {
            batches.push(batch);
        }
    }
    batches
}
