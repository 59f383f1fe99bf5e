//! Any order of the list, by value: the macro to which the list of types goes.

use super::{AccessCost, Edge};
use crate::queue::QueueView;

/// The interface of every algorithm. `pick` is compiled for each type of cost.
pub(super) trait Algorithm {
    /// Whether it must be called even for a single request, because it remembers its choices or sends the arm to an edge.
    const ALWAYS_CONSULTED: bool;

    /// Whether it uses where requests lie: the order of the queue by cylinder, or costs.
    const USES_PLACES: bool = true;

    fn pick<C: AccessCost + ?Sized>(&mut self, queue: &QueueView<'_>, cost: &C) -> Option<usize>;

    /// The edges of the disk that the arm visits on its way to the request chosen last.
    fn edges_visited(&self) -> &[Edge] {
        &[]
    }
}

macro_rules! built_in {
    ($($module:ident::$name:ident),* $(,)?) => {
        /// Any order of the list, by value: its `pick` is compiled for the cost it is given.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct BuiltIn(Any);

        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Any {
            $($name($module::$name),)*
        }

        $(impl From<$module::$name> for BuiltIn {
            fn from(order: $module::$name) -> BuiltIn {
                BuiltIn(Any::$name(order))
            }
        })*

        impl BuiltIn {
            /// As [`Order::choose`], for a cost of known type.
            #[inline]
            pub fn pick<C: AccessCost + ?Sized>(&mut self, queue: &QueueView<'_>, cost: &C) -> Option<usize> {
                match &mut self.0 {
                    $(Any::$name(order) => order.pick(queue, cost),)*
                }
            }

            /// The edges of the disk that the arm visits on its way to the request chosen last.
            pub fn edges_visited(&self) -> &[Edge] {
                match &self.0 {
                    $(Any::$name(order) => order.edges_visited(),)*
                }
            }

            /// Whether it uses where requests lie: the order of the queue by cylinder, or costs.
            pub fn uses_places(&self) -> bool {
                match &self.0 {
                    $(Any::$name(_) => $module::$name::USES_PLACES,)*
                }
            }

            /// Whether it must be called even for a single request, because it remembers its choices or sends the arm to an edge.
            pub fn is_always_consulted(&self) -> bool {
                match &self.0 {
                    $(Any::$name(_) => $module::$name::ALWAYS_CONSULTED,)*
                }
            }
        }

        impl Order for BuiltIn {
            fn choose(&mut self, queue: &QueueView<'_>, cost: &dyn AccessCost) -> Option<usize> {
                self.pick(queue, cost)
            }
        }
    };
}

pub(super) use built_in;
