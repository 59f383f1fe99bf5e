//! The parts of a server that the log tells apart: targets of its lines.

/// Who came, who was refused, who left, and why.
pub const CLIENT: &str = "client";

/// What disks fail to do.
pub const DISK: &str = "disk";
