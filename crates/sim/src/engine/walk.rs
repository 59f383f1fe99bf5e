//! Carries requests down the tree from the load, and answers up.

use super::tree::{Branch, ChildPort, LayerTree, NodeId};
use super::{Engine, LOAD, NOT_PASSED, RequestTicket, ServedPart};
use crate::layer::{Below, Completed, Effect, PassedRequest, Submission};
use crate::link::{HostLink, ProcessorWork, WorkKind};
use crate::observe::{Finished, Observer};
use crate::os::{DeviceQueue, Durability};
use headstack_model::{Instant, Lbn, Nanos, Request};
use headstack_workload::{Issue, Load, Poll};

struct Children<'a> {
    devices: &'a [DeviceQueue],
    branches: &'a [Branch],
    children: &'a [ChildPort],
}

impl Below for Children<'_> {
    fn outstanding(&self, child: u32) -> usize {
        let node = self.children[child as usize].node as usize;
        let Some(number) = node.checked_sub(self.devices.len()) else {
            return self.devices[node].outstanding();
        };
        let Branch { layer, in_flight, .. } = &self.branches[number];
        layer.as_ref().and_then(|layer| layer.outstanding()).unwrap_or(*in_flight)
    }

    fn cylinders_to(&self, child: u32, lbn: Lbn) -> u32 {
        let node = self.children[child as usize].node as usize;
        let device =
            node.checked_sub(self.devices.len()).map_or(node, |number| self.branches[number].device as usize);
        self.devices[device].cylinders_to(lbn)
    }

    fn is_dead(&self, child: u32, now: Instant) -> bool {
        let node = self.children[child as usize].node as usize;
        let device =
            node.checked_sub(self.devices.len()).map_or(node, |number| self.branches[number].device as usize);
        self.devices[device].device().has_died(now)
    }
}

impl Engine {
    pub(super) fn feed<O: Observer + ?Sized>(&mut self, load: &mut dyn Load, observer: &mut O) {
        loop {
            self.wanted = loop {
                match load.poll(self.now) {
                    Poll::Issue(issue) => {
                        observer.issued(self.now, &issue, load);
                        self.issue(&issue);
                    }
                    Poll::Compute { id, time } => self.compute(load, id, time),
                    Poll::Later(at) => break at,
                    Poll::Waiting => break Instant::MAX,
                    Poll::Done => {
                        self.done = true;
                        break Instant::MAX;
                    }
                }
            };
            self.settle_touched();
            if !self.hand_back(load, observer) {
                return;
            }
        }
    }

    #[inline]
    fn issue(&mut self, issue: &Issue) {
        let Issue { device: volume, request, id, source, urgent, idle, limit, direct, advice, resets_zone } =
            *issue;
        // Field by field: a copy in wide words would wait for the load's narrow stores.
        let Request { op, lbn, sectors, fua } = request;
        let request = Request { op, lbn, sectors, fua };
        let ticket = RequestTicket {
            issued: self.now,
            request,
            id,
            from: LOAD,
            to: volume,
            source,
            passed_by: NOT_PASSED,
            passed_key: 0,
        };
        let id = self.tickets.insert(ticket) as u32;
        (self.outstanding, self.done) = (self.outstanding + 1, false);
        let root = self.tree.volumes[volume as usize].root;
        let common = Submission::new(id, request);
        self.submit(
            root,
            0,
            Submission { source, urgent, idle, limit, direct, advice, resets_zone, ..common },
        );
    }

    #[inline(always)]
    fn submit(&mut self, node: NodeId, port: u32, submission: Submission) {
        if Durability::concerns(&submission.request)
            && let Some(node) = self.tree.durability_of(node)
        {
            return self.submit_to_branch(node, 0, submission);
        }
        self.deliver(node, port, submission);
    }

    /// Submits a request to a node itself, whatever the host does for durability there.
    #[inline(always)]
    fn deliver(&mut self, node: NodeId, port: u32, submission: Submission) {
        let Some(device) = self.tree.devices.get_mut(node as usize) else {
            return self.submit_to_branch(node, port, submission);
        };
        device.submit(self.now, submission);
        if !device.only_holds() {
            self.touch(node);
        }
    }

    #[inline(never)]
    fn submit_to_branch(&mut self, node: NodeId, port: u32, mut submission: Submission) {
        let number = node as usize - self.tree.devices.len();
        if let Some(ChildPort { node, port }) = self.pass_down(number, &mut submission) {
            return self.submit(node, port, submission);
        }
        self.submit_to_layer(node, port, submission);
    }

    /// Submits a request that is not passed down. Out of line, so that a request that is passed down saves few registers.
    #[inline(never)]
    fn submit_to_layer(&mut self, node: NodeId, port: u32, submission: Submission) {
        let number = node as usize - self.tree.devices.len();
        let branch = &mut self.tree.branches[number];
        let mut layer = branch.layer.take().expect("a layer takes one request at a time");
        let LayerTree { devices, branches, .. } = &self.tree;
        let children = &branches[number].children;
        layer.submit(self.now, port, submission, &Children { devices, branches, children });
        let gathers = layer.gathers();
        self.tree.branches[number].layer = Some(layer);
        if gathers {
            self.touch(node);
        }
        self.drain(number);
    }

    /// Carries out a layer's effects, and records when to call it again.
    pub(super) fn drain(&mut self, number: usize) {
        let now = self.now;
        while let Some(effect) = self.tree.layer(number).poll(now) {
            match effect {
                Effect::Down { child, submission } => self.send(number, child, submission),
                Effect::Up(answer) => self.answer(number, answer),
                Effect::Compute { id, work } => {
                    let until = self.links.run(now, &work);
                    self.tree.layer(number).computed(now, id, until);
                }
            }
        }
        self.tree.schedule(number);
    }

    fn send(&mut self, number: usize, child: u32, submission: Submission) {
        let ChildPort { node, port } = self.tree.branches[number].children[child as usize];
        let Submission { id, request, source, .. } = submission;
        let (from, id) = (number as u32, u64::from(id));
        let id = self.tickets.insert(RequestTicket {
            issued: self.now,
            request,
            id,
            from,
            to: child,
            source,
            passed_by: NOT_PASSED,
            passed_key: 0,
        });
        let submission = Submission { id: id as u32, ..submission };
        match self.tree.branches[number].is_durability() {
            true => self.deliver(node, port, submission),
            false => self.submit(node, port, submission),
        }
        if (node as usize) < self.tree.devices.len() {
            self.touch(node);
        }
    }

    fn answer(&mut self, number: usize, answer: Completed) {
        let branch = &mut self.tree.branches[number];
        branch.in_flight -= 1;
        let (device, is_port) = (branch.device, branch.is_port());
        if is_port {
            self.serving = device;
            let issued = self.tickets[answer.id as usize].issued;
            let part = ServedPart { device, issued, completion: answer.completion };
            self.parts.iter_mut().for_each(|parts| parts.push(part));
        }
        let cached = answer.cached;
        self.answered = Finished { cached, ..Finished::on(self.serving, answer.completion) };
        if self.finish(answer.id) {
            self.returned.push_back(self.answered);
        }
    }

    /// Passes the answer to a request, which is in `answered`, to its sender. Returns whether that was the load.
    #[inline]
    fn finish(&mut self, ticket: u32) -> bool {
        let RequestTicket { issued, request, id, from, to, source, passed_by, passed_key } =
            self.tickets.remove(ticket as usize);
        let completion = &mut self.answered.completion;
        completion.parts.queued += completion.submitted - issued;
        (completion.submitted, completion.request) = (issued, request);
        if passed_by != NOT_PASSED {
            self.passed_up(passed_by as usize, passed_key);
        }
        if from != LOAD {
            let Finished { completion, cached, .. } = self.answered;
            self.complete(from as usize, to, &Completed { id: id as u32, completion, cached });
            return false;
        }
        (self.answered.volume, self.answered.id, self.answered.source) = (to, id, source);
        self.outstanding -= 1;
        true
    }

    /// Counts a request as in flight at a branch. If the branch's layer passes it down, sets its first block there and returns the child. The
    /// request keeps its ticket.
    #[inline]
    fn pass_down(&mut self, number: usize, submission: &mut Submission) -> Option<ChildPort> {
        let branch = &mut self.tree.branches[number];
        branch.in_flight += 1;
        let ticket = &mut self.tickets[submission.id as usize];
        if ticket.passed_by != NOT_PASSED {
            return None;
        }
        let layer = branch.layer.as_deref_mut().expect("a layer takes one request at a time");
        let PassedRequest { key, lbn } = layer.pass_down(self.now, &submission.request)?;
        (ticket.passed_by, ticket.passed_key) = (number as u32, key);
        submission.request.lbn = lbn;
        Some(branch.children[0])
    }

    /// Returns the answer to a request that a layer passed down.
    #[inline]
    fn passed_up(&mut self, number: usize, key: u32) {
        let branch = &mut self.tree.branches[number];
        branch.in_flight -= 1;
        let layer = branch.layer.as_deref_mut().expect("the layer is taking no request");
        let completion = &self.answered.completion;
        if layer.passed_up(self.now, key, &completion.request, completion) {
            self.drain_during_answer(number);
        }
    }

    /// Drains a layer, which may answer other requests, and keeps the answer on its way.
    #[inline(never)]
    fn drain_during_answer(&mut self, number: usize) {
        let answered = self.answered;
        self.drain(number);
        self.answered = answered;
    }

    #[inline(never)]
    fn complete(&mut self, number: usize, child: u32, answer: &Completed) {
        let now = self.now;
        let layer = self.tree.layer(number);
        layer.complete(now, child, answer);
        let gathers = layer.gathers();
        self.drain(number);
        if gathers {
            self.touch((self.tree.devices.len() + number) as u32);
        }
    }

    /// Passes the completions since the last call to the load and the observer; returns whether any was of the load's requests.
    #[inline(always)]
    pub(super) fn hand_back<O: Observer + ?Sized>(&mut self, load: &mut dyn Load, observer: &mut O) -> bool {
        // Devices that the load reaches without a layer hand their completions back themselves.
        (self.parts.is_some() || !self.returned.is_empty()) && self.hand_back_all(load, observer)
    }

    #[inline(never)]
    fn hand_back_all<O: Observer + ?Sized>(&mut self, load: &mut dyn Load, observer: &mut O) -> bool {
        for ServedPart { device, issued, completion } in
            self.parts.iter_mut().flat_map(|parts| parts.drain(..))
        {
            observer.part(device, issued, &completion);
        }
        let mut any = false;
        while let Some(finished) = self.returned.pop_front() {
            load.handle_completion(self.now, finished.id);
            observer.finished(&finished);
            any = true;
        }
        any
    }

    /// Handles everything due at one device, and the device's own work after that up to `until`, if nothing else is due before;
    /// returns whether any of the load's requests completed.
    pub(super) fn turn_device<O: Observer + ?Sized>(
        &mut self,
        index: usize,
        until: Instant,
        load: &mut dyn Load,
        observer: &mut O,
    ) -> bool {
        if self.tree.devices[index].is_independent() {
            // Its own work affects nothing else until a command completes, or something else is due.
            let until = until.min(self.due_elsewhere(index).saturating_sub(Nanos(1)));
            self.now = self.tree.devices[index].run_to_completion(self.now, until);
        } else {
            self.with_links(index, |device, link, now| device.handle_timeout(now, link));
        }
        if !self.tree.devices[index].device().has_completions() {
            self.settle(index as u32);
            return false;
        }
        let mut any = false;
        while let Some(ticket) =
            self.tree.devices[index].poll(self.now, &mut self.answered.completion, |command| {
                observer.served(index as u32, command)
            })
        {
            if self.parts.is_some() && !self.tree.devices[index].is_behind_controller() {
                observer.part(index as u32, self.tickets[ticket as usize].issued, &self.answered.completion);
            }
            self.serving = index as u32;
            (self.answered.device, self.answered.cached) = (index as u32, false);
            if self.finish(ticket) {
                any = true;
                load.handle_completion(self.now, self.answered.id);
                observer.finished(&self.answered);
            } else {
                any |= self.hand_back(load, observer);
            }
        }
        if any && self.tree.devices[index].is_independent() {
            // No request waits for the device: it settles once, with what the load issues next.
            self.settle_touched();
            self.touch(index as u32);
        } else {
            self.settle(index as u32);
            self.settle_touched();
        }
        any
    }

    pub(super) fn turn_branch<O: Observer + ?Sized>(
        &mut self,
        event: usize,
        load: &mut dyn Load,
        observer: &mut O,
    ) {
        let (number, now) = (self.tree.branch_at(event), self.now);
        self.serving = self.tree.branches[number].device;
        self.tree.layer(number).handle_timeout(now);
        self.drain(number);
        self.hand_back(load, observer);
        self.settle_touched();
    }

    /// Makes a node send down what may be sent now, and records when to call it again.
    #[inline]
    pub(super) fn settle(&mut self, node: NodeId) {
        let index = node as usize;
        let Some(device) = self.tree.devices.get(index) else {
            return self.settle_branch(index - self.tree.devices.len());
        };
        if !device.is_independent() {
            if device.chooses_late() {
                self.late.defer(node, self.now);
            } else {
                self.with_links(index, |device, link, now| device.settle(now, link));
            }
        }
        self.tree.report_seek(node);
        self.tree.device_events.set(index, self.tree.devices[index].next_event(self.now));
    }

    #[cold]
    fn compute(&mut self, load: &mut dyn Load, id: u64, time: Nanos) {
        let until = self.links.run(self.now, &ProcessorWork::new(WorkKind::Program, time));
        load.handle_computed(self.now, id, until);
    }

    /// Makes the controllers that choose late send down what may be sent now.
    #[cold]
    pub(super) fn settle_late(&mut self) {
        for node in self.late.drain() {
            let index = node as usize;
            self.with_links(index, |device, link, now| device.settle(now, link));
            self.tree.report_seek(node);
            self.tree.device_events.set(index, self.tree.devices[index].next_event(self.now));
        }
    }

    #[inline(never)]
    fn settle_branch(&mut self, number: usize) {
        let now = self.now;
        self.tree.layer(number).settle(now);
        self.drain(number);
    }

    pub(super) fn settle_touched(&mut self) {
        while let Some(node) = self.touched.pop() {
            self.settle(node);
        }
    }

    #[inline]
    fn touch(&mut self, node: NodeId) {
        if self.touched.last() != Some(&node) {
            self.touched.push(node);
        }
    }

    /// Calls the device that has won its bus.
    pub(super) fn turn_links(&mut self) {
        if let Some(device) = self.links.arbitrate(self.now) {
            self.with_links(device as usize, |device, link, now| device.handle_bus(now, link));
            self.settle(device);
        }
    }

    #[inline]
    pub(super) fn with_links<R>(
        &mut self,
        index: usize,
        act: impl FnOnce(&mut DeviceQueue, &mut HostLink<'_>, Instant) -> R,
    ) -> R {
        act(&mut self.tree.devices[index], &mut self.links.host_link(index), self.now)
    }
}
