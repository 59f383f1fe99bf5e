//! What caches of the host and of controllers keep their frames in: an order by use, and a tree by number.

mod list;
mod tree;

pub(crate) use list::{List, NONE};
pub(crate) use tree::Tree;
