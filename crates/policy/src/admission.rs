//! Admission: which streams get a guaranteed rate and response from a disk, and which it must refuse.
//!
//! **The rule.** The disk serves guaranteed streams in rounds, each stream once a round. In a round of length `T` a stream of rate
//! `r` consumes `r T` bytes, so its turn must transfer that many: with the media rate `B` at the disk's slowest place and a
//! positioning of at most `P`, a turn takes at most `P + r T / B`. All `n` turns must fit into the share `s` of the round that is
//! for guarantees:
//!
//! ```text
//! n P + R T / B <= s T       with R the sum of the rates
//! T >= n P B / (s B - R)     and none at all where R >= s B
//! ```
//!
//! A request that arrives just after its stream's turn waits for the next one, so no round may be longer than the shortest
//! guaranteed response. A stream consumes the bytes of its last turn while those of the next are read: it needs room for `2 r T`,
//! and all streams must fit into the memory. Both conditions favour short rounds, so the shortest feasible one is used. If that is
//! too long, or needs too much memory, the streams cannot all have guarantees.
//!
//! Not modelled: turns of neighbours that share a positioning (the bound is for the worst case), and requests of guaranteed
//! streams that are not sequential, which cost a positioning each. A stream that exceeds its rate has no guarantee.
//!
//! *Source:* D. J. Gemmell et al., "Multimedia storage servers: a tutorial" (IEEE Computer, May 1995): service in rounds, and
//! admission by the worst case of each. The share, and the choice of the shortest round, are ours.

use std::collections::BTreeMap;

use headstack_model::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The guarantee of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Guarantee {
    /// Guaranteed rate in bytes a second.
    pub rate_bytes_per_s: u64,
    /// Longest response of a request within that rate.
    pub response_ms: f64,
}

impl Guarantee {
    /// The response as a time; `None` unless it is above zero.
    fn response(self) -> Option<Nanos> {
        // Beyond that no promise is worth anything.
        const DAY_MS: f64 = 86_400_000.0;
        (self.response_ms > 0.0).then(|| Nanos((self.response_ms.min(DAY_MS) * 1e6) as u64))
    }
}

/// The measured ability of a disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ability {
    /// Bytes a second from the media where the disk is slowest.
    pub bandwidth: u64,
    /// Longest time from the end of one transfer to the beginning of another, anywhere.
    pub positioning: Nanos,
    /// Bytes of the stream memory.
    pub memory: u64,
    /// Share of the disk's time that may be promised; the rest is for all others.
    pub share: f64,
}

/// A granted guarantee. [`Admission::release`] returns it.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a guarantee holds until its reservation is released"]
pub struct Reservation(u64);

/// Why a guarantee is refused: what it would need, and what is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum Refusal {
    /// Bandwidth is lacking.
    #[error("{needed} bytes/s would have to be kept free, and fewer than {left} are left")]
    Bandwidth {
        needed: u64,
        /// Bandwidth that is not yet guaranteed. A stream of exactly this rate would leave no time to move the arm.
        left: u64,
    },
    /// The arm would move too often for the shortest guaranteed response.
    #[error("a round of {streams} streams would take {} us, and {} us are promised", needed.0 / 1000, allowed.0 / 1000)]
    Response {
        streams: usize,
        /// The shortest round in which all can be served.
        needed: Nanos,
        /// The shortest response.
        allowed: Nanos,
    },
    /// Memory is lacking.
    #[error("{needed} bytes of stream memory would be needed, and there are {available}")]
    Memory { needed: u64, available: u64 },
    /// The guaranteed response is not above zero.
    #[error("a response of no time cannot be promised")]
    NoTime,
}

/// The guarantees of a disk.
#[derive(Debug)]
pub struct Admission {
    ability: Ability,
    promised: BTreeMap<u64, (u64, Nanos)>,
    next: u64,
}

impl Admission {
    /// For a disk with this ability and no guarantees. A share outside 0 to 1 is clamped.
    pub fn new(ability: Ability) -> Admission {
        Admission { ability, promised: BTreeMap::new(), next: 0 }
    }

    /// Bytes a second that may be promised in all.
    fn promisable(&self) -> u64 {
        (self.ability.bandwidth as f64 * self.ability.share.clamp(0.0, 1.0)) as u64
    }

    /// The number of granted guarantees.
    pub fn streams(&self) -> usize {
        self.promised.len()
    }

    /// Bytes a second that are promised.
    pub fn rate(&self) -> u64 {
        self.promised.values().map(|(rate, _)| rate).sum()
    }

    /// The shortest round that keeps all guarantees; none without a guarantee.
    pub fn round(&self) -> Option<Nanos> {
        (!self.promised.is_empty()).then(|| self.shortest_round(self.streams(), self.rate())).flatten()
    }

    /// Grants a guarantee, if it can be kept together with all others.
    ///
    /// *Errors:* it cannot be kept; what it would need, and what is left.
    pub fn admit(&mut self, guarantee: Guarantee) -> Result<Reservation, Refusal> {
        let response = guarantee.response().ok_or(Refusal::NoTime)?;
        let (before, needed) = (self.rate(), guarantee.rate_bytes_per_s);
        let lacking = Refusal::Bandwidth { needed, left: self.promisable().saturating_sub(before) };
        let rate = before.checked_add(needed).ok_or(lacking)?;
        let streams = self.streams() + 1;
        let round = self.shortest_round(streams, rate).ok_or(lacking)?;
        let allowed = self.promised.values().map(|(_, response)| *response).fold(response, Nanos::min);
        if round > allowed {
            return Err(Refusal::Response { streams, needed: round, allowed });
        }
        let memory = (2 * u128::from(rate) * u128::from(round.0)).div_ceil(NANOS_PER_SECOND);
        let memory = u64::try_from(memory).unwrap_or(u64::MAX);
        if memory > self.ability.memory {
            return Err(Refusal::Memory { needed: memory, available: self.ability.memory });
        }
        let number = self.next;
        self.next += 1;
        self.promised.insert(number, (needed, response));
        Ok(Reservation(number))
    }

    /// Ends a granted guarantee.
    pub fn release(&mut self, reservation: Reservation) {
        let held = self.promised.remove(&reservation.0);
        assert!(held.is_some(), "a reservation is released once, where it was made");
    }

    /// `n P B / (s B - R)`, rounded up; none if the rates leave no time to move the arm.
    fn shortest_round(&self, streams: usize, rate: u64) -> Option<Nanos> {
        let free = self.promisable().checked_sub(rate).filter(|free| *free > 0)?;
        let Ability { positioning, bandwidth, .. } = self.ability;
        let turns = streams as u128 * u128::from(positioning.0);
        let round = turns.checked_mul(bandwidth.into())?.div_ceil(free.into());
        u64::try_from(round).ok().map(Nanos)
    }
}

const NANOS_PER_SECOND: u128 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn disk() -> Admission {
        Admission::new(Ability {
            bandwidth: 40_000_000,
            positioning: Nanos::from_ms(20.0),
            memory: 64 << 20,
            share: 0.8,
        })
    }

    fn video(response_ms: f64) -> Guarantee {
        Guarantee { rate_bytes_per_s: 500_000, response_ms }
    }

    fn fill(disk: &mut Admission, guarantee: Guarantee) -> (Vec<Reservation>, Refusal) {
        let mut held = Vec::new();
        loop {
            match disk.admit(guarantee) {
                Ok(reservation) => held.push(reservation),
                Err(refusal) => return (held, refusal),
            }
        }
    }

    #[test]
    fn every_admission_limit_is_reached_and_reported() {
        // With n streams a round takes n 20 ms 40 MB/s / (32 MB/s - n 0.5 MB/s); 25 of them 1026 ms, 24 of them 960 ms.
        let (held, refusal) = fill(&mut disk(), video(1000.0));
        assert_eq!(held.len(), 24);
        let Refusal::Response { streams: 25, needed, allowed } = refusal else { panic!("{refusal}") };
        assert_eq!((needed.0 / 1_000_000, allowed), (1025, Nanos::from_secs(1)));
        // With time enough the memory ends it: 2 R T.
        let (held, refusal) = fill(&mut disk(), video(60_000.0));
        let Refusal::Memory { needed, available } = refusal else { panic!("{refusal}") };
        assert!(needed > available && available == 64 << 20);
        let memory = |n: f64| 2.0 * n * 0.5e6 * (n * 0.02 * 40.0 / (32.0 - n * 0.5));
        let n = held.len() as f64;
        assert!(memory(n) <= available as f64 && memory(n + 1.0) > available as f64, "{n}");
        // The same for the bandwidth, whatever the memory.
        let mut disk = Admission::new(Ability { memory: u64::MAX, ..disk().ability });
        let (held, refusal) = fill(&mut disk, video(60_000_000.0));
        assert_eq!(held.len(), 63, "the arm needs some time, too");
        assert_eq!(refusal, Refusal::Bandwidth { needed: 500_000, left: 500_000 });
    }

    #[test]
    fn released_guarantee_can_be_admitted_again() {
        let mut disk = disk();
        let (mut held, _) = fill(&mut disk, video(1000.0));
        disk.release(held.swap_remove(7));
        let again = disk.admit(video(1000.0)).expect("there is room for one");
        assert!(disk.admit(video(1000.0)).is_err());
        held.into_iter().chain([again]).for_each(|reservation| disk.release(reservation));
        assert_eq!((disk.streams(), disk.rate(), disk.round()), (0, 0, None));
    }

    #[test]
    fn too_short_response_is_rejected_and_leaves_the_round() {
        let mut disk = disk();
        let _long: Vec<_> = (0..20).map(|_| disk.admit(video(1000.0)).expect("there is room")).collect();
        let before = disk.round();
        let refusal = disk.admit(video(100.0)).expect_err("a round takes longer");
        assert!(matches!(refusal, Refusal::Response { allowed: Nanos(100_000_000), .. }), "{refusal}");
        assert_eq!(disk.round(), before);
        for wrong in [0.0, -1.0, f64::NAN] {
            assert_eq!(disk.admit(video(wrong)), Err(Refusal::NoTime));
        }
        let all = Guarantee { rate_bytes_per_s: u64::MAX, response_ms: 1e300 };
        assert!(matches!(disk.admit(all), Err(Refusal::Bandwidth { .. })));
    }

    proptest! {
        /// Every admitted set can be served, turn by turn, within the reported round.
        #[test]
        fn every_admitted_guarantee_can_be_kept(
            requested in prop::collection::vec((0..4_000_000u64, 10.0..5000.0f64), 1..80),
            bandwidth in 1_000_000..300_000_000u64,
            positioning in 1_000..30_000_000u64,
            memory in 1_000_000..200_000_000u64,
            share in 0.1..1.0f64,
        ) {
            let ability = Ability { bandwidth, positioning: Nanos(positioning), memory, share };
            let mut disk = Admission::new(ability);
            let mut kept: Vec<(u64, f64)> = Vec::new();
            for (rate_bytes_per_s, response_ms) in requested {
                if disk.admit(Guarantee { rate_bytes_per_s, response_ms }).is_ok() {
                    kept.push((rate_bytes_per_s, response_ms));
                }
                let Some(round) = disk.round() else { continue };
                let seconds = round.0 as f64 / 1e9;
                let turn = |rate: u64| positioning as f64 / 1e9 + rate as f64 * seconds / bandwidth as f64;
                let busy: f64 = kept.iter().map(|(rate, _)| turn(*rate)).sum();
                prop_assert!(busy <= share * seconds * (1.0 + 1e-6) + 1e-6, "{busy} of {seconds}");
                prop_assert!(kept.iter().all(|(_, response)| seconds * 1e3 <= response + 1e-3));
                let room: f64 = kept.iter().map(|(rate, _)| 2.0 * *rate as f64 * seconds).sum();
                prop_assert!(room <= memory as f64 * (1.0 + 1e-6), "{room}");
            }
        }
    }
}
