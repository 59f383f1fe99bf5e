//! The storage node: real bytes of one disk, read and written through the stream scheduler.
//!
//! [`NodeCore`] is a state machine: it has the scheduler, its stream memory and the bytes of each request, but no clock, thread
//! or disk. A [`Node`] runs it in real time, in a thread that also serves the connections of its clients, on a [`Backend`]: a
//! device or file, memory, or an emulated disk of this process.

mod backend;
pub(crate) mod bytes;
mod core;
mod figures;
mod handle;
mod live;
mod messages;
mod rearrange;
mod report;
mod slowness;
mod stack;
mod thread;
mod tracks;

pub use backend::{Backend, Opening};
pub(crate) use backend::{allocation, open_file};
pub use core::{NodeCore, NodeError};
pub use figures::ClientView;
pub use handle::{NodeHandle, NodeLiveState, NodeView};
pub use headstack_streams::streams::{Command, RequestKind};
pub use live::{ClientRequest, NodeCommand, NodeEvent};
pub use messages::{Action, Answered, Ended, Outcome, ReadData, Shape};
pub use rearrange::{NodeRearrangeView, NodeRearranger, SeekDistance};
pub use stack::{NodeLayer, NodeOut};
pub use thread::Node;
