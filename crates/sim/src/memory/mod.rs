//! What the page cache of a host and the memory of a controller have in common: their requests and transfers, and their frames, as
//! a list by use and a tree by number.

mod list;
mod requests;
mod tree;

pub(crate) use list::{List, NONE};
pub(crate) use requests::{Agenda, Destages, Job, RequestTable, Resume};
pub(crate) use tree::Tree;
