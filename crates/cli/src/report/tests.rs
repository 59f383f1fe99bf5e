//! The page as a whole: is it complete, and safe against what it is told?

use super::*;

fn sample() -> Report {
    let series = |name: &str, factor: f64| Series {
        name: name.to_string(),
        points: (0..9).map(|k| (f64::from(1 << k), factor * f64::from(k + 1))).collect(),
        ..Series::default()
    };
    let chart = Chart {
        title: "A & B".to_string(),
        x: Axis::log("queue depth (commands)"),
        y: Axis::linear("IOPS"),
        series: vec![series("fcfs", 1.0), series("sptf", 2.0)],
    };
    let mut table = Table::new("Numbers", &["order", "IOPS"]);
    table.row(["<fcfs>".to_string(), "1".to_string()]);
    let section = Section {
        title: "Orders".to_string(),
        text: vec!["Text with <i>marks</i>".to_string()],
        charts: vec![chart],
        tables: vec![table],
    };
    Report { title: "Sample".to_string(), text: Vec::new(), sections: vec![section] }
}

#[test]
fn does_the_page_load_anything() {
    let html = to_html(&sample());
    let ours = html.split("plotly.js v").next().expect("there is a beginning");
    for loader in ["<link", "src=", "@import", "url(", "fetch(", "http"] {
        let met = ours.matches(loader).count();
        let allowed = usize::from(loader == "http"); // the policy itself: http-equiv
        assert_eq!(met, allowed, "{loader}");
    }
    assert!(html.contains("default-src 'none'"));
    assert!(html.contains("Plotly"), "the library is inside");
    assert!(!html.contains("MathJax.loader"), "no second library that would look for its parts");
}

#[test]
fn is_text_from_outside_kept_as_text() {
    let html = to_html(&sample());
    assert!(html.contains("&lt;i&gt;") || html.contains("&#60;i&#62;"));
    assert!(!html.contains("<fcfs>"));
}

#[test]
fn does_a_report_without_charts_leave_the_library_out() {
    let mut report = sample();
    report.sections[0].charts.clear();
    assert!(to_html(&report).len() < 20_000);
}

#[test]
fn is_a_table_aligned_in_the_terminal() {
    let mut table = Table::new("Numbers", &["order", "IOPS"]);
    table.row(["fcfs".to_string(), "9".to_string()]);
    table.row(["c-look".to_string(), "1234".to_string()]);
    let lines: Vec<String> = table.to_text().lines().map(str::to_string).collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[2], "fcfs       9");
    assert_eq!(lines[3], "c-look  1234");
}

#[test]
#[ignore]
fn tmp_page() {
    let depths: Vec<f64> = (0..9).map(|k| f64::from(1 << k)).collect();
    let series = |name: &str, hue: usize, dashed: bool, f: &dyn Fn(f64) -> f64| Series {
        name: name.to_string(),
        points: depths.iter().map(|d| (*d, f(*d))).collect(),
        hue,
        dashed,
        draw: Draw::Points,
    };
    let mk = |f: fn(f64, f64) -> f64| {
        vec![
            series("fcfs", 0, false, &|d| f(d, 0.02)),
            series("sstf", 1, false, &|d| f(d, 0.25)),
            series("c-look", 2, false, &|d| f(d, 0.2)),
            series("sptf", 3, false, &|d| f(d, 0.5)),
        ]
    };
    let iops = mk(|d, k| 120.0 * (1.0 + k * d.ln()));
    let p99 = mk(|d, k| 10.0 * d / (1.0 + k * d.ln()) * (1.0 + k));
    let x = || Axis::log("queue depth (commands)").with_ticks(depths.clone());
    let mut table = Table::new(
        "Numbers",
        &["order", "depth 1", "depth 2", "depth 4", "8", "16", "32", "64", "128", "256"],
    );
    for s in &iops {
        table.row(std::iter::once(s.name.clone()).chain(s.points.iter().map(|p| format!("{:.0}", p.1))));
    }
    let one = Section { title: "The order of requests".into(), text: vec!["Random 4 KiB reads over the whole disk. The more requests the drive may choose from, the shorter the way to the next one; the order decides who waits.".into()],
        charts: vec![
            Chart { title: "Throughput".into(), x: x(), y: Axis::linear("IOPS"), series: iops },
            Chart { title: "Slowest hundredth: 99th percentile of the response time".into(), x: x(), y: Axis::log("ms"), series: p99 }],
        tables: vec![table] };
    let two = Section {
        title: "Many sequential streams".into(),
        text: vec![],
        charts: vec![Chart {
            title: "Sum of all streams".into(),
            x: Axis::linear("streams"),
            y: Axis::linear("MB/s"),
            series: vec![
                Series {
                    name: "64 KiB reads".into(),
                    points: (1..100)
                        .map(|k| (f64::from(k), if k < 16 { 50.0 } else { 10.0 + 100.0 / f64::from(k) }))
                        .collect(),
                    ..Series::default()
                },
                Series {
                    name: "64 KiB reads, cache off".into(),
                    points: (1..100).map(|k| (f64::from(k), 5.0)).collect(),
                    hue: 1,
                    dashed: true,
                    draw: Draw::Line,
                },
            ],
        }],
        tables: vec![],
    };
    let mut three = two.clone();
    three.title = "Whole tracks".into();
    three.charts[0].series = vec![0, 1, 2, 3, 4, 5]
        .into_iter()
        .map(|h| Series {
            name: format!("hue {h} of the palette"),
            hue: h,
            dashed: h % 2 == 1,
            points: depths.iter().map(|d| (*d, d.sqrt() * (h + 2) as f64)).collect(),
            draw: Draw::Points,
        })
        .collect();
    let report = Report {
        title: "Headstack: what a disk does with a load".into(),
        text: vec!["Three experiments on simulated drives.".into()],
        sections: vec![one, two, three],
    };
    std::fs::write("/tmp/cli-page.html", to_html(&report)).expect("x");
}
