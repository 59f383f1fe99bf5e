//! Drives: their keys, zones, seek curve and the places of blocks.

use crate::error::{CallError, detached, from_json, input_error};
use crate::files::MachineFiles;
use headstack::model::{Geometry, Lbn, SeekCurve};
use headstack::{DriveSpec, load_drive};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use std::sync::{Arc, OnceLock};

/// A drive. Python's class `Drive` wraps it.
#[pyclass(name = "Drive", module = "headstack._native", frozen)]
pub(crate) struct NativeDrive {
    pub(crate) spec: DriveSpec,
    /// Built when it is first needed.
    geometry: OnceLock<Arc<Geometry>>,
}

/// The zones as columns.
#[derive(Default)]
struct ZoneColumns {
    first_lbn: Vec<i64>,
    sectors: Vec<i64>,
    first_cylinder: Vec<i64>,
    sectors_per_track: Vec<f64>,
}

impl ZoneColumns {
    fn push(&mut self, first: Lbn, end: u64, cylinder: u32, sectors_per_track: f64) {
        self.first_lbn.push(first.0 as i64);
        self.sectors.push((end - first.0) as i64);
        self.first_cylinder.push(cylinder.into());
        self.sectors_per_track.push(sectors_per_track);
    }
}

/// First cylinder of each zone of the drive file, and its mean number of sectors per track; none for a layout without zones.
fn zones_of(spec: &DriveSpec) -> Vec<(u32, f64)> {
    let geometry = &spec.geometry;
    let zones = geometry.zones.iter().map(|zone| (zone.first_cylinder, f64::from(zone.sectors_per_track)));
    let bands = geometry.band_zones.iter().map(|zone| {
        let heads = zone.sectors_per_track.len().max(1) as f64;
        let sectors: f64 = zone.sectors_per_track.iter().map(|sectors| f64::from(*sectors)).sum();
        (zone.first_cylinder, sectors / heads)
    });
    zones.chain(bands).collect()
}

impl NativeDrive {
    fn new(spec: DriveSpec) -> NativeDrive {
        NativeDrive { spec, geometry: Default::default() }
    }

    fn geometry(&self) -> Result<Arc<Geometry>, CallError> {
        if let Some(geometry) = self.geometry.get() {
            return Ok(Arc::clone(geometry));
        }
        let built = Geometry::new(&self.spec).map_err(|error| CallError::Input(error.to_string()))?;
        Ok(Arc::clone(self.geometry.get_or_init(|| Arc::new(built))))
    }

    /// The zones of the drive file, or for a layout without them the runs of tracks with one number of sectors.
    fn zone_columns(&self) -> Result<ZoneColumns, CallError> {
        let (geometry, zones) = (self.geometry()?, zones_of(&self.spec));
        if zones.is_empty() {
            return Ok(runs_of_tracks(&geometry));
        }
        let zone_at = |lbn: u64| {
            let cylinder = geometry.track_at(Lbn(lbn)).cylinder;
            zones.partition_point(|(first, _)| *first <= cylinder)
        };
        let (mut columns, mut first) = (ZoneColumns::default(), 0);
        while first < geometry.sectors() {
            let zone = zone_at(first);
            // Zones follow each other in LBN order, so bisection finds the first block of the next one.
            let (mut inside, mut end) = (first, geometry.sectors());
            while end - inside > 1 {
                let middle = inside + (end - inside) / 2;
                if zone_at(middle) == zone { inside = middle } else { end = middle }
            }
            let (cylinder, sectors_per_track) = zones[zone.saturating_sub(1)];
            columns.push(Lbn(first), end, cylinder, sectors_per_track);
            first = end;
        }
        Ok(columns)
    }
}

fn runs_of_tracks(geometry: &Geometry) -> ZoneColumns {
    let (mut columns, mut next) = (ZoneColumns::default(), Some(Lbn(0)));
    while let Some(lbn) = next {
        let track = geometry.track_at(lbn);
        let density = f64::from(track.sectors_per_track);
        if columns.sectors_per_track.last() != Some(&density) {
            columns.push(lbn, lbn.0, track.cylinder, density);
        }
        next = geometry.next_track_boundary(lbn);
        let end = next.map_or(geometry.sectors(), |next| next.0);
        *columns.sectors.last_mut().expect("the first track begins a zone") += (end - lbn.0) as i64;
    }
    columns
}

type NumberArray<'py> = Bound<'py, PyArray1<i64>>;
type ZoneArrays<'py> = (NumberArray<'py>, NumberArray<'py>, NumberArray<'py>, Bound<'py, PyArray1<f64>>);

#[pymethods]
impl NativeDrive {
    /// The shipped drive of this name, or the drive in the file at this path.
    #[staticmethod]
    fn load(py: Python<'_>, name: &str) -> PyResult<NativeDrive> {
        detached(py, || Ok(NativeDrive::new(load_drive(name, &MachineFiles)?)))
    }

    /// The drive of a drive file's text.
    #[staticmethod]
    fn from_toml(py: Python<'_>, text: &str, origin: &str) -> PyResult<NativeDrive> {
        detached(py, || {
            let spec = DriveSpec::parse(text, origin).map_err(|error| CallError::Input(error.to_string()))?;
            Ok(NativeDrive::new(spec))
        })
    }

    fn to_toml(&self) -> String {
        self.spec.to_toml()
    }

    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = serde_json::to_string(&self.spec).map_err(input_error)?;
        from_json(py, &text)
    }

    /// The columns `first_lbn`, `sectors`, `first_cylinder` and `sectors_per_track`.
    fn zones<'py>(&self, py: Python<'py>) -> PyResult<ZoneArrays<'py>> {
        let ZoneColumns { first_lbn, sectors, first_cylinder, sectors_per_track } =
            detached(py, || self.zone_columns())?;
        let numbers = [first_lbn, sectors, first_cylinder].map(|values| values.into_pyarray(py));
        let [first_lbn, sectors, first_cylinder] = numbers;
        Ok((first_lbn, sectors, first_cylinder, sectors_per_track.into_pyarray(py)))
    }

    /// Times in nanoseconds of seeks over 0, 1, 2, … cylinders, for reads and for writes.
    fn seek_curves<'py>(&self, py: Python<'py>) -> PyResult<[NumberArray<'py>; 2]> {
        let curves = detached(py, || {
            let (seek, cylinders) = (&self.spec.mechanics.seek, self.spec.geometry.cylinders);
            let reads = SeekCurve::for_reads(seek, cylinders);
            let writes = SeekCurve::for_writes(seek, cylinders).unwrap_or_else(|| reads.clone());
            let times = |curve: &SeekCurve| -> Vec<i64> {
                (0..cylinders).map(|distance| curve.time(distance).0 as i64).collect()
            };
            Ok([times(&reads), times(&writes)])
        })?;
        Ok(curves.map(|values| values.into_pyarray(py)))
    }

    /// Cylinder, head and sector of each block.
    fn locate<'py>(
        &self,
        py: Python<'py>,
        lbn: PyReadonlyArray1<'py, i64>,
    ) -> PyResult<[NumberArray<'py>; 3]> {
        let lbns = lbn.as_slice().map_err(input_error)?.to_vec();
        let places = detached(py, || {
            let geometry = self.geometry()?;
            let mut places = [Vec::new(), Vec::new(), Vec::new()];
            for (index, lbn) in lbns.into_iter().enumerate() {
                let block = u64::try_from(lbn).ok().filter(|lbn| *lbn < geometry.sectors());
                let block = block.ok_or_else(|| {
                    let last = geometry.sectors() - 1;
                    CallError::Input(format!("lbn[{index}]: {lbn} is outside 0 to {last}"))
                })?;
                let place = geometry.locate(Lbn(block));
                let values = [place.cylinder, place.head, place.sector];
                places.iter_mut().zip(values).for_each(|(column, value)| column.push(value.into()));
            }
            Ok(places)
        })?;
        Ok(places.map(|values| values.into_pyarray(py)))
    }
}
