//! The request layer: the one interface of everything that serves requests.
//!
//! A page cache, a stream scheduler, an array, a queue in front of a controller and a controller are layers. They are stacked on
//! each other, and on the devices with their queues. The engine ([`crate::Engine`]) carries requests down and answers up, and
//! calls each layer when it has something to do. A layer knows no other layer: it sends a request to a child by the child's
//! number, and answers a request by the request's number. Each call has a sink, [`Out`], for what the layer does; the engine carries
//! it out after the call. A program puts layers of its own anywhere in a rig with [`crate::Engine::insert`]. A
//! [`DiskLayer`], which serves a real disk as well, is a layer, too.
//!
//! *Time:* a layer has no clock. Each call has the time, which never decreases; with [`Out::wake_at`] a layer sets when to call it again.
//! A request may wait between its submission and the time in [`Completion::submitted`]. The engine adds this wait to the answer as
//! `queued`, so that the parts of the time split add up at every level.

pub use crate::engine::{ChildView, Out};

use crate::device::{Completion, Outcome};
use headstack_model::{Instant, Op, QuantityReport, Request};
use headstack_streams::streams::{DiskLayer, LayerEnd, LayerRequest, LayerSink};
use headstack_workload::ReadAdvice;
use std::any::Any;
use std::fmt::Debug;

/// A request on its way from a layer to one below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submission {
    /// The sender's number for it, which the answer repeats. Numbers of requests in flight need not differ.
    pub id: u32,
    /// The request itself.
    pub request: Request,
    /// The process, job or stream that issued it; `u32::MAX` for none.
    pub source: u32,
    /// Whether it is urgent: queues that obey priorities serve it before others.
    pub urgent: bool,
    /// Whether an elevator of the host serves it only while no other request waits, if it is not urgent.
    pub idle: bool,
    /// The number of its command duration limit; 0 for none. Caches do not pass it on.
    pub limit: u8,
    /// Whether a process waits for it, as for a read or for a flush; not for a write-back.
    pub sync: bool,
    /// Whether it bypasses the host's page cache (`O_DIRECT`).
    pub direct: bool,
    /// The program's advice about its reads. Caches do not pass it on.
    pub advice: ReadAdvice,
    /// Whether the zone of a write is reset before it. Caches and schedulers of streams do not pass it on.
    pub resets_zone: bool,
}

impl Submission {
    /// A request that a process waits for, of no source, which bypasses the page cache.
    pub fn new(id: u32, request: Request) -> Submission {
        let (source, advice) = (u32::MAX, ReadAdvice::Normal);
        Submission {
            id,
            request,
            source,
            urgent: false,
            idle: false,
            limit: 0,
            sync: true,
            direct: true,
            advice,
            resets_zone: false,
        }
    }
}

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// The number that the request was submitted with.
    pub id: u32,
    /// Its completion. The engine sets `request`, and moves `submitted` back to the submission.
    pub completion: Completion,
    /// Whether a page cache or a stream scheduler answered it without waiting for a device.
    pub cached: bool,
}

/// Serves requests with the help of the layers below it. All that a layer does goes into [`Out`].
///
/// A link that holds each request back for a time asks for a call when the first one has arrived:
///
/// ```
/// use headstack_model::{Instant, Nanos, drives};
/// use headstack_sim::layer::{Layer, Out, Submission};
/// use headstack_sim::{Device, DeviceOptions, Engine, LayerPlace};
/// use headstack_workload::{Closed, Pattern, Region, Shape};
/// use std::collections::VecDeque;
///
/// #[derive(Debug, Default)]
/// struct Link {
///     delay: Nanos,
///     held: VecDeque<(Instant, Submission)>,
/// }
///
/// impl Layer for Link {
///     fn submit(&mut self, now: Instant, submission: Submission, out: &mut Out<'_>) {
///         self.held.push_back((now + self.delay, submission));
///         out.wake_at(self.held[0].0);
///     }
///
///     fn wake(&mut self, now: Instant, out: &mut Out<'_>) {
///         while let Some((_, submission)) = self.held.front().copied().filter(|(arrives, _)| *arrives <= now) {
///             self.held.pop_front();
///             out.forward_held(0, submission);
///         }
///         out.wake_at(self.held.front().map_or(Instant::MAX, |(arrives, _)| *arrives));
///     }
/// }
///
/// let spec = drives::load("atlas-10k").expect("the drive ships");
/// let mut engine = Engine::new(vec![Device::new(&spec, &DeviceOptions::default())?]);
/// engine.insert(LayerPlace::Device(0), Box::new(Link { delay: Nanos::from_ms(5.0), ..Link::default() }));
/// let region = Region::whole(spec.capacity_sectors);
/// let shape = Shape { region, pattern: Pattern::Random, sectors: 8, alignment: 8, read_share: 1.0 };
/// let mut load = Closed::new(shape, 1, 100, 1)?;
/// engine.run(&mut load, &mut |finished| assert!(finished.completion.response() >= Nanos::from_ms(5.0)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Layer: Any + Debug + Send {
    /// Accepts a request.
    fn submit(&mut self, now: Instant, submission: Submission, out: &mut Out<'_>);

    /// Accepts the answer to a request that the layer submitted to a child with [`Out::down`]. A layer that only forwards gets none.
    fn complete(&mut self, _now: Instant, _child: u32, answer: &Completed, _out: &mut Out<'_>) {
        unreachable!("the layer submitted no request {}", answer.id);
    }

    /// A request that the layer forwarded with [`Out::forward_noted`] was answered; the answer then goes up by itself.
    fn note(&mut self, _now: Instant, _forwarded: &Forwarded<'_>, _out: &mut Out<'_>) {}

    /// The processor will have done the work `id` of [`Out::compute`] at `until`.
    fn computed(&mut self, _now: Instant, _id: u32, _until: Instant, _out: &mut Out<'_>) {}

    /// Carries out all that is due: the time of [`Out::wake_at`] has come, or all requests have arrived, as of
    /// [`Out::wake_after_arrivals`].
    fn wake(&mut self, _now: Instant, _out: &mut Out<'_>) {}

    /// When to wake the layer if nothing has called it before; [`Instant::MAX`] for never.
    fn first_wake(&self) -> Instant {
        Instant::MAX
    }

    /// Adds what the layer counts, in a group with the layer's name. All results show it.
    fn report(&self, _into: &mut QuantityReport) {}
}

/// The answer to a request that a layer forwarded.
#[derive(Clone, Copy, Debug)]
pub struct Forwarded<'a> {
    /// The layer's number for it.
    pub key: u32,
    /// The request as it arrived at the layer.
    pub request: Request,
    /// Its completion, with the request of the layer that submitted it.
    pub completion: &'a Completion,
}

impl LayerRequest for Submission {
    fn id(&self) -> u32 {
        self.id
    }

    fn blocks(&self, _sector_bytes: u32) -> Option<Request> {
        (self.request.op != Op::Flush).then_some(self.request)
    }
}

impl LayerEnd for Completed {
    fn is_good(&self) -> bool {
        self.completion.outcome == Outcome::Done
    }
}

impl LayerSink for Out<'_> {
    type Request = Submission;
    type End = Completed;

    fn down(&mut self, request: Submission) {
        Out::down(self, 0, request);
    }

    fn up(&mut self, id: u32, end: Completed) {
        Out::up(self, Completed { id, ..end });
    }

    fn wake_at(&mut self, at: Instant) {
        Out::wake_at(self, at);
    }

    fn wake_after_arrivals(&mut self) {
        Out::wake_after_arrivals(self);
    }
}

impl<L> Layer for L
where
    L: for<'a> DiskLayer<Out<'a>>,
{
    fn submit(&mut self, now: Instant, submission: Submission, out: &mut Out<'_>) {
        DiskLayer::submit(self, now, submission, out);
    }

    fn complete(&mut self, now: Instant, _child: u32, answer: &Completed, out: &mut Out<'_>) {
        DiskLayer::complete(self, now, answer.id, *answer, out);
    }

    fn wake(&mut self, now: Instant, out: &mut Out<'_>) {
        DiskLayer::wake(self, now, out);
    }

    fn first_wake(&self) -> Instant {
        // The time of the first wake depends on no sink.
        <L as DiskLayer<Out<'static>>>::first_wake(self)
    }
}
