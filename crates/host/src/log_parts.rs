//! The parts of a server in the log: targets of its lines.

/// Clients that connect, are refused, and disconnect, with the reason.
pub const CLIENT: &str = "client";

/// Failures of disks.
pub const DISK: &str = "disk";
