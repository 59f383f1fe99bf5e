//! The disk of a node: an emulated disk that starts commands in any order and reports their ends late, like a device behind queues and
//! threads.
//!
//! Memory that a command reads into is garbage from its start until its end; bytes that a command writes must be the same at its end.

use crate::draw::Ways;
use headstack_host::disk::{Emulator, Outcome};
use headstack_host::node::{Command, Ended, NodeCore, RequestKind};
use headstack_host::{BlockError, Operation};
use headstack_model::Instant;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;

/// A command from its submission until its end is reported.
#[derive(Debug)]
struct DeviceCommand {
    command: Command,
    operation: Option<Operation>,
    /// What it writes.
    data: Vec<u8>,
    /// When it begins, and then when its end is reported.
    at: Instant,
    result: Option<Result<Ended, BlockError>>,
}

/// The disk of a node.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) emulator: Emulator,
    in_flight: BTreeMap<u32, DeviceCommand>,
}

impl Device {
    pub(crate) fn new(emulator: Emulator) -> Device {
        Device { emulator, in_flight: BTreeMap::new() }
    }

    /// Takes a command.
    pub(crate) fn start(
        &mut self,
        now: Instant,
        core: &mut NodeCore<u64>,
        command: Command,
        ways: &Ways,
        random: &mut Pcg64Mcg,
    ) {
        let mut data = Vec::new();
        let operation = match command.kind {
            RequestKind::Read { offset, bytes, fua } => {
                core.buffer(&command).fill(0xa5);
                Operation::Read { offset, bytes: bytes as u32, fua }
            }
            RequestKind::Write { offset, fua, .. } => {
                // Which of the two a device asks for depends on whether it minds where the bytes are.
                data =
                    if random.random_bool(0.5) { core.data(&command) } else { core.aligned_data(&command) }
                        .to_vec();
                Operation::Write { offset, data: data.clone(), fua }
            }
            RequestKind::Flush => Operation::Flush,
            RequestKind::Zero { offset, bytes, may_trim, fua } => {
                Operation::WriteZeroes { offset, bytes, may_trim, fua }
            }
            RequestKind::Trim { offset, bytes } => Operation::Trim { offset, bytes },
            RequestKind::BlockStatus { offset, bytes } => Operation::Allocation { offset, bytes },
        };
        let at = now + ways.put_off(random);
        let in_flight = DeviceCommand { command, operation: Some(operation), data, at, result: None };
        assert!(self.in_flight.insert(command.id, in_flight).is_none(), "{command:?} has not ended");
    }

    /// Whether a command is still in progress.
    pub(crate) fn is_busy(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// The time of the next event.
    pub(crate) fn next(&self) -> Option<Instant> {
        let own =
            self.in_flight.values().filter(|u| u.operation.is_some() || u.result.is_some()).map(|u| u.at);
        own.chain(self.emulator.poll_timeout()).min()
    }

    /// Starts due commands, and collects ended ones.
    pub(crate) fn turn(
        &mut self,
        now: Instant,
        core: &mut NodeCore<u64>,
        ways: &Ways,
        random: &mut Pcg64Mcg,
    ) {
        for (&id, in_flight) in &mut self.in_flight {
            if let Some(operation) = in_flight.operation.take_if(|_| in_flight.at <= now) {
                self.emulator.submit(now, 0, operation, u64::from(id));
            }
        }
        self.emulator.handle_timeout(now);
        while let Some(answered) = self.emulator.poll_answer() {
            let id = answered.ticket as u32;
            let in_flight = self.in_flight.get_mut(&id).expect("it is in flight");
            let result = answered.result.and_then(|outcome| match outcome {
                Outcome::Done => Ok(Ended::Done),
                Outcome::Allocation(extents) => Ok(Ended::BlockStatus(extents)),
                Outcome::Read { .. } if in_flight.command.is_for_request() && ways.leaves => Ok(Ended::Left),
                Outcome::Read { volume, offset, .. } => {
                    self.emulator.read(volume, offset, core.buffer(&in_flight.command)).map(|()| Ended::Done)
                }
            });
            (in_flight.at, in_flight.result) = (now + ways.tell_late(random), Some(result));
        }
    }

    /// The next command whose end is due.
    pub(crate) fn next_end(
        &mut self,
        now: Instant,
        core: &NodeCore<u64>,
    ) -> Option<(Command, Result<Ended, BlockError>)> {
        let is_due =
            |(_, in_flight): &(&u32, &DeviceCommand)| in_flight.result.is_some() && in_flight.at <= now;
        let id = *self.in_flight.iter().find(is_due)?.0;
        let DeviceCommand { command, data, result, .. } = self.in_flight.remove(&id)?;
        if !data.is_empty() {
            assert!(core.data(&command) == data, "what {command:?} wrote was changed before it ended");
        }
        Some((command, result?))
    }

    /// Continues without a node: commands that have reached the disk take effect, others do not.
    pub(crate) fn run_out(&mut self, now: Instant) {
        let mut now = now;
        while self.emulator.outstanding() > 0 {
            now = self.emulator.poll_timeout().expect("operations are in flight").max(now);
            self.emulator.handle_timeout(now);
        }
    }
}
