//! A node's disk on the live page: its streams, its memory, the requests of its clients and the commands at the disk.
//!
//! The host of a disk does not know where the arm is, so the rows have block numbers in the fields for cylinders.

use super::LiveSide;
use headstack_explorer_wasm::{rows, snapshot};
use headstack_host::disk::Kind;
use headstack_host::node::{
    ClientRequest, NodeCommand, NodeEvent, NodeHandle, NodeLiveState, RequestKind, Shape,
};
use headstack_model::Instant;
use headstack_streams::streams::{Direction, StreamView};
use serde_json::{Value, json};

/// Maximum number of streams that the page gets: those with the latest requests.
const STREAMS_MAX: usize = 100;
/// Maximum number of commands at the disk that the page gets.
const COMMANDS_MAX: usize = 1024;
/// Value of a number that does not exist.
const NONE: f64 = -1.0;

/// The panel of a node's disk.
pub(crate) fn scheduled(node: NodeHandle) -> LiveSide {
    let (description, block_bytes) = (describe(&node), node.shape().block_bytes);
    let mut reader = NodeReader { node, blocks: BlockBytes(u64::from(block_bytes)), last_end: 0.0 };
    LiveSide { description, reader: Box::new(move || reader.read()) }
}

fn describe(node: &NodeHandle) -> Value {
    let Shape { bytes, block_bytes, .. } = node.shape();
    let (name, sectors) = (node.name(), bytes / u64::from(block_bytes));
    json!({
        "title": node.title(),
        "heading": format!("{name}: the node"),
        "isNode": true,
        "devices": [{ "name": name, "title": node.title(), "sectors": sectors, "sectorBytes": block_bytes, "cylinders": sectors }],
        "volumes": [{ "name": name, "sectors": sectors, "sectorBytes": block_bytes, "devices": [0] }],
        "order": "of the node",
        "orders": [],
    })
}

/// Bytes in a block of the disk.
#[derive(Clone, Copy)]
struct BlockBytes(u64);

impl BlockBytes {
    fn number(self, bytes: u64) -> f64 {
        (bytes / self.0) as f64
    }
}

struct NodeReader {
    node: NodeHandle,
    blocks: BlockBytes,
    /// The block behind the command that ended last.
    last_end: f64,
}

impl NodeReader {
    /// The events since the last call, and the state of the node.
    fn read(&mut self) -> Vec<f64> {
        let state = self.node.live_state();
        let mut message = vec![state.at.0 as f64, state.dropped as f64, 0.0];
        for event in &state.events {
            match event {
                NodeEvent::Submitted(request) => message.extend_from_slice(&issue(request, self.blocks)),
                NodeEvent::Answered(request, at, succeeded) => {
                    message.extend_from_slice(&finish(request, *at, *succeeded, self.blocks));
                }
                NodeEvent::Ended(command, at, outstanding) => {
                    let row = access(command, (*at, *outstanding), self.blocks, &mut self.last_end);
                    message.extend_from_slice(&row);
                }
            }
        }
        message[2] = (message.len() - 3) as f64;
        self.add_state(state, &mut message);
        message
    }

    /// Adds the state: first that of a device without an arm, in the format of `headstack_explorer_wasm::snapshot`; then the numbers of the node,
    /// then those of each stream (`web/node.js`).
    fn add_state(&self, mut state: NodeLiveState, into: &mut Vec<f64>) {
        let commands = &state.at_disk[..state.at_disk.len().min(COMMANDS_MAX)];
        let work = flag(!commands.is_empty());
        let (queued, dirty) = (state.at_disk.len() as f64, state.scheduler.memory.coalesced_bytes);
        let mut device = [NONE; snapshot::COLUMNS];
        device[3..8].copy_from_slice(&[work, self.last_end, queued, 0.0, self.blocks.number(dirty)]);
        device[snapshot::COLUMNS - 3..].copy_from_slice(&[0.0, commands.len() as f64, 0.0]);
        into.extend(device);
        commands.iter().for_each(|command| into.extend(self.command(command)));
        into.extend(node_numbers(&state));
        state.streams.sort_unstable_by_key(|stream| (std::cmp::Reverse(stream.last_request), stream.id));
        state.streams.truncate(STREAMS_MAX);
        into.push(state.streams.len() as f64);
        state.streams.iter().for_each(|stream| into.extend(stream_numbers(stream, self.blocks)));
    }

    /// A command at the disk: block, sectors, whether it writes, when it began, and placeholders for what only a simulated device knows.
    fn command(&self, command: &NodeCommand) -> [f64; 8] {
        let (offset, bytes) = command.kind.run();
        let (start, sectors) = (self.blocks.number(offset), self.blocks.number(bytes));
        let is_write = flag(matches!(command.kind, RequestKind::Write { .. }));
        [start, sectors, is_write, command.begun.0 as f64, 0.0, 0.0, NONE, NONE]
    }
}

/// The row of a command that ended at time `at`, with `outstanding` commands at the disk. Block numbers are in the fields for cylinders, and
/// the command's whole time is in the field for media transfer. `last_end` is the block behind the last command; a flush or trim does not
/// change it.
fn access(
    command: &NodeCommand,
    (at, outstanding): (Instant, usize),
    blocks: BlockBytes,
    last_end: &mut f64,
) -> [f64; rows::LENGTHS[3]] {
    let from = *last_end;
    let (start, sectors) = match command.kind {
        RequestKind::Flush | RequestKind::Trim { .. } | RequestKind::BlockStatus { .. } => (from, 0.0),
        kind => (blocks.number(kind.run().0), blocks.number(kind.run().1)),
    };
    *last_end = start + sectors;
    let (begun, took) = (command.begun.0 as f64, at.since(command.begun).0 as f64);
    [
        rows::ACCESS,
        0.0,
        work(command),
        NONE,
        start,
        sectors,
        from,
        start,
        start + sectors,
        NONE,
        begun,
        0.0,
        0.0,
        took,
        at.0 as f64,
        outstanding as f64,
    ]
}

fn flag(is_set: bool) -> f64 {
    f64::from(u8::from(is_set))
}

fn node_numbers(state: &NodeLiveState) -> [f64; 18] {
    let NodeLiveState { scheduler, slowness, .. } = state;
    let memory = scheduler.memory;
    [
        scheduler.streams as f64,
        scheduler.dispatched as f64,
        scheduler.waiting_streams as f64,
        scheduler.waiting_requests as f64,
        memory.bytes as f64,
        memory.used_bytes as f64,
        memory.staged_bytes as f64,
        memory.coalesced_bytes as f64,
        state.outstanding as f64,
        state.connections as f64,
        state.busy.0 as f64,
        flag(slowness.is_slow),
        slowness.alarms as f64,
        slowness.late as f64,
        slowness.late_time.0 as f64,
        slowness.late_share,
        slowness.slowdown,
        flag(state.has_failed),
    ]
}

fn stream_numbers(stream: &StreamView, blocks: BlockBytes) -> [f64; 9] {
    [
        f64::from(stream.id),
        stream.since.0 as f64,
        flag(stream.writes),
        flag(stream.direction == Direction::Backward),
        blocks.number(stream.offset),
        stream.bytes as f64,
        f64::from(stream.waiting),
        stream.memory_bytes as f64,
        flag(stream.has_turn),
    ]
}

/// The kind of work of a command, by the numbers of [`headstack_sim::ArmWork`]. A command of the stream memory counts as read-ahead or destage.
fn work(command: &NodeCommand) -> f64 {
    match (command.kind, command.is_for_request) {
        (RequestKind::Read { .. }, true) => 1.0,
        (RequestKind::Read { .. }, false) => 2.0,
        (RequestKind::Write { .. }, false) => 4.0,
        _ => 3.0,
    }
}

fn op(kind: Option<Kind>) -> f64 {
    match kind {
        Some(Kind::Write) => 1.0,
        Some(Kind::Flush) => 2.0,
        Some(Kind::Trim) => 3.0,
        Some(Kind::Read) | None => 0.0,
    }
}

fn issue(request: &ClientRequest, blocks: BlockBytes) -> [f64; rows::LENGTHS[1]] {
    [
        rows::ISSUE,
        request.number as f64,
        request.begun.0 as f64,
        0.0,
        op(request.kind),
        blocks.number(request.offset),
        blocks.number(request.bytes),
        request.client as f64,
        0.0,
        0.0,
        NONE,
        NONE,
        0.0,
    ]
}

/// The row of an answered request. A node knows only its response time as a whole, which is in the field for the first part.
fn finish(
    request: &ClientRequest,
    at: Instant,
    succeeded: bool,
    blocks: BlockBytes,
) -> [f64; rows::LENGTHS[2]] {
    let mut row = [0.0; rows::LENGTHS[2]];
    let head = [
        rows::FINISH,
        request.number as f64,
        0.0,
        0.0,
        op(request.kind),
        blocks.number(request.offset),
        blocks.number(request.bytes),
        request.begun.0 as f64,
        at.0 as f64,
        request.client as f64,
        0.0,
        flag(!succeeded),
        NONE,
        NONE,
        0.0,
        at.since(request.begun).0 as f64,
    ];
    row[..head.len()].copy_from_slice(&head);
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_command_with_blocks_is_the_position_of_a_disk() {
        let (blocks, mut last_end) = (BlockBytes(512), 0.0);
        let command =
            |kind, is_for_request| NodeCommand { kind, begun: Instant::from_ms(1.0), is_for_request };
        let end = (Instant::from_ms(4.0), 2);
        let read = command(RequestKind::Read { offset: 512 * 1000, bytes: 512 * 8, fua: false }, false);
        let row = access(&read, end, blocks, &mut last_end);
        assert_eq!(row[..9], [rows::ACCESS, 0.0, 2.0, NONE, 1000.0, 8.0, 0.0, 1000.0, 1008.0]);
        assert_eq!(row[10..], [1e6, 0.0, 0.0, 3e6, 4e6, 2.0]);
        let row = access(&command(RequestKind::Flush, true), end, blocks, &mut last_end);
        assert_eq!((row[4], row[5], last_end), (1008.0, 0.0, 1008.0), "a flush has no blocks");
    }
}
