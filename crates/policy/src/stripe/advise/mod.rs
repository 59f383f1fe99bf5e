//! Stripe-unit advisors: how many consecutive blocks should lie on one disk.
//!
//! A small unit spreads a request over many disks: less to transfer on each, but each positions its arm. A large one leaves the
//! other disks to other requests. Advisors know the disk's times ([`DiskTimes`]), the number of disks, and the size and number of
//! concurrent requests. They have no clock and never act. [`all`] lists rules for one size and concurrency; [`ForkJoin`] uses an
//! array's observations of its load, and [`OnLine`] changes the unit during the run.
//!
//! P is the mean positioning time (seek and rotational latency), X the rate of a long transfer. P·X is the amount that the disk
//! could transfer in the time of one positioning, here [`DiskTimes::reach`].

mod chen_lee;
mod chen_patterson;
mod disk;
mod fork_join;
mod lee_katz;
mod online;
mod parity;
mod span;

pub use disk::DiskTimes;
pub use fork_join::{ForkJoin, Observed, Others, Size};
pub use online::OnLine;
pub use span::disks_of_request;

/// The input of an advisor.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The times of a disk of the array.
    pub disk: &'a DiskTimes,
    /// Disks of the array (N).
    pub disks: u32,
    /// Mean number of requests in the array at once, at least 1 (L).
    pub concurrency: f64,
    /// Mean size of a request in blocks (Z).
    pub request_sectors: f64,
    /// The share of writes where the array is a RAID-5; `None` without parity.
    pub parity_writes: Option<f64>,
    /// Requests begin at multiples of this number of blocks; `None`: at the start of a unit.
    pub alignment: Option<f64>,
}

impl Question<'_> {
    fn others(&self) -> f64 {
        (self.concurrency - 1.0).max(0.0)
    }
}

/// A rule in the list of them all.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name on the command line and in files.
    pub name: &'static str,
    /// Its rule, in one line.
    pub summary: &'static str,
    /// Where it was described.
    pub source: &'static str,
    /// The unit in sectors, not rounded.
    advise: fn(&Question<'_>) -> f64,
}

impl Entry {
    /// The stripe unit that the rule gives, in blocks; at least one.
    pub fn unit(&self, question: &Question<'_>) -> f64 {
        (self.advise)(question).max(1.0)
    }
}

/// All rules.
pub fn all() -> &'static [Entry] {
    const ALL: [Entry; 6] = [
        fork_join::ENTRY,
        chen_patterson::KNOWN,
        chen_patterson::UNKNOWN,
        lee_katz::ENTRY,
        chen_lee::ANY,
        chen_lee::WRITES,
    ];
    &ALL
}

/// The rule of this name.
pub fn by_name(name: &str) -> Option<&'static Entry> {
    all().iter().find(|entry| entry.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstack_model::Nanos;

    /// A disk of the striping study: P·X is 84.6 KiB.
    fn disk() -> DiskTimes {
        let (positioning, reach_sectors) = (11.67e6, 84.6 * 2.0);
        DiskTimes::plain(Nanos(positioning as u64), positioning / reach_sectors)
    }

    fn kib(name: &str, disks: u32, concurrency: f64, request_kib: f64) -> f64 {
        let disk = disk();
        let question = Question {
            disk: &disk,
            disks,
            concurrency,
            request_sectors: request_kib * 2.0,
            parity_writes: None,
            alignment: None,
        };
        by_name(name).expect("the rule is listed").unit(&question) / 2.0
    }

    #[test]
    fn lee_katz_gives_the_units_of_the_striping_study() {
        let expected = [(512, 104, 275), (1024, 147, 389), (2048, 208, 551), (4096, 294, 779)];
        for (request, two, eight) in expected {
            let unit = |concurrency| kib("lee-katz", 4, concurrency, f64::from(request)).round() as i32;
            assert_eq!((unit(2.0), unit(8.0)), (two, eight), "{request} KiB");
        }
    }

    #[test]
    fn chen_rules_match_manual_calculation() {
        // 0.5 + 84.6 / 4 · 7; 84.6 · 2 / 3; 84.6 / 2; (0.5 + 84.6 / 4 · 15) / 4.
        let near = |name, concurrency, expected: f64| {
            let unit = kib(name, 16, concurrency, 64.0);
            assert!((unit - expected).abs() < 1e-3 * expected, "{name}: {unit} KiB, expected {expected}");
        };
        near("chen-patterson", 8.0, 148.55);
        near("chen-patterson-any", 8.0, 56.4);
        near("chen-lee", 8.0, 42.3);
        near("chen-lee-writes", 16.0, 79.4375);
    }

    #[test]
    fn chosen_unit_is_never_less_than_a_sector() {
        assert!((kib("chen-patterson", 4, 1.0, 512.0) - 0.5).abs() < 1e-9);
        assert!((kib("lee-katz", 4, 1.0, 512.0) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn every_rule_has_a_unique_name() {
        let mut names: Vec<&str> = all().iter().map(|entry| entry.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all().len());
    }
}
