//! The functions that a page calls. Numbers are arguments and return values. Texts and rows pass through buffers in the module's memory.

use crate::inputs::{MemoryFiles, PageExperiment};
use crate::run::SteppedRun;
use serde::Deserialize;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// The state of the module: one page, one thread.
#[derive(Default)]
struct PageModule {
    /// Text from the page.
    input: Vec<u8>,
    /// Text for the page.
    text: String,
    /// Rows for the page.
    rows: Vec<f64>,
    experiment: Option<(PageExperiment, &'static MemoryFiles)>,
    runs: BTreeMap<u32, SteppedRun>,
    next: u32,
}

/// The changes that a new run makes to the experiment.
#[derive(Deserialize)]
struct RunChange {
    settings: Vec<(String, String)>,
    seed: String,
}

thread_local! {
    static MODULE: RefCell<PageModule> = RefCell::default();
}

fn with<T>(call: impl FnOnce(&mut PageModule) -> T) -> T {
    MODULE.with(|module| call(&mut module.borrow_mut()))
}

impl PageModule {
    fn load(&mut self) -> Result<(), String> {
        let experiment: PageExperiment =
            serde_json::from_slice(&self.input).map_err(|error| error.to_string())?;
        let files = Box::leak(Box::new(experiment.memory_files()?));
        self.experiment = Some((experiment, files));
        Ok(())
    }

    fn create(&mut self) -> Result<u32, String> {
        let change: RunChange = serde_json::from_slice(&self.input).map_err(|error| error.to_string())?;
        let (experiment, files) = self.experiment.as_ref().ok_or("no experiment is loaded")?;
        let run = SteppedRun::new(experiment, files, &change.settings, &change.seed)?;
        self.next += 1;
        self.runs.insert(self.next, run);
        Ok(self.next)
    }

    fn run(&mut self, run: u32) -> &mut SteppedRun {
        self.runs.get_mut(&run).expect("the page uses the numbers that it got")
    }
}

/// Makes room for a text of this length from the page; returns where the page writes it.
#[unsafe(no_mangle)]
extern "C" fn input(length: usize) -> *mut u8 {
    with(|module| {
        module.input = vec![0; length];
        module.input.as_mut_ptr()
    })
}

/// Where the text for the page begins.
#[unsafe(no_mangle)]
extern "C" fn text() -> *const u8 {
    with(|module| module.text.as_ptr())
}

/// The length of the text for the page.
#[unsafe(no_mangle)]
extern "C" fn text_length() -> usize {
    with(|module| module.text.len())
}

/// Where the rows for the page begin.
#[unsafe(no_mangle)]
extern "C" fn rows() -> *const f64 {
    with(|module| module.rows.as_ptr())
}

/// Loads the experiment in the input; returns 1, or 0 with the reason as text.
#[unsafe(no_mangle)]
extern "C" fn load() -> u32 {
    with(|module| match module.load() {
        Ok(()) => 1,
        Err(reason) => {
            module.text = reason;
            0
        }
    })
}

/// Creates a run with the change in the input; returns its number, or 0 with the reason as text.
#[unsafe(no_mangle)]
extern "C" fn create() -> u32 {
    with(|module| match module.create() {
        Ok(number) => number,
        Err(reason) => {
            module.text = reason;
            0
        }
    })
}

/// Frees a run.
#[unsafe(no_mangle)]
extern "C" fn free(run: u32) {
    with(|module| module.runs.remove(&run));
}

/// Writes the description of a run as text.
#[unsafe(no_mangle)]
extern "C" fn describe(run: u32) {
    with(|module| module.text = module.run(run).description().to_string());
}

/// Advances a run to a time in nanoseconds and writes the rows of its events; returns their total length in numbers.
#[unsafe(no_mangle)]
extern "C" fn advance(run: u32, until_ns: f64) -> usize {
    with(|module| {
        module.rows.clear();
        let mut rows = std::mem::take(&mut module.rows);
        let run = module.run(run);
        run.advance(until_ns);
        run.drain(&mut rows);
        module.rows = rows;
        module.rows.len()
    })
}

/// Advances a run to its next event that has rows, and writes these; returns their total length in numbers.
#[unsafe(no_mangle)]
extern "C" fn step(run: u32) -> usize {
    with(|module| {
        module.rows.clear();
        let mut rows = std::mem::take(&mut module.rows);
        let run = module.run(run);
        run.step();
        run.drain(&mut rows);
        module.rows = rows;
        module.rows.len()
    })
}

/// Writes the state of a run's devices at a time in nanoseconds as rows; returns their total length in numbers.
#[unsafe(no_mangle)]
extern "C" fn snapshot(run: u32, now_ns: f64) -> usize {
    with(|module| {
        module.rows.clear();
        let mut rows = std::mem::take(&mut module.rows);
        module.run(run).snapshot(now_ns, &mut rows);
        module.rows = rows;
        module.rows.len()
    })
}

/// Time of a run's last event, in nanoseconds.
#[unsafe(no_mangle)]
extern "C" fn now(run: u32) -> f64 {
    with(|module| module.run(run).now_ns())
}

/// Time of a run's next event in nanoseconds; -1 if there is none. It is later than the time to which the run was advanced.
#[unsafe(no_mangle)]
extern "C" fn next_event(run: u32) -> f64 {
    with(|module| module.run(run).next_event_ns())
}

/// Whether events of a run remain.
#[unsafe(no_mangle)]
extern "C" fn has_more(run: u32) -> u32 {
    with(|module| u32::from(module.run(run).has_more()))
}

/// Writes the results of a run as text and frees it; returns 1, or 0 with the reason as text.
#[unsafe(no_mangle)]
extern "C" fn finish(run: u32) -> u32 {
    with(|module| {
        let ended = module.runs.remove(&run).expect("the page uses the numbers that it got");
        let (is_good, text) = match ended.finish() {
            Ok(text) => (1, text),
            Err(reason) => (0, reason),
        };
        module.text = text;
        is_good
    })
}
