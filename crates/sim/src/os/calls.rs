//! The top of the host: the load's requests arrive, as system calls of programs or over the network, and their answers leave.
//!
//! Modelled: half of the clients' round trip each way, and the processor's work before and after a request. Not modelled: the
//! network's bandwidth.
//!
//! *Time:* of a request that waits before it is served, `queued`; of its answer, the processor's work and the way back `overhead`,
//! and waiting for the processor `queued`.

use super::costs::CallCost;
use crate::layer::{Completed, Layer, Out, Submission};
use crate::link::ProcessorWork;
use crate::memory::Agenda;
use headstack_model::{Instant, Op};
use slab::Slab;

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
        }
    }

    /// Bytes that a call's issuer sends, and bytes that it reads or writes in all.
    fn bytes(&self, number: u32) -> (u64, u64) {
        let request = self.calls[number as usize].submission.request;
        let all = u64::from(request.sectors) * self.sector_bytes;
        (if request.op == Op::Write { all } else { 0 }, all)
    }

    fn compute(&mut self, number: u32, stage: CallStage, work: ProcessorWork, out: &mut Out<'_>) {
        self.calls[number as usize].stage = stage;
        out.compute(number, work);
    }

    fn wait_until(&mut self, now: Instant, number: u32, until: Instant, out: &mut Out<'_>) {
        if until > now {
            self.due.add(until, number);
            out.wake_at(self.due.next_event());
        } else {
            self.next_stage(now, number, out);
        }
    }

    /// Ends the present stage of a call and begins the next one.
    fn next_stage(&mut self, now: Instant, number: u32, out: &mut Out<'_>) {
        let call = &mut self.calls[number as usize];
        match call.stage {
            CallStage::Coming => {
                let (sent, all) = self.bytes(number);
                self.compute(number, CallStage::Entering, self.cost.before(sent, all), out);
            }
            CallStage::Entering => {
                call.stage = CallStage::Served;
                let submission = Submission { id: number, ..call.submission };
                out.down(0, submission);
            }
            CallStage::Served => {
                let (sent, all) = self.bytes(number);
                self.compute(number, CallStage::Leaving(now), self.cost.after(all - sent), out);
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
                self.wait_until(now, number, until, out);
            }
            CallStage::Going => {
                let HostCall { submission, answer, .. } = self.calls.remove(number as usize);
                let answer = answer.expect("a call that leaves was answered");
                out.up(Completed { id: submission.id, ..answer });
            }
        }
    }
}

impl Layer for CallLayer {
    fn submit(&mut self, now: Instant, submission: Submission, out: &mut Out<'_>) {
        let call = HostCall { submission, stage: CallStage::Coming, answer: None };
        let number = self.calls.insert(call) as u32;
        self.wait_until(now, number, now + self.cost.way, out);
    }

    fn complete(&mut self, now: Instant, _child: u32, answer: &Completed, out: &mut Out<'_>) {
        self.calls[answer.id as usize].answer = Some(*answer);
        self.next_stage(now, answer.id, out);
    }

    fn computed(&mut self, now: Instant, id: u32, until: Instant, out: &mut Out<'_>) {
        self.wait_until(now, id, until, out);
    }

    fn wake(&mut self, now: Instant, out: &mut Out<'_>) {
        while let Some(number) = self.due.pop_due(now) {
            self.next_stage(now, number, out);
        }
        out.wake_at(self.due.next_event());
    }
}
