//! What a host's page cache and a controller's memory share: requests, transfers, and frames by use and by number.

mod requests;
mod tree;

pub(crate) use requests::{Agenda, Destages, Job, RequestTable, Resume};
pub(crate) use tree::Tree;

/// No frame, and no request.
pub(crate) const NONE: u32 = u32::MAX;
