//! How many clients there may be: in all, from the network, and from one address; and who gives way where a seat is wanted.

use headstack_model::Nanos;
use slab::Slab;
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
#[allow(clippy::disallowed_types, reason = "connections end in the threads of disks")]
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

/// How many seats there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionLimits {
    /// In all.
    pub(crate) all: usize,
    /// For clients of a network; the others are for sockets in the file system alone.
    pub(crate) network: usize,
    /// For one address of a network.
    pub(crate) address: usize,
    /// After how long without a request a client gives way to one that finds no seat.
    pub(crate) idle_limit: Nanos,
}

impl ConnectionLimits {
    /// So many in all, of which an eighth is for sockets in the file system alone.
    pub(crate) fn new(all: usize, address: usize, idle_limit: Nanos) -> ConnectionLimits {
        ConnectionLimits { all, network: all - all / 8, address, idle_limit }
    }
}

/// Why a client gets no seat: how many there are, and all are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There is no seat left.
    All(usize),
    /// There is none left for clients of a network.
    Network(usize),
    /// There is none left for this address.
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

/// The seats of a server.
#[derive(Debug, Default)]
#[allow(clippy::disallowed_types, reason = "connections end in the threads of disks")]
pub(crate) struct ConnectionSlots(Arc<Mutex<SlotTable>>);

#[derive(Debug, Default)]
struct SlotTable {
    slots: Slab<(Option<IpAddr>, Arc<SlotState>)>,
    network: usize,
    by_address: BTreeMap<IpAddr, usize>,
}

/// What is known of the client that has a seat.
#[derive(Debug, Default)]
struct SlotState {
    /// For how long it has asked for nothing, in milliseconds.
    idle_ms: AtomicU64,
    /// Whether another has the seat.
    is_revoked: AtomicBool,
}

/// What a connection takes up among those that a server allows, until it is dropped or another client gets it.
#[derive(Debug)]
#[allow(clippy::disallowed_types, reason = "connections end in the threads of disks")]
pub(crate) struct ConnectionSlot {
    slots: Arc<Mutex<SlotTable>>,
    number: usize,
    state: Arc<SlotState>,
}

impl ConnectionSlots {
    /// A seat for a client of this address. Where all are taken, a client gives way that has asked for nothing for long: of the
    /// address that has the most seats, the one that has been idle longest.
    ///
    /// *Errors:* all are taken, and nobody gives way.
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

    /// The seat of a client that is to give way to one of this address.
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
            let there = self.by_address.remove(&address).expect("a seat was counted when it was taken");
            if there > 1 {
                self.by_address.insert(address, there - 1);
            }
        }
        state
    }
}

impl ConnectionSlot {
    /// Takes note for how long its client has asked for nothing; whether another has the seat by now.
    pub(crate) fn note_idle(&self, idle: Nanos) -> bool {
        self.state.idle_ms.store(idle.0 / 1_000_000, Ordering::Relaxed);
        self.is_revoked()
    }

    /// Whether another has the seat.
    pub(crate) fn is_revoked(&self) -> bool {
        self.state.is_revoked.load(Ordering::Relaxed)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut taken = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        // Seats are lost under the lock: the number may be another's by now.
        if !self.is_revoked() {
            taken.remove(self.number);
        }
    }
}

/// What stands for an address: of IPv6 the first 64 bits, since who has one address there has all with the same.
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
        assert_eq!(take("fe80::3").err(), Some(Refusal::Address(2)), "they are one household");
        let last = take("10.0.0.2");
        assert!(last.is_ok());
        assert_eq!(take("10.0.0.3").err(), Some(Refusal::All(5)));
        assert_eq!(slots.acquire(None, connection_limits).err(), Some(Refusal::All(5)));
        drop((held, last));
        let taken = slots.0.lock().expect("nobody panics");
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
        assert_eq!(ConnectionLimits::new(2, 2, MINUTE).network, 2, "of a few seats none is kept");
    }

    #[test]
    fn longest_idle_client_of_the_fullest_address_is_evicted() {
        let slots = ConnectionSlots::default();
        let connection_limits = ConnectionLimits { all: 4, network: 4, address: 3, idle_limit: MINUTE };
        let other = slots.acquire(address("10.0.0.2"), connection_limits).expect("there are seats");
        let hoard: Vec<_> = (0..3)
            .map(|_| slots.acquire(address("10.0.0.1"), connection_limits).expect("there are seats"))
            .collect();
        assert!(
            slots.acquire(address("10.0.0.3"), connection_limits).is_err(),
            "nobody has been idle for long"
        );
        other.note_idle(Nanos(3 * MINUTE.0));
        (1..).zip(&hoard).for_each(|(minutes, slot)| assert!(!slot.note_idle(Nanos(minutes * MINUTE.0))));
        let new_client = slots.acquire(address("10.0.0.3"), connection_limits).expect("somebody gives way");
        assert_eq!(hoard.iter().map(ConnectionSlot::is_revoked).collect::<Vec<_>>(), [false, false, true]);
        assert!(!other.is_revoked());
        let own = slots.acquire(address("10.0.0.1"), connection_limits);
        assert!(
            own.is_ok() && hoard[1].is_revoked(),
            "the address may still have three, and an idle one gives way"
        );
        drop(hoard);
        drop((own, other, new_client));
        assert!(slots.0.lock().expect("nobody panics").slots.is_empty(), "a lost seat is given back once");
    }
}
