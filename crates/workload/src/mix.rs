//! Several loads as one.

use headstack_model::Instant;

use crate::load::{Issue, Load, Poll};
use crate::window::Window;
use crate::{LoadPhase, ShapeError};

/// The most requests that all members together have outstanding; further ones are delayed.
const MOST_OUTSTANDING: u32 = 1 << 20;

/// A load among others.
pub struct Member {
    /// The load.
    pub load: Box<dyn Load>,
    /// The rig's number of the member's device 0.
    pub device: u32,
    /// Number of its sources, which it numbers from 0 on. The next member's sources follow them.
    pub sources: u32,
}

/// Loads in parallel. The id of a member's request is its own id · members + the member's number.
pub struct Mix {
    members: Vec<Place>,
    turn: usize,
    window: Window,
    end: Instant,
}

struct Place {
    member: Member,
    first_source: u32,
    /// When to poll it again, unless a completion comes first.
    wake: Instant,
}

impl Mix {
    /// The loads in parallel, until `requests` requests were issued or the time is `end`.
    ///
    /// *Errors:* there are no members.
    pub fn new(members: Vec<Member>, requests: u64, end: Instant) -> Result<Mix, ShapeError> {
        crate::shape::nonzero("the number of loads", members.len() as u64)?;
        let mut first_source = 0u32;
        let place = |member: Member| {
            let first = first_source;
            first_source = first_source.saturating_add(member.sources);
            Place { member, first_source: first, wake: Instant::ZERO }
        };
        let members = members.into_iter().map(place).collect();
        Ok(Mix { members, turn: 0, window: Window::new(MOST_OUTSTANDING, requests)?, end })
    }

    fn issue(&mut self, index: usize, issue: Issue) -> Issue {
        let place = &self.members[index];
        self.window.next_id();
        Issue {
            device: place.member.device + issue.device,
            source: place.first_source.saturating_add(issue.source),
            id: self.outer_id(index, issue.id),
            ..issue
        }
    }

    /// The number among all members of a member's own number.
    fn outer_id(&self, index: usize, id: u64) -> u64 {
        id * self.members.len() as u64 + index as u64
    }
}

impl Load for Mix {
    fn poll(&mut self, now: Instant) -> Poll {
        if now >= self.end {
            return self.window.ended();
        }
        if let Err(poll) = self.window.ready() {
            return poll;
        }
        let count = self.members.len();
        let mut wake = Instant::MAX;
        for _ in 0..count {
            let index = self.turn;
            self.turn = (self.turn + 1) % count;
            let place = &mut self.members[index];
            if place.wake <= now {
                place.wake = match place.member.load.poll(now) {
                    Poll::Issue(issue) => return Poll::Issue(self.issue(index, issue)),
                    Poll::Compute { id, time } => {
                        return Poll::Compute { id: self.outer_id(index, id), time };
                    }
                    Poll::Later(at) => at,
                    Poll::Waiting | Poll::Done => Instant::MAX,
                };
            }
            wake = wake.min(place.wake);
        }
        if wake == Instant::MAX { self.window.ended() } else { Poll::Later(wake.min(self.end)) }
    }

    fn handle_computed(&mut self, now: Instant, id: u64, until: Instant) {
        let count = self.members.len() as u64;
        let place = &mut self.members[(id % count) as usize];
        place.member.load.handle_computed(now, id / count, until);
        place.wake = Instant::ZERO;
    }

    /// The phases of the first member that has any.
    fn phases(&self) -> &[LoadPhase] {
        let mut all = self.members.iter().map(|place| place.member.load.phases());
        all.find(|phases| !phases.is_empty()).unwrap_or(&[])
    }

    fn handle_completion(&mut self, now: Instant, id: u64) {
        self.window.close();
        let count = self.members.len() as u64;
        let place = &mut self.members[(id % count) as usize];
        place.member.load.handle_completion(now, id / count);
        place.wake = Instant::ZERO;
    }
}
