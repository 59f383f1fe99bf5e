//! The host's attributes of a command, beyond the request: how it may be reordered.

use headstack_model::spec::Tagging;
use headstack_model::{Nanos, Op, Request};

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
    /// Whether it goes before others, where the drive heeds that or its order does.
    pub urgent: bool,
    /// Its deadline, for orders that use deadlines.
    pub deadline: Option<Nanos>,
}

impl From<Request> for Command {
    fn from(request: Request) -> Command {
        Command { request, attribute: TaskAttribute::Simple, urgent: false, deadline: None }
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
