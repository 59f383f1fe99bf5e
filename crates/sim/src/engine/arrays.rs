//! How the engine turns arrays: asks fork, go on phase by phase, and spares are filled.

use super::{Asked, Asker, Engine};
use crate::device::Completion;
use crate::events::Events;
use crate::host::Piece;
use crate::volume::{Forks, Reach, Volume};
use headstack_model::{Nanos, Request};

impl Engine {
    /// When a device's pieces of an ask were asked.
    pub(super) fn issued(&self, ask: u32, device: u32) -> Nanos {
        let asked = &self.asked[ask as usize];
        match &self.volumes[asked.volume as usize] {
            Volume::Array(array) if asked.fork != Forks::NONE => {
                self.forks.asked_at(asked.fork, device, array)
            }
            _ => asked.issued,
        }
    }

    /// Begins the next step of filling a volume's spares.
    pub(super) fn rebuild(&mut self, volume: usize) {
        let place = self.volumes.len() + volume;
        self.background.set(place, Nanos::MAX);
        let request = Request::flush();
        let ask =
            self.insert(Asked { asker: Asker::Rebuild, ..self.asked(volume as u32, request, u32::MAX) });
        let piece = Piece { ask, request, source: u32::MAX, urgent: false, sync: false };
        let Engine { asked, volumes, stations, forks, touched, now, .. } = self;
        let Volume::Array(array) = &mut volumes[volume] else { unreachable!("a device has no spare") };
        let fork = forks.open(*now, piece);
        if array.plan_rebuild(*now, forks.plan_of(fork)).is_some() {
            let left = forks.ask_first(fork, &mut Reach { now: *now, array, stations, touched });
            (asked[ask as usize].fork, asked[ask as usize].left) = (fork, left);
        } else {
            forks.close(fork);
            self.free.push(ask);
        }
        self.settle_touched();
    }

    pub(super) fn end_rebuild(&mut self, volume: usize) {
        let place = self.volumes.len() + volume;
        let Volume::Array(array) = &mut self.volumes[volume] else { unreachable!("a device has no spare") };
        let bytes = self.stations[array.devices()[0] as usize].device().sector_bytes();
        let next = array.end_rebuild(self.now, bytes);
        self.background.set(place, next);
    }

    /// A piece of an array's ask came back: has done what waited for it. If nothing of the ask is left to come back, `last`
    /// becomes the account of all of it.
    #[inline(never)]
    pub(super) fn goes_on(&mut self, ask: u32, device: u32, last: &mut Completion) -> bool {
        let Engine { asked, volumes, stations, forks, touched, now, .. } = self;
        let asked = &mut asked[ask as usize];
        let fork = asked.fork;
        let Volume::Array(array) = &volumes[asked.volume as usize] else {
            unreachable!("what forks is an array")
        };
        let mut reach = Reach { now: *now, array, stations, touched };
        asked.left += forks.returned(fork, device, last.request.op, &mut reach);
        if asked.left == 0 {
            forks.account(fork, last);
            asked.left = forks.ask_next(fork, &mut reach);
        }
        if asked.left == 0 {
            (last.submitted, last.parts) = (asked.issued, forks.close(fork));
        }
        asked.left > 0
    }

    #[inline(never)]
    pub(super) fn fork_array(&mut self, volume: u32, piece: Piece) {
        let Engine { asked, volumes, stations, forks, touched, now, .. } = self;
        let Volume::Array(array) = &mut volumes[volume as usize] else {
            unreachable!("a device does not fork")
        };
        let fork = forks.open(*now, piece);
        array.plan(&piece.request, stations, forks.plan_of(fork));
        let asked = &mut asked[piece.ask as usize];
        let mut reach = Reach { now: *now, array, stations, touched };
        (asked.fork, asked.left) = (fork, forks.ask_first(fork, &mut reach));
        assert!(asked.left > 0, "an array has something to do for {:?}", piece.request);
    }
}

/// When volumes do something by themselves: page caches and nodes not yet, arrays with spares to fill at once.
pub(super) fn background(volumes: &[Volume]) -> Events {
    let mut events = Events::new(3 * volumes.len());
    for (index, volume) in volumes.iter().enumerate() {
        if matches!(volume, Volume::Array(array) if array.rebuilt().1 > 0) {
            events.set(volumes.len() + index, Nanos::ZERO);
        }
    }
    events
}
