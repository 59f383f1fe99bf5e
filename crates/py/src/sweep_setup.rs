//! Orders and layers in Python in the simulations of a sweep. Each cell has copies of its own, so that no cell sees what another has left.

use crate::error::CallError;
use crate::order::RaisedSlot;
use crate::worker::{ChooserPlan, LayerPlan, check_answered, put_into};
use headstack::sim::LayerPlace;
use headstack::{Results, Rig, Simulation};
use headstack_sweep::SweepSetup;
use pyo3::prelude::*;
use std::ops::ControlFlow;

/// The orders and layers of a rig.
pub(crate) struct PythonSetup {
    orders: Vec<ChooserPlan>,
    layers: Vec<LayerPlan>,
    content: Vec<u8>,
}

impl PythonSetup {
    /// `orders` and `layers` are those of [`Simulation`](crate::simulation::NativeSimulation); `content` is all that decides about them.
    pub(crate) fn new(
        orders: Vec<(Py<PyAny>, bool, bool)>,
        layers: Vec<(Py<PyAny>, u32, bool, bool)>,
        content: Vec<u8>,
    ) -> PythonSetup {
        let order = |(chooser, needs_positions, is_host)| ChooserPlan { chooser, needs_positions, is_host };
        let layer = |(object, number, is_device, completes)| {
            let place = if is_device { LayerPlace::Device(number) } else { LayerPlace::Volume(number) };
            LayerPlan { object, place, completes }
        };
        let (orders, layers) =
            (orders.into_iter().map(order).collect(), layers.into_iter().map(layer).collect());
        PythonSetup { orders, layers, content }
    }

    /// Copies of the orders and layers.
    fn copies(&self) -> PyResult<(Vec<ChooserPlan>, Vec<LayerPlan>)> {
        Python::attach(|py| {
            let copy = py.import("copy")?.getattr("deepcopy")?;
            let copied = |object: &Py<PyAny>| -> PyResult<Py<PyAny>> { Ok(copy.call1((object,))?.unbind()) };
            let order = |order: &ChooserPlan| {
                let chooser = copied(&order.chooser)?;
                Ok(ChooserPlan { chooser, ..*order })
            };
            let layer = |layer: &LayerPlan| {
                let object = copied(&layer.object)?;
                Ok(LayerPlan { object, ..*layer })
            };
            let orders = self.orders.iter().map(order).collect::<PyResult<_>>()?;
            Ok((orders, self.layers.iter().map(layer).collect::<PyResult<_>>()?))
        })
    }

    fn run_whole(
        &self,
        rig: &Rig,
        mut simulation: Simulation<'_>,
        stops: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Results>, CallError> {
        let raised = RaisedSlot::default();
        let (orders, layers) = self.copies().map_err(CallError::Raised)?;
        let layers = put_into(&mut simulation, rig, &orders, &layers, &raised)?;
        let mut is_stopped = stops();
        if !is_stopped {
            simulation.run_while(&mut |_| {
                is_stopped = stops();
                let ends = is_stopped || raised.has_raised();
                if ends { ControlFlow::Break("stopped".to_string()) } else { ControlFlow::Continue(()) }
            });
        }
        match raised.into_raised() {
            Some(error) => Err(CallError::Raised(error)),
            None if is_stopped => Ok(None),
            None => {
                check_answered(&layers)?;
                Ok(Some(simulation.finish()?))
            }
        }
    }
}

impl SweepSetup for PythonSetup {
    fn content(&self) -> Vec<u8> {
        self.content.clone()
    }

    fn run(
        &self,
        rig: &Rig,
        simulation: Simulation<'_>,
        stops: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Results>, String> {
        self.run_whole(rig, simulation, stops).map_err(|error| error.to_string())
    }
}
