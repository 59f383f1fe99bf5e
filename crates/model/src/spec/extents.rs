//! Keys of `[geometry.extents]`.

use schemars::JsonSchema;
use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, SerializeTuple, Serializer};

/// `[geometry.extents]`: a layout read off a real drive, as a grammar of repeated runs of tracks.
///
/// A *track kind* says which sectors of a track hold data. A *run* is a track, or a group, repeated: each time on by the
/// same step of cylinders (which may be negative) and of angle. A *group* is a list of runs, one after the other in LBN
/// order; its runs' cylinders and angles count from where the group is put. The last group is the disk. How many blocks
/// a run or a group holds follows from its parts and is not written.
///
/// ```toml
/// [geometry.extents]
/// # kinds: first sector that holds data, sectors that do, sectors of the whole track
/// tracks = [[0, 1170, 1170], [0, 1114, 1114]]
/// groups = [
///   # runs of tracks: head, kind, times, cylinder, cylinder step, angle, angle step
///   [[0, 0, 32, 31, -1, 0.0, 0.24], [1, 1, 32, 0, 1, 0.69, 0.24]],
///   # runs of groups: group, times, cylinder, cylinder step, angle, angle step
///   [[0, 17, 0, 32, 0.0, 0.0769]],
/// ]
/// slips = [[59812, 1], [61773, 4]] # place, places
/// remaps = [[1000, 1, 16, 1, 1113]] # block, blocks, cylinder, head, sector
/// ```
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Extents {
    /// Kinds of tracks.
    pub tracks: Vec<TrackKind>,
    /// Groups of runs. A run repeats an earlier group; the last group is the disk.
    pub groups: Vec<Vec<ExtentRun>>,
    /// Slipped places: pairs of the first place and their number, in rising order.
    ///
    /// A place is a sector that holds data, counted over the whole disk in LBN order, including the slipped ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slips: Vec<(u64, u64)>,
    /// Blocks that lie elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remaps: Vec<ExtentRemap>,
}

/// A kind of track. Written as `[first_sector, sectors, sectors_per_track]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, JsonSchema)]
#[serde(from = "(u32, u32, u32)", into = "(u32, u32, u32)")]
pub struct TrackKind {
    /// First physical sector that holds data. The angle of a run is that of this sector.
    pub first_sector: u32,
    /// Physical sectors that hold data.
    pub sectors: u32,
    /// Physical sectors of the whole track.
    pub sectors_per_track: u32,
}

impl From<(u32, u32, u32)> for TrackKind {
    fn from((first_sector, sectors, sectors_per_track): (u32, u32, u32)) -> TrackKind {
        TrackKind { first_sector, sectors, sectors_per_track }
    }
}

impl From<TrackKind> for (u32, u32, u32) {
    fn from(kind: TrackKind) -> (u32, u32, u32) {
        (kind.first_sector, kind.sectors, kind.sectors_per_track)
    }
}

/// A run of blocks that lies elsewhere. Written as `[lbn, sectors, cylinder, head, sector]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, JsonSchema)]
#[serde(from = "(u64, u32, u32, u32, u32)", into = "(u64, u32, u32, u32, u32)")]
pub struct ExtentRemap {
    /// First block.
    pub lbn: u64,
    /// Blocks in the run.
    pub sectors: u32,
    /// Cylinder of the track they lie on, which must be a track of the layout.
    pub cylinder: u32,
    /// Head of the track they lie on.
    pub head: u32,
    /// Physical sector of the first.
    pub sector: u32,
}

impl From<(u64, u32, u32, u32, u32)> for ExtentRemap {
    fn from((lbn, sectors, cylinder, head, sector): (u64, u32, u32, u32, u32)) -> ExtentRemap {
        ExtentRemap { lbn, sectors, cylinder, head, sector }
    }
}

impl From<ExtentRemap> for (u64, u32, u32, u32, u32) {
    fn from(remap: ExtentRemap) -> (u64, u32, u32, u32, u32) {
        (remap.lbn, remap.sectors, remap.cylinder, remap.head, remap.sector)
    }
}

/// What a run repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeated {
    /// One track.
    Track {
        /// Its head.
        head: u32,
        /// Its kind, as an index of [`Extents::tracks`].
        kind: u32,
    },
    /// A group, as an index of [`Extents::groups`].
    Group(u32),
}

/// A track or a group, repeated.
///
/// Written as `[head, kind, times, cylinder, cylinder_step, angle, angle_step]` or, for a group, as
/// `[group, times, cylinder, cylinder_step, angle, angle_step]`.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema)]
#[schemars(from = "Vec<f64>", into = "Vec<f64>")]
pub struct ExtentRun {
    /// The repeated track or group.
    pub of: Repeated,
    /// Number of repetitions.
    pub times: u32,
    /// Cylinder of the first, from that of the group.
    pub cylinder: i32,
    /// Cylinders from one to the next.
    pub cylinder_step: i32,
    /// Angle of the first, relative to that of the group.
    ///
    /// *Units:* revolutions.
    pub angle_turns: f64,
    /// Angle from one repetition to the next.
    ///
    /// *Units:* revolutions.
    pub angle_step_turns: f64,
}

impl Serialize for ExtentRun {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tuple = match self.of {
            Repeated::Track { head, kind } => {
                let mut tuple = serializer.serialize_tuple(7)?;
                tuple.serialize_element(&head)?;
                tuple.serialize_element(&kind)?;
                tuple
            }
            Repeated::Group(group) => {
                let mut tuple = serializer.serialize_tuple(6)?;
                tuple.serialize_element(&group)?;
                tuple
            }
        };
        tuple.serialize_element(&self.times)?;
        tuple.serialize_element(&self.cylinder)?;
        tuple.serialize_element(&self.cylinder_step)?;
        tuple.serialize_element(&self.angle_turns)?;
        tuple.serialize_element(&self.angle_step_turns)?;
        tuple.end()
    }
}

impl<'de> Deserialize<'de> for ExtentRun {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ExtentRun, D::Error> {
        let numbers = Vec::<f64>::deserialize(deserializer)?;
        let (of, rest) = match numbers.len() {
            7 => (Repeated::Track { head: whole(numbers[0])?, kind: whole(numbers[1])? }, &numbers[2..]),
            6 => (Repeated::Group(whole(numbers[0])?), &numbers[1..]),
            count => return Err(D::Error::custom(format!("{count} numbers; a run has 7, or 6 for a group"))),
        };
        Ok(ExtentRun {
            of,
            times: whole(rest[0])?,
            cylinder: whole(rest[1])?,
            cylinder_step: whole(rest[2])?,
            angle_turns: rest[3],
            angle_step_turns: rest[4],
        })
    }
}

/// A number of a run that counts something.
fn whole<T: TryFrom<i64>, E: Error>(number: f64) -> Result<T, E> {
    let refused = || E::custom(format!("{number} is out of range or no whole number"));
    if number.fract() != 0.0 {
        return Err(refused());
    }
    // A float beyond the range of i64 becomes its end, which no T holds.
    T::try_from(number as i64).map_err(|_| refused())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
        tracks = [[0, 1170, 1170], [2, 1100, 1114]]
        groups = [
            [[0, 0, 32, 31, -1, 0.0, 0.24], [1, 1, 32, 0, 1, 0.5, 0.24]],
            [[0, 17, 0, 32, 0, 0.0769]],
        ]
        slips = [[59812, 1], [61773, 4]]
        remaps = [[1000, 1, 16, 1, 1113]]
    ";

    #[test]
    fn short_form_of_extents_round_trips() {
        let extents: Extents = toml::from_str(TEXT).expect("the text is right");
        assert_eq!(extents.tracks[1], TrackKind { first_sector: 2, sectors: 1100, sectors_per_track: 1114 });
        assert_eq!(extents.groups[0][0].of, Repeated::Track { head: 0, kind: 0 });
        assert_eq!(extents.groups[0][0].cylinder_step, -1);
        let disk = extents.groups[1][0];
        assert_eq!((disk.of, disk.times, disk.angle_step_turns), (Repeated::Group(0), 17, 0.0769));
        assert_eq!(extents.remaps[0].sector, 1113);
        let written = toml::to_string(&extents).expect("extents are expressible in TOML");
        assert_eq!(toml::from_str::<Extents>(&written).expect("what was written can be read"), extents);
    }

    #[test]
    fn run_with_invalid_numbers_is_rejected() {
        for (run, reason) in [
            ("[0, 0, 32, 31, -1]", "5 numbers"),
            ("[0, 0, 1.5, 31, -1, 0.0, 0.24]", "1.5 is out of range"),
            ("[-1, 0, 1, 31, -1, 0.0, 0.24]", "-1 is out of range"),
            ("[0, 0, 1, 3e99, -1, 0.0, 0.24]", "is out of range"),
            ("[0, 0, nan, 3, -1, 0.0, 0.24]", "NaN is out of range"),
        ] {
            let text = format!("tracks = [[0, 9, 9]]\ngroups = [[{run}]]");
            let error = toml::from_str::<Extents>(&text).expect_err(run);
            assert!(error.message().contains(reason), "{run}: {error}");
        }
    }
}
