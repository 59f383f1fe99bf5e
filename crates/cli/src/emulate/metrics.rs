//! `--metrics`: the disks for Prometheus, in its text format over HTTP. A thread of normal priority serves it,
//! and goes first only to look at a disk.

use crate::failure::Failure;
use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use headstack_host::disk::Kind;
use headstack_host::{DiskHandle, Snapshot};
use headstack_sim::{Activity, ArmWork, CacheUse, DeviceView};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::thread::{self, JoinHandle};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

/// The endpoint, until it is dropped.
pub(super) struct Endpoint {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Endpoint {
    /// Serves the disks at an address.
    ///
    /// *Errors:* an address that cannot be had.
    pub(super) fn start(address: &str, disks: Vec<DiskHandle>) -> Result<Endpoint, Failure> {
        let fault = |error| Failure::Input(format!("--metrics {address}: {error}"));
        // The clock, too: where no descriptor is left the server waits for a while.
        let runtime = Builder::new_current_thread().enable_all().build().map_err(fault)?;
        let listener = runtime.block_on(TcpListener::bind(address)).map_err(fault)?;
        let address = listener.local_addr().map_err(fault)?;
        let (stop, stopped) = oneshot::channel();
        let run = move || serve(&runtime, listener, disks, stopped);
        let thread = thread::Builder::new().name("metrics".to_string()).spawn(run).map_err(fault)?;
        Ok(Endpoint { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

fn serve(runtime: &Runtime, listener: TcpListener, disks: Vec<DiskHandle>, stopped: oneshot::Receiver<()>) {
    let metrics = move || {
        let text = text(&disks.iter().map(DiskHandle::snapshot).collect::<Vec<_>>());
        std::future::ready(([(CONTENT_TYPE, FORMAT)], text))
    };
    let router = Router::new().route("/metrics", get(metrics));
    runtime.block_on(async {
        tokio::select! {
            // It ends by itself only where the socket fails for good: then there is nothing more to serve.
            _ = axum::serve(listener, router) => {}
            _ = stopped => {}
        }
    });
}

/// What Prometheus is told that it gets.
const FORMAT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Labels = Vec<(&'static str, String)>;
type Value = Gauge<f64, AtomicU64>;
type Sum = Counter<f64, AtomicU64>;

/// Numbers of one kind, by what they are of.
struct Metrics {
    registry: Registry,
}

impl Metrics {
    fn gauges(&mut self, name: &str, help: &str, values: impl Iterator<Item = (Labels, f64)>) {
        let family = Family::<Labels, Value>::default();
        values.for_each(|(labels, value)| {
            family.get_or_create(&labels).set(value);
        });
        self.registry.register(name, help, family);
    }

    fn counters(&mut self, name: &str, help: &str, values: impl Iterator<Item = (Labels, f64)>) {
        let family = Family::<Labels, Sum>::default();
        values.for_each(|(labels, value)| {
            family.get_or_create(&labels).inc_by(value);
        });
        self.registry.register(name, help, family);
    }
}

/// The disks as Prometheus reads them.
fn text(disks: &[Snapshot]) -> String {
    let mut metrics = Metrics { registry: Registry::with_prefix("headstack") };
    disks_of(&mut metrics, disks);
    volumes_of(&mut metrics, disks);
    drives_of(&mut metrics, disks);
    let mut text = String::new();
    encode(&mut text, &metrics.registry).expect("a text takes all that is written to it");
    text
}

fn disk_label(snapshot: &Snapshot) -> (&'static str, String) {
    ("disk", snapshot.volumes[0].name.clone())
}

fn disks_of(metrics: &mut Metrics, disks: &[Snapshot]) {
    let each = |value: fn(&Snapshot) -> f64| {
        disks.iter().map(move |snapshot| (vec![disk_label(snapshot)], value(snapshot)))
    };
    metrics.gauges("time_seconds", "The disk's time", each(|disk| disk.at.as_secs()));
    metrics.gauges("outstanding", "Operations under way", each(|disk| disk.outstanding as f64));
    metrics.gauges("powered", "Whether the disk has power", each(|disk| f64::from(u8::from(!disk.is_dark))));
    let quantiles = disks.iter().flat_map(|snapshot| {
        [0.5, 0.9, 0.99, 1.0].map(|share| {
            let labels = vec![disk_label(snapshot), ("quantile", share.to_string())];
            (labels, snapshot.lateness.quantile(share).as_secs_f64())
        })
    });
    let help = "How much later than the model said answers were given, in real time";
    metrics.gauges("lateness_seconds", help, quantiles);
}

fn volumes_of(metrics: &mut Metrics, disks: &[Snapshot]) {
    let volumes = || disks.iter().flat_map(|snapshot| &snapshot.volumes);
    let by_kind = |value: fn(&headstack_host::disk::Count) -> f64| {
        volumes().flat_map(move |volume| {
            Kind::ALL.map(|kind| {
                let labels = vec![("volume", volume.name.clone()), ("operation", kind.name().to_string())];
                (labels, value(volume.books.of(kind)))
            })
        })
    };
    metrics.counters("operations", "Operations done", by_kind(|count| count.done as f64));
    metrics.counters("operations_failed", "Operations that failed", by_kind(|count| count.failed as f64));
    metrics.counters("bytes", "Bytes of operations done", by_kind(|count| count.bytes as f64));
    let help = "Response times by the model, in the disk's time, together";
    metrics.counters("response_seconds", help, by_kind(|count| count.time.as_secs()));
    let unwritten = volumes().map(|volume| {
        let labels = vec![("volume", volume.name.clone())];
        (labels, volume.unwritten_bytes as f64)
    });
    metrics.gauges("unwritten_bytes", "Bytes that are written and not on the media", unwritten);
}

fn drives_of(metrics: &mut Metrics, disks: &[Snapshot]) {
    let drives = || {
        disks.iter().flat_map(|snapshot| {
            let each = snapshot.drives.iter().enumerate();
            each.map(move |(number, drive)| {
                (vec![disk_label(snapshot), ("drive", number.to_string())], drive)
            })
        })
    };
    type Measure = fn(&(DeviceView, Activity)) -> f64;
    let gauges: [(&str, &str, Measure); 6] = [
        ("cylinder", "Cylinder that the arm is on, or on its way to", |(view, _)| f64::from(view.cylinder)),
        ("head", "Head in use", |(view, _)| f64::from(view.head)),
        ("lbn", "Block behind the last access", |(view, _)| view.lbn.0 as f64),
        ("queued", "Commands that the drive has", |(view, _)| view.queued as f64),
        ("queue_depth", "Commands that the drive can have", |(view, _)| view.depth as f64),
        ("dirty_blocks", "Blocks in the drive's cache that are not on the media", |(view, _)| {
            view.dirty_sectors as f64
        }),
    ];
    for (name, help, value) in gauges {
        metrics.gauges(name, help, drives().map(|(labels, drive)| (labels, value(drive))));
    }
    let works = drives().flat_map(|(labels, (view, _))| {
        ArmWork::ALL.map(|work| {
            let labels = [labels.clone(), vec![("work", work.name().to_string())]].concat();
            (labels, f64::from(u8::from(view.work == work)))
        })
    });
    metrics.gauges("arm", "What the arm is at work for", works);
    let busy = drives().map(|(labels, (_, activity))| (labels, activity.busy().as_secs()));
    metrics.counters("arm_busy_seconds", "The arm's time for commands and destages", busy);
    let reads = drives().flat_map(|(labels, (_, activity))| {
        let reads = CacheUse::NAMES.into_iter().zip(activity.reads);
        // Only a write is buffered.
        reads.filter(|(name, _)| *name != CacheUse::Buffered.name()).map(move |(name, count)| {
            ([labels.clone(), vec![("cache", name.to_string())]].concat(), count as f64)
        })
    });
    metrics.counters("reads", "Reads by how the cache served them", reads);
}
