//! How many clients there may be, in all and from one address.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
#[allow(clippy::disallowed_types, reason = "connections end in the threads of disks")]
use std::sync::Mutex;
use std::sync::{Arc, PoisonError};

/// The places that a server has.
#[derive(Debug, Default)]
#[allow(clippy::disallowed_types, reason = "connections end in the threads of disks")]
pub(crate) struct Seats(Arc<Mutex<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_address: BTreeMap<IpAddr, usize>,
}

/// What a connection takes up among those that a server allows, until it is dropped.
#[derive(Debug)]
#[allow(clippy::disallowed_types, reason = "connections end in the threads of disks")]
pub(crate) struct Seat {
    seats: Arc<Mutex<Taken>>,
    address: Option<IpAddr>,
}

impl Seats {
    /// A seat for a client of this address, where there are fewer than `most` taken, and than `each` from there.
    pub(crate) fn take(&self, address: Option<IpAddr>, most: usize, each: usize) -> Option<Seat> {
        let address = address.map(household);
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let there = address.and_then(|address| taken.by_address.get(&address)).copied().unwrap_or(0);
        if taken.all >= most || there >= each {
            return None;
        }
        taken.all += 1;
        if let Some(address) = address {
            taken.by_address.insert(address, there + 1);
        }
        Some(Seat { seats: Arc::clone(&self.0), address })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        taken.all -= 1;
        let Some(address) = self.address else { return };
        let there = taken.by_address.remove(&address).expect("a seat was counted when it was taken");
        if there > 1 {
            taken.by_address.insert(address, there - 1);
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

    #[test]
    fn are_seats_counted_by_address_and_given_back() {
        let seats = Seats::default();
        let take = |address: &str| seats.take(Some(address.parse().expect("it is an address")), 5, 2);
        let held = [take("10.0.0.1"), take("::ffff:10.0.0.1"), take("fe80::1:2"), take("fe80::2:1")];
        assert!(held.iter().all(Option::is_some));
        assert!(take("10.0.0.1").is_none() && take("fe80::3").is_none(), "two from each");
        let last = take("10.0.0.2");
        assert!(last.is_some() && take("10.0.0.3").is_none(), "five in all");
        assert!(seats.take(None, 5, 2).is_none());
        drop(last);
        let local = [seats.take(None, 7, 2), seats.take(None, 7, 2), seats.take(None, 7, 2)];
        assert!(local.iter().all(Option::is_some), "those without an address are only counted in all");
        drop((held, local));
        let taken = seats.0.lock().expect("nobody panics");
        assert!(taken.all == 0 && taken.by_address.is_empty());
    }
}
