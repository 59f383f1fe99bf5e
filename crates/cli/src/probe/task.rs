//! What is learned, and how.

use clap::ValueEnum;

/// A part of what can be learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum What {
    /// How fast it turns, and how exact the times of its answers are.
    Speed,
    /// Where its tracks begin.
    Tracks,
    /// How its arm moves: the order of blocks over heads and cylinders, seeks, changes of heads, settling.
    Seek,
    /// Its electronics: overheads, bus, access on arrival, cache, queue.
    Cache,
    /// All of these.
    All,
}

impl What {
    /// All parts, in the order in which they are learned.
    pub(super) const EACH: [What; 4] = [What::Speed, What::Tracks, What::Seek, What::Cache];

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            What::Speed => "speed",
            What::Tracks => "tracks",
            What::Seek => "seek",
            What::Cache => "cache",
            What::All => "all",
        }
    }

    /// What has to be known for it.
    fn needs(self) -> &'static [What] {
        match self {
            What::Speed => &[],
            What::Tracks | What::All => &[What::Speed],
            What::Seek | What::Cache => &[What::Speed, What::Tracks],
        }
    }
}

/// A way to find tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Method {
    /// The angles at which sectors end, foretold over runs of equal tracks.
    Lattice,
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Method::Lattice => "lattice",
        }
    }
}

/// The parts that are wanted and those that they need, in the order in which they are learned.
pub(super) fn with_needs(wanted: &[What]) -> Vec<What> {
    let is_wanted = |part: &What| {
        wanted.iter().any(|what| *what == What::All || what == part || what.needs().contains(part))
    };
    What::EACH.into_iter().filter(is_wanted).collect()
}

/// What a journal calls it.
pub(super) fn name(method: Method, parts: &[What]) -> String {
    let parts: Vec<&str> = parts.iter().map(|part| part.name()).collect();
    format!("{} {}", method.name(), parts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_what_a_part_needs_learned_before_it() {
        assert_eq!(with_needs(&[What::Speed]), [What::Speed]);
        assert_eq!(with_needs(&[What::Tracks]), [What::Speed, What::Tracks]);
        assert_eq!(with_needs(&[What::Cache]), [What::Speed, What::Tracks, What::Cache]);
        assert_eq!(with_needs(&[What::All]), What::EACH);
        assert_eq!(name(Method::Lattice, &What::EACH), "lattice speed,tracks,seek,cache");
    }
}
