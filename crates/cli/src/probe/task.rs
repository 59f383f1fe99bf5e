//! The parts that the prober can learn, and the methods to find tracks.

use clap::ValueEnum;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum What {
    /// The spindle speed, and how exact the response times are.
    Speed,
    /// The track boundaries.
    Tracks,
    /// The mechanics: the order of blocks over heads and cylinders, seeks, head switches, settling.
    Seek,
    /// The electronics: overheads, bus, zero-latency access, cache, queue.
    Cache,
    /// All of these.
    All,
}

impl What {
    /// All parts, in learning order.
    pub(super) const EACH: [What; 4] = [What::Speed, What::Tracks, What::Seek, What::Cache];

    pub(super) fn name(self) -> &'static str {
        match self {
            What::Speed => "speed",
            What::Tracks => "tracks",
            What::Seek => "seek",
            What::Cache => "cache",
            What::All => "all",
        }
    }

    /// Parts that must be learned before this one.
    fn needs(self, method: Method) -> &'static [What] {
        match self {
            What::Tracks if method.translates() => &[],
            What::Tracks | What::All => &[What::Speed],
            What::Seek | What::Cache => &[What::Speed, What::Tracks],
            What::Speed => &[],
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Method {
    /// The angles at which sectors end, predicted over runs of equal tracks: few requests, any rotating disk.
    Lattice,
    /// A binary search by response times for the end of the first track, then a check of the end of each: two
    /// or three reads per track.
    Timing,
    /// Address translations by the disk, two per track: SCSI disks that translate addresses, and simulated
    /// disks.
    Query,
    /// Address translations in five steps (geometry, defects, zones, slips, remaps): a few thousand, for
    /// layouts of SCSI disks of the 1990s.
    Scsi,
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Method::Lattice => "lattice",
            Method::Timing => "timing",
            Method::Query => "query",
            Method::Scsi => "scsi",
        }
    }

    /// Whether the method uses address translation and no response times.
    pub(super) fn translates(self) -> bool {
        matches!(self, Method::Query | Method::Scsi)
    }
}

/// The wanted parts and those that they need, in learning order. `all` stands for all parts that the method can learn.
///
/// *Errors:* a part that the method cannot learn.
pub(super) fn with_needs(wanted: &[What], method: Method) -> Result<Vec<What>, String> {
    if wanted.contains(&What::Seek) && method != Method::Lattice {
        let name = method.name();
        return Err(format!("--what seek: seeks are learned from angles, and --method {name} finds none"));
    }
    let all = |part: &What| match method {
        Method::Lattice => true,
        _ => *part != What::Seek,
    };
    let is_wanted = |part: &What| {
        let needed = |what: &What| what == part || what.needs(method).contains(part);
        wanted.iter().any(|what| if *what == What::All { all(part) } else { needed(what) })
    };
    Ok(What::EACH.into_iter().filter(is_wanted).collect())
}

/// Its name in a journal.
pub(super) fn name(method: Method, parts: &[What]) -> String {
    let parts: Vec<&str> = parts.iter().map(|part| part.name()).collect();
    format!("{} {}", method.name(), parts.join(","))
}

pub(super) fn names(parts: &[What]) -> String {
    let names: Vec<&str> = parts.iter().map(|part| part.name()).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prerequisites_of_a_part_are_learned_first() {
        let lattice = |wanted: &[What]| with_needs(wanted, Method::Lattice).expect("all can be learned");
        assert_eq!(lattice(&[What::Speed]), [What::Speed]);
        assert_eq!(lattice(&[What::Tracks]), [What::Speed, What::Tracks]);
        assert_eq!(lattice(&[What::Cache]), [What::Speed, What::Tracks, What::Cache]);
        assert_eq!(lattice(&[What::All]), What::EACH);
        assert_eq!(name(Method::Lattice, &What::EACH), "lattice speed,tracks,seek,cache");
    }

    #[test]
    fn method_learns_only_the_parts_it_finds() {
        let query = |wanted: &[What]| with_needs(wanted, Method::Query);
        assert_eq!(query(&[What::Tracks]), Ok(vec![What::Tracks]));
        assert_eq!(query(&[What::All]), Ok(vec![What::Speed, What::Tracks, What::Cache]));
        let seek = query(&[What::Seek]).expect_err("it finds no angles");
        assert_eq!(seek, "--what seek: seeks are learned from angles, and --method query finds none");
    }
}
