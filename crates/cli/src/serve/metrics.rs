//! `--metrics`: a node's statistics for Prometheus, and as JSON.

use super::state::{StatePart, failed};
use super::watch::Seen;
use crate::service::endpoint::Page;
use crate::service::metrics::{self, OPEN_METRICS};
use serde_json::Value;

pub(super) fn pages(seen: &Seen) -> Vec<Page> {
    let (for_text, for_json) = (seen.clone(), seen.clone());
    let for_health = seen.clone();
    vec![
        Page {
            path: "/healthz",
            kind: "text/plain; charset=utf-8",
            text: Box::new(move || health(&for_health.json())),
            other: None,
        },
        Page {
            path: "/metrics",
            kind: OPEN_METRICS,
            text: Box::new(move || Ok(metrics::text(&for_text.lock()))),
            other: Some(metrics::PLAIN),
        },
        Page {
            path: "/json",
            kind: "application/json",
            text: Box::new(move || Ok(for_json.json().to_string())),
            other: None,
        },
    ]
}

fn health(node: &Value) -> Result<String, String> {
    let failed: Vec<&str> = failed(StatePart(node)).collect();
    if failed.is_empty() { Ok("ok\n".to_string()) } else { Err(format!("failed: {}\n", failed.join(", "))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn health_names_the_disks_that_failed() {
        let node = |has_failed: bool| {
            json!({ "disk": [
                { "name": "one", "has_failed": false },
                { "name": "two", "has_failed": has_failed },
            ] })
        };
        assert_eq!(health(&node(false)), Ok("ok\n".to_string()));
        assert_eq!(health(&node(true)), Err("failed: two\n".to_string()));
    }
}
