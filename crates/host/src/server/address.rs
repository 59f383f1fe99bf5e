//! Addresses of a server, as text.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode, utf8_percent_encode};
use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::str::FromStr;

/// Characters to escape in an export's name in a URI (RFC 3986, 2.3).
const NO_NAME: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Characters to escape in a path in a URI's query.
const NO_PATH: AsciiSet = NO_NAME.remove(b'/');

/// An address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A TCP port of one address of the machine.
    Tcp(SocketAddr),
    /// A socket in the file system.
    Unix(PathBuf),
}

/// A text that is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{met}` is no address: write HOST:PORT, :PORT (all IPv4 addresses) or unix:PATH")]
pub struct AddressError {
    met: String,
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Address, AddressError> {
        let wrong = || AddressError { met: text.to_string() };
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() { Err(wrong()) } else { Ok(Address::Unix(PathBuf::from(path))) };
        }
        let whole = if text.starts_with(':') { format!("0.0.0.0{text}") } else { text.to_string() };
        let found = whole.to_socket_addrs().ok().and_then(|mut found| found.next());
        found.map(Address::Tcp).ok_or_else(wrong)
    }
}

impl Address {
    /// The NBD URI of an export there.
    pub fn uri(&self, export: &str) -> String {
        let export = utf8_percent_encode(export, &NO_NAME);
        match self {
            Address::Tcp(address) => format!("nbd://{address}/{export}"),
            Address::Unix(path) => {
                let path = percent_encode(path.as_os_str().as_bytes(), &NO_PATH);
                format!("nbd+unix:///{export}?socket={path}")
            }
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => write!(to, "{address}"),
            Address::Unix(path) => write!(to, "unix:{}", path.display()),
        }
    }
}
