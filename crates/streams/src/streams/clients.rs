//! What is known of each client, for a bounded number of them.

/// Clients that are known at a time.
pub(super) const CLIENTS: usize = 1024;

/// A value for each client in memory that never grows: clients whose numbers are equal modulo [`CLIENTS`] share a slot, which is that of
/// the one that claimed it last.
#[derive(Debug)]
pub(super) struct ByClient<T> {
    slots: Vec<(Option<u64>, T)>,
}

impl<T: Clone + Default> ByClient<T> {
    pub(super) fn new() -> ByClient<T> {
        ByClient { slots: vec![(None, T::default()); CLIENTS] }
    }

    /// The value of a client whose slot it is.
    pub(super) fn get(&self, client: u64) -> Option<&T> {
        let (owner, value) = &self.slots[client as usize % CLIENTS];
        (*owner == Some(client)).then_some(value)
    }

    /// Assigns a slot to a client. Returns the slot's value, and whether it was the client's already.
    pub(super) fn claim(&mut self, client: u64) -> (&mut T, bool) {
        let (owner, value) = &mut self.slots[client as usize % CLIENTS];
        (value, owner.replace(client) == Some(client))
    }

    /// Forgets a client's value, or that of the one that has its slot.
    pub(super) fn forget(&mut self, client: u64) {
        self.slots[client as usize % CLIENTS].0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_up_to_the_slot_count_keep_separate_values() {
        let mut clients = ByClient::new();
        for client in 0..CLIENTS as u64 {
            assert_eq!(clients.get(client), None);
            assert_eq!(clients.claim(client), (&mut 0, false));
            *clients.claim(client).0 = 2 * client;
        }
        assert!((0..CLIENTS as u64).all(|client| clients.get(client) == Some(&(2 * client))));
    }

    #[test]
    fn claiming_an_occupied_slot_evicts_its_client() {
        let mut clients = ByClient::new();
        let (first, second) = (5, 5 + CLIENTS as u64);
        *clients.claim(first).0 = 7;
        assert_eq!(clients.get(second), None);
        assert_eq!(clients.claim(second), (&mut 7, false), "what the slot holds is not its own");
        assert_eq!(clients.claim(second), (&mut 7, true));
        assert_eq!(clients.get(first), None);
    }

    #[test]
    fn forgotten_client_has_no_value() {
        let mut clients = ByClient::<u8>::new();
        clients.claim(3);
        clients.forget(3);
        assert_eq!(clients.get(3), None);
        assert!(!clients.claim(3).1);
    }
}
