//! The same requests on a simulated drive.

use crate::observed::ObservedRequest;
use headstack_model::{DriveSpec, Instant, Nanos};
use headstack_sim::{Device, DeviceOptions, Engine};
use headstack_workload::{Issue, Load, Poll};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The simulated response times of the requests, in their order; `None` if the drive cannot be built.
pub fn replay(spec: &DriveSpec, requests: &[ObservedRequest]) -> Option<Vec<Nanos>> {
    let device = Device::new(spec, &DeviceOptions::default()).ok()?;
    let mut engine = Engine::new(vec![device]);
    let mut responses = vec![Nanos::ZERO; requests.len()];
    engine.run(&mut ObservedLoad::new(requests), &mut |finished| {
        responses[finished.id as usize] = finished.completion.response();
    });
    Some(responses)
}

/// Issues each request after the completion that it followed in the trace. So as many are outstanding as were, whether the simulated disk
/// is faster or slower.
struct ObservedLoad<'a> {
    requests: &'a [ObservedRequest],
    /// The requests whose time is known, by it.
    ready: BinaryHeap<Reverse<(Instant, usize)>>,
    /// The first request that follows each, and the next one that follows the same.
    first: Vec<u32>,
    next: Vec<u32>,
    outstanding: usize,
}

/// No request.
const NONE: u32 = u32::MAX;

impl<'a> ObservedLoad<'a> {
    fn new(requests: &'a [ObservedRequest]) -> ObservedLoad<'a> {
        let (first, next) = (vec![NONE; requests.len()], vec![NONE; requests.len()]);
        let mut load = ObservedLoad { requests, ready: BinaryHeap::new(), first, next, outstanding: 0 };
        let Some(start) = requests.first().copied() else { return load };
        for (place, request) in requests.iter().enumerate().rev() {
            match request.after.and_then(|(number, _)| number.checked_sub(start.number)) {
                Some(before) => {
                    load.next[place] = load.first[before];
                    load.first[before] = place as u32;
                }
                None => load.ready.push(Reverse((Instant::ZERO + (request.issued - start.issued), place))),
            }
        }
        load
    }
}

impl Load for ObservedLoad<'_> {
    fn poll(&mut self, now: Instant) -> Poll {
        match self.ready.peek().copied() {
            Some(Reverse((at, place))) if at <= now => {
                self.ready.pop();
                self.outstanding += 1;
                Poll::Issue(Issue::new(0, self.requests[place].request, place as u64))
            }
            Some(Reverse((at, _))) => Poll::Later(at),
            None if self.outstanding > 0 => Poll::Waiting,
            None => Poll::Done,
        }
    }

    fn handle_completion(&mut self, now: Instant, id: u64) {
        self.outstanding -= 1;
        let mut place = self.first[id as usize];
        while place != NONE {
            let gap = self.requests[place as usize].after.map_or(Nanos::ZERO, |(_, gap)| gap);
            self.ready.push(Reverse((now + gap, place as usize)));
            place = self.next[place as usize];
        }
    }
}
