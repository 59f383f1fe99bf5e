//! Rigs: loading, keys, volumes.

use crate::drive::NativeDrive;
use crate::error::{CallError, detached, from_json, input_error};
use crate::files::MachineFiles;
use headstack::model::drives;
use headstack::{Rig, load_rig};
use pyo3::prelude::*;

/// A rig. Python's class `Rig` wraps it.
#[pyclass(name = "Rig", module = "headstack._native", frozen)]
pub(crate) struct NativeRig {
    pub(crate) rig: Rig,
    /// The name by which it was loaded, for results.
    pub(crate) name: String,
}

#[pymethods]
impl NativeRig {
    /// The shipped rig or drive of this name, or the rig or drive in the file at this path.
    #[staticmethod]
    fn load(py: Python<'_>, name: &str) -> PyResult<NativeRig> {
        detached(py, || Ok(NativeRig { rig: load_rig(name, &MachineFiles)?, name: name.to_string() }))
    }

    /// The rig of a rig file's text, whose drives are shipped ones.
    #[staticmethod]
    fn from_toml(py: Python<'_>, text: &str, origin: &str) -> PyResult<NativeRig> {
        detached(py, || {
            let rig = Rig::parse(text, origin, &mut |name| drives::load(name));
            let rig = rig.map_err(|error| CallError::Input(error.to_string()))?;
            Ok(NativeRig { rig, name: origin.to_string() })
        })
    }

    /// The rig of a single drive.
    #[staticmethod]
    fn of_drive(drive: &NativeDrive) -> NativeRig {
        NativeRig { rig: Rig::from_drive(drive.spec.clone()), name: drive.spec.name.clone() }
    }

    /// The same rig with keys set, each by its dotted path to a value in TOML.
    fn with_keys(&self, py: Python<'_>, keys: Vec<(String, String)>) -> PyResult<NativeRig> {
        detached(py, || {
            let mut rig = self.rig.clone();
            let keys = keys.iter().map(|(path, value)| (path.as_str(), value.as_str()));
            rig.set_all(keys).map_err(|error| CallError::Input(error.to_string()))?;
            Ok(NativeRig { rig, name: self.name.clone() })
        })
    }

    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    #[getter]
    fn title(&self) -> String {
        self.rig.title()
    }

    /// Name, sectors and bytes of a sector of each volume.
    fn volumes(&self) -> Vec<(String, u64, u32)> {
        let volumes = self.rig.volumes().into_iter();
        volumes.map(|volume| (volume.name, volume.sectors, volume.sector_bytes)).collect()
    }

    /// Names of the devices, by number.
    fn devices(&self) -> Vec<String> {
        self.rig.resolved().drives().map(|drive| drive.name).collect()
    }

    fn to_toml(&self) -> String {
        self.rig.to_toml()
    }

    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = serde_json::to_string(self.rig.resolved()).map_err(input_error)?;
        from_json(py, &text)
    }
}
