//! The NBD protocol: fixed newstyle handshake and transmission as machines, bytes in and bytes out.
//!
//! *Source:* "The NBD protocol", doc/proto.md of the NetworkBlockDevice project.
