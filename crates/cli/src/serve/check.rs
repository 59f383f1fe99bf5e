//! `--check`: describes a node, with its exports, addresses and settings.

use super::file::{ExportPlan, OrderPlan, Plan, Source};
use super::running::{Running, uri};
use crate::sim::text::figure;
use crate::units::{capacity, count, grouped, memory};
use headstack_host::{Address, Rules};
use headstack_nbd::Budget;
use headstack_policy::admission::Guarantee;
use std::io::{self, Write};

/// Prints the plan, with the notes on each disk that was opened.
pub(super) fn print(plan: &Plan, notes: &[Vec<String>], out: &mut dyn Write) -> io::Result<()> {
    let (disks, exports) = (plan.disks.len(), plan.exports.len());
    writeln!(out, "ok: {} and {}", count(disks, "disk"), count(exports, "export"))?;
    for (number, disk) in plan.disks.iter().enumerate() {
        writeln!(out, "{}: {}; {}", disk.name, disk.source, scheduled(plan, number))?;
        uris(plan, number, &plan.listen, out)?;
        notes.get(number).into_iter().flatten().try_for_each(|note| writeln!(out, "  {note}"))?;
    }
    clients(plan, out)?;
    if let Some(user) = &plan.user {
        writeln!(out, "runs as {user} after opening disks and sockets")?;
    }
    figures(plan.metrics.as_deref(), out)
}

pub(super) fn introduce(
    plan: &Plan,
    running: &Running,
    metrics: Option<String>,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (number, node) in running.handles().iter().enumerate() {
        let size = capacity(node.shape().bytes);
        let what = match &plan.disks[number].source {
            Source::Path { .. } => node.title().to_string(),
            other => other.to_string(),
        };
        writeln!(out, "{}: {what}; {size}; {}", node.name(), scheduled(plan, number))?;
        uris(plan, number, running.addresses(), out)?;
        running.notes(number).iter().try_for_each(|note| writeln!(out, "  {note}"))?;
    }
    figures(metrics.as_deref(), out)?;
    out.flush()
}

fn clients(plan: &Plan, out: &mut dyn Write) -> io::Result<()> {
    let Rules { connections, connections_per_address, budget, .. } = &plan.rules;
    let bytes = budget.as_ref().map_or(usize::MAX, Budget::bytes) as u64;
    writeln!(
        out,
        "clients: at most {} connections, {} of them from one address; at most {} of requests and replies in flight",
        grouped(*connections as u64),
        grouped(*connections_per_address.min(connections) as u64),
        memory(bytes)
    )
}

fn figures(metrics: Option<&str>, out: &mut dyn Write) -> io::Result<()> {
    let Some(address) = metrics else { return Ok(()) };
    writeln!(out, "metrics: http://{address}/metrics; headstack top {address}")
}

fn scheduled(plan: &Plan, disk: usize) -> String {
    let streams = &plan.disks[disk].streams;
    let order = plan.disks[disk].order.as_ref().map(|OrderPlan { order, drive }| {
        format!(
            "ordered by {} of {drive}, {} at the disk",
            order.name(),
            count(order.window() as usize, "command")
        )
    });
    if !streams.scheduling {
        return order.map_or("requests as they come".to_string(), |order| format!("no streams, {order}"));
    }
    let fixed = [
        streams.read_ahead_bytes.map(|bytes| format!("R {}", memory(bytes))),
        streams.dispatch_set.map(|count| format!("D {count}")),
        streams.requests_per_turn.map(|count| format!("N {count}")),
    ];
    let parts = std::iter::once(format!("{} of stream memory", memory(streams.memory_bytes)));
    let map = plan.disks[disk].map.as_ref().map(|path| format!("tracks as in {}", path.display()));
    parts.chain(fixed.into_iter().flatten()).chain(map).chain(order).collect::<Vec<_>>().join(", ")
}

fn uris(plan: &Plan, disk: usize, addresses: &[Address], out: &mut dyn Write) -> io::Result<()> {
    for export in plan.exports.iter().filter(|export| export.disk == disk) {
        let rights = rights(export);
        for (listener, address) in addresses.iter().enumerate() {
            writeln!(out, "  {}{rights}", uri(address, &export.name, plan.is_secret(listener)))?;
        }
    }
    Ok(())
}

/// Restrictions of an export, if any.
fn rights(export: &ExportPlan) -> String {
    let mut rights = Vec::new();
    rights.extend(export.read_only.then(|| "read-only".to_string()));
    if !export.allow.is_empty() {
        let allowed: Vec<String> = export.allow.iter().map(ToString::to_string).collect();
        rights.push(format!("for {}", allowed.join(", ")));
    }
    if let Some(Guarantee { rate_bytes_per_s, response_ms }) = export.guarantee {
        let (rate, time) = (capacity(rate_bytes_per_s), figure(response_ms));
        rights.push(format!("each connection is promised {rate} a second within {time} ms"));
    }
    if rights.is_empty() { String::new() } else { format!(" ({})", rights.join(", ")) }
}
