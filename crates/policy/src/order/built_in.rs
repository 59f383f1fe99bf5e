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

/// What every algorithm does. `pick` is compiled for the cost that it is given.
pub(super) trait Algorithm {
    /// Whether it must be asked even where only one request waits: it remembers its choices, or sends the arm about.
    const ALWAYS_ASKED: bool;

    /// As [`Order::choose`].
    fn pick<C: AccessCost + ?Sized>(&mut self, queue: &QueueView<'_>, cost: &C) -> Option<usize>;

    /// By way of which edges the arm goes to the request chosen last.
    fn way(&self) -> &[Edge] {
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
            /// As [`Order::choose`], for a cost whose type is known.
            #[inline]
            pub fn pick<C: AccessCost + ?Sized>(&mut self, queue: &QueueView<'_>, cost: &C) -> Option<usize> {
                match &mut self.0 {
                    $(Any::$name(order) => order.pick(queue, cost),)*
                }
            }

            /// By way of which edges of the disk the arm goes to the request chosen last.
            pub fn way(&self) -> &[Edge] {
                match &self.0 {
                    $(Any::$name(order) => order.way(),)*
                }
            }

            /// Whether it must be asked even where only one request waits: it remembers its choices, or sends the arm about.
            pub fn is_always_asked(&self) -> bool {
                match &self.0 {
                    $(Any::$name(_) => $name::ALWAYS_ASKED,)*
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
