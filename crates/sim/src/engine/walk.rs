//! Carries requests down the tree from the load, and answers up.

use super::branch::{ChildPort, Effect, NodeId};
use super::out::{Forward, NO_KEY, Out};
use super::{Engine, FurtherForward, HELD, LOAD, NONE, RequestTicket, ServedPart};
use crate::layer::{Completed, Forwarded, Layer, Submission};
use crate::link::{HostLink, ProcessorWork, WorkKind};
use crate::observe::{Finished, Observer};
use crate::os::{DeviceQueue, Durability};
use headstack_model::{Instant, Nanos, Request};
use headstack_workload::{Issue, Load, Poll};

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
            forwarded_by: NONE,
            forwarded_key: 0,
            forwarded_again: NONE,
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

    /// Submits a request to a layer. If the layer forwards it, the request keeps its ticket.
    #[inline(never)]
    fn submit_to_branch(&mut self, node: NodeId, port: u32, mut submission: Submission) {
        let (number, now) = (node as usize - self.tree.devices.len(), self.now);
        self.tree.branches[number].in_flight += 1;
        let (layer, mut out) = self.tree.layer_with_sink(number, port);
        layer.submit(now, submission, &mut out);
        let (forward, gathers) = (out.forward, out.gathers);
        if let Some(Forward { child, lbn, key }) = forward {
            self.record_forward(number, key, &submission);
            submission.request.lbn = lbn;
            let ChildPort { node, port } = self.tree.branches[number].children[child as usize];
            self.submit(node, port, submission);
        }
        self.end_call(number, gathers);
    }

    #[inline]
    fn record_forward(&mut self, number: usize, key: u32, submission: &Submission) {
        let ticket = &mut self.tickets[submission.id as usize];
        let by = number as u32;
        if ticket.forwarded_by == NONE {
            (ticket.forwarded_by, ticket.forwarded_key) = (by, key);
        } else {
            let previous = ticket.forwarded_again;
            let further = FurtherForward { by, key, lbn: submission.request.lbn, previous };
            ticket.forwarded_again = self.forwards.insert(further) as u32;
        }
    }

    /// Carries out a layer's effects.
    #[inline]
    fn carry_out(&mut self, number: usize) {
        if !self.tree.branches[number].effects.is_empty() {
            self.carry_out_all(number);
        }
    }

    #[inline(never)]
    fn carry_out_all(&mut self, number: usize) {
        let now = self.now;
        while let Some(effect) = self.tree.branches[number].effects.pop_front() {
            match effect {
                Effect::Down { child, submission } => self.send(number, child, child, submission),
                Effect::ForwardHeld { child, submission } => self.send(number, child, HELD, submission),
                Effect::Up(answer) => self.answer(number, answer),
                Effect::Compute { id, work } => {
                    let until = self.links.run(now, &work);
                    if self.call(number, |layer, out| layer.computed(now, id, until, out)) {
                        self.touch(self.tree.node_of(number));
                    }
                }
            }
        }
    }

    /// Sends a request of a layer to a child; its ticket says `to`.
    fn send(&mut self, number: usize, child: u32, to: u32, submission: Submission) {
        let ChildPort { node, port } = self.tree.branches[number].children[child as usize];
        let Submission { id, request, source, .. } = submission;
        let (from, id) = (number as u32, u64::from(id));
        let id = self.tickets.insert(RequestTicket {
            issued: self.now,
            request,
            id,
            from,
            to,
            source,
            forwarded_by: NONE,
            forwarded_key: 0,
            forwarded_again: NONE,
        });
        let submission = Submission { id: id as u32, ..submission };
        if self.tree.branches[number].is_durability() {
            self.deliver(node, port, submission)
        } else {
            self.submit(node, port, submission)
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
        let ticket = self.tickets.remove(ticket as usize);
        let RequestTicket { issued, request, id, from, to, source, .. } = ticket;
        let completion = &mut self.answered.completion;
        completion.parts.queued += completion.submitted - issued;
        (completion.submitted, completion.request) = (issued, request);
        if ticket.forwarded_by != NONE {
            self.note_forwards(&ticket);
        }
        if from != LOAD {
            let Finished { completion, cached, .. } = self.answered;
            let answer = Completed { id: id as u32, completion, cached };
            match to {
                HELD => self.answer(from as usize, answer),
                _ => self.complete(from as usize, to, &answer),
            }
            return false;
        }
        (self.answered.volume, self.answered.id, self.answered.source) = (to, id, source);
        self.outstanding -= 1;
        true
    }

    /// Shows the answer to a forwarded request to the layers that forwarded it, the last one first.
    #[inline]
    fn note_forwards(&mut self, ticket: &RequestTicket) {
        let RequestTicket { request, forwarded_by, forwarded_key, forwarded_again, .. } = *ticket;
        let mut next = forwarded_again;
        while next != NONE {
            let FurtherForward { by, key, lbn, previous } = self.forwards.remove(next as usize);
            self.note_forward(by as usize, key, Request { lbn, ..request });
            next = previous;
        }
        self.note_forward(forwarded_by as usize, forwarded_key, request);
    }

    #[inline]
    fn note_forward(&mut self, number: usize, key: u32, request: Request) {
        self.tree.branches[number].in_flight -= 1;
        if key == NO_KEY {
            return;
        }
        let (layer, mut out) = self.tree.layer_with_sink(number, 0);
        layer.note(self.now, &Forwarded { key, request, completion: &self.answered.completion }, &mut out);
        let gathers = out.gathers;
        if gathers || !self.tree.branches[number].effects.is_empty() {
            self.carry_out_during_answer(number, gathers);
        }
    }

    /// Carries out a layer's effects, which may answer other requests, and keeps the answer on its way.
    #[inline(never)]
    fn carry_out_during_answer(&mut self, number: usize, gathers: bool) {
        let answered = self.answered;
        self.end_call(number, gathers);
        self.answered = answered;
    }

    #[inline(never)]
    fn complete(&mut self, number: usize, child: u32, answer: &Completed) {
        let now = self.now;
        let gathers = self.call(number, |layer, out| layer.complete(now, child, answer, out));
        self.end_call(number, gathers);
    }

    /// Calls a layer, whose effects wait to be carried out. Returns whether it is to be woken after all requests of this time.
    #[inline(always)]
    fn call(&mut self, number: usize, call: impl FnOnce(&mut dyn Layer, &mut Out<'_>)) -> bool {
        let (layer, mut out) = self.tree.layer_with_sink(number, 0);
        call(layer, &mut out);
        out.gathers
    }

    /// Carries out a layer's effects. The nodes that they touch settle after the layer itself.
    #[inline]
    fn end_call(&mut self, number: usize, gathers: bool) {
        self.carry_out(number);
        if gathers {
            self.touch(self.tree.node_of(number));
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
        let number = self.tree.branch_at(event);
        self.serving = self.tree.branches[number].device;
        self.tree.branch_events.set(event, Instant::MAX);
        self.wake(number);
        self.hand_back(load, observer);
        self.settle_touched();
    }

    /// Makes a node send down what may be sent now, and records when to call it again.
    #[inline]
    pub(super) fn settle(&mut self, node: NodeId) {
        let index = node as usize;
        let Some(device) = self.tree.devices.get(index) else {
            return self.wake(index - self.tree.devices.len());
        };
        if !device.is_independent() {
            if device.chooses_late() {
                self.late.defer(node, self.now);
            } else {
                self.with_links(index, |device, link, now| device.settle(now, link));
            }
        }
        self.tree.arm_groups.report_seek(node, &mut self.tree.devices);
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
            self.tree.arm_groups.report_seek(node, &mut self.tree.devices);
            self.tree.device_events.set(index, self.tree.devices[index].next_event(self.now));
        }
    }

    #[inline(never)]
    fn wake(&mut self, number: usize) {
        let now = self.now;
        let gathers = self.call(number, |layer, out| layer.wake(now, out));
        self.end_call(number, gathers);
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
