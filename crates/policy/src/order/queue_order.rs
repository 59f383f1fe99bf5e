//! The order of a queue: one of the list, or a program's own.

use super::{AccessCost, BuiltIn, Edge, Order};
use crate::queue::QueueView;

/// The order of a queue. One of the list is compiled for the cost that it is given; a program's own is called through its trait.
#[derive(Debug)]
pub enum QueueOrder {
    /// One of the list.
    BuiltIn(BuiltIn),
    /// A program's own. It is called also for a single request, and may remember what it chose.
    Own(Box<dyn Order>),
}

impl QueueOrder {
    /// As [`Order::choose`].
    #[inline]
    pub fn pick<C: AccessCost>(&mut self, queue: &QueueView<'_>, cost: &C) -> Option<usize> {
        match self {
            QueueOrder::BuiltIn(order) => order.pick(queue, cost),
            QueueOrder::Own(order) => order.choose(queue, cost),
        }
    }

    /// As [`BuiltIn::edges_visited`]; with a program's own order the arm visits no edge.
    pub fn edges_visited(&self) -> &[Edge] {
        match self {
            QueueOrder::BuiltIn(order) => order.edges_visited(),
            QueueOrder::Own(_) => &[],
        }
    }

    /// Whether it uses where requests lie: the order of a queue by cylinder ([`QueueView::by_cylinder`]), or costs. A program's own may.
    pub fn uses_places(&self) -> bool {
        match self {
            QueueOrder::BuiltIn(order) => order.uses_places(),
            QueueOrder::Own(_) => true,
        }
    }

    /// Whether it must be called even for a single request.
    pub fn is_always_consulted(&self) -> bool {
        match self {
            QueueOrder::BuiltIn(order) => order.is_always_consulted(),
            QueueOrder::Own(_) => true,
        }
    }
}

impl From<BuiltIn> for QueueOrder {
    fn from(order: BuiltIn) -> QueueOrder {
        QueueOrder::BuiltIn(order)
    }
}

impl From<Box<dyn Order>> for QueueOrder {
    fn from(order: Box<dyn Order>) -> QueueOrder {
        QueueOrder::Own(order)
    }
}
