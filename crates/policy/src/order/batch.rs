//! A part of the queue that is served completely before later requests.

use crate::queue::QueueView;

/// The requests whose numbers are below `before`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Batch {
    before: u64,
}

impl Batch {
    /// How many of the oldest requests belong to it.
    pub(super) fn len(self, queue: &QueueView<'_>) -> usize {
        queue.slots.partition_point(|slot| slot.number < self.before)
    }

    /// Starts a batch of the `most` oldest requests.
    pub(super) fn close(&mut self, queue: &QueueView<'_>, most: usize) {
        let youngest = queue.slots[..queue.slots.len().min(most)].last();
        self.before = youngest.map_or(self.before, |slot| slot.number + 1);
    }

    /// As [`Batch::len`], but starts a new batch of the `most` oldest when the last one is empty; returns whether it did.
    pub(super) fn continue_batch(&mut self, queue: &QueueView<'_>, most: usize) -> (usize, bool) {
        match self.len(queue) {
            0 => {
                self.close(queue, most);
                (self.len(queue), true)
            }
            len => (len, false),
        }
    }
}
