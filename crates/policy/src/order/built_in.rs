//! Any order of the list, by value.

use super::asptf::Asptf;
use super::bounded::Bounded;
use super::c_look::{BatchedCLook, CLook, ZonedCLook};
use super::c_scan::CScan;
use super::edf::Edf;
use super::fcfs::Fcfs;
use super::fscan::Fscan;
use super::gstf::Gstf;
use super::look::Look;
use super::n_step::NStep;
use super::p_scan::PScan;
use super::reads_first::ReadsFirst;
use super::scan::Scan;
use super::scan_edf::ScanEdf;
use super::spctf::Spctf;
use super::sptf::Sptf;
use super::sstf::Sstf;
use super::vr::Vr;
use super::wstf::Wstf;
use super::{AccessCost, Edge, Order};
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
    ($($name:ident),* $(,)?) => {
        /// Any order of the list, by value: its `pick` is compiled for the cost it is given.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct BuiltIn(pub(super) Any);

        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Any {
            $($name($name),)*
        }

        $(impl From<$name> for BuiltIn {
            fn from(order: $name) -> BuiltIn {
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
                    $(Any::$name(_) => $name::USES_PLACES,)*
                }
            }

            /// Whether it must be called even for a single request, because it remembers its choices or sends the arm to an edge.
            pub fn is_always_consulted(&self) -> bool {
                match &self.0 {
                    $(Any::$name(_) => $name::ALWAYS_CONSULTED,)*
                }
            }
        }
    };
}

built_in! {
    Asptf, BatchedCLook, Bounded, CLook, CScan, Edf, Fcfs, Fscan, Gstf, Look, NStep, PScan, ReadsFirst, Scan, ScanEdf, Spctf, Sptf,
    Sstf, Vr, Wstf, ZonedCLook,
}

impl Order for BuiltIn {
    fn choose(&mut self, queue: &QueueView<'_>, cost: &dyn AccessCost) -> Option<usize> {
        self.pick(queue, cost)
    }
}
