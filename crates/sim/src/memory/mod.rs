//! The data structures for frames of the host's and controllers' caches: a list by use, and a tree by number.

mod list;
mod tree;

pub(crate) use list::{List, NONE};
pub(crate) use tree::Tree;
