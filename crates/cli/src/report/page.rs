//! The page: one HTML file that loads nothing.

use super::{Chart, Report, chart};
use askama::Template;
use plotly::Plot;

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    report: &'a Report,
    plotly: &'a str,
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
        self.report.sections.iter().any(|section| !section.charts.is_empty())
    }
}

pub(crate) fn to_html(report: &Report) -> String {
    let scripts = Plot::offline_js_sources();
    let page = Page {
        report,
        plotly: plotly_script(&scripts),
        style: include_str!("../../templates/report.css"),
        head_script: include_str!("../../templates/theme.js"),
        script: include_str!("../../templates/report.js"),
        version: env!("CARGO_PKG_VERSION"),
    };
    page.render().expect("the template writes to memory")
}

/// Plotly's script out of the elements of the crate. The second, MathJax, is for formulas, which reports lack, and would load parts from
/// the network.
fn plotly_script(elements: &str) -> &str {
    let inside = elements.split_once('>').map_or("", |(_, rest)| rest);
    inside.split_once("</script>").map_or("", |(script, _)| script)
}
