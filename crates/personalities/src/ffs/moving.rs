//! On-line reorganisation: files are moved onto whole tracks while programs use the file system.
//!
//! One file after the other is read and written where it needs fewer requests, one request at a time. After each request the mover
//! pauses so that its requests have no more than a share of the time. A file that changed meanwhile stays where it is. The new blocks
//! become the file's once all are written, with a write of the inode.
//!
//! *Source:* Schindler, Griffin, Lumb and Ganger 2002, section 3.3, which names on-line reallocation; the rule is ours.

use super::file::File;
use super::layout::Layout;
use super::mover::{FileMove, FileMover};
use super::moves::{MoveBatch, MovedBlock, runs, transfers_of};
use super::program::Handle;
use super::session::{Session, State};
use super::{BLOCK_SECTORS, sector_of};
use headstack_model::{Instant, Lbn, Nanos, Request};
use std::collections::VecDeque;

/// Issues the mover's next request, if it is due.
pub(super) fn move_files<P>(session: &mut Session<P>, now: Instant) {
    let is_due = |mover: &FileMover| mover.next_call().is_some_and(|next| next <= now);
    if session.state != State::Running || !session.mover.as_ref().is_some_and(is_due) {
        return;
    }
    let Some(mut mover) = session.mover.take() else { return };
    if mover.work.is_none() {
        mover.work = plan_move(session, &mut mover);
    }
    let transfer = mover.work.as_mut().and_then(|work| work.transfers.pop_front());
    if let Some(Request { op, lbn, sectors, .. }) = transfer {
        mover.request = Some((session.issue(op, lbn.0, sectors, true), now));
    }
    session.mover = Some(mover);
}

/// Ends the mover's request; the file has its new blocks after the last one.
pub(super) fn end_move<P>(session: &mut Session<P>, now: Instant) {
    let Some(mut mover) = session.mover.take() else { return };
    if let Some((_, began)) = mover.request.take() {
        let took = now.since(began);
        mover.next = now + Nanos(took.0 * mover.pause_per_mille / 1000);
    }
    if mover.work.as_ref().is_some_and(|work| work.transfers.is_empty())
        && let Some(work) = mover.work.take()
    {
        mover.done.extend(commit(session, work));
    }
    session.mover = Some(mover);
}

/// Abandons the move in progress.
pub(super) fn abandon_move<P>(session: &mut Session<P>) {
    let Some(mover) = &mut session.mover else { return };
    if let Some(work) = mover.work.take() {
        session.layout.release(&work.target);
    }
}

/// The next file that needs fewer requests elsewhere, with its new blocks reserved.
fn plan_move<P>(session: &mut Session<P>, mover: &mut FileMover) -> Option<FileMove> {
    loop {
        let Some(handle) = mover.queue.pop_front() else {
            if std::mem::take(&mut mover.moved) == 0 {
                return None;
            }
            mover.queue = session.files.keys().copied().collect();
            continue;
        };
        if let Some(work) = plan_move_of(session, handle) {
            mover.moved += 1;
            return Some(work);
        }
    }
}

fn plan_move_of<P>(session: &mut Session<P>, handle: Handle) -> Option<FileMove> {
    let file = &session.files.get(&handle)?.file;
    let needs = requests_of(file, &session.layout);
    if !is_still(session, file) || file.grouped > 0 || needs <= 1 {
        return None;
    }
    let (before, before_leads) = (file.blocks.clone(), file.leads.clone());
    let mut target = file.unplaced_copy();
    while target.unplaced() > 0 {
        let wanted = session.layout.complete(&target).min(target.unplaced());
        if session.layout.allocate(&mut target, wanted) == 0 {
            session.layout.release(&target);
            return None;
        }
    }
    if requests_of(&target, &session.layout) >= needs {
        session.layout.release(&target);
        return None;
    }
    target.written = target.placed_sectors();
    target.leads_written = target.leads.len();
    let from = before.iter().chain(&before_leads);
    let to = target.blocks.iter().chain(&target.leads);
    let moves: MoveBatch = from.zip(to).map(|(from, to)| MovedBlock { from: *from, to: *to }).collect();
    let (name, inode) = session.metadata_of(handle)?;
    let mut transfers = VecDeque::from(transfers_of(&moves, &session.layout));
    transfers.push_back(Request::write(Lbn(sector_of(inode.unwrap_or(name))), BLOCK_SECTORS));
    Some(FileMove { target, before, moves, transfers })
}

/// Whether all of a file is on the disk, so that nothing of it waits to be written.
fn is_still<P>(session: &Session<P>, file: &File) -> bool {
    let is_written = file.written == file.bytes.div_ceil(512) && file.leads_written == file.leads.len();
    is_written && !file.blocks.iter().any(|block| session.buffers.is_dirty(*block))
}

fn commit<P>(
    session: &mut Session<P>,
    FileMove { target, before, moves, .. }: FileMove,
) -> Option<MoveBatch> {
    let handle = target.handle;
    let file = session.files.get(&handle).map(|open| &open.file);
    let is_same = file.is_some_and(|file| {
        file.blocks == before
            && file.entry == target.entry
            && file.bytes == target.bytes
            && is_still(session, file)
    });
    if !is_same {
        session.layout.release(&target);
        return None;
    }
    session.counts.metadata_writes += 1;
    let mut old = File::default();
    session.change(handle, |open| old = std::mem::replace(&mut open.file, target));
    for block in old.blocks.iter().chain(&old.leads) {
        session.buffers.forget(*block);
    }
    session.layout.release(&old);
    Some(moves)
}

/// Requests in which a file can be read: runs of its blocks, which end with tracks where requests of the file system do.
pub(super) fn requests_of(file: &File, layout: &Layout) -> usize {
    let mut requests = 0;
    let mut index = 0;
    while index < file.blocks.len() {
        let first = file.blocks[index];
        let mut end = index + 1;
        while file.blocks.get(end).is_some_and(|block| *block == first + (end - index) as u32) {
            end += 1;
        }
        let blocks: Vec<u32> = file.blocks[index..end].to_vec();
        requests += runs(&blocks, layout).len();
        index = end;
    }
    requests
}
