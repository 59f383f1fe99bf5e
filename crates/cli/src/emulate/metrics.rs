//! `--metrics`: the disks for Prometheus.

use crate::service::endpoint::Page;
use crate::service::metrics::{Labels, Metrics, OPEN_METRICS};
use headstack_host::disk::Kind;
use headstack_host::{DiskHandle, Snapshot};
use headstack_model::QuantityReport;
use headstack_sim::{Activity, ArmWork, CacheUse, DeviceView};

pub(super) fn page(disks: Vec<DiskHandle>) -> Page {
    let text = move || Ok(text(&disks.iter().map(DiskHandle::snapshot).collect::<Vec<_>>()));
    Page { path: "/metrics", kind: OPEN_METRICS, text: Box::new(text) }
}

fn text(disks: &[Snapshot]) -> String {
    let mut metrics = Metrics::new();
    disks_of(&mut metrics, disks);
    volumes_of(&mut metrics, disks);
    drives_of(&mut metrics, disks);
    metrics.text()
}

fn disk_label(snapshot: &Snapshot) -> (&'static str, String) {
    ("disk", snapshot.volumes[0].name.clone())
}

fn disks_of(metrics: &mut Metrics, disks: &[Snapshot]) {
    let each = |value: fn(&Snapshot) -> f64| {
        disks.iter().map(move |snapshot| (vec![disk_label(snapshot)], value(snapshot)))
    };
    metrics.gauges("time_seconds", "The disk's time", each(|disk| disk.at.as_secs()));
    metrics.gauges("outstanding", "Operations in flight", each(|disk| disk.outstanding as f64));
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
                let labels = vec![("disk", volume.name.clone()), ("operation", kind.name().to_string())];
                (labels, value(volume.books.count_of(kind)))
            })
        })
    };
    metrics.counters("operations", "Operations done", by_kind(|count| count.done as f64));
    metrics.counters("operations_failed", "Operations that failed", by_kind(|count| count.failed as f64));
    metrics.counters("bytes", "Bytes of operations done", by_kind(|count| count.bytes as f64));
    let help = "Response times by the model, in the disk's time, together";
    metrics.counters("response_seconds", help, by_kind(|count| count.time.as_secs()));
    let times =
        volumes().map(|volume| (vec![("disk", volume.name.clone())], volume.books.responses().into()));
    let help = "Response times by the model, in the disk's time, of operations that succeeded";
    metrics.histograms("response_time_seconds", help, times.collect());
    let unwritten = volumes().map(|volume| {
        let labels = vec![("disk", volume.name.clone())];
        (labels, volume.unwritten_bytes as f64)
    });
    metrics.gauges("unwritten_bytes", "Bytes that are written and not on the media", unwritten);
    metrics.reports(volumes().map(|volume| (vec![("disk", volume.name.clone())], &volume.report)));
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
    let report = |(labels, (_, activity)): (Labels, &(DeviceView, Activity))| {
        let mut report = QuantityReport::default();
        activity.report(None, None, &mut report);
        (labels, report)
    };
    let reports: Vec<_> = drives().map(report).collect();
    metrics.reports(reports.iter().map(|(labels, report)| (labels.clone(), report)));
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
        // Only a write can be buffered, so the metric of reads leaves this use out.
        reads.filter(|(name, _)| *name != CacheUse::Buffered.name()).map(move |(name, count)| {
            ([labels.clone(), vec![("cache", name.to_string())]].concat(), count as f64)
        })
    });
    metrics.counters("reads", "Reads by how the cache served them", reads);
}
