//! NBD URIs.
//!
//! *Source:* "NBD URI specification", doc/uri.md of the NetworkBlockDevice project.

use percent_encoding::percent_decode_str;
use std::path::PathBuf;
use std::str::FromStr;

/// The URI of an export: `nbd://HOST[:PORT]/EXPORT` or `nbd+unix:///EXPORT?socket=PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NbdUri {
    /// The address of its server.
    pub server: NbdServer,
    /// Its name; empty for the first export.
    pub export: String,
}

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NbdServer {
    /// Host and port.
    Tcp(String),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

/// A text that is no URI of an export.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{met}` is no NBD URI: write nbd://HOST[:PORT]/EXPORT or nbd+unix:///EXPORT?socket=PATH")]
pub struct UriError {
    met: String,
}

const PORT: &str = "10809";

impl FromStr for NbdUri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<NbdUri, UriError> {
        parse(text).ok_or_else(|| UriError { met: text.to_string() })
    }
}

fn parse(text: &str) -> Option<NbdUri> {
    let plain = |text: &str| percent_decode_str(text).decode_utf8().ok().map(|text| text.into_owned());
    if let Some(rest) = text.strip_prefix("nbd+unix:///") {
        let (export, query) = rest.split_once('?')?;
        let socket = query.split('&').find_map(|part| part.strip_prefix("socket="))?;
        let socket = plain(socket).filter(|path| !path.is_empty())?;
        return Some(NbdUri { server: NbdServer::Unix(PathBuf::from(socket)), export: plain(export)? });
    }
    let rest = text.strip_prefix("nbd://")?;
    let (host, export) = rest.split_once('/').unwrap_or((rest, ""));
    if host.is_empty() || host.starts_with(':') || export.contains('?') {
        return None;
    }
    // The colons of a bracketed IPv6 address do not precede a port.
    let has_port = host.rsplit_once(']').map_or(host, |(_, behind)| behind).contains(':');
    let host = if has_port { host.to_string() } else { format!("{host}:{PORT}") };
    Some(NbdUri { server: NbdServer::Tcp(host), export: plain(export)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nbd_uri_is_parsed() {
        let tcp = |host: &str, export: &str| {
            Ok(NbdUri { server: NbdServer::Tcp(host.to_string()), export: export.to_string() })
        };
        assert_eq!("nbd://node/disk0".parse(), tcp("node:10809", "disk0"));
        assert_eq!("nbd://[::1]:1234/a%20disk".parse(), tcp("[::1]:1234", "a disk"));
        assert_eq!("nbd://[::1]".parse(), tcp("[::1]:10809", ""));
        let found: NbdUri = "nbd+unix:///disk?socket=/run/a%2Bb".parse().expect("it is one");
        assert_eq!(found, NbdUri { server: NbdServer::Unix("/run/a+b".into()), export: "disk".to_string() });
    }

    #[test]
    fn malformed_nbd_uri_is_rejected() {
        for text in [
            "",
            "disk",
            "http://a/b",
            "nbd://",
            "nbd:///disk",
            "nbd://:10/a",
            "nbd+unix:///disk",
            "nbd+unix:///disk?socket=",
        ] {
            let error = text.parse::<NbdUri>().expect_err("it is none").to_string();
            assert!(error.starts_with(&format!("`{text}` is no NBD URI: write nbd://")), "{error}");
        }
    }
}
