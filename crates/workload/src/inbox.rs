//! Requests that arrive from outside while a program advances the engine step by step.

use crate::load::{Issue, Load, Poll};
use headstack_model::Instant;
use std::collections::VecDeque;

/// A load that holds requests until their time.
#[derive(Clone, Debug, Default)]
pub struct Inbox {
    held: VecDeque<(Instant, Issue)>,
}

impl Inbox {
    /// Adds a request that arrives at `at`. A time before that of the last held request is raised to that.
    pub fn put(&mut self, at: Instant, issue: Issue) {
        let last = self.held.back().map_or(Instant::ZERO, |(at, _)| *at);
        self.held.push_back((at.max(last), issue));
    }

    /// Requests held.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
}

impl Load for Inbox {
    fn poll(&mut self, now: Instant) -> Poll {
        match self.held.front() {
            None => Poll::Waiting,
            Some((at, _)) if *at > now => Poll::Later(*at),
            Some((_, issue)) => {
                let issue = *issue;
                self.held.pop_front();
                Poll::Issue(issue)
            }
        }
    }

    fn handle_completion(&mut self, _now: Instant, _id: u64) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstack_model::Request;

    #[test]
    fn inbox_delivers_requests_in_order_at_their_times() {
        let mut inbox = Inbox::default();
        let issue = |id| Issue::new(0, Request::flush(), id);
        assert_eq!(inbox.poll(Instant(5)), Poll::Waiting);
        inbox.put(Instant(10), issue(1));
        inbox.put(Instant(7), issue(2));
        assert_eq!(
            inbox.poll(Instant(9)),
            Poll::Later(Instant(10)),
            "what came before the last comes with it"
        );
        assert_eq!(inbox.poll(Instant(10)), Poll::Issue(issue(1)));
        assert_eq!((inbox.poll(Instant(10)), inbox.len()), (Poll::Issue(issue(2)), 0));
        assert!(inbox.is_empty());
    }
}
