//! The top of the host: the load's requests arrive, as system calls of programs or over the network, and their answers leave.
//!
//! Modelled: half of the clients' round trip each way, and the processor's work before and after a request. Not modelled: the
//! network's bandwidth.
//!
//! *Time:* of a request that waits before it is served, `queued`; of its answer, the processor's work and the way back `overhead`,
//! and waiting for the processor `queued`.

use super::costs::CallCost;
use crate::layer::{Below, Completed, Effect, Layer, Submission};
use crate::link::ProcessorWork;
use crate::memory::Agenda;
use headstack_model::{Instant, Op};
use slab::Slab;
use std::collections::VecDeque;

/// The stage of a call.
#[derive(Clone, Copy, Debug)]
enum CallStage {
    /// On its way from a client.
    Coming,
    /// Handled by the processor, before it is served.
    Entering,
    Served,
    /// Handled by the processor, since this time, after it was served.
    Leaving(Instant),
    /// The answer is on its way to the client.
    Going,
}

#[derive(Clone, Copy, Debug)]
struct HostCall {
    submission: Submission,
    stage: CallStage,
    answer: Option<Completed>,
}

#[derive(Debug)]
pub(crate) struct CallLayer {
    cost: CallCost,
    sector_bytes: u64,
    calls: Slab<HostCall>,
    due: Agenda<u32>,
    effects: VecDeque<Effect>,
}

impl CallLayer {
    /// Calls for which memory is allocated at the start.
    const AT_ONCE: usize = 1024;

    /// The calls for a volume with blocks of `sector_bytes` bytes.
    pub(crate) fn new(cost: CallCost, sector_bytes: u32) -> CallLayer {
        CallLayer {
            cost,
            sector_bytes: u64::from(sector_bytes),
            calls: Slab::with_capacity(CallLayer::AT_ONCE),
            due: Agenda::new(CallLayer::AT_ONCE),
            effects: VecDeque::new(),
        }
    }

    /// Bytes that a call's issuer sends, and bytes that it reads or writes in all.
    fn bytes(&self, number: u32) -> (u64, u64) {
        let request = self.calls[number as usize].submission.request;
        let all = u64::from(request.sectors) * self.sector_bytes;
        (if request.op == Op::Write { all } else { 0 }, all)
    }

    fn compute(&mut self, number: u32, stage: CallStage, work: ProcessorWork) {
        self.calls[number as usize].stage = stage;
        self.effects.push_back(Effect::Compute { id: number, work });
    }

    fn wait_until(&mut self, now: Instant, number: u32, until: Instant) {
        match until > now {
            true => self.due.add(until, number),
            false => self.next_stage(now, number),
        }
    }

    /// Ends the present stage of a call and begins the next one.
    fn next_stage(&mut self, now: Instant, number: u32) {
        let call = &mut self.calls[number as usize];
        match call.stage {
            CallStage::Coming => {
                let (sent, all) = self.bytes(number);
                self.compute(number, CallStage::Entering, self.cost.before(sent, all));
            }
            CallStage::Entering => {
                call.stage = CallStage::Served;
                let submission = Submission { id: number, ..call.submission };
                self.effects.push_back(Effect::Down { child: 0, submission });
            }
            CallStage::Served => {
                let (sent, all) = self.bytes(number);
                self.compute(number, CallStage::Leaving(now), self.cost.after(all - sent));
            }
            CallStage::Leaving(since) => {
                call.stage = CallStage::Going;
                let (sent, all) = self.bytes(number);
                let work = self.cost.after(all - sent).total();
                let until = now + self.cost.way;
                let call = &mut self.calls[number as usize];
                let completion =
                    &mut call.answer.as_mut().expect("a call that leaves was answered").completion;
                completion.completed = until;
                completion.parts.overhead += work + self.cost.way;
                completion.parts.queued += (now - since).saturating_sub(work);
                self.wait_until(now, number, until);
            }
            CallStage::Going => {
                let HostCall { submission, answer, .. } = self.calls.remove(number as usize);
                let answer = answer.expect("a call that leaves was answered");
                self.effects.push_back(Effect::Up(Completed { id: submission.id, ..answer }));
            }
        }
    }
}

impl Layer for CallLayer {
    fn submit(&mut self, now: Instant, _port: u32, submission: Submission, _below: &dyn Below) {
        let call = HostCall { submission, stage: CallStage::Coming, answer: None };
        let number = self.calls.insert(call) as u32;
        self.wait_until(now, number, now + self.cost.way);
    }

    fn complete(&mut self, now: Instant, _child: u32, answer: &Completed) {
        self.calls[answer.id as usize].answer = Some(*answer);
        self.next_stage(now, answer.id);
    }

    fn computed(&mut self, now: Instant, id: u32, until: Instant) {
        self.wait_until(now, id, until);
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(number) = self.due.pop_due(now) {
            self.next_stage(now, number);
        }
    }

    fn poll(&mut self, _now: Instant) -> Option<Effect> {
        self.effects.pop_front()
    }

    fn next_event(&self) -> Instant {
        self.due.next_event()
    }
}
