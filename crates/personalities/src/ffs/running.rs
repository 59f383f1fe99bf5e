//! Runs a session: splits the programs' calls into steps, and carries out each step and the requests that follow.

use super::mover::FileMover;
use super::moving::{abandon_move, end_move, move_files};
use super::program::{Call, Handle};
use super::read_ahead::ReadSession;
use super::session::{Session, State};
use super::steps::ProgramStep;
use super::{BLOCK_BYTES, BLOCK_SECTORS, sector_of};
use headstack_model::{Instant, Nanos, Op};
use headstack_workload::{Load, Poll};
use std::collections::VecDeque;

/// Clusters in flight at which writers wait, and at which they continue: 1 MB and 512 KB with clusters of 256 KB, as in FreeBSD.
const MOST_WRITES: u32 = 4;
const FEW_WRITES: u32 = 2;

/// Delay after which unwritten data of a program are written.
const SYNC_DELAY: Nanos = Nanos::from_secs(30);

impl<P: Iterator<Item = Call>> Load for Session<P> {
    fn poll(&mut self, now: Instant) -> Poll {
        write_late(self, now);
        move_files(self, now);
        let ended = advance(self, now);
        if let Some(issue) = self.queue.pop_front() {
            return Poll::Issue(issue);
        }
        if ended && self.pending.is_empty() {
            return Poll::Done;
        }
        let due = self.late.front().map(|(due, _)| *due).filter(|_| !ended);
        let fronts = || self.programs.iter().map(|program| program.steps.front());
        if let Some((id, time)) = (0..).zip(fronts()).find_map(|(id, step)| match step {
            Some(ProgramStep::Compute(time)) => Some((id, *time)),
            _ => None,
        }) {
            return Poll::Compute { id, time };
        }
        let until = |step: Option<&ProgramStep>| {
            if let Some(ProgramStep::Until(until)) = step { Some(*until) } else { None }
        };
        let first = fronts().filter_map(until).min();
        assert!(
            first.is_some() || !self.pending.is_empty(),
            "a program waits for the disk and the processor alone"
        );
        let moves = self.mover.as_ref().and_then(FileMover::next_call).filter(|_| !ended);
        first.into_iter().chain(due).chain(moves).min().map_or(Poll::Waiting, Poll::Later)
    }

    fn handle_computed(&mut self, _now: Instant, id: u64, until: Instant) {
        self.programs[id as usize].steps[0] = ProgramStep::Until(until);
    }

    fn handle_completion(&mut self, now: Instant, id: u64) {
        let Some(ended) = self.pending.remove(&id) else { return };
        if self.mover.as_ref().is_some_and(|mover| mover.waits_for(id)) {
            end_move(self, now);
        } else if ended.op == Op::Read {
            self.buffers.arrive(ended.first, ended.sectors);
        }
        if !ended.awaited {
            self.running -= u64::from(ended.sectors);
        }
    }
}

fn write_late<P: Iterator<Item = Call>>(session: &mut Session<P>, now: Instant) {
    while let Some((due, handle)) = session.late.front().copied() {
        if due > now {
            return;
        }
        session.late.pop_front();
        session.with(handle, |session, open| {
            session.drain(&mut open.file, true);
            true
        });
    }
}

/// Does everything possible without the disk; returns whether all programs have ended.
fn advance<P: Iterator<Item = Call>>(session: &mut Session<P>, now: Instant) -> bool {
    while session.queue.is_empty() {
        if session.state != State::Running {
            return true;
        }
        let mut numbers = 0..session.programs.len();
        if !numbers.any(|number| progress(session, now, number) || !session.queue.is_empty()) {
            return false;
        }
    }
    false
}

fn end<P: Iterator<Item = Call>>(session: &mut Session<P>, now: Instant) {
    session.state = State::Ending;
    abandon_move(session);
    session.marks.push(now);
    session.late.clear();
    let handles: Vec<Handle> = session.files.keys().copied().collect();
    for handle in handles {
        session.with(handle, |session, open| {
            session.allocate_block(open, true);
            session.drain(&mut open.file, true);
            true
        });
    }
}

/// Carries out the next step of a program, if that is possible without the disk; returns whether it was.
fn progress<P: Iterator<Item = Call>>(session: &mut Session<P>, now: Instant, number: usize) -> bool {
    session.current = number;
    match steps(session).front().copied() {
        Some(step) => {
            let done = try_step(session, now, step);
            if done {
                steps(session).pop_front();
            }
            done
        }
        None if session.programs[number].ended => false,
        None => {
            match session.programs[number].program.next() {
                Some(call) => expand(session, call),
                None => {
                    session.programs[number].ended = true;
                    if session.programs.iter().all(|program| program.ended) {
                        end(session, now);
                    }
                }
            }
            true
        }
    }
}

/// The steps of the program whose turn it is.
fn steps<P>(session: &mut Session<P>) -> &mut VecDeque<ProgramStep> {
    &mut session.programs[session.current].steps
}

fn expand<P: Iterator<Item = Call>>(session: &mut Session<P>, call: Call) {
    match call {
        Call::Create(handle) => session.add(handle, 0),
        Call::CreateIn(handle, directory) => session.add(handle, directory),
        _ => {}
    }
    let blocks = match call {
        Call::Read(..) => 1,
        Call::Append(_, bytes) => bytes.div_ceil(BLOCK_BYTES),
        _ => 0,
    };
    if !matches!(call, Call::Mark | Call::Pause(_)) {
        compute(session, Nanos(session.costs.call.0 + blocks * session.costs.block.0));
    }
    match call {
        Call::Open(handle) => {
            let Some((name, inode)) = session.metadata_of(handle) else { return };
            let needs = std::iter::once(name).chain(inode).map(ProgramStep::Need);
            steps(session).extend(needs.chain([ProgramStep::Begin(handle)]));
        }
        Call::Create(handle) | Call::CreateIn(handle, _) => {
            let Some((name, inode)) = session.metadata_of(handle) else { return };
            steps(session).extend(std::iter::once(name).chain(inode).map(ProgramStep::Need));
            inode.into_iter().chain([name]).for_each(|block| write_through(session, block));
        }
        Call::Delete(handle) => {
            let Some((name, inode)) = session.metadata_of(handle) else { return };
            for block in std::iter::once(name).chain(inode) {
                steps(session).push_back(ProgramStep::Need(block));
                write_through(session, block);
            }
            steps(session).push_back(ProgramStep::Remove(handle));
        }
        Call::Read(handle, block) => {
            let within = session.files.get(&handle).is_some_and(|open| block < open.file.blocks.len() as u32);
            if within {
                let needed = [ProgramStep::Touch(handle, block), ProgramStep::Fetch(handle, block)];
                steps(session).extend(needed.into_iter().chain([ProgramStep::Wait(handle, block)]));
            }
        }
        Call::Append(handle, bytes) => {
            let Some(open) = session.files.get(&handle) else { return };
            let is_part = !open.file.bytes.is_multiple_of(BLOCK_BYTES);
            let last = open.file.blocks.last().filter(|_| is_part && open.file.unplaced() == 0).copied();
            steps(session).extend(last.map(ProgramStep::Need));
            steps(session).extend([ProgramStep::Throttle, ProgramStep::Grow(handle, bytes)]);
        }
        Call::Close(handle) => steps(session).push_back(ProgramStep::Close(handle)),
        Call::Pause(time) => steps(session).push_back(ProgramStep::Pause(time)),
        Call::Mark => steps(session).push_back(ProgramStep::Mark),
    }
}

fn compute<P: Iterator<Item = Call>>(session: &mut Session<P>, time: Nanos) {
    if time > Nanos::ZERO {
        steps(session).push_back(ProgramStep::Compute(time));
    }
}

fn write_through<P: Iterator<Item = Call>>(session: &mut Session<P>, block: u32) {
    compute(session, session.costs.awaited_write);
    steps(session).push_back(ProgramStep::Through(block));
}

/// Carries out a step as far as possible; returns whether it is complete.
fn try_step<P: Iterator<Item = Call>>(session: &mut Session<P>, now: Instant, step: ProgramStep) -> bool {
    match step {
        ProgramStep::Compute(_) => false,
        ProgramStep::Until(time) => time <= now,
        ProgramStep::Need(block) => session.need(block),
        ProgramStep::Through(block) => {
            session.counts.metadata_writes += 1;
            let id = session.issue(Op::Write, sector_of(block), BLOCK_SECTORS, true);
            steps(session)[0] = ProgramStep::Await(id);
            false
        }
        ProgramStep::Await(id) => !session.pending.contains_key(&id),
        ProgramStep::Begin(handle) => {
            session.change(handle, |open| open.reader = ReadSession::default());
            true
        }
        ProgramStep::Touch(handle, block) => {
            if let Some(open) = session.files.get_mut(&handle) {
                open.reader.touch(block, &mut session.history);
            }
            true
        }
        ProgramStep::Fetch(handle, block) => session.with(handle, |session, open| session.fetch(open, block)),
        ProgramStep::Wait(handle, block) => session.with(handle, |session, open| session.wait(open, block)),
        ProgramStep::Throttle => {
            let limit = if session.throttled { FEW_WRITES } else { MOST_WRITES };
            session.throttled = session.running > sector_of(limit * session.layout.cluster_blocks());
            !session.throttled
        }
        ProgramStep::Grow(handle, bytes) => session.with(handle, |session, open| session.grow(open, bytes)),
        ProgramStep::Close(handle) => {
            session.late.push_back((now + SYNC_DELAY, handle));
            session.with(handle, |session, open| session.allocate_block(open, true))
        }
        ProgramStep::Remove(handle) => {
            session.remove(handle);
            true
        }
        ProgramStep::Pause(time) => {
            steps(session)[0] = ProgramStep::Until(now + time);
            false
        }
        ProgramStep::Mark => {
            session.marks.push(now);
            true
        }
    }
}
