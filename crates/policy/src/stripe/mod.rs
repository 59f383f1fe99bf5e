//! Striping: which unit, and how many disks a request.
//!
//! [`advise`] says which stripe unit suits a load.

pub mod advise;
