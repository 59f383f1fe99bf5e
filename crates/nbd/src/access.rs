//! Who may use an export.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

/// What is known about a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    /// Where it connects from.
    pub origin: Origin,
    /// The names in its certificate.
    pub names: Vec<String>,
}

/// Where a client connects from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// Unknown.
    #[default]
    Unknown,
    /// A network address.
    Network(IpAddr),
    /// A process of this machine.
    Local {
        /// Its user ID.
        uid: u32,
    },
}

/// A rule that allows clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Allow {
    /// Clients with an address in this network.
    Network(IpNet),
    /// Clients of a Unix socket.
    Unix,
    /// Clients of a Unix socket whose process runs as this user.
    Uid(u32),
    /// Clients whose certificate has this name as its subject's common name, as a DNS name or as a mail address.
    Certificate(String),
}

/// A text that is no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{met}` allows no client: write an address, a network (10.0.0.0/8), unix, uid:NUMBER or cert:NAME")]
pub struct AllowError {
    met: String,
}

impl FromStr for Allow {
    type Err = AllowError;

    fn from_str(text: &str) -> Result<Allow, AllowError> {
        let wrong = || AllowError { met: text.to_string() };
        if text == "unix" {
            return Ok(Allow::Unix);
        }
        if let Some(uid) = text.strip_prefix("uid:") {
            return uid.parse().map(Allow::Uid).map_err(|_| wrong());
        }
        if let Some(name) = text.strip_prefix("cert:") {
            return if name.is_empty() { Err(wrong()) } else { Ok(Allow::Certificate(name.to_string())) };
        }
        let network = text.parse::<IpAddr>().map(IpNet::from).or_else(|_| text.parse::<IpNet>());
        network.map(Allow::Network).map_err(|_| wrong())
    }
}

impl fmt::Display for Allow {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Allow::Network(network) => network.fmt(to),
            Allow::Unix => to.write_str("unix"),
            Allow::Uid(uid) => write!(to, "uid:{uid}"),
            Allow::Certificate(name) => write!(to, "cert:{name}"),
        }
    }
}

impl TryFrom<String> for Allow {
    type Error = AllowError;

    fn try_from(text: String) -> Result<Allow, AllowError> {
        text.parse()
    }
}

impl From<Allow> for String {
    fn from(allow: Allow) -> String {
        allow.to_string()
    }
}

impl JsonSchema for Allow {
    fn schema_name() -> Cow<'static, str> {
        "Allow".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

impl Allow {
    pub(crate) fn holds_for(&self, peer: &Peer) -> bool {
        match (self, peer.origin) {
            // At a socket for both, an IPv4 client has an IPv6 address.
            (Allow::Network(network), Origin::Network(address)) => network.contains(&address.to_canonical()),
            (Allow::Unix, Origin::Local { .. }) => true,
            (Allow::Uid(wanted), Origin::Local { uid }) => *wanted == uid,
            (Allow::Certificate(name), _) => peer.names.contains(name),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_rules_print_as_written_and_bad_ones_are_rejected() {
        for text in ["10.0.0.0/8", "::1/128", "unix", "uid:1000", "cert:a b"] {
            assert_eq!(text.parse::<Allow>().expect("it names clients").to_string(), text);
        }
        assert_eq!("127.0.0.1".parse::<Allow>().expect("it is an address").to_string(), "127.0.0.1/32");
        for text in ["", "10.0.0.0/33", "uid:", "uid:-1", "cert:", "example.org", "UNIX"] {
            let error = text.parse::<Allow>().expect_err("it names no client");
            assert!(error.to_string().starts_with(&format!("`{text}`")), "{error}");
        }
    }

    #[test]
    fn every_rule_kind_matches_only_its_own_clients() {
        let network = |text: &str| Origin::Network(text.parse().expect("it is an address"));
        let peers = [
            Peer { origin: network("10.1.2.3"), names: vec![] },
            Peer { origin: network("::ffff:10.1.2.3"), names: vec![] },
            Peer { origin: network("192.168.0.1"), names: vec!["alice".to_string(), "10.1.2.3".to_string()] },
            Peer { origin: network("::1"), names: vec![] },
            Peer { origin: Origin::Local { uid: 7 }, names: vec![] },
            Peer::default(),
        ];
        let cases = [
            ("10.0.0.0/8", [true, true, false, false, false, false]),
            ("0.0.0.0/0", [true, true, true, false, false, false]),
            ("::1", [false, false, false, true, false, false]),
            ("unix", [false, false, false, false, true, false]),
            ("uid:7", [false, false, false, false, true, false]),
            ("uid:0", [false; 6]),
            ("cert:alice", [false, false, true, false, false, false]),
            ("cert:Alice", [false; 6]),
        ];
        for (text, expected) in cases {
            let allow: Allow = text.parse().expect("it names clients");
            assert_eq!(peers.each_ref().map(|peer| allow.holds_for(peer)), expected, "{text}");
        }
    }
}
