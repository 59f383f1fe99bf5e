//! The engine's part with devices behind controllers: it carries commands from the host's queues to a controller, its
//! transfers to the devices, and what has ended back.

use super::{Engine, Finished, Observer};
use crate::controller::{Controller, ControllerActivity, ControllerSetup, Wish};
use crate::device::Completion;
use crate::events::Events;
use crate::host::{HostError, HostQueueSpec, HostSpec, Piece};
use headstack_model::Request;
use headstack_workload::Load;

/// A controller and the numbers of the devices behind it.
#[derive(Debug)]
pub(super) struct Behind {
    controller: Controller,
    devices: Vec<u32>,
}

impl Engine {
    /// Puts devices behind a controller; to be called before the first run.
    ///
    /// *Errors:* a key of the queue before the controller, or of its own, is wrong.
    pub(crate) fn put_behind(
        &mut self,
        setup: &ControllerSetup<'_>,
        host: &HostSpec,
    ) -> Result<(), HostError> {
        let ControllerSetup { spec, drives, cache } = setup;
        let number = self.controllers.len() as u32;
        let (order, merge, depth) = (spec.order.clone(), spec.merge, spec.drive_depth);
        let queue = HostQueueSpec { order, merge, depth, ..HostQueueSpec::default() };
        let depth = spec.queue_depth.map_or(usize::MAX, |depth| depth as usize);
        for device in drives {
            self.stations[*device as usize].put_behind(number, depth, &queue, host)?;
        }
        let sectors = drives.iter().map(|device| self.device(*device as usize).sectors()).collect();
        let controller = Controller::new(spec, sectors, *cache);
        self.controllers.push(Behind { controller, devices: drives.clone() });
        self.controller_events = Events::new(self.controllers.len());
        Ok(())
    }

    /// What the controller before a device has done; none where the device has none that does anything.
    pub fn controller(&self, device: usize) -> Option<&ControllerActivity> {
        let number = self.stations[device].controller()?;
        Some(self.controllers[number as usize].controller.activity())
    }

    /// What the cache of the controller before a device holds that is not on its drive: lines of its memory, or sectors of
    /// the drive that is the cache.
    pub fn controller_dirty(&self, device: usize) -> u64 {
        let number = self.stations[device].controller();
        number.map_or(0, |number| self.controllers[number as usize].controller.dirty())
    }

    /// Tells a controller what has come back of its transfers from a device behind it.
    pub(super) fn turn_behind<O: Observer + ?Sized>(
        &mut self,
        index: usize,
        number: usize,
        observer: &mut O,
    ) {
        let mut how = Completion::at_once(Request::flush(), self.now);
        while let Some(transfer) =
            self.stations[index].poll(self.now, &mut how, |command| observer.served(index as u32, command))
        {
            self.controllers[number].controller.transferred(self.now, transfer, &how);
            self.settle_controller(number);
        }
        self.settle(index);
        self.settle_touched();
    }

    /// Does what is due at a controller.
    pub(super) fn turn_controller<O: Observer + ?Sized>(
        &mut self,
        number: usize,
        load: &mut dyn Load,
        observer: &mut O,
    ) {
        self.controllers[number].controller.handle_timeout(self.now);
        self.settle_controller(number);
        for place in 0..self.controllers[number].devices.len() {
            let device = self.controllers[number].devices[place];
            let mut finished = Finished::on(device, Completion::at_once(Request::flush(), self.now));
            while let Some(ask) =
                self.stations[device as usize].poll_ended(self.now, &mut finished.completion)
            {
                if observer.sees_parts() {
                    observer.part(device, self.issued(ask, device), &finished.completion);
                }
                if self.finish(ask, &mut finished) {
                    load.handle_completion(self.now, finished.id);
                    observer.finished(&finished);
                }
                if self.touched.last() != Some(&device) {
                    self.touched.push(device);
                }
            }
        }
        self.settle_touched();
    }

    /// Makes the transfers that a controller wants, and hands on what it has ended.
    fn settle_controller(&mut self, number: usize) {
        let Engine { controllers, stations, touched, now, .. } = self;
        let Behind { controller, devices } = &mut controllers[number];
        while let Some(wish) = controller.poll() {
            match wish {
                Wish::Transfer { number, drive, request, urgent, sync } => {
                    let device = devices[drive as usize];
                    let piece = Piece { ask: number, request, source: u32::MAX, urgent, sync };
                    controller.sent(number, stations[device as usize].transfer(*now, piece));
                    if touched.last() != Some(&device) {
                        touched.push(device);
                    }
                }
                Wish::Ended { drive, completion } => {
                    stations[devices[drive as usize] as usize].end_command(completion);
                }
            }
        }
        let next = controller.next_event();
        self.controller_events.set(number, next);
    }

    /// Gives a controller the commands for one of its devices.
    pub(super) fn command(&mut self, index: usize, number: usize) {
        let Behind { controller, devices } = &mut self.controllers[number];
        let place = devices.iter().position(|device| *device as usize == index);
        let drive = place.expect("the device is behind the controller") as u32;
        let mut any = false;
        while let Some((tag, command)) = self.stations[index].take_command() {
            controller.submit(self.now, drive, tag, command);
            any = true;
        }
        if any {
            self.settle_controller(number);
        }
    }
}
