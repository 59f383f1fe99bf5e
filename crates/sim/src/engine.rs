//! The engine: moves time from event to event.
//!
//! A load asks *volumes*. Its request goes to the volume's page cache, if there is one, and ends there; or it becomes an
//! ask, as the page cache's own transfers do, which forks into one piece or more, each on one device, and ends with its
//! last piece. Before that it may pass a storage node ([`crate::node`]), which makes commands of its own of many. On the way to
//! a device a piece passes the host's queue, which may split it further or merge it with others. What a volume is, and how asks fork, is told in [`crate::volume`].
//!
//! Modelled: any number of devices, each behind a queue of the host, alone or in arrays. Not modelled: time that the host
//! itself needs, but for what transfers cost its processor ([`crate::link`]).

mod arrays;
mod behind;
mod lend;
mod media;
mod nodes;
mod time;

use crate::device::{Completion, Device, Outcome};
use crate::events::Events;
use crate::host::{HostError, HostSpec, PageCache, PageCacheActivity, Piece, Station, Wish};
use crate::link::Links;
use crate::node::Node;
use crate::observe::{Finished, Observer};
use crate::volume::{ArrayVolume, Forks, Volume};
use arrays::background;
use headstack_model::{Nanos, Op, Request};
use headstack_policy::Guard;
use headstack_policy::order::Order;
use headstack_workload::{Issue, Load, Poll};

use behind::Behind;

/// Who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asker {
    Load,
    PageCache,
    /// The node before a volume.
    Node,
    /// An array that fills its spares.
    Rebuild,
}

/// A load's request that is under way, a transfer of a page cache, a command of a node, or a step of filling spares.
#[derive(Clone, Copy, Debug)]
struct Asked {
    issued: Nanos,
    request: Request,
    /// The load's number, or the page cache's or the node's.
    id: u64,
    asker: Asker,
    volume: u32,
    source: u32,
    /// Pieces that have not come back.
    left: u32,
    /// What is known of it beside, where it is an array's.
    fork: u32,
    /// How the worst piece ended.
    outcome: Outcome,
}

/// Turns devices, and what stands before them, by a time that it is told or runs through.
#[derive(Debug)]
pub struct Engine {
    stations: Vec<Station>,
    /// What devices share on their way to the host, while none of them has it.
    links: Option<Box<Links>>,
    events: Events,
    /// What the load asks, by number.
    volumes: Vec<Volume>,
    forks: Forks,
    /// The page cache of each volume that has one.
    caches: Vec<Option<Box<PageCache>>>,
    /// The node before each volume that has one.
    nodes: Vec<Option<Box<Node>>>,
    /// What happens by itself while a load runs: of the page cache of each volume, behind those of its spares, and behind
    /// these of its node.
    background: Events,
    /// Whether requests that ask to pass by a page cache go through it.
    buffer_direct: bool,
    controllers: Vec<Behind>,
    controller_events: Events,
    asked: Vec<Asked>,
    free: Vec<u32>,
    /// Stations that got something and were not looked at since.
    touched: Vec<u32>,
    /// Requests of the load that are under way.
    outstanding: usize,
    /// Whether the load has nothing more to ask.
    done: bool,
    /// When the load wants to be asked again.
    wanted: Nanos,
    /// Whether the power is gone.
    dark: bool,
    now: Nanos,
}

impl Engine {
    /// Room for so many requests and transfers under way before more is allocated.
    const AT_ONCE: usize = 1024;

    /// An engine at time 0 with these devices, each a volume, and a host that holds what they cannot take.
    pub fn new(devices: Vec<Device>) -> Engine {
        let volumes = (0..devices.len() as u32).map(Volume::Device).collect();
        Engine::with_stations(devices.into_iter().map(Station::plain).collect(), volumes)
    }

    /// An engine at time 0 with these devices, each a volume, behind a host.
    ///
    /// *Errors:* a key of the host is wrong.
    pub fn with_host(devices: Vec<Device>, host: &HostSpec) -> Result<Engine, HostError> {
        Engine::with_arrays(devices, Vec::new(), host)
    }

    /// An engine at time 0 with these devices behind a host. Each array is a volume; devices that no array has are volumes,
    /// too, and the first ones.
    ///
    /// *Errors:* a key of the host is wrong.
    pub fn with_arrays(
        devices: Vec<Device>,
        arrays: Vec<ArrayVolume>,
        host: &HostSpec,
    ) -> Result<Engine, HostError> {
        host.check()?;
        let mut bare = vec![true; devices.len()];
        for device in arrays.iter().flat_map(ArrayVolume::devices) {
            assert!(std::mem::take(&mut bare[*device as usize]), "device {device} is in one array");
        }
        let bare = (0..devices.len() as u32).filter(|device| bare[*device as usize]).map(Volume::Device);
        let volumes: Vec<Volume> =
            bare.chain(arrays.into_iter().map(|array| Volume::Array(Box::new(array)))).collect();
        let cache = |volume: &Volume| {
            let device = &devices[volume.first_device() as usize];
            let spec = host.page_cache.as_ref()?;
            Some(Box::new(PageCache::new(spec, volume.sectors(device), device.sector_bytes())))
        };
        let caches = volumes.iter().map(cache).collect();
        let stations = devices.into_iter().map(|device| Station::new(device, host));
        let engine = Engine::with_stations(stations.collect::<Result<_, _>>()?, volumes);
        let buffer_direct = host.page_cache.as_ref().is_some_and(|spec| spec.buffer_direct);
        Ok(Engine { caches, buffer_direct, ..engine })
    }

    fn with_stations(stations: Vec<Station>, volumes: Vec<Volume>) -> Engine {
        Engine {
            events: Events::new(stations.len()),
            caches: volumes.iter().map(|_| None).collect(),
            nodes: volumes.iter().map(|_| None).collect(),
            background: background(&volumes),
            volumes,
            forks: Forks::default(),
            buffer_direct: false,
            controllers: Vec::new(),
            controller_events: Events::new(0),
            touched: Vec::with_capacity(stations.len()),
            stations,
            links: None,
            asked: Vec::with_capacity(Engine::AT_ONCE),
            free: Vec::with_capacity(Engine::AT_ONCE),
            outstanding: 0,
            done: false,
            wanted: Nanos::MAX,
            dark: false,
            now: Nanos::ZERO,
        }
    }

    /// Up to when all is done.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// How many devices there are.
    pub fn devices(&self) -> usize {
        self.stations.len()
    }

    /// A device.
    pub fn device(&self, index: usize) -> &Device {
        self.stations[index].device()
    }

    /// Has a device choose by a program's own order, as [`Device::set_order`].
    pub fn set_order(&mut self, device: usize, order: Box<dyn Order>) {
        self.stations[device].device_mut().set_order(order);
    }

    /// Has the host's queue before a device choose by a program's own order. The host must have a queue with an order
    /// (`host.queue.order`; `fcfs` will do), in whose place it comes.
    ///
    /// *Errors:* it has none.
    pub fn set_host_order(&mut self, device: usize, order: Box<dyn Order>) -> Result<(), HostError> {
        self.stations[device].set_host_order(order)
    }

    /// The starvation guard before a device; none where there is none.
    pub fn guard(&self, index: usize) -> Option<&Guard> {
        self.stations[index].guard()
    }

    /// What the page cache of a volume has done; none where there is no page cache.
    pub fn page_cache(&self, volume: usize) -> Option<&PageCacheActivity> {
        self.caches[volume].as_ref().map(|cache| cache.activity())
    }

    /// Blocks of a volume's spares that have been filled, and those of all its spares.
    pub fn rebuilt(&self, volume: usize) -> (u64, u64) {
        match &self.volumes[volume] {
            Volume::Device(_) => (0, 0),
            Volume::Array(array) => array.rebuilt(),
        }
    }

    /// Dirty pages in the page cache of a volume.
    pub fn dirty_pages(&self, volume: usize) -> usize {
        self.caches[volume].as_ref().map_or(0, |cache| cache.dirty())
    }

    /// Does what is due at one device, and what it does by itself after that up to `until`, if nothing else is due before; says
    /// whether anything came back.
    fn turn<O: Observer + ?Sized>(
        &mut self,
        index: usize,
        until: Nanos,
        load: &mut dyn Load,
        observer: &mut O,
    ) -> bool {
        if self.stations[index].is_left_alone() {
            // What it does by itself concerns nobody until a command is done, or something else is due.
            let until = until.min(self.due_elsewhere(index).since(Nanos(1)));
            self.now = self.stations[index].run_to_completion(self.now, until);
        } else {
            self.with_station(index, |station, now| station.handle_timeout(now));
        }
        if let Some(number) = self.stations[index].controller() {
            self.turn_behind(index, number as usize, observer);
            return false;
        }
        if !self.stations[index].device().has_completions() {
            self.settle(index);
            return false;
        }
        let mut any = false;
        let completion = Completion::at_once(Request::flush(), self.now);
        let mut finished = Finished::on(index as u32, completion);
        while let Some(ask) = self.stations[index]
            .poll(self.now, &mut finished.completion, |command| observer.served(index as u32, command))
        {
            if observer.sees_parts() {
                observer.part(index as u32, self.issued(ask, index as u32), &finished.completion);
            }
            if self.finish(ask, &mut finished) {
                any = true;
                load.handle_completion(self.now, finished.id);
                observer.finished(&finished);
            }
        }
        if any && self.stations[index].is_left_alone() {
            // Nothing waits for the device: it is looked at once, with what the load asks next.
            self.settle_touched();
            self.touch(index as u32);
        } else {
            self.settle(index);
            self.settle_touched();
        }
        any
    }

    /// Does what is due at the page cache of a volume.
    fn turn_cache<O: Observer + ?Sized>(&mut self, volume: usize, load: &mut dyn Load, observer: &mut O) {
        let (now, device) = (self.now, self.volumes[volume].first_device());
        self.cache(volume).handle_timeout(now);
        while let Some(wish) = self.cache(volume).poll() {
            if let Wish::Ended { ask, completion, hit } = wish {
                let mut finished = Finished { cached: hit, ..Finished::on(device, completion) };
                self.finish(ask, &mut finished);
                load.handle_completion(self.now, finished.id);
                observer.finished(&finished);
            } else {
                self.grant(volume, wish);
            }
        }
        self.settle_cache(volume);
        self.settle_touched();
    }

    fn cache(&mut self, volume: usize) -> &mut PageCache {
        self.caches[volume].as_mut().expect("only a volume with a page cache has work for it")
    }

    /// Makes the transfers that the page cache of a volume wants.
    fn settle_cache(&mut self, volume: usize) {
        while let Some(wish) = self.cache(volume).poll() {
            self.grant(volume, wish);
        }
        let next = self.cache(volume).next_event();
        self.background.set(volume, next);
    }

    fn grant(&mut self, volume: usize, wish: Wish) {
        let Wish::Transfer { number, request, source, urgent, sync } = wish else {
            unreachable!("a page cache ends a request when its time has come, and not before")
        };
        let asked = Asked {
            id: u64::from(number),
            asker: Asker::PageCache,
            ..self.asked(volume as u32, request, source)
        };
        let ask = self.insert(asked);
        self.fork(volume as u32, Piece { ask, request, source, urgent, sync });
    }

    /// A piece of an ask came back as `finished` says; whether it was the last one, and that of a load's request then.
    #[inline]
    fn finish(&mut self, ask: u32, finished: &mut Finished) -> bool {
        let asked = &mut self.asked[ask as usize];
        let completion = &mut finished.completion;
        if completion.outcome != Outcome::Done {
            asked.outcome = completion.outcome;
        }
        asked.left -= 1;
        let goes_on = match asked.fork {
            Forks::NONE => asked.left > 0,
            _ => self.goes_on(ask, finished.device, completion),
        };
        if goes_on {
            return false;
        }
        self.free.push(ask);
        let asked = &self.asked[ask as usize];
        let Asked { asker, id, volume, .. } = *asked;
        (finished.volume, finished.id, finished.source) = (asked.volume, asked.id, asked.source);
        completion.parts.queued += completion.submitted - asked.issued;
        completion.submitted = asked.issued;
        (completion.request, completion.outcome) = (asked.request, asked.outcome);
        match asker {
            Asker::Load => self.outstanding -= 1,
            Asker::PageCache => {
                let now = self.now;
                self.cache(volume as usize).transferred(now, id as u32, &finished.completion);
                self.settle_cache(volume as usize);
            }
            Asker::Node => self.end_node_command(volume as usize, id as u32, finished),
            Asker::Rebuild => self.end_rebuild(volume as usize),
        }
        asker == Asker::Load
    }

    /// Lets a station's device have what may go to it, and notes when to come back.
    #[inline]
    fn settle(&mut self, index: usize) {
        let station = &self.stations[index];
        if station.is_left_alone() {
            return self.events.set(index, station.next_event(self.now));
        }
        self.settle_queue(index);
    }

    fn settle_queue(&mut self, index: usize) {
        self.with_station(index, |station, now| station.settle(now));
        self.events.set(index, self.stations[index].next_event(self.now));
        if let Some(number) = self.stations[index].controller() {
            self.command(index, number as usize);
        }
    }

    fn settle_touched(&mut self) {
        while let Some(index) = self.touched.pop() {
            self.settle(index as usize);
        }
    }

    /// Issues what the load wants now.
    fn feed(&mut self, load: &mut dyn Load) {
        self.wanted = loop {
            match load.poll(self.now) {
                Poll::Issue(issue) => self.issue(&issue),
                Poll::Later(at) => break at,
                Poll::Waiting => break Nanos::MAX,
                Poll::Done => {
                    self.done = true;
                    break Nanos::MAX;
                }
            }
        };
        self.settle_touched();
    }

    #[inline]
    fn issue(&mut self, issue: &Issue) {
        let Issue { device: volume, request, id, source, urgent, direct } = *issue;
        // Field by field: a copy in wide words would wait for the load's narrow stores.
        let Request { op, lbn, sectors, fua } = request;
        let request = Request { op, lbn, sectors, fua };
        let ask = self.insert(Asked { id, ..self.asked(volume, request, source) });
        (self.outstanding, self.done) = (self.outstanding + 1, false);
        if let Some(cache) = &mut self.caches[volume as usize] {
            let passes = direct && !self.buffer_direct && request.op != Op::Flush;
            if !passes && cache.takes(&request) {
                self.asked[ask as usize].left = 1;
                cache.submit(self.now, ask, request, source, urgent);
                return self.settle_cache(volume as usize);
            }
            cache.passed(&request);
        }
        self.fork(volume, Piece { ask, request, source, urgent, sync: true });
    }

    fn asked(&self, volume: u32, request: Request, source: u32) -> Asked {
        let (issued, outcome) = (self.now, Outcome::Done);
        Asked {
            issued,
            request,
            id: 0,
            asker: Asker::Load,
            volume,
            source,
            left: 0,
            fork: Forks::NONE,
            outcome,
        }
    }

    #[inline(always)]
    fn insert(&mut self, asked: Asked) -> u32 {
        if let Some(ask) = self.free.pop() {
            self.asked[ask as usize] = asked;
            return ask;
        }
        self.asked.push(asked);
        (self.asked.len() - 1) as u32
    }

    /// Sends an ask to its volume, by the node before it where there is one.
    #[inline(always)]
    fn fork(&mut self, volume: u32, piece: Piece) {
        if self.nodes[volume as usize].is_none() || !self.ask_node(volume as usize, &piece) {
            self.fork_piece(volume, piece);
        }
    }

    /// Sends an ask to the devices of its volume.
    #[inline(always)]
    fn fork_piece(&mut self, volume: u32, piece: Piece) {
        let Volume::Device(device) = self.volumes[volume as usize] else {
            return self.fork_array(volume, piece);
        };
        self.asked[piece.ask as usize].left = self.stations[device as usize].issue(self.now, piece);
        if !self.stations[device as usize].only_holds() {
            self.touch(device);
        }
    }

    /// Notes a station to be looked at.
    #[inline]
    fn touch(&mut self, station: u32) {
        if self.touched.last() != Some(&station) {
            self.touched.push(station);
        }
    }
}
