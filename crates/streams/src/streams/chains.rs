//! Chains of requests: each begins where an earlier one ended, or ends where it began.

use super::clients::ByClient;

/// Recent requests of all clients: a stream may use several connections in turn.
const RECENT: usize = 16;

/// A request in bytes, and how many before it are in its chain: upward, or downward where that is negative.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    begin: u64,
    end: u64,
    own: i32,
    any: i32,
}

/// How many requests before one are in its chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Links {
    /// Of the same client, with no other request of that client between them.
    pub(super) own: u32,
    /// Of any client, with few requests between them.
    pub(super) any: u32,
}

#[derive(Debug)]
pub(super) struct Chains {
    /// Bytes that may be left out between two.
    gap: u64,
    clients: ByClient<Link>,
    recent: [Option<Link>; RECENT],
    next: usize,
}

impl Chains {
    pub(super) fn new(gap: u64) -> Chains {
        Chains { gap, clients: ByClient::new(), recent: [None; RECENT], next: 0 }
    }

    pub(super) fn observe(&mut self, client: u64, begin: u64, bytes: u64) -> Links {
        let (gap, end) = (self.gap, begin + bytes);
        let last = self.clients.get(client);
        let own = last.map_or(0, |last| longer(last.own, direction_of(*last, begin, end, gap)));
        let chained =
            self.recent.iter().flatten().map(|link| longer(link.any, direction_of(*link, begin, end, gap)));
        let any = chained.max_by_key(|links| links.unsigned_abs()).unwrap_or(0);
        let link = Link { begin, end, own, any };
        *self.clients.claim(client).0 = link;
        self.recent[self.next] = Some(link);
        self.next = (self.next + 1) % RECENT;
        Links { own: own.unsigned_abs(), any: any.unsigned_abs() }
    }
}

/// 1 where a request comes just above another, -1 just below, and else 0.
fn direction_of(before: Link, begin: u64, end: u64, gap: u64) -> i32 {
    let is_near = |distance: Option<u64>| distance.is_some_and(|distance| distance <= gap);
    match () {
        () if is_near(begin.checked_sub(before.end)) => 1,
        () if is_near(before.begin.checked_sub(end)) => -1,
        () => 0,
    }
}

/// The length of a chain that continues in this direction.
fn longer(chain: i32, direction: i32) -> i32 {
    if chain.signum() == direction { chain.saturating_add(direction) } else { direction }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_reading_in_one_direction_makes_a_chain() {
        let mut chains = Chains::new(4096);
        let own: Vec<u32> =
            [0, 1, 2, 3, 9, 8, 7, 8].map(|at| chains.observe(1, (10 + at) << 16, 1 << 16).own).to_vec();
        assert_eq!(own, [0, 1, 2, 3, 0, 1, 2, 1]);
    }

    #[test]
    fn alternating_connections_make_a_common_chain() {
        let mut chains = Chains::new(4096);
        let links: Vec<Links> = (0..12).map(|at| chains.observe(at % 4, at << 16, 1 << 16)).collect();
        assert!(links.iter().all(|links| links.own == 0));
        assert_eq!(links[11].any, 11);
    }
}
