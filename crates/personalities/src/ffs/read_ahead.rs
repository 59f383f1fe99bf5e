//! Read-ahead of files: which blocks are fetched before they are requested.

use super::{Layout, Variant};

/// Number of past sessions whose outcome is stored.
const REMEMBERED: u32 = 16;

/// How a session reads a file: from its opening to its end.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadSession {
    last: Option<u32>,
    /// Number of blocks read in order up to now.
    run: u32,
    /// Whether blocks were read out of order.
    wandered: bool,
    /// The session's number in the history.
    session: u64,
    /// The first block after those read that was not requested at the last check.
    pub(super) asked_to: u32,
}

/// The blocks of a file to fetch at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fetch {
    /// This number of blocks after the one that is read.
    Behind(u32),
    /// This number of blocks, including the one that is read.
    Blocks(u32),
    /// To the end of the track, or of the traxtent.
    Track,
}

impl ReadSession {
    pub(super) fn touch(&mut self, block: u32, history: &mut History) {
        match self.last {
            Some(last) if block == last => return,
            Some(last) if block == last + 1 => self.run += 1,
            None => {
                self.run = 1;
                self.session = history.opened();
            }
            Some(_) => {
                self.run = 1;
                self.wandered = true;
                self.asked_to = 0;
            }
        }
        if self.run == 2 && !self.wandered {
            history.read_on(self.session);
        }
        self.asked_to = self.asked_to.max(block + 1);
        self.last = Some(block);
    }

    pub(super) fn fetch(&self, layout: &Layout, history: &History) -> Fetch {
        let cluster = layout.cluster_blocks();
        let by_run = Fetch::Behind(self.run.clamp(1, cluster));
        match layout.variant() {
            _ if self.wandered => by_run,
            Variant::Unmodified => by_run,
            Variant::FastStart => Fetch::Blocks(cluster),
            Variant::PartialBlocks if self.run == 1 && !history.most_read_on() => by_run,
            Variant::Traxtent | Variant::PartialBlocks => Fetch::Track,
        }
    }
}

/// Whether recent sessions continued in order after the first block that they read.
///
/// Fetching a track in vain costs about the revolution that it would have saved, so it pays if more than half of the sessions continue.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    /// One bit per session, the youngest lowest: whether it continued in order.
    outcomes: u32,
    sessions: u64,
}

impl History {
    /// Counts a session; returns its number.
    fn opened(&mut self) -> u64 {
        self.outcomes <<= 1;
        self.sessions += 1;
        self.sessions
    }

    fn read_on(&mut self, session: u64) {
        let age = self.sessions - session;
        if age < u64::from(REMEMBERED) {
            self.outcomes |= 1 << age;
        }
    }

    /// Whether more than half of the sessions before the youngest continued in order.
    fn most_read_on(&self) -> bool {
        let before = (self.outcomes >> 1) & ((1 << REMEMBERED) - 1);
        let known = self.sessions.saturating_sub(1).min(u64::from(REMEMBERED));
        2 * u64::from(before.count_ones()) > known
    }
}
