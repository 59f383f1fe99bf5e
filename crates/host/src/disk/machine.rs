//! What decides when a request is done: a rig of the simulator, stepped by its caller, or the null disk, which takes no time.

use headstack_model::{Instant, Request};
use headstack_sim::{Completion, Engine, Finished, Observer, Outcome};
use headstack_workload::{Inbox, Issue};
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) id: u64,
    pub(super) at: Instant,
    pub(super) outcome: Outcome,
}

struct Back<'a>(&'a mut VecDeque<Ended>);

impl Observer for Back<'_> {
    fn finished(&mut self, finished: &Finished) {
        let Finished { id, completion, .. } = *finished;
        self.0.push_back(Ended { id, at: completion.completed, outcome: completion.outcome });
    }

    fn served(&mut self, _device: u32, _command: &Completion) {}
}

#[derive(Debug)]
pub(super) struct Machine {
    /// None for the null disk.
    engine: Option<Box<Engine>>,
    inbox: Inbox,
    ended: VecDeque<Ended>,
}

impl Machine {
    pub(super) fn rig(engine: Engine) -> Machine {
        Machine { engine: Some(Box::new(engine)), ..Machine::null() }
    }

    pub(super) fn null() -> Machine {
        Machine { engine: None, inbox: Inbox::default(), ended: VecDeque::new() }
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
            engine.advance(now, &mut self.inbox, &mut Back(&mut self.ended));
        }
    }

    pub(super) fn poll_ended(&mut self) -> Option<Ended> {
        self.ended.pop_front()
    }

    /// When the next step is due; `None` if only a new request can change anything.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.engine().and_then(Engine::next_event)
    }
}
