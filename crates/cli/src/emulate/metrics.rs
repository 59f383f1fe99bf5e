//! `--metrics`: the disks for Prometheus.

use crate::service::endpoint::Page;
use crate::service::metrics::{OPEN_METRICS, PLAIN, text};
use headstack_host::DiskHandle;
use headstack_model::QuantityReport;

pub(super) fn page(disks: Vec<DiskHandle>) -> Page {
    let text = move || {
        let mut report = QuantityReport::default();
        disks.iter().for_each(|disk| disk.snapshot().report(&mut report));
        Ok(text(&report))
    };
    Page { path: "/metrics", kind: OPEN_METRICS, text: Box::new(text), other: Some(PLAIN) }
}
