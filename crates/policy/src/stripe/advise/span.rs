//! How many stripe units a request touches, by where it begins.

/// The numbers of units that requests of `sectors` blocks touch, each with its share of the requests. They begin at multiples of `alignment`
/// blocks, at random; `None`: at the start of a unit.
pub(super) fn spans(sectors: f64, unit: f64, alignment: Option<f64>) -> [(f64, f64); 2] {
    let least = (sectors / unit).ceil().max(1.0);
    let more =
        alignment.map_or(0.0, |alignment| share_of_one_more(sectors - (least - 1.0) * unit, unit, alignment));
    [(1.0 - more, least), (more, least + 1.0)]
}

/// The share of the beginnings after which `rest` blocks, at most a unit, reach into the next unit.
fn share_of_one_more(rest: f64, unit: f64, alignment: f64) -> f64 {
    // Multiples of the alignment fall on multiples of what it has in common with the unit.
    let step = common(unit.round().max(1.0) as u64, alignment.round().max(1.0) as u64) as f64;
    let places = (unit / step).round();
    let fitting = ((unit - rest) / step + 1e-9).floor() + 1.0;
    (1.0 - fitting / places).clamp(0.0, 1.0)
}

fn common(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common(b, a % b) }
}

/// The mean number of disks of a request of `sectors` blocks on an array of `disks`.
pub fn disks_of_request(sectors: f64, unit: f64, alignment: Option<f64>, disks: u32) -> f64 {
    spans(sectors, unit, alignment).iter().map(|(share, units)| share * units.min(f64::from(disks))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean number of units by trying each beginning.
    fn counted(sectors: u64, unit: u64, alignment: u64) -> f64 {
        let touched =
            |place: u64| ((place * alignment + sectors - 1) / unit - place * alignment / unit + 1) as f64;
        (0..unit).map(touched).sum::<f64>() / unit as f64
    }

    #[test]
    fn mean_number_of_units_is_that_of_all_beginnings() {
        for unit in [1, 8, 32, 96, 128] {
            for sectors in [1, 7, 8, 32, 33, 100, 128, 300] {
                for alignment in [1, 8, 32, 48, 128, 512] {
                    let found: f64 = spans(sectors as f64, unit as f64, Some(alignment as f64))
                        .iter()
                        .map(|(share, units)| share * units)
                        .sum();
                    let counted = counted(sectors, unit, alignment);
                    assert!(
                        (found - counted).abs() < 1e-9,
                        "{sectors} in {unit} from {alignment}: {found}, {counted}"
                    );
                }
            }
        }
    }

    #[test]
    fn request_at_the_start_of_a_unit_touches_no_more_than_it_fills() {
        assert_eq!(spans(128.0, 128.0, None)[0], (1.0, 1.0));
        assert_eq!(spans(130.0, 128.0, None)[0], (1.0, 2.0));
        assert!((disks_of_request(1000.0, 128.0, Some(1.0), 4) - 4.0).abs() < 1e-9);
    }
}
