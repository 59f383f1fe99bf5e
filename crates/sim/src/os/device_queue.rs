//! A device and the queue in front of it: the host's, or that of the device's controller.

use super::queue::TargetQueue;
use super::target::LinkedDevice;
use super::{HostQueueSpec, HostSpec};
use crate::device::{Completion, Device};
use crate::layer::Submission;
use crate::link::{HostLink, PortSharing};
use headstack_model::spec::Fault;
use headstack_model::{Instant, Lbn};
use headstack_policy::Guard;
use headstack_policy::order::Order;

#[derive(Debug)]
pub(crate) struct DeviceQueue {
    device: Device,
    queue: TargetQueue,
    /// Whether the device shares links. Only settling and handling what is due have these as a parameter.
    shares: bool,
    behind_controller: bool,
    chooses_late: bool,
}

impl DeviceQueue {
    /// A device without a host: requests that it cannot accept wait in order of arrival.
    pub(crate) fn plain(device: Device) -> DeviceQueue {
        let queue = TargetQueue::plain(&device);
        DeviceQueue { device, queue, shares: false, behind_controller: false, chooses_late: false }
    }

    /// A device behind a host's queue.
    ///
    /// *Errors:* a key of the queue is invalid.
    pub(crate) fn new(device: Device, host: &HostSpec) -> Result<DeviceQueue, Fault> {
        let queue = TargetQueue::new(&host.queue.of_arm(), &device)?;
        Ok(DeviceQueue { device, queue, shares: false, behind_controller: false, chooses_late: false })
    }

    /// Replaces the host's queue with a controller's.
    ///
    /// *Errors:* a key of the queue is wrong.
    pub(crate) fn put_behind_controller(
        &mut self,
        queue: &HostQueueSpec,
        chooses_late: bool,
    ) -> Result<(), Fault> {
        self.queue = TargetQueue::new(queue, &self.device)?;
        (self.behind_controller, self.chooses_late) = (true, chooses_late);
        Ok(())
    }

    /// Whether its controller chooses after everything else that happens at the same time.
    #[inline]
    pub(crate) fn chooses_late(&self) -> bool {
        self.chooses_late
    }

    pub(crate) fn is_behind_controller(&self) -> bool {
        self.behind_controller
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn device_mut(&mut self) -> &mut Device {
        &mut self.device
    }

    pub(crate) fn guard(&self) -> Option<&Guard> {
        self.queue.guard()
    }

    pub(crate) fn set_order(&mut self, order: Box<dyn Order>) -> Result<(), Fault> {
        self.queue.set_order(order)
    }

    pub(crate) fn outstanding(&self) -> usize {
        self.queue.len() + self.device.outstanding()
    }

    pub(crate) fn cylinders_to(&self, lbn: Lbn) -> u32 {
        self.device.cylinders_to(lbn)
    }

    /// Makes the device share links. Requests then reach it only when the queue settles, because settling has the links.
    pub(crate) fn share(&mut self, sharing: PortSharing) {
        self.shares = sharing.is_shared;
        self.device.share(sharing);
    }

    /// Handles that the device has won its bus.
    pub(crate) fn handle_bus(&mut self, now: Instant, link: &mut HostLink<'_>) {
        self.device.handle_bus(link, now);
    }

    /// Accepts a request. [`DeviceQueue::settle`] must follow at the same time.
    #[inline(always)]
    pub(crate) fn submit(&mut self, now: Instant, submission: Submission) {
        self.queue.submit(now, submission, &mut self.device, !self.shares && !self.chooses_late);
    }

    #[inline(always)]
    pub(crate) fn settle(&mut self, now: Instant, link: &mut HostLink<'_>) {
        if self.shares {
            self.queue.settle(now, &mut LinkedDevice { device: &mut self.device, link })
        } else {
            self.queue.settle(now, &mut self.device)
        }
    }

    #[inline]
    pub(crate) fn handle_timeout(&mut self, now: Instant, link: &mut HostLink<'_>) {
        self.device.advance(link, now);
    }

    /// Whether only the device has anything to do until a command completes: no controller, no shared link, nothing that may be sent.
    #[inline]
    pub(crate) fn is_independent(&self) -> bool {
        self.queue.is_blocked(&self.device) && !self.shares && !self.behind_controller
    }

    /// Whether the request submitted last waits here until a command completes, so that nothing else has changed.
    #[inline]
    pub(crate) fn only_holds(&self) -> bool {
        self.queue.holds() && self.is_independent()
    }

    /// As [`Device::run_to_completion`], for an independent device.
    #[inline]
    pub(crate) fn run_to_completion(&mut self, now: Instant, until: Instant) -> Instant {
        self.device.run_to_completion(now, until)
    }

    /// The number of the next completed request, and its completion in `ended`. Calls `served` with each command of the device.
    /// [`DeviceQueue::settle`] must follow once there are no more.
    #[inline]
    pub(crate) fn poll(
        &mut self,
        now: Instant,
        ended: &mut Completion,
        served: impl FnMut(&Completion),
    ) -> Option<u32> {
        self.queue.poll(now, &mut self.device, ended, served)
    }

    /// When, from `now` on, the queue or its device has something to do; `Instant::MAX` when never.
    #[inline(always)]
    pub(crate) fn next_event(&self, now: Instant) -> Instant {
        if self.device.has_completions() {
            return now;
        }
        let device = self.device.poll_timeout().unwrap_or(Instant::MAX);
        device.min(self.queue.next_event(&self.device))
    }
}
