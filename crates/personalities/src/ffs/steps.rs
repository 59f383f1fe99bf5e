//! A program's calls as steps.

use super::program::Handle;
use headstack_model::{Instant, Nanos};
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
pub(super) enum ProgramStep {
    /// The processor must work for a time; then the program waits until that is done.
    Compute(Nanos),
    Until(Instant),
    /// A block must be in memory.
    Need(u32),
    /// A block is written through: the caller waits for it.
    Through(u32),
    Await(u64),
    Begin(Handle),
    Touch(Handle, u32),
    Fetch(Handle, u32),
    Wait(Handle, u32),
    Throttle,
    Grow(Handle, u64),
    Close(Handle),
    Remove(Handle),
    Pause(Nanos),
    Mark,
}

/// A program, and what is left of its last call.
#[derive(Debug)]
pub(super) struct RunningProgram<P> {
    pub(super) program: P,
    pub(super) steps: VecDeque<ProgramStep>,
    pub(super) ended: bool,
}

impl<P> RunningProgram<P> {
    pub(super) fn new(program: P) -> RunningProgram<P> {
        RunningProgram { program, steps: VecDeque::new(), ended: false }
    }
}
