//! The colours of the page, of which each has one meaning.
//!
//! Distances are those of Oklab (Ottosson 2020), a hundred from black to white. Protanopia and deuteranopia are simulated by the matrices of
//! Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency", 2009, severity 1.

type Matrix = [[f64; 3]; 3];

static STYLE: &str = include_str!("../web/page.css");
const NORMAL: Matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
const PROTANOPIA: Matrix =
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]];
const DEUTERANOPIA: Matrix =
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]];
const KINDS: [&str; 5] = ["read", "write", "ahead", "urgent", "destage"];
const PARTS: [&str; 8] = ["part-0", "part-1", "part-2", "part-3", "part-4", "part-5", "part-6", "part-7"];
const ZONES: [&str; 4] = ["zone-2", "zone-3", "zone-4", "zone-5"];

/// The light and the dark theme.
fn themes() -> [&'static str; 2] {
    let (light, rest) = STYLE.split_once(":root[data-theme=\"dark\"]").expect("there are two themes");
    [light, rest.split_once('}').expect("the theme ends").0]
}

/// Red, green and blue of a custom property, linear.
fn rgb(theme: &str, name: &str) -> [f64; 3] {
    let (_, rest) = theme.split_once(&format!("--{name}: #")).unwrap_or_else(|| panic!("no --{name}"));
    [0, 2, 4].map(|at| {
        let value = u8::from_str_radix(&rest[at..at + 2], 16).expect("two hex digits");
        let share = f64::from(value) / 255.0;
        if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
    })
}

fn times(matrix: &Matrix, vector: [f64; 3]) -> [f64; 3] {
    matrix.map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum())
}

fn oklab(seen: [f64; 3]) -> [f64; 3] {
    let to_cones = [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ];
    let to_lab = [
        [0.2104542553, 0.793617785, -0.0040720468],
        [1.9779984951, -2.428592205, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.808675766],
    ];
    times(&to_lab, times(&to_cones, seen.map(|value| value.clamp(0.0, 1.0))).map(f64::cbrt))
}

fn distance(theme: &str, [a, b]: [&str; 2], vision: &Matrix) -> f64 {
    let [a, b] = [a, b].map(|name| oklab(times(vision, rgb(theme, name))));
    100.0 * a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

fn pairs<'a>(names: &'a [&'a str]) -> impl Iterator<Item = [&'a str; 2]> {
    names.iter().enumerate().flat_map(|(at, a)| names[at + 1..].iter().map(|b| [*a, *b]))
}

#[test]
fn no_two_meanings_have_one_colour() {
    let all = [&KINDS[..], &PARTS, &ZONES].concat();
    for theme in themes() {
        for pair in pairs(&all) {
            let apart = distance(theme, pair, &NORMAL);
            assert!(apart > 10.0, "{pair:?}: {apart:.1}");
        }
    }
}

#[test]
fn colours_of_a_picture_differ_without_red_or_green_cones() {
    for theme in themes() {
        for vision in [PROTANOPIA, DEUTERANOPIA] {
            for pair in pairs(&PARTS).chain(pairs(&ZONES)) {
                let apart = distance(theme, pair, &vision);
                assert!(apart > 8.0, "{pair:?}: {apart:.1}");
            }
        }
    }
}

#[test]
fn states_of_zones_are_a_row_from_full_to_explicitly_open() {
    for (theme, sign) in themes().into_iter().zip([-1.0, 1.0]) {
        let lightness = ZONES.map(|zone| sign * oklab(rgb(theme, zone))[0]);
        assert!(lightness.is_sorted(), "{lightness:?}");
    }
}
