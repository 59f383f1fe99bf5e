//! Preallocation: whole traxtents that are reserved for large files being written.
//!
//! A file is large once it has an indirect block. If it cannot continue behind its last block, it then continues in a free traxtent,
//! and the rest of that traxtent is reserved for it, so that files that grow in turn do not share tracks.
//!
//! *Source:* Schindler, Griffin, Lumb and Ganger 2002, section 3.3, which names preallocation but gives no rule.

use super::allocate::Run;
use super::program::Handle;
use std::collections::VecDeque;

/// Files that have reserved blocks at a time; beyond it, the file that has not grown for longest loses them. *Source:* assumption.
const MOST_FILES: usize = 64;

/// Reserved blocks of each file, the one that grew last at the end.
#[derive(Clone, Debug, Default)]
pub(super) struct Reserved {
    runs: VecDeque<(Handle, Run)>,
}

impl Reserved {
    /// Reserves blocks for a file. Returns those of the file that has not grown for longest, if there are too many files.
    pub(super) fn add(&mut self, owner: Handle, run: Run) -> Option<Run> {
        self.runs.push_back((owner, run));
        if self.runs.len() <= MOST_FILES {
            return None;
        }
        self.runs.pop_front().map(|(_, run)| run)
    }

    /// Ends the reservation of a file.
    pub(super) fn remove(&mut self, owner: Handle) -> Option<Run> {
        let index = self.runs.iter().position(|(handle, _)| *handle == owner)?;
        self.runs.remove(index).map(|(_, run)| run)
    }

    /// Whether a block is the first one reserved for a file.
    pub(super) fn holds(&self, owner: Handle, block: u32) -> bool {
        self.runs.iter().any(|(handle, run)| *handle == owner && run.first == block)
    }

    /// Ends all reservations.
    pub(super) fn remove_all(&mut self) -> Vec<Run> {
        std::mem::take(&mut self.runs).into_iter().map(|(_, run)| run).collect()
    }

    pub(super) fn blocks(&self) -> u32 {
        self.runs.iter().map(|(_, run)| run.blocks).sum()
    }
}
