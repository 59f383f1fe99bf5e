//! Promises that a disk makes to the clients of an export, and gives to no more than it can keep.

use headstack_model::Nanos;
use headstack_nbd::{Gate, Permit};
use headstack_policy::admission::{Ability, Admission, Guarantee, Reservation};
use headstack_policy::streams::Guarantee as Promised;
#[allow(clippy::disallowed_types, reason = "connections end in the threads of disks")]
use std::sync::Mutex;
use std::sync::{Arc, PoisonError};

/// The promises of a disk, for all exports of it.
#[derive(Clone, Debug)]
#[allow(clippy::disallowed_types, reason = "connections end in the threads of disks")]
pub struct Promises(Arc<Mutex<Admission>>);

impl Promises {
    /// Of a disk that can do so much.
    #[allow(clippy::disallowed_types, reason = "connections end in the threads of disks")]
    pub fn new(ability: Ability) -> Promises {
        Promises(Arc::new(Mutex::new(Admission::new(ability))))
    }

    /// Looks at what is promised.
    pub fn inspect<R>(&self, look: impl FnOnce(&Admission) -> R) -> R {
        look(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn promise(&self, guarantee: Guarantee) -> Result<Held, String> {
        let admitted = self.0.lock().unwrap_or_else(PoisonError::into_inner).admit(guarantee);
        let reservation = admitted.map_err(|refusal| refusal.to_string())?;
        Ok(Held { promises: self.clone(), reservation: Some(reservation) })
    }
}

/// What each connection to an export is promised, and by which disk.
#[derive(Clone, Debug)]
pub struct Guaranteed {
    /// What is promised.
    pub guarantee: Guarantee,
    /// Who keeps it.
    pub promises: Promises,
}

/// A promise to a connection, until that ends.
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

/// Lets clients choose an export where what it promises can be kept.
#[derive(Debug)]
pub(super) struct Doors(pub(super) Vec<Option<Guaranteed>>);

impl Doors {
    /// What the clients of an export are promised, as the scheduler knows it.
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
