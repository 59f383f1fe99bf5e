//! Guarantees to the clients of an export, limited to what the disk can keep.

use headstack_model::Nanos;
use headstack_nbd::{Gate, Permit};
use headstack_policy::admission::{Ability, Admission, Guarantee, Reservation};
use headstack_streams::streams::Guarantee as Promised;
#[allow(clippy::disallowed_types, reason = "connections end in the threads of disks")]
use std::sync::Mutex;
use std::sync::{Arc, PoisonError};

/// The guarantees of a disk, for all its exports.
#[derive(Clone, Debug)]
#[allow(clippy::disallowed_types, reason = "connections end in the threads of disks")]
pub struct Promises(Arc<Mutex<Admission>>);

impl Promises {
    /// No guarantees yet, of a disk with this ability.
    #[allow(clippy::disallowed_types, reason = "connections end in the threads of disks")]
    pub fn new(ability: Ability) -> Promises {
        Promises(Arc::new(Mutex::new(Admission::new(ability))))
    }

    /// Calls `look` with the guarantees given.
    pub fn inspect<R>(&self, look: impl FnOnce(&Admission) -> R) -> R {
        look(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn promise(&self, guarantee: Guarantee) -> Result<Held, String> {
        let admitted = self.0.lock().unwrap_or_else(PoisonError::into_inner).admit(guarantee);
        let reservation = admitted.map_err(|refusal| refusal.to_string())?;
        Ok(Held { promises: self.clone(), reservation: Some(reservation) })
    }
}

/// The guarantee of each connection to an export, and its disk.
#[derive(Clone, Debug)]
pub struct Guaranteed {
    /// The guarantee.
    pub guarantee: Guarantee,
    /// The guarantees of its disk.
    pub promises: Promises,
}

#[derive(Debug)]
struct Held {
    promises: Promises,
    reservation: Option<Reservation>,
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(reservation) = self.reservation.take() {
            self.promises.0.lock().unwrap_or_else(PoisonError::into_inner).release(reservation);
        }
    }
}

/// Admits clients to an export if the disk can keep its guarantee.
#[derive(Debug)]
pub(super) struct Doors(pub(super) Vec<Option<Guaranteed>>);

impl Doors {
    /// The guarantee to each client of an export, as the scheduler gets it.
    pub(super) fn promised(&self, export: usize) -> Option<Promised> {
        let Guarantee { rate_bytes_per_s, response_ms } = self.0[export].as_ref()?.guarantee;
        Some(Promised { rate: rate_bytes_per_s, response: Nanos::from_ms(response_ms) })
    }
}

impl Gate for Doors {
    fn enter(&self, export: usize) -> Result<Option<Permit>, String> {
        let Some(Guaranteed { guarantee, promises }) = &self.0[export] else { return Ok(None) };
        let held = promises.promise(*guarantee)?;
        Ok(Some(Box::new(held)))
    }
}
