//! What a host says of a command beside what it asks: how it may be reordered.

use headstack_model::spec::Tagging;
use headstack_model::{Nanos, Op, Request};

/// How a command stands to the others in the queue.
///
/// *Source:* SCSI Architecture Model, task attributes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskAttribute {
    /// It may be served before and after any other.
    #[default]
    Simple,
    /// All that came before it are done when it begins, and it is done when any later one begins.
    Ordered,
    /// It goes before all that wait, ordered ones too, and before an earlier one of its kind.
    HeadOfQueue,
}

/// A request with what the host says about its place among others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// What is asked.
    pub request: Request,
    /// How it stands to the others. With NCQ, which knows no such thing, the host itself lets an ordered command be
    /// alone, and the head of the queue is like any other place.
    pub attribute: TaskAttribute,
    /// Whether it goes before others, where the drive heeds that or its order does.
    pub urgent: bool,
    /// When it has to be done, for orders that go by deadlines.
    pub deadline: Option<Nanos>,
}

impl From<Request> for Command {
    fn from(request: Request) -> Command {
        Command { request, attribute: TaskAttribute::Simple, urgent: false, deadline: None }
    }
}

impl Command {
    /// As a drive with this kind of tags takes it.
    pub(super) fn on(self, tagging: Tagging) -> Command {
        match (tagging, self.attribute) {
            (Tagging::Ncq, TaskAttribute::HeadOfQueue) => {
                Command { attribute: TaskAttribute::Simple, ..self }
            }
            _ => self,
        }
    }

    /// Whether nothing else may be under way beside it: ordered ones, and what NCQ does not queue.
    pub(super) fn must_be_alone(&self, tagging: Tagging) -> bool {
        self.attribute == TaskAttribute::Ordered || tagging == Tagging::Ncq && self.request.op == Op::Flush
    }
}
