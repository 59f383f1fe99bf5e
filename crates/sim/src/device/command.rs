//! A command as the host sends it, with its attributes beyond the request, and its completion.

use super::{CacheUse, TimeSplit, Travel};
use headstack_model::spec::Tagging;
use headstack_model::{BlockError, Instant, Nanos, Op, Request};

/// The task attribute of a command: how it may be reordered.
///
/// *Source:* SCSI Architecture Model, task attributes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskAttribute {
    /// It may be served before and after any other.
    #[default]
    Simple,
    /// All commands before it complete before it begins, and it completes before any later one begins.
    Ordered,
    /// It goes before all that wait, ordered ones too, and before an earlier one of its kind.
    HeadOfQueue,
}

/// A request with its task attribute, priority and deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// The request.
    pub request: Request,
    /// Its task attribute. With NCQ, which has none, the host itself runs an ordered command alone, and the head of the queue is
    /// like any other place.
    pub attribute: TaskAttribute,
    /// Whether it is urgent: the drive, or its order, serves it before others if it obeys priorities.
    pub urgent: bool,
    /// The number of its duration limit, 1 to 7, where the drive has limits; 0 for none.
    pub limit: u8,
    /// Whether the zone of a write is reset before it, of a disk with zones.
    pub resets_zone: bool,
    /// Its deadline, for orders that use deadlines.
    pub deadline: Option<Instant>,
    /// The host's number for it, which its completion repeats.
    pub number: u32,
}

impl From<Request> for Command {
    fn from(request: Request) -> Command {
        Command {
            request,
            attribute: TaskAttribute::Simple,
            urgent: false,
            limit: 0,
            resets_zone: false,
            deadline: None,
            number: 0,
        }
    }
}

impl Command {
    /// The command as a drive with this kind of tags treats it.
    pub(super) fn on(self, tagging: Tagging) -> Command {
        match (tagging, self.attribute) {
            (Tagging::Ncq, TaskAttribute::HeadOfQueue) => {
                Command { attribute: TaskAttribute::Simple, ..self }
            }
            _ => self,
        }
    }

    /// Whether no other command may be in flight with it: ordered ones, and commands that NCQ does not queue.
    pub(super) fn must_be_alone(&self, tagging: Tagging) -> bool {
        self.attribute == TaskAttribute::Ordered || tagging == Tagging::Ncq && self.request.op == Op::Flush
    }
}

/// A command's number while it is outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tag(pub u32);

/// The queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the drive's queue is full")]
pub struct QueueFull;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was carried out.
    Done,
    /// The command has blocks that the drive does not have, or none.
    OutOfRange,
    /// One of its blocks cannot be read.
    MediumError,
    /// The zones of the disk do not allow it.
    ZoneRefused,
    /// It exceeded a duration limit whose policy is to abort it.
    Aborted,
    /// The disk is dead.
    Dead,
}

impl Outcome {
    /// The result for a client.
    pub fn result(self) -> Result<(), BlockError> {
        match self {
            Outcome::Done => Ok(()),
            Outcome::OutOfRange | Outcome::ZoneRefused => Err(BlockError::Invalid),
            Outcome::MediumError | Outcome::Aborted => Err(BlockError::Medium),
            Outcome::Dead => Err(BlockError::Dead),
        }
    }
}

impl From<BlockError> for Outcome {
    fn from(error: BlockError) -> Outcome {
        match error {
            BlockError::Invalid | BlockError::ReadOnly => Outcome::OutOfRange,
            BlockError::Medium | BlockError::NoSpace | BlockError::NoMemory => Outcome::MediumError,
            BlockError::Dead | BlockError::ShuttingDown => Outcome::Dead,
        }
    }
}

/// A command that is done.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The command's tag, free again.
    pub tag: Tag,
    /// The host's number for the command.
    pub number: u32,
    pub request: Request,
    pub submitted: Instant,
    pub completed: Instant,
    pub outcome: Outcome,
    /// The parts of the time between, which add up to it exactly.
    pub parts: TimeSplit,
    pub cache: CacheUse,
    /// The seek for it; `None` if it needed no access of its own.
    pub travel: Option<Travel>,
}

impl Completion {
    /// A completion that takes no time and no device.
    pub(crate) fn at_once(request: Request, at: Instant) -> Completion {
        Completion {
            tag: Tag(0),
            number: 0,
            request,
            submitted: at,
            completed: at,
            outcome: Outcome::Done,
            parts: TimeSplit::default(),
            cache: CacheUse::Miss,
            travel: None,
        }
    }

    /// The response time: from submission to completion.
    pub fn response(&self) -> Nanos {
        self.completed - self.submitted
    }
}
