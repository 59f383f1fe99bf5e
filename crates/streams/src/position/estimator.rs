//! Where the head is and how long a request will take, from a drive file and the disk's own answers.

use super::drive_model::{DriveModel, Prediction};
use super::reserve::Reserve;
use super::spindle_phase::{PhaseStep, SpindlePhase};
use headstack_model::{Instant, Lbn, Nanos, Op, Request, TrackPlace};
use headstack_policy::Slot;
use headstack_policy::elevator::DiskMap;
use std::collections::VecDeque;

/// Number of reads from the media without a phase after which the drive file counts as that of another disk: four searches of the phase.
const UNFOUND_MOST: u32 = 256;
/// Ends of earlier reads that are remembered, because the drive may have read ahead from there.
const REMEMBERED: usize = 32;
/// Blocks behind a remembered end in which a read may be answered by read-ahead: about two tracks.
const READ_AHEAD: u64 = 4096;
/// Errors of predictions that are kept.
const ERRORS: usize = 256;

/// Whether a drive file agrees with the disk's answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapState {
    /// Too few reads came from the media to say.
    Learning,
    /// The ends of reads agree with it.
    Agrees,
    /// The ends of reads do not agree with it: it is of another disk, or the spindle stopped and started.
    Differs,
}

impl MapState {
    /// Its name: `learning`, `agrees` or `differs`.
    pub fn name(self) -> &'static str {
        ["learning", "agrees", "differs"][self as usize]
    }
}

/// What a completed request showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The service predicted when it was sent.
    pub predicted: Nanos,
    /// The service that it had.
    pub measured: Nanos,
}

/// A request at the disk.
#[derive(Clone, Copy, Debug)]
struct SentRequest {
    id: u32,
    request: Request,
    issued: Instant,
    /// Whether it has been the only one at the disk.
    is_alone: bool,
    prediction: Option<Prediction>,
    /// The track from which the arm set out.
    from: Option<TrackPlace>,
}

/// Predicts positions on a real disk, and learns from its answers.
#[derive(Clone, Debug)]
pub struct PositionEstimator {
    model: DriveModel,
    phase: SpindlePhase,
    reserve: Reserve,
    state: MapState,
    /// Reads from the media since the phase was lost, or the start.
    unfound: u32,
    sent: Vec<SentRequest>,
    /// When the disk is predicted to have done all that was sent.
    free_at: Instant,
    last_end: Instant,
    /// The track of the arm, if the last request certainly left it there.
    arm: Option<TrackPlace>,
    read_ends: VecDeque<Lbn>,
    errors: VecDeque<Nanos>,
    /// Predictions that were half a turn or more off, and all predictions.
    missed: u64,
    predicted: u64,
}

impl PositionEstimator {
    /// An estimator that has seen no answer.
    pub fn new(model: DriveModel) -> PositionEstimator {
        PositionEstimator {
            phase: SpindlePhase::new(*model.mechanics.spindle()),
            reserve: Reserve::new(model.period()),
            model,
            state: MapState::Learning,
            unfound: 0,
            sent: Vec::new(),
            free_at: Instant::ZERO,
            last_end: Instant::ZERO,
            arm: None,
            read_ends: VecDeque::with_capacity(REMEMBERED),
            errors: VecDeque::with_capacity(ERRORS),
            missed: 0,
            predicted: 0,
        }
    }

    /// The drive file's model.
    pub fn model(&self) -> &DriveModel {
        &self.model
    }

    /// Whether the drive file agrees with the disk's answers.
    pub fn state(&self) -> MapState {
        self.state
    }

    /// Predicts a request that is sent `now` to an idle disk; none before the phase and the arm's track are found.
    pub fn predict(&self, now: Instant, request: &Request) -> Option<Prediction> {
        let arm = self.arm.filter(|_| self.phase.is_found())?;
        Some(self.model.predict(&self.phase, now, arm, request))
    }

    /// Records that a request was sent to the disk. No request at the disk may have the same number.
    pub fn issued(&mut self, now: Instant, id: u32, request: &Request) {
        let is_alone = self.sent.is_empty();
        self.sent.iter_mut().for_each(|other| other.is_alone = false);
        let prediction = if is_alone { self.predict(now, request) } else { None };
        let start = if is_alone { now } else { self.free_at.max(now) };
        // Without a prediction it is taken for half a turn.
        let usual = start + Nanos(self.model.period().0 / 2);
        self.free_at = prediction.map_or(usual, |prediction| prediction.ends);
        self.sent.push(SentRequest {
            id,
            request: *request,
            issued: now,
            is_alone,
            prediction,
            from: self.arm,
        });
        self.arm = None;
    }

    /// Records that the disk got a command other than a read or a write: the arm's track is then unknown.
    pub fn disturbed(&mut self) {
        self.arm = None;
        for other in &mut self.sent {
            (other.is_alone, other.from) = (false, None);
        }
    }

    /// Records that a request ended, with success or not. Returns what it showed of a prediction. Panics where it was not at the disk.
    pub fn completed(&mut self, now: Instant, id: u32, is_good: bool) -> Option<Observation> {
        let found = self.sent.iter().position(|sent| sent.id == id);
        let sent = self.sent.swap_remove(found.expect("what ended was at the disk"));
        let start = sent.issued.max(self.last_end);
        self.last_end = self.last_end.max(now);
        if self.sent.is_empty() {
            self.free_at = now;
        }
        if !is_good || sent.request.op != Op::Read {
            // A written block may be in the drive's cache.
            self.arm = None;
            return None;
        }
        let is_media = self.is_from_media(&sent, now.since(start));
        self.remember(sent.request.end());
        if !is_media {
            return None;
        }
        self.arm = Some(self.model.target(Lbn(sent.request.end().0 - 1)).0).filter(|_| self.sent.is_empty());
        let agrees = self.learn_phase(now, &sent.request);
        let prediction = sent.prediction.filter(|_| sent.is_alone && agrees && self.phase.is_found())?;
        Some(self.learn_error(&sent, prediction, now))
    }

    /// Whether an answer can only have come from the media. Read-ahead and repeated reads need not.
    fn is_from_media(&self, sent: &SentRequest, took: Nanos) -> bool {
        let follows = |end: &Lbn| sent.request.lbn.0.wrapping_sub(end.0) < READ_AHEAD;
        let from = sent.from.filter(|_| sent.is_alone);
        !self.read_ends.iter().any(follows) && took >= self.model.least_service(from, &sent.request)
    }

    fn remember(&mut self, end: Lbn) {
        if self.read_ends.len() == REMEMBERED {
            self.read_ends.pop_front();
        }
        self.read_ends.push_back(end);
    }

    /// Learns the phase from the end of a read; returns whether it agrees with the phase.
    fn learn_phase(&mut self, now: Instant, request: &Request) -> bool {
        let Some(angle) = self.model.end_angle(request) else { return false };
        let step = self.phase.observe(now.saturating_sub(self.model.tail(request)), angle);
        match step {
            PhaseStep::Found => (self.state, self.unfound) = (MapState::Agrees, 0),
            PhaseStep::Lost => (self.state, self.unfound) = (MapState::Differs, 0),
            PhaseStep::Searching => {
                self.unfound = self.unfound.saturating_add(1);
                if self.unfound >= UNFOUND_MOST {
                    self.state = MapState::Differs;
                }
            }
            PhaseStep::Agrees | PhaseStep::Differs => {}
        }
        step == PhaseStep::Agrees
    }

    fn learn_error(&mut self, sent: &SentRequest, prediction: Prediction, now: Instant) -> Observation {
        let period = self.model.period().0 as i64;
        let off = now.0 as i64 - prediction.ends.0 as i64;
        let turns = (off + period / 2).div_euclid(period);
        self.reserve.observe(prediction.begins.since(prediction.on_track), turns);
        self.predicted += 1;
        self.missed += u64::from(turns != 0);
        if self.errors.len() == ERRORS {
            self.errors.pop_front();
        }
        self.errors.push_back(Nanos(off.unsigned_abs()));
        Observation { predicted: prediction.ends.since(sent.issued), measured: now.since(sent.issued) }
    }

    /// The error that `share` of the last predictions do not exceed; none without predictions.
    pub fn error(&self, share: f64) -> Option<Nanos> {
        let mut errors: Vec<Nanos> = self.errors.iter().copied().collect();
        errors.sort_unstable();
        let last = errors.len().checked_sub(1)?;
        Some(errors[(last as f64 * share.clamp(0.0, 1.0)).round() as usize])
    }

    /// Predictions that could be compared with their requests, and how many of them were half a turn or more off.
    pub fn predictions(&self) -> (u64, u64) {
        (self.predicted, self.missed)
    }

    /// The time that is left before a sector, so that a command that is a little late still meets it.
    pub fn reserve(&self) -> Nanos {
        self.reserve.time()
    }
}

/// The positions that orders use: of a request that is sent after those at the disk.
impl DiskMap for PositionEstimator {
    fn cylinders(&self) -> u32 {
        self.model.cylinders()
    }

    fn track(&self, lbn: Lbn) -> (u32, u32) {
        let place = self.model.target(lbn).0;
        (place.cylinder, place.head)
    }

    fn seek_at_least(&self, cylinders: u32) -> Nanos {
        self.model.mechanics.reposition_at_least(cylinders)
    }

    fn positioning(&self, now: Instant, last: Lbn, slot: &Slot) -> Nanos {
        let request = &slot.request;
        let ready = now.max(self.free_at) + self.model.overhead(request.op) + self.reserve.time();
        let (to, angle) = self.model.target(request.lbn);
        let seek = self.model.mechanics.reposition(self.model.target(last).0, to, request.op == Op::Write);
        seek + self.phase.wait(ready + seek, angle)
    }
}
