//! An extraction: straight-line code that asks a disk, turned by whoever has the disk.
//!
//! What an extractor does next depends on all that it was told, over several levels of search. As a state machine written by
//! hand that is hard to read; so an extractor is an `async` function, whose only thing to wait for is the answer to a probe,
//! and the compiler makes the machine of it. Nothing here needs an executor, a thread or a clock: [`Extraction::next_probe`]
//! runs the function up to where it waits.
//!
//! The same answers lead to the same probes. So an extraction that was interrupted is taken up by telling it again what it
//! was told before.

use crate::{Answer, DiskInfo, Probe, ProbeCommand};
use headstack_model::{Lbn, Nanos};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// How far an extraction is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// What it is doing.
    pub phase: &'static str,
    /// How much of that is done, from 0 to 1.
    pub share: f64,
    /// Probes asked so far.
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
    now: Nanos,
    progress: Progress,
}

/// What an extractor has of the disk: it sends probes and waits for answers.
#[derive(Clone, Debug)]
pub struct Disk {
    mailbox: Rc<RefCell<Mailbox>>,
}

impl Disk {
    /// What is known of the disk.
    pub fn info(&self) -> DiskInfo {
        self.mailbox.borrow().info
    }

    /// When the last answer came.
    pub fn now(&self) -> Nanos {
        self.mailbox.borrow().now
    }

    /// Says how far the extraction is.
    pub fn report_progress(&self, phase: &'static str, share: f64) {
        let mut mailbox = self.mailbox.borrow_mut();
        (mailbox.progress.phase, mailbox.progress.share) = (phase, share);
    }

    /// Sends a probe, to be asked at a time, behind those sent before.
    pub fn send(&self, command: ProbeCommand, at: Nanos) -> Ticket {
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

    /// Asks, and waits for the answer.
    pub async fn execute(&self, command: ProbeCommand) -> Answer {
        let ticket = self.send(command, Nanos::ZERO);
        self.answer(ticket).await
    }

    /// Reads blocks from the media.
    pub async fn read(&self, lbn: Lbn, sectors: u32) -> Answer {
        self.execute(ProbeCommand::Read { lbn, sectors, from_media: true }).await
    }
}

/// Something being learned of a disk.
///
/// Ask what [`Extraction::next_probe`] says, as many at a time as the disk takes, in that order; tell each answer to
/// [`Extraction::observe`]. When it has no next probe and none is under way, it is done.
pub struct Extraction<T> {
    mailbox: Rc<RefCell<Mailbox>>,
    running: Option<Pin<Box<dyn Future<Output = T>>>>,
    found: Option<T>,
}

impl<T> Extraction<T> {
    /// Begins to learn of a disk what an extractor finds out.
    pub fn new<F>(info: DiskInfo, extractor: impl FnOnce(Disk) -> F) -> Extraction<T>
    where
        F: Future<Output = T> + 'static,
    {
        let mailbox = Rc::new(RefCell::new(Mailbox {
            info,
            outbox: VecDeque::new(),
            answers: BTreeMap::new(),
            now: Nanos::ZERO,
            progress: Progress::default(),
        }));
        let running = Box::pin(extractor(Disk { mailbox: Rc::clone(&mailbox) }));
        Extraction { mailbox, running: Some(running), found: None }
    }

    /// The next probe: none while it waits for answers, and none when it is done.
    pub fn next_probe(&mut self) -> Option<Probe> {
        if self.mailbox.borrow().outbox.is_empty() {
            self.run();
        }
        self.mailbox.borrow_mut().outbox.pop_front()
    }

    /// Tells the answer to a probe.
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

    /// How far it is.
    pub fn progress(&self) -> Progress {
        self.mailbox.borrow().progress.clone()
    }

    /// What it found, once it is done.
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
        Answer { issued: Nanos(at), ended: Nanos(at + 5), outcome: crate::Outcome::Done }
    }

    #[test]
    fn extraction_accepts_answers_out_of_order() {
        let mut extraction = Extraction::new(FACTS, async |disk: Disk| {
            let first = disk.send(ProbeCommand::Flush, Nanos::ZERO);
            let second = disk.read(Lbn(7), 1).await;
            disk.answer(first).await.ended + second.ended
        });
        let (first, second) = (extraction.next_probe(), extraction.next_probe());
        let (first, second) = (first.expect("it asks"), second.expect("it asks two things"));
        assert_eq!((first.command, first.number, second.number), (ProbeCommand::Flush, 0, 1));
        assert_eq!(extraction.next_probe(), None);
        // The answers may come in any order.
        extraction.observe(&second, answer(10));
        assert_eq!((extraction.next_probe(), extraction.take_found()), (None, None));
        extraction.observe(&first, answer(20));
        assert_eq!((extraction.next_probe(), extraction.take_found()), (None, Some(Nanos(40))));
        assert_eq!(extraction.progress().probes, 2);
    }
}
