//! Tests of the whole page: it is complete, and text from outside is escaped.

use super::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use std::io::Read;

fn sample() -> Report {
    let series = |name: &str, factor: f64| {
        Series::new(name, 0, (0..9).map(|k| (f64::from(1 << k), factor * f64::from(k + 1))))
    };
    let chart = Chart::new(
        "A & B",
        Axis::log("queue depth (commands)"),
        Axis::linear("IOPS"),
        [series("fcfs", 1.0), series("sptf", 2.0)],
    );
    let mut table = Table::new("Numbers", &["order", "IOPS"]);
    table.row(["<fcfs>".to_string(), "1".to_string()]);
    let section =
        Section::new("Orders").with_text("Text with <i>marks</i>").with_chart(chart).with_table(table);
    Report { title: "Sample".to_string(), text: Vec::new(), sections: vec![section] }
}

#[test]
fn page_loads_nothing_external() {
    let html = to_html(&sample());
    let (start, rest) = html.split_once("id=\"plotly\">").expect("the library is inside");
    let (library, end) = rest.split_once("</script>").expect("its element ends");
    let ours = format!("{start}{end}");
    for loader in ["<link", "src=", "@import", "url(", "fetch(", "http"] {
        let met = ours.matches(loader).count();
        let allowed = usize::from(loader == "http"); // the policy itself: http-equiv
        assert_eq!(met, allowed, "{loader}");
    }
    assert!(html.contains("default-src 'none'"));
    let packed = STANDARD.decode(library).expect("it is base64");
    let mut script = String::new();
    GzDecoder::new(&packed[..]).read_to_string(&mut script).expect("it is packed text");
    assert!(script.contains("Plotly"), "the library is whole");
    assert!(!script.contains("MathJax.loader"), "no second library that would look for its parts");
    assert!(end.contains("plotly.js v") && end.contains("MIT license"), "the library's notice can be read");
    assert!(html.len() < 2_000_000, "{} bytes", html.len());
}

#[test]
fn text_from_outside_is_escaped() {
    let html = to_html(&sample());
    assert!(html.contains("&lt;i&gt;") || html.contains("&#60;i&#62;"));
    assert!(!html.contains("<fcfs>"));
}

#[test]
fn report_without_charts_omits_the_chart_library() {
    let mut report = sample();
    report.sections[0].charts.clear();
    assert!(to_html(&report).len() < 20_000);
}

#[test]
fn table_is_aligned_in_the_terminal() {
    let mut table = Table::new("Numbers", &["order", "IOPS"]);
    table.row(["fcfs".to_string(), "9".to_string()]);
    table.row(["c-look".to_string(), "1234".to_string()]);
    let lines: Vec<String> = table.to_text().lines().map(str::to_string).collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[2], "fcfs       9");
    assert_eq!(lines[3], "c-look  1234");
}
