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
pub(crate) struct Seating {
    /// In all.
    pub(crate) all: usize,
    /// For clients of a network; the others are for sockets in the file system alone.
    pub(crate) network: usize,
    /// For one address of a network.
    pub(crate) address: usize,
    /// After how long without a request a client gives way to one that finds no seat.
    pub(crate) patience: Nanos,
}

impl Seating {
    /// So many in all, of which an eighth is for sockets in the file system alone.
    pub(crate) fn new(all: usize, address: usize, patience: Nanos) -> Seating {
        Seating { all, network: all - all / 8, address, patience }
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
pub(crate) struct Seats(Arc<Mutex<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    seats: Slab<(Option<IpAddr>, Arc<Place>)>,
    network: usize,
    by_address: BTreeMap<IpAddr, usize>,
}

/// What is known of the client that has a seat.
#[derive(Debug, Default)]
struct Place {
    /// For how long it has asked for nothing, in milliseconds.
    idle_ms: AtomicU64,
    /// Whether another has the seat.
    is_lost: AtomicBool,
}

/// What a connection takes up among those that a server allows, until it is dropped or another client gets it.
#[derive(Debug)]
#[allow(clippy::disallowed_types, reason = "connections end in the threads of disks")]
pub(crate) struct Seat {
    seats: Arc<Mutex<Taken>>,
    number: usize,
    place: Arc<Place>,
}

impl Seats {
    /// A seat for a client of this address. Where all are taken, a client gives way that has asked for nothing for long: of the
    /// address that has the most seats, the one that has been idle longest.
    ///
    /// *Errors:* all are taken, and nobody gives way.
    pub(crate) fn take(&self, address: Option<IpAddr>, seating: Seating) -> Result<Seat, Refusal> {
        let address = address.map(household);
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(refusal) = taken.refusal(address, seating) {
            let idle = taken.idle(address, refusal, seating.patience).ok_or(refusal)?;
            taken.remove(idle).is_lost.store(true, Ordering::Relaxed);
        }
        let place = Arc::default();
        let number = taken.insert(address, Arc::clone(&place));
        Ok(Seat { seats: Arc::clone(&self.0), number, place })
    }
}

impl Taken {
    fn refusal(&self, address: Option<IpAddr>, seating: Seating) -> Option<Refusal> {
        let there = address.and_then(|address| self.by_address.get(&address)).copied().unwrap_or(0);
        if self.seats.len() >= seating.all {
            Some(Refusal::All(seating.all))
        } else if there >= seating.address {
            Some(Refusal::Address(seating.address))
        } else if address.is_some() && self.network >= seating.network {
            Some(Refusal::Network(seating.network))
        } else {
            None
        }
    }

    /// The seat of a client that is to give way to one of this address.
    fn idle(&self, address: Option<IpAddr>, refusal: Refusal, patience: Nanos) -> Option<usize> {
        let fits = |of: Option<IpAddr>| match refusal {
            Refusal::All(_) => true,
            Refusal::Network(_) => of.is_some(),
            Refusal::Address(_) => of == address,
        };
        let seats = self.seats.iter().filter_map(|(number, (of, place))| {
            let idle = place.idle_ms.load(Ordering::Relaxed);
            let beside = of.and_then(|of| self.by_address.get(&of)).copied().unwrap_or(0);
            (fits(*of) && idle >= patience.0 / 1_000_000).then_some((beside, idle, number))
        });
        seats.max().map(|(_, _, number)| number)
    }

    fn insert(&mut self, address: Option<IpAddr>, place: Arc<Place>) -> usize {
        if let Some(address) = address {
            self.network += 1;
            *self.by_address.entry(address).or_default() += 1;
        }
        self.seats.insert((address, place))
    }

    fn remove(&mut self, number: usize) -> Arc<Place> {
        let (address, place) = self.seats.remove(number);
        if let Some(address) = address {
            self.network -= 1;
            let there = self.by_address.remove(&address).expect("a seat was counted when it was taken");
            if there > 1 {
                self.by_address.insert(address, there - 1);
            }
        }
        place
    }
}

impl Seat {
    /// Takes note for how long its client has asked for nothing; whether another has the seat by now.
    pub(crate) fn note_idle(&self, idle: Nanos) -> bool {
        self.place.idle_ms.store(idle.0 / 1_000_000, Ordering::Relaxed);
        self.is_lost()
    }

    /// Whether another has the seat.
    pub(crate) fn is_lost(&self) -> bool {
        self.place.is_lost.load(Ordering::Relaxed)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        // Seats are lost under the lock: the number may be another's by now.
        if !self.is_lost() {
            taken.remove(self.number);
        }
    }
}

/// What stands for an address: of IPv6 the first 64 bits, since who has one address there has all with the same.
fn household(address: IpAddr) -> IpAddr {
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
        let seats = Seats::default();
        let seating = Seating { all: 5, network: 5, address: 2, patience: MINUTE };
        let take = |text: &str| seats.take(address(text), seating);
        let held = [take("10.0.0.1"), take("::ffff:10.0.0.1"), take("fe80::1:2"), take("fe80::2:1")];
        assert!(held.iter().all(Result::is_ok));
        assert_eq!(take("10.0.0.1").err(), Some(Refusal::Address(2)));
        assert_eq!(take("fe80::3").err(), Some(Refusal::Address(2)), "they are one household");
        let last = take("10.0.0.2");
        assert!(last.is_ok());
        assert_eq!(take("10.0.0.3").err(), Some(Refusal::All(5)));
        assert_eq!(seats.take(None, seating).err(), Some(Refusal::All(5)));
        drop((held, last));
        let taken = seats.0.lock().expect("nobody panics");
        assert!(taken.seats.is_empty() && taken.network == 0 && taken.by_address.is_empty());
    }

    #[test]
    fn network_clients_leave_seats_for_unix_sockets() {
        let seats = Seats::default();
        let seating = Seating::new(16, 16, MINUTE);
        let held: Vec<_> = (0..20).map_while(|_| seats.take(address("10.0.0.1"), seating).ok()).collect();
        assert_eq!(held.len(), 14);
        assert_eq!(seats.take(address("10.0.0.2"), seating).err(), Some(Refusal::Network(14)));
        let local: Vec<_> = (0..20).map_while(|_| seats.take(None, seating).ok()).collect();
        assert_eq!(local.len(), 2);
        assert_eq!(Seating::new(2, 2, MINUTE).network, 2, "of a few seats none is kept");
    }

    #[test]
    fn longest_idle_client_of_the_fullest_address_is_evicted() {
        let seats = Seats::default();
        let seating = Seating { all: 4, network: 4, address: 3, patience: MINUTE };
        let other = seats.take(address("10.0.0.2"), seating).expect("there are seats");
        let hoard: Vec<_> =
            (0..3).map(|_| seats.take(address("10.0.0.1"), seating).expect("there are seats")).collect();
        assert!(seats.take(address("10.0.0.3"), seating).is_err(), "nobody has been idle for long");
        other.note_idle(Nanos(3 * MINUTE.0));
        (1..).zip(&hoard).for_each(|(minutes, seat)| assert!(!seat.note_idle(Nanos(minutes * MINUTE.0))));
        let newcomer = seats.take(address("10.0.0.3"), seating).expect("somebody gives way");
        assert_eq!(hoard.iter().map(Seat::is_lost).collect::<Vec<_>>(), [false, false, true]);
        assert!(!other.is_lost());
        let own = seats.take(address("10.0.0.1"), seating);
        assert!(
            own.is_ok() && hoard[1].is_lost(),
            "the address may still have three, and an idle one gives way"
        );
        drop(hoard);
        drop((own, other, newcomer));
        assert!(seats.0.lock().expect("nobody panics").seats.is_empty(), "a lost seat is given back once");
    }
}
