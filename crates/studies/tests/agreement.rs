//! The studies' own numbers beside the published ones. Each test prints its table; a row that is missed fails it.

use headstack_model::drives;
use headstack_studies::expect::{self, Expected, Report};
use headstack_studies::{modern_drives, st2000dm006};

fn expected(study: &str, text: &str) -> Vec<Expected> {
    expect::parse(text, &format!("studies/{study}/expect.tsv")).unwrap_or_else(|e| panic!("{e}"))
}

fn judge(report: &Report) {
    println!("{report}");
    let misses: Vec<&str> = report.misses().map(|row| row.expected.metric.as_str()).collect();
    assert_eq!(misses, Vec::<&str>::new(), "missed, see the table\n{report}");
    assert_eq!(report.unexpected, [], "measured, but nothing was published to hold it against");
}

#[test]
fn does_the_st2000dm006_do_what_was_measured() {
    let rows = expected("st2000dm006", include_str!("../../../studies/st2000dm006/expect.tsv"));
    let spec = drives::load("st2000dm006").unwrap_or_else(|e| panic!("{e}"));
    let measured = st2000dm006::measure(&spec).unwrap_or_else(|e| panic!("{e}"));
    judge(&Report::new(rows, &measured));
}

#[test]
fn do_the_other_drives_do_what_their_sheets_say() {
    let rows = expected("modern-drives", include_str!("../../../studies/modern-drives/expect.tsv"));
    let metrics = rows.iter().map(|row| row.metric.as_str());
    let measured = modern_drives::measure(metrics).unwrap_or_else(|e| panic!("{e}"));
    judge(&Report::new(rows, &measured));
}
