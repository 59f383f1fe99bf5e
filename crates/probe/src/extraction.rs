//! An extraction: straight-line code that probes a disk, driven by the owner of the disk.
//!
//! The next probe of an extractor depends on all earlier answers, over several levels of search. An explicit state machine would
//! be hard to read, so an extractor is an `async` function that awaits only answers to probes, and the compiler makes the state
//! machine. It needs no executor, thread or clock: [`Extraction::next_probe`] runs the function until it waits.
//!
//! The same answers lead to the same probes. So an interrupted extraction resumes by a replay of the recorded answers.

use crate::{Answer, DiskInfo, Probe, ProbeCommand};
use headstack_model::{Instant, Lbn};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Progress of an extraction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// Name of the current phase.
    pub phase: &'static str,
    /// Share of the phase that is done, from 0 to 1.
    pub share: f64,
    /// Probes sent so far.
    pub probes: u64,
}

/// A probe that was sent.
#[derive(Debug)]
pub struct Ticket(u64);

#[derive(Debug)]
struct Mailbox {
    info: DiskInfo,
    outbox: VecDeque<Probe>,
    answers: BTreeMap<u64, Answer>,
    now: Instant,
    progress: Progress,
}

/// An extractor's handle to the disk: it sends probes and waits for answers.
#[derive(Clone, Debug)]
pub struct Disk {
    mailbox: Rc<RefCell<Mailbox>>,
}

impl Disk {
    /// The known properties of the disk.
    pub fn info(&self) -> DiskInfo {
        self.mailbox.borrow().info
    }

    /// When the last answer arrived.
    pub fn now(&self) -> Instant {
        self.mailbox.borrow().now
    }

    /// Reports progress.
    pub fn report_progress(&self, phase: &'static str, share: f64) {
        let mut mailbox = self.mailbox.borrow_mut();
        (mailbox.progress.phase, mailbox.progress.share) = (phase, share);
    }

    /// Schedules a probe for a time, after those sent before.
    pub fn send(&self, command: ProbeCommand, at: Instant) -> Ticket {
        let mut mailbox = self.mailbox.borrow_mut();
        let number = mailbox.progress.probes;
        mailbox.progress.probes += 1;
        mailbox.outbox.push_back(Probe { number, command, at });
        Ticket(number)
    }

    /// Waits for the answer to a probe.
    pub async fn answer(&self, ticket: Ticket) -> Answer {
        poll_fn(|_| match self.mailbox.borrow_mut().answers.remove(&ticket.0) {
            Some(answer) => Poll::Ready(answer),
            None => Poll::Pending,
        })
        .await
    }

    /// Sends a command, and waits for the answer.
    pub async fn execute(&self, command: ProbeCommand) -> Answer {
        let ticket = self.send(command, Instant::ZERO);
        self.answer(ticket).await
    }

    /// Reads blocks from the media.
    pub async fn read(&self, lbn: Lbn, sectors: u32) -> Answer {
        self.execute(ProbeCommand::Read { lbn, sectors, from_media: true }).await
    }
}

/// An extraction in progress.
///
/// Send the probes of [`Extraction::next_probe`] in that order, as many at a time as the disk takes, and pass each answer to
/// [`Extraction::observe`]. It is done when it has no next probe and none is in flight.
pub struct Extraction<T> {
    mailbox: Rc<RefCell<Mailbox>>,
    running: Option<Pin<Box<dyn Future<Output = T>>>>,
    found: Option<T>,
}

impl<T> Extraction<T> {
    /// Starts an extractor on a disk.
    pub fn new<F>(info: DiskInfo, extractor: impl FnOnce(Disk) -> F) -> Extraction<T>
    where
        F: Future<Output = T> + 'static,
    {
        let mailbox = Rc::new(RefCell::new(Mailbox {
            info,
            outbox: VecDeque::new(),
            answers: BTreeMap::new(),
            now: Instant::ZERO,
            progress: Progress::default(),
        }));
        let running = Box::pin(extractor(Disk { mailbox: Rc::clone(&mailbox) }));
        Extraction { mailbox, running: Some(running), found: None }
    }

    /// The next probe; `None` while it waits for answers, and when it is done.
    pub fn next_probe(&mut self) -> Option<Probe> {
        if self.mailbox.borrow().outbox.is_empty() {
            self.run();
        }
        self.mailbox.borrow_mut().outbox.pop_front()
    }

    /// Accepts the answer to a probe.
    pub fn observe(&mut self, probe: &Probe, answer: Answer) {
        let mut mailbox = self.mailbox.borrow_mut();
        mailbox.now = mailbox.now.max(answer.ended);
        mailbox.answers.insert(probe.number, answer);
    }

    fn run(&mut self) {
        let Some(running) = &mut self.running else { return };
        let mut context = Context::from_waker(Waker::noop());
        if let Poll::Ready(found) = running.as_mut().poll(&mut context) {
            self.found = Some(found);
            self.running = None;
        }
    }

    /// Its progress.
    pub fn progress(&self) -> Progress {
        self.mailbox.borrow().progress.clone()
    }

    /// Its result, once it is done.
    pub fn take_found(&mut self) -> Option<T> {
        self.found.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: DiskInfo = DiskInfo {
        sectors: 100,
        sector_bytes: 512,
        physical_sectors: 1,
        depth: 2,
        may_write: false,
        translates: false,
    };

    fn answer(at: u64) -> Answer {
        Answer { issued: Instant(at), ended: Instant(at + 5), outcome: crate::Outcome::Done }
    }

    #[test]
    fn extraction_accepts_answers_out_of_order() {
        let mut extraction = Extraction::new(FACTS, async |disk: Disk| {
            let first = disk.send(ProbeCommand::Flush, Instant::ZERO);
            let second = disk.read(Lbn(7), 1).await;
            (disk.answer(first).await.ended, second.ended)
        });
        let (first, second) = (extraction.next_probe(), extraction.next_probe());
        let (first, second) = (first.expect("it asks"), second.expect("it asks two things"));
        assert_eq!((first.command, first.number, second.number), (ProbeCommand::Flush, 0, 1));
        assert_eq!(extraction.next_probe(), None);
        // The answers may come in any order.
        extraction.observe(&second, answer(10));
        assert_eq!((extraction.next_probe(), extraction.take_found()), (None, None));
        extraction.observe(&first, answer(20));
        assert_eq!(
            (extraction.next_probe(), extraction.take_found()),
            (None, Some((Instant(25), Instant(15))))
        );
        assert_eq!(extraction.progress().probes, 2);
    }
}
