//! `headstack stripe` on real input.

use crate::common::{json, printed, refused};
use headstack_policy::stripe::advise;

const ARRAY: [&str; 8] =
    ["stripe", "advise", "--drive", "ultrastar-dfhc-2gb", "--disks", "4", "--size", "512K"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    ARRAY.iter().chain(more).copied().collect()
}

#[test]
fn every_advisor_has_a_row_in_the_table() {
    let out = printed(&with(&["--mpl", "8"]));
    for entry in advise::all() {
        assert!(out.lines().any(|line| line.split_whitespace().next() == Some(entry.name)), "{}", entry.name);
    }
}

#[test]
fn json_unit_follows_the_lee_katz_formula() {
    let advice = json(&with(&["--mpl", "8", "--json"]));
    let reach = advice["reach_kib"].as_f64().expect("it is a number");
    let rows = advice["advisors"].as_array().expect("it is a list");
    let lee_katz = rows.iter().find(|row| row["name"] == "lee-katz").expect("the rule is listed");
    let unit = lee_katz["unit_kib"].as_f64().expect("it is a number");
    assert!((unit - (reach * 7.0 * 512.0 / 4.0).sqrt()).abs() < 1e-6 * unit, "{unit} KiB");
    assert_eq!(lee_katz["disks"], 2);
}

#[test]
fn load_below_one_request_is_rejected() {
    assert!(refused(&with(&["--mpl", "0.5"]), 2).contains("must be 1 to 1000000 requests"));
    assert!(refused(&with(&["--mpl", "nan"]), 2).contains("must be 1 to 1000000 requests"));
}

#[test]
fn fork_join_unit_grows_with_the_load() {
    let unit = |mpl: &str| {
        let advice = json(&with(&["--mpl", mpl, "--command", "128K", "--json"]));
        assert_eq!(advice["advisors"][0]["name"], "fork-join");
        advice["advisors"][0]["unit_kib"].as_f64().expect("it is a number")
    };
    assert_eq!((unit("1"), unit("64")), (128.0, 512.0));
}

#[test]
fn command_of_partial_sectors_is_rejected() {
    let said = refused(&with(&["--mpl", "2", "--command", "700"]), 2);
    assert!(said.contains("700 bytes are no whole number"), "{said}");
}
