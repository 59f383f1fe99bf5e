//! The page of a report: one HTML file that loads nothing from a network.

use super::{Chart, Report, chart};
use askama::Template;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use plotly::Plot;
use std::io::Write;

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    report: &'a Report,
    /// Plotly's licence notice, and its script in gzip format and base64, which takes two fifths of the script's length.
    notice: &'a str,
    plotly: String,
    style: &'static str,
    head_script: &'static str,
    script: &'static str,
    version: &'static str,
}

impl Page<'_> {
    fn figure(&self, chart: &Chart) -> String {
        chart::to_json(chart)
    }

    fn has_charts(&self) -> bool {
        has_charts(self.report)
    }
}

fn has_charts(report: &Report) -> bool {
    report.sections.iter().any(|section| !section.charts.is_empty())
}

pub(crate) fn to_html(report: &Report) -> String {
    let scripts = Plot::offline_js_sources();
    let (script, has_charts) = (plotly_script(&scripts), has_charts(report));
    let page = Page {
        report,
        notice: notice(script),
        plotly: if has_charts { packed(script) } else { String::new() },
        style: include_str!("../../templates/report.css"),
        head_script: include_str!("../../templates/theme.js"),
        script: include_str!("../../templates/report.js"),
        version: env!("CARGO_PKG_VERSION"),
    };
    page.render().expect("the template writes to memory")
}

/// The text of Plotly's script element in the HTML of the crate. The second script, MathJax, is left out: reports have no formulas, and it
/// would load parts from the network.
fn plotly_script(elements: &str) -> &str {
    let inside = elements.split_once('>').map_or("", |(_, rest)| rest);
    inside.split_once("</script>").map_or("", |(script, _)| script)
}

/// The comment at the start of the script.
fn notice(script: &str) -> &str {
    script.find("*/").map_or("", |end| script[..end + 2].trim_start())
}

/// The script in the form in which the page contains it; `templates/report.js` unpacks it.
fn packed(script: &str) -> String {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let written = encoder.write_all(script.as_bytes()).and_then(|()| encoder.finish());
    STANDARD.encode(written.expect("memory takes all bytes"))
}
