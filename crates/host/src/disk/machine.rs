//! What decides when a request is completed: a rig of the simulator, advanced by the caller, or the null disk, which takes no time.

use super::live::{LiveEvent, LiveLog};
use headstack_model::{Instant, Request};
use headstack_sim::{Completion, Engine, Finished, Observer, Outcome};
use headstack_workload::{Inbox, Issue, Load};
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) id: u64,
    pub(super) at: Instant,
    pub(super) outcome: Outcome,
}

struct Back<'a> {
    ended: &'a mut VecDeque<Ended>,
    live: Option<&'a mut LiveLog>,
}

impl Observer for Back<'_> {
    fn issued(&mut self, now: Instant, issue: &Issue, _: &dyn Load) {
        if let Some(live) = &mut self.live {
            live.push(LiveEvent::Issued(now, *issue));
        }
    }

    fn finished(&mut self, finished: &Finished) {
        let Finished { id, completion, .. } = *finished;
        if let Some(live) = &mut self.live {
            live.push(LiveEvent::Finished(*finished));
        }
        self.ended.push_back(Ended { id, at: completion.completed, outcome: completion.outcome });
    }

    fn served(&mut self, _device: u32, _command: &Completion) {}
}

#[derive(Debug)]
pub(super) struct Machine {
    /// None for the null disk.
    engine: Option<Box<Engine>>,
    inbox: Inbox,
    ended: VecDeque<Ended>,
    /// Events for pages that show the disk; `None` until a page asks for them.
    live: Option<LiveLog>,
}

impl Machine {
    pub(super) fn rig(engine: Engine) -> Machine {
        Machine { engine: Some(Box::new(engine)), ..Machine::null() }
    }

    pub(super) fn null() -> Machine {
        Machine { engine: None, inbox: Inbox::default(), ended: VecDeque::new(), live: None }
    }

    pub(super) fn engine(&self) -> Option<&Engine> {
        self.engine.as_deref()
    }

    pub(super) fn engine_mut(&mut self) -> Option<&mut Engine> {
        self.engine.as_deref_mut()
    }

    pub(super) fn submit(&mut self, now: Instant, volume: u32, request: Request, id: u64) {
        if self.engine.is_none() {
            self.ended.push_back(Ended { id, at: now, outcome: Outcome::Done });
            return;
        }
        self.inbox.put(now, Issue::new(volume, request, id));
        self.handle_timeout(now);
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if let Some(engine) = &mut self.engine {
            let mut back = Back { ended: &mut self.ended, live: self.live.as_mut() };
            engine.advance(now, &mut self.inbox, &mut back);
        }
    }

    /// Appends the events since the last call to `into`, from the first call on; returns how many have been dropped.
    pub(super) fn drain_events(&mut self, into: &mut Vec<LiveEvent>) -> u64 {
        let Some(engine) = &mut self.engine else { return 0 };
        self.live.get_or_insert_with(|| LiveLog::new(engine)).drain(engine, into)
    }

    pub(super) fn poll_ended(&mut self) -> Option<Ended> {
        self.ended.pop_front()
    }

    /// When the next step is due; `None` if only a new request can change anything.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.engine().and_then(Engine::next_event)
    }
}
