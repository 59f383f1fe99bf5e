//! `--check`: compares the results with a drive file.

use super::learn::Found;
use crate::failure::Failure;
use headstack_model::{DriveSpec, Geometry};
use headstack_tracks::TrackMap;
use headstack_tracks::check::{Agreement, compare};

pub(super) struct Truth {
    name: String,
    map: TrackMap,
    rpm: f64,
}

pub(super) struct Verdict {
    pub(super) name: String,
    pub(super) tracks: Option<Agreement>,
    pub(super) rpm_off_ppm: Option<f64>,
    pub(super) is_whole: bool,
}

/// Error of the speed, in ppm, that counts as agreement.
const RPM_PPM: f64 = 100.0;

impl Truth {
    pub(super) fn from_spec(spec: &DriveSpec) -> Result<Truth, Failure> {
        let geometry = Geometry::new(spec).map_err(Failure::input)?;
        let rpm = spec.mechanics.rpm * (1.0 + spec.mechanics.rpm_deviation_percent / 100.0);
        Ok(Truth { name: spec.name.clone(), map: TrackMap::of_geometry(&geometry), rpm })
    }

    pub(super) fn judge(&self, found: &Found, is_open: bool) -> Verdict {
        Verdict {
            name: self.name.clone(),
            tracks: found.map.as_ref().map(|map| compare(map, &self.map)),
            rpm_off_ppm: found.spin.map(|spin| (spin.rpm() / self.rpm - 1.0) * 1e6),
            is_whole: !is_open,
        }
    }
}

impl Verdict {
    /// Whether the findings agree, and none is missing.
    pub(super) fn is_good(&self) -> bool {
        let tracks = self.tracks.is_none_or(|found| found.missed == 0 && found.false_ones == 0);
        let is_any = self.tracks.is_some() || self.rpm_off_ppm.is_some();
        self.is_whole && is_any && tracks && self.rpm_off_ppm.is_none_or(|off| off.abs() <= RPM_PPM)
    }

    /// The result of the command.
    pub(super) fn end(&self) -> Result<(), Failure> {
        match (self.is_whole, self.is_good()) {
            (false, _) => Err(Failure::Check("what was to be compared was not all learned".to_string())),
            (true, true) => Ok(()),
            (true, false) => Err(Failure::Check(format!("what was learned differs from {}", self.name))),
        }
    }
}
