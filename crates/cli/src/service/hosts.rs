//! The host names that an endpoint accepts: a web page can make its own name resolve to any address (DNS rebinding), and could otherwise
//! read data of this machine.

use crate::files;
use std::net::IpAddr;
use std::path::Path;

/// An address with a host. An address without one gets the host 127.0.0.1.
pub(crate) fn with_host(address: &str) -> String {
    if address.starts_with(':') { format!("127.0.0.1{address}") } else { address.to_string() }
}

pub(super) struct Hosts {
    bound: IpAddr,
    names: Vec<String>,
}

impl Hosts {
    /// The host names of an endpoint that was requested at the address `asked` and is bound to `bound`.
    pub(super) fn new(asked: &str, bound: IpAddr) -> Hosts {
        let mut names = vec!["localhost".to_string(), without_port(asked).to_lowercase()];
        if !bound.is_loopback() {
            let own = files::read_text(Path::new("/proc/sys/kernel/hostname")).unwrap_or_default();
            let own = own.trim().to_lowercase();
            names.extend(own.split_once('.').map(|(first, _)| first.to_string()));
            names.push(own);
        }
        Hosts { bound, names }
    }

    /// Whether a `Host` header may mean this endpoint.
    pub(super) fn allow(&self, host: &str) -> bool {
        let host = without_port(host);
        match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            Ok(address) => self.bound.is_unspecified() || address.is_loopback() || address == self.bound,
            Err(_) => self.names.contains(&host.to_lowercase()),
        }
    }
}

/// A host without its port; an IPv6 address keeps its brackets.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) && !name.ends_with(':') => {
            name
        }
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoint_accepts_only_its_own_host_names() {
        let local = Hosts::new("127.0.0.1:9100", "127.0.0.1".parse().expect("it is an address"));
        for host in ["127.0.0.1:9100", "localhost", "LOCALHOST:9100", "[::1]:9100", "127.0.0.1"] {
            assert!(local.allow(host), "{host}");
        }
        for host in
            ["evil.example", "evil.example:9100", "10.0.0.1:9100", "", "localhost.evil.example", ":9100"]
        {
            assert!(!local.allow(host), "{host}");
        }
        let named = Hosts::new("node1.lan:9100", "10.0.0.1".parse().expect("it is an address"));
        assert!(named.allow("node1.lan:9100") && named.allow("10.0.0.1:9100") && !named.allow("10.0.0.2"));
        let all = Hosts::new("0.0.0.0:9100", "0.0.0.0".parse().expect("it is an address"));
        assert!(
            all.allow("10.0.0.2:9100") && !all.allow("evil.example"),
            "an address is no name that can be rebound"
        );
    }

    #[test]
    fn address_without_a_host_defaults_to_loopback() {
        assert_eq!(
            (with_host(":9100"), with_host("[::]:9100")),
            ("127.0.0.1:9100".to_string(), "[::]:9100".to_string())
        );
    }
}
