//! The angle of a disk's spindle by the host's clock.
//!
//! A read from the media ends when its last sector has passed under the head, so each end gives the angle at that time, whatever the
//! disk did before. The phase is the angle minus what the speed alone would give. It is searched in the last reads, which agree if most
//! of their phases lie within an arc. Then a filter of second order follows it, for phase and for the difference of speed, which also
//! covers the drift of the host's clock. Ends that are far off are late, or of reads that a cache answered, and have no effect. Once
//! most ends are far off, the phase is lost and searched again.
//!
//! All arithmetic is in integers, so that every machine decides the same.

use headstack_model::{Angle, Instant, Nanos, Spindle};

/// Reads in which the phase is searched.
const SAMPLES: usize = 64;
/// Arcs of the circle in the search. *Source:* ours: four of them are as wide as [`NEAR`] to both sides.
const ARCS: usize = 32;
/// Neighbouring arcs that must hold the reads that agree: an eighth of a turn, in which one read in eight lies by chance.
const WIDTH: usize = 4;
/// Reads of [`SAMPLES`] that must agree. By chance 39 of 64 do in less than one search in 10¹⁵.
const AGREED: usize = 39;
/// Largest distance from the phase of a read that agrees: a sixteenth of a turn.
const NEAR: u32 = 1 << 28;
/// Share of agreeing reads at which the phase is lost, in 2⁻¹⁶. By chance it is 8,192; a right phase has over 60,000.
const LOST: u32 = 26_214;
/// Weight of a read in the share, as a power of two: about the last 64 reads count.
const SHARE_SHIFT: u32 = 6;
/// Weight of a read in the phase, as a power of two.
const PHASE_SHIFT: u32 = 3;
/// Weight of a read in the speed, as a power of two: the damping of a filter whose speed follows far more slowly than its phase.
const RATE_SHIFT: u32 = 10;
/// Largest difference of speed, as a part of the speed: far more than drives and clocks differ, and little enough that one late
/// answer cannot lose the phase.
const RATE_PART: u64 = 100;

/// What a read's end did to the phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PhaseStep {
    /// The phase is still searched.
    Searching,
    /// The phase was found.
    Found,
    /// The read agrees with the phase.
    Agrees,
    /// The read does not agree with the phase.
    Differs,
    /// Most reads do not agree any more.
    Lost,
}

#[derive(Clone, Debug)]
pub(super) struct SpindlePhase {
    spindle: Spindle,
    state: PhaseState,
}

#[derive(Clone, Debug)]
enum PhaseState {
    Searching(Box<RecentPhases>),
    Following(FollowedPhase),
}

/// Phases of the last reads.
#[derive(Clone, Debug)]
struct RecentPhases {
    phases: [u32; SAMPLES],
    seen: usize,
}

#[derive(Clone, Copy, Debug)]
struct FollowedPhase {
    at: Instant,
    phase: Angle,
    /// Change of the phase in 2⁻³² of its unit per nanosecond.
    rate: i64,
    /// Share of agreeing reads, in 2⁻¹⁶.
    agreeing: u32,
}

impl SpindlePhase {
    pub(super) fn new(spindle: Spindle) -> SpindlePhase {
        SpindlePhase { spindle, state: PhaseState::Searching(Box::new(RecentPhases::new())) }
    }

    pub(super) fn is_found(&self) -> bool {
        matches!(self.state, PhaseState::Following(_))
    }

    /// Time from `now` until `angle` passes under the heads. While the phase is searched, it is taken for zero.
    pub(super) fn wait(&self, now: Instant, angle: Angle) -> Nanos {
        let phase = match &self.state {
            PhaseState::Searching(_) => Angle(0),
            PhaseState::Following(followed) => followed.phase_at(now),
        };
        self.spindle.wait(now, angle - phase)
    }

    /// Learns that `angle` passed under the heads at `ended`.
    pub(super) fn observe(&mut self, ended: Instant, angle: Angle) -> PhaseStep {
        let phase = angle - self.spindle.angle_at(ended);
        match &mut self.state {
            PhaseState::Searching(recent) => {
                recent.add(phase);
                let Some(found) = recent.common() else { return PhaseStep::Searching };
                self.state = PhaseState::Following(FollowedPhase {
                    at: ended,
                    phase: found,
                    rate: 0,
                    agreeing: 1 << 16,
                });
                PhaseStep::Found
            }
            PhaseState::Following(followed) => {
                let is_near = followed.follow(ended, phase, self.spindle.period());
                if followed.agreeing < LOST {
                    self.state = PhaseState::Searching(Box::new(RecentPhases::new()));
                    return PhaseStep::Lost;
                }
                if is_near { PhaseStep::Agrees } else { PhaseStep::Differs }
            }
        }
    }
}

impl RecentPhases {
    fn new() -> RecentPhases {
        RecentPhases { phases: [0; SAMPLES], seen: 0 }
    }

    fn add(&mut self, phase: Angle) {
        self.phases[self.seen % SAMPLES] = phase.0;
        self.seen += 1;
    }

    /// The mean phase of the arc that holds most reads, if it holds enough of them.
    fn common(&self) -> Option<Angle> {
        if self.seen < SAMPLES {
            return None;
        }
        let mut counts = [0; ARCS];
        for phase in self.phases {
            counts[phase as usize / (1 << 27)] += 1;
        }
        let held = |arc: usize| -> usize { (0..WIDTH).map(|next| counts[(arc + next) % ARCS]).sum() };
        let arc = (0..ARCS).max_by_key(|arc| held(*arc)).expect("the circle has arcs");
        if held(arc) < AGREED {
            return None;
        }
        let start = (arc as u32) << 27;
        let inside = self.phases.iter().map(|phase| phase.wrapping_sub(start));
        let inside = inside.filter(|into| *into < (WIDTH as u32) << 27);
        let sum: u64 = inside.map(u64::from).sum();
        Some(Angle(start) + Angle((sum / held(arc) as u64) as u32))
    }
}

impl FollowedPhase {
    fn phase_at(&self, now: Instant) -> Angle {
        let span = i128::from(now.0) - i128::from(self.at.0);
        self.phase + Angle(((span * i128::from(self.rate)) >> 32) as u32)
    }

    /// Follows a read's phase if that is near; returns whether it is.
    fn follow(&mut self, ended: Instant, phase: Angle, period: Nanos) -> bool {
        let predicted = self.phase_at(ended);
        let error = (phase - predicted).0 as i32;
        let is_near = error.unsigned_abs() <= NEAR;
        let gained = if is_near { 1 << (16 - SHARE_SHIFT) } else { 0 };
        self.agreeing = self.agreeing - (self.agreeing >> SHARE_SHIFT) + gained;
        if is_near && ended >= self.at {
            let span = i64::try_from((ended - self.at).0.max(period.0)).unwrap_or(i64::MAX);
            let most = (u64::MAX / period.0 / RATE_PART) as i64;
            let rate = self.rate + ((i64::from(error) << (32 - RATE_SHIFT)) / span);
            self.rate = rate.clamp(-most, most);
            self.phase = predicted + Angle((error >> PHASE_SHIFT) as u32);
            self.at = ended;
        }
        is_near
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random.
    fn noise(seed: &mut u64) -> u64 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *seed >> 33
    }

    /// Reads that end every `gap` on average at a spindle of `rpm`, each up to `late` after its sector, seen by one of 7,200 rpm.
    fn observe(
        phase: &mut SpindlePhase,
        real: Spindle,
        from: Instant,
        reads: u64,
        late: u64,
    ) -> (Instant, PhaseStep) {
        let (mut now, mut seed, mut step) = (from, 7, PhaseStep::Searching);
        for _ in 0..reads {
            now += Nanos(4_000_000 + noise(&mut seed) % 8_000_000);
            step = phase.observe(now + Nanos(noise(&mut seed) % (late + 1)), real.angle_at(now));
        }
        (now, step)
    }

    /// Largest error of a predicted wait over a turn.
    fn worst(phase: &SpindlePhase, real: Spindle, now: Instant) -> u64 {
        let off = |step: u64| {
            let at = now + Nanos(step * 100_000);
            let arrives = at + phase.wait(at, real.angle_at(now));
            let into = (arrives - now).0 % real.period().0;
            into.min(real.period().0 - into)
        };
        (0..80).map(off).max().unwrap_or(0)
    }

    #[test]
    fn phase_is_found_and_followed_over_a_wrong_speed() {
        // One part in a thousand: as a speed from a data sheet.
        for rpm in [7200.0, 7192.8, 7207.2] {
            let real = Spindle::from_rpm(rpm);
            let mut phase = SpindlePhase::new(Spindle::from_rpm(7200.0));
            let (now, step) = observe(&mut phase, real, Instant(5), 70, 20_000);
            assert!(phase.is_found() && step == PhaseStep::Agrees, "{rpm}: {step:?}");
            let (now, _) = observe(&mut phase, real, now, 4_000, 20_000);
            assert!(worst(&phase, real, now) < 60_000, "{rpm}: {} ns", worst(&phase, real, now));
        }
    }

    #[test]
    fn late_answers_do_not_move_the_phase() {
        let real = Spindle::from_rpm(7200.0);
        let mut phase = SpindlePhase::new(real);
        let (mut now, _) = observe(&mut phase, real, Instant(5), 100, 20_000);
        let mut seed = 1;
        for read in 0..500 {
            now += Nanos(7_000_000);
            let late = if read % 5 == 0 { 1_000_000 + noise(&mut seed) % 6_000_000 } else { 0 };
            phase.observe(now + Nanos(late), real.angle_at(now));
        }
        assert!(phase.is_found() && worst(&phase, real, now) < 30_000);
    }

    #[test]
    fn random_ends_find_no_phase_and_lose_one() {
        let real = Spindle::from_rpm(7200.0);
        let (mut phase, mut seed) = (SpindlePhase::new(real), 3);
        let mut now = Instant(0);
        let mut random = |phase: &mut SpindlePhase| {
            now += Nanos(7_000_000);
            phase.observe(now, Angle((noise(&mut seed) << 1) as u32))
        };
        assert!((0..20_000).all(|_| random(&mut phase) == PhaseStep::Searching));
        let (_, step) = observe(&mut phase, real, Instant(200_000_000_000), 100, 20_000);
        assert_eq!(step, PhaseStep::Agrees);
        let lost = (0..200).position(|_| random(&mut phase) == PhaseStep::Lost).expect("it is lost");
        assert!((20..150).contains(&lost), "after {lost} reads");
        assert!(!phase.is_found());
    }
}
