//! Limits of connections: in total, from the network, and per address; and which idle connection a new client replaces.

use headstack_model::Nanos;
use slab::Slab;
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
#[allow(clippy::disallowed_types, reason = "connections end in the threads of disks")]
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionLimits {
    pub(crate) all: usize,
    /// From the network; the rest is reserved for Unix sockets.
    pub(crate) network: usize,
    pub(crate) address: usize,
    /// Time without a request after which a new client may replace a connection.
    pub(crate) idle_limit: Nanos,
}

impl ConnectionLimits {
    /// Limits for `all` connections, one eighth of them reserved for Unix sockets.
    pub(crate) fn new(all: usize, address: usize, idle_limit: Nanos) -> ConnectionLimits {
        ConnectionLimits { all, network: all - all / 8, address, idle_limit }
    }
}

/// The limit that a client exceeds, with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    All(usize),
    Network(usize),
    Address(usize),
}

impl fmt::Display for Refusal {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::All(most) => write!(to, "all {most} connections are taken (limits.connections)"),
            Refusal::Network(most) => {
                write!(
                    to,
                    "all {most} connections for the network are taken (seven eighths of limits.connections)"
                )
            }
            Refusal::Address(most) => {
                write!(
                    to,
                    "all {most} connections for one address are taken (limits.connections_per_address)"
                )
            }
        }
    }
}

#[derive(Debug, Default)]
#[allow(clippy::disallowed_types, reason = "connections end in the threads of disks")]
pub(crate) struct ConnectionSlots(Arc<Mutex<SlotTable>>);

#[derive(Debug, Default)]
struct SlotTable {
    slots: Slab<(Option<IpAddr>, Arc<SlotState>)>,
    network: usize,
    by_address: BTreeMap<IpAddr, usize>,
}

#[derive(Debug, Default)]
struct SlotState {
    idle_ms: AtomicU64,
    is_revoked: AtomicBool,
}

/// A connection's slot, until it is dropped or another client gets it.
#[derive(Debug)]
#[allow(clippy::disallowed_types, reason = "connections end in the threads of disks")]
pub(crate) struct ConnectionSlot {
    slots: Arc<Mutex<SlotTable>>,
    number: usize,
    state: Arc<SlotState>,
}

impl ConnectionSlots {
    /// Acquires a slot for a client of this address. If all are taken, it replaces an idle client: the longest idle one of the
    /// address with the most slots.
    ///
    /// *Errors:* all are taken, and no client is idle for long enough.
    pub(crate) fn acquire(
        &self,
        address: Option<IpAddr>,
        connection_limits: ConnectionLimits,
    ) -> Result<ConnectionSlot, Refusal> {
        let address = address.map(prefix64);
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(refusal) = taken.refusal(address, connection_limits) {
            let idle = taken.idle(address, refusal, connection_limits.idle_limit).ok_or(refusal)?;
            taken.remove(idle).is_revoked.store(true, Ordering::Relaxed);
        }
        let state = Arc::default();
        let number = taken.insert(address, Arc::clone(&state));
        Ok(ConnectionSlot { slots: Arc::clone(&self.0), number, state })
    }
}

impl SlotTable {
    fn refusal(&self, address: Option<IpAddr>, connection_limits: ConnectionLimits) -> Option<Refusal> {
        let there = address.and_then(|address| self.by_address.get(&address)).copied().unwrap_or(0);
        if self.slots.len() >= connection_limits.all {
            Some(Refusal::All(connection_limits.all))
        } else if there >= connection_limits.address {
            Some(Refusal::Address(connection_limits.address))
        } else if address.is_some() && self.network >= connection_limits.network {
            Some(Refusal::Network(connection_limits.network))
        } else {
            None
        }
    }

    /// The slot that a client of this address may take from an idle one.
    fn idle(&self, address: Option<IpAddr>, refusal: Refusal, idle_limit: Nanos) -> Option<usize> {
        let fits = |of: Option<IpAddr>| match refusal {
            Refusal::All(_) => true,
            Refusal::Network(_) => of.is_some(),
            Refusal::Address(_) => of == address,
        };
        let slots = self.slots.iter().filter_map(|(number, (of, state))| {
            let idle = state.idle_ms.load(Ordering::Relaxed);
            let beside = of.and_then(|of| self.by_address.get(&of)).copied().unwrap_or(0);
            (fits(*of) && idle >= idle_limit.0 / 1_000_000).then_some((beside, idle, number))
        });
        slots.max().map(|(_, _, number)| number)
    }

    fn insert(&mut self, address: Option<IpAddr>, state: Arc<SlotState>) -> usize {
        if let Some(address) = address {
            self.network += 1;
            *self.by_address.entry(address).or_default() += 1;
        }
        self.slots.insert((address, state))
    }

    fn remove(&mut self, number: usize) -> Arc<SlotState> {
        let (address, state) = self.slots.remove(number);
        if let Some(address) = address {
            self.network -= 1;
            let there = self.by_address.remove(&address).expect("a slot was counted when it was acquired");
            if there > 1 {
                self.by_address.insert(address, there - 1);
            }
        }
        state
    }
}

impl ConnectionSlot {
    /// Records the client's idle time. Returns whether another client has the slot by now.
    pub(crate) fn note_idle(&self, idle: Nanos) -> bool {
        self.state.idle_ms.store(idle.0 / 1_000_000, Ordering::Relaxed);
        self.is_revoked()
    }

    pub(crate) fn is_revoked(&self) -> bool {
        self.state.is_revoked.load(Ordering::Relaxed)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut taken = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        // Slots are revoked under the lock: the number may be another client's by now.
        if !self.is_revoked() {
            taken.remove(self.number);
        }
    }
}

/// The key of an address: for IPv6 its first 64 bits, because a client usually has a whole 64-bit prefix.
fn prefix64(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Nanos = Nanos(60_000_000_000);

    fn address(text: &str) -> Option<IpAddr> {
        Some(text.parse().expect("it is an address"))
    }

    #[test]
    fn seats_are_counted_by_address_and_released() {
        let slots = ConnectionSlots::default();
        let connection_limits = ConnectionLimits { all: 5, network: 5, address: 2, idle_limit: MINUTE };
        let take = |text: &str| slots.acquire(address(text), connection_limits);
        let held = [take("10.0.0.1"), take("::ffff:10.0.0.1"), take("fe80::1:2"), take("fe80::2:1")];
        assert!(held.iter().all(Result::is_ok));
        assert_eq!(take("10.0.0.1").err(), Some(Refusal::Address(2)));
        assert_eq!(take("fe80::3").err(), Some(Refusal::Address(2)), "they share a prefix");
        let last = take("10.0.0.2");
        assert!(last.is_ok());
        assert_eq!(take("10.0.0.3").err(), Some(Refusal::All(5)));
        assert_eq!(slots.acquire(None, connection_limits).err(), Some(Refusal::All(5)));
        drop((held, last));
        let taken = slots.0.lock().expect("no thread has panicked");
        assert!(taken.slots.is_empty() && taken.network == 0 && taken.by_address.is_empty());
    }

    #[test]
    fn network_clients_leave_seats_for_unix_sockets() {
        let slots = ConnectionSlots::default();
        let connection_limits = ConnectionLimits::new(16, 16, MINUTE);
        let held: Vec<_> =
            (0..20).map_while(|_| slots.acquire(address("10.0.0.1"), connection_limits).ok()).collect();
        assert_eq!(held.len(), 14);
        assert_eq!(slots.acquire(address("10.0.0.2"), connection_limits).err(), Some(Refusal::Network(14)));
        let local: Vec<_> = (0..20).map_while(|_| slots.acquire(None, connection_limits).ok()).collect();
        assert_eq!(local.len(), 2);
        assert_eq!(ConnectionLimits::new(2, 2, MINUTE).network, 2, "of a few slots none is reserved");
    }

    #[test]
    fn longest_idle_client_of_the_fullest_address_is_evicted() {
        let slots = ConnectionSlots::default();
        let connection_limits = ConnectionLimits { all: 4, network: 4, address: 3, idle_limit: MINUTE };
        let other = slots.acquire(address("10.0.0.2"), connection_limits).expect("slots are free");
        let hoard: Vec<_> = (0..3)
            .map(|_| slots.acquire(address("10.0.0.1"), connection_limits).expect("slots are free"))
            .collect();
        assert!(
            slots.acquire(address("10.0.0.3"), connection_limits).is_err(),
            "no client has been idle for long"
        );
        other.note_idle(Nanos(3 * MINUTE.0));
        (1..).zip(&hoard).for_each(|(minutes, slot)| assert!(!slot.note_idle(Nanos(minutes * MINUTE.0))));
        let new_client =
            slots.acquire(address("10.0.0.3"), connection_limits).expect("an idle client is replaced");
        assert_eq!(hoard.iter().map(ConnectionSlot::is_revoked).collect::<Vec<_>>(), [false, false, true]);
        assert!(!other.is_revoked());
        let own = slots.acquire(address("10.0.0.1"), connection_limits);
        assert!(
            own.is_ok() && hoard[1].is_revoked(),
            "the address may still have three, and an idle one gives way"
        );
        drop(hoard);
        drop((own, other, new_client));
        assert!(
            slots.0.lock().expect("no thread has panicked").slots.is_empty(),
            "a revoked slot is released once"
        );
    }
}
