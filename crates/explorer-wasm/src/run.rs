//! A simulation that advances step by step and reports its events as rows.

use crate::describe::describe;
use crate::inputs::{MemoryFiles, PageExperiment};
use crate::rows;
use crate::snapshot::{self, ZoneCells};
use headstack::sim::rig::Rig;
use headstack::sim::{Finished, Observer};
use headstack::workload::{Issue, Load};
use headstack::{Instant, Simulation};
use serde_json::Value;
use std::cell::RefCell;
use std::rc::{Rc, Weak};

/// Rows that have not been read.
type SharedRows = Rc<RefCell<Vec<f64>>>;

/// Adds the rows of requests. The simulation borrows its observer for the life of the program, so the observer is never freed. Its weak
/// reference lets the rows be freed with the run.
struct RowObserver(Weak<RefCell<Vec<f64>>>);

impl Observer for RowObserver {
    fn issued(&mut self, now: Instant, issue: &Issue, _: &dyn Load) {
        if let Some(rows) = self.0.upgrade() {
            rows.borrow_mut().extend_from_slice(&rows::issue(now, issue));
        }
    }

    fn finished(&mut self, finished: &Finished) {
        if let Some(rows) = self.0.upgrade() {
            rows.borrow_mut().extend_from_slice(&rows::finish(finished));
        }
    }
}

/// A simulation in progress.
pub struct SteppedRun {
    simulation: Simulation<'static>,
    rows: SharedRows,
    description: Value,
    /// The device of each volume that is a single device.
    volume_devices: Vec<Option<usize>>,
    has_more: bool,
}

impl SteppedRun {
    /// A simulation of an experiment with this seed, where `settings` override keys of its rig. The files live as long as the program.
    ///
    /// *Errors:* one line: what is invalid.
    pub fn new(
        experiment: &PageExperiment,
        files: &'static MemoryFiles,
        settings: &[(String, String)],
        seed: &str,
    ) -> Result<SteppedRun, String> {
        let rig = experiment.build_rig(files, settings)?;
        let seed = seed.trim().parse::<u64>().map_err(|_| format!("seed: {seed} is not a whole number"))?;
        let workload = experiment.open_load(files).map_err(|error| error.to_string())?;
        let mut simulation = Simulation::new(&rig, workload, seed).map_err(|error| error.to_string())?;
        simulation.engine_mut().log_arms();
        let description = describe(&rig, &simulation);
        let rows = SharedRows::default();
        let observer = Box::leak(Box::new(RowObserver(Rc::downgrade(&rows))));
        Ok(SteppedRun {
            simulation: simulation.observe(observer),
            rows,
            description,
            volume_devices: single_devices(&rig),
            has_more: true,
        })
    }

    /// The rig and the workload, in numbers and names.
    pub fn description(&self) -> &Value {
        &self.description
    }

    /// Processes all events up to `until_ns`; returns whether any remain.
    pub fn advance(&mut self, until_ns: f64) -> bool {
        let until = if until_ns < 0.0 { Instant::ZERO } else { Instant(until_ns as u64) };
        self.has_more = self.simulation.run_until(until);
        self.has_more
    }

    /// Processes events until a request is issued or finishes, or an access begins; returns whether any remain.
    pub fn step(&mut self) -> bool {
        while self.rows.borrow().is_empty() {
            if !self.simulation.step() {
                self.has_more = false;
                break;
            }
            self.collect_accesses();
        }
        self.has_more
    }

    /// Time of the last event, in nanoseconds.
    pub fn now_ns(&self) -> f64 {
        self.simulation.engine().now().0 as f64
    }

    /// Time of the next event, in nanoseconds; -1 if there is none.
    pub fn next_event_ns(&self) -> f64 {
        self.simulation.engine().next_event().map_or(-1.0, |next| next.0 as f64)
    }

    /// Whether events remain.
    pub fn has_more(&self) -> bool {
        self.has_more
    }

    /// The rows since the last call, appended to `into`.
    pub fn drain(&mut self, into: &mut Vec<f64>) {
        self.collect_accesses();
        let from = into.len();
        into.append(&mut self.rows.borrow_mut());
        rows::place_issues(&mut into[from..], self.simulation.engine(), &self.volume_devices);
    }

    fn collect_accesses(&mut self) {
        let engine = self.simulation.engine_mut();
        for device in 0..engine.devices() {
            while let Some(record) = engine.poll_arm_record(device) {
                self.rows.borrow_mut().extend_from_slice(&rows::access(device, &record));
            }
        }
    }

    /// The state of each device at `now_ns`, appended to `into`.
    pub fn snapshot(&self, now_ns: f64, into: &mut Vec<f64>) {
        snapshot::add_all(self.simulation.engine(), now_ns, ZoneCells::Included, into);
    }

    /// The results up to now as JSON, in the shape of `headstack sim --json`.
    ///
    /// *Errors:* what ended the workload early.
    pub fn finish(self) -> Result<String, String> {
        Ok(self.simulation.finish().map_err(|error| error.to_string())?.to_json())
    }
}

/// The device of each volume, where the volume is one device and nothing else, with the same block numbers.
fn single_devices(rig: &Rig) -> Vec<Option<usize>> {
    let arrays = rig.resolved().array.len();
    let volumes = rig.volume_drives();
    let bare = volumes.len() - arrays;
    let is_whole = rig.resolved().host.partition_start == 0;
    let single = |(index, drives): (usize, &Vec<usize>)| match drives[..] {
        [device] if index < bare && is_whole => Some(device),
        _ => None,
    };
    volumes.iter().enumerate().map(single).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::RIG_PATH;

    const JOB: &str =
        "[a]\nrw=randrw\nbs=4k\nioengine=libaio\ndirect=1\niodepth=8\nnorandommap\nnumber_ios=400\n";

    fn experiment() -> PageExperiment {
        let rig = headstack::load_rig("atlas-10k", &headstack::NoFiles).expect("it is shipped");
        let mut experiment = PageExperiment {
            load: "a.fio".to_string(),
            kind: "fio".to_string(),
            seed: "0".to_string(),
            ..PageExperiment::default()
        };
        experiment.trace.time_scale = 1.0;
        experiment.add_file(RIG_PATH, rig.to_toml().as_bytes());
        experiment.add_file("a.fio", JOB.as_bytes());
        experiment
    }

    fn run(experiment: &PageExperiment) -> SteppedRun {
        let files = Box::leak(Box::new(experiment.memory_files().expect("it is base64")));
        let depth = ("drive.queue_depth".to_string(), "8".to_string());
        SteppedRun::new(experiment, files, &[depth], "5").expect("the experiment is valid")
    }

    /// The number of rows of each kind.
    fn kinds(rows: &[f64]) -> [usize; 4] {
        let (mut counts, mut row) = ([0; 4], 0);
        while row < rows.len() {
            counts[rows[row] as usize] += 1;
            row += rows::LENGTHS[rows[row] as usize];
        }
        assert_eq!(row, rows.len(), "the last row is whole");
        counts
    }

    #[test]
    fn steps_chunks_and_the_whole_run_have_the_same_rows_and_results() {
        let experiment = experiment();
        let (mut whole, mut chunks, mut steps) = (run(&experiment), run(&experiment), run(&experiment));
        let mut rows = [Vec::new(), Vec::new(), Vec::new()];
        whole.advance(1e18);
        whole.drain(&mut rows[0]);
        let mut until = 0.0;
        while chunks.advance(until) {
            chunks.drain(&mut rows[1]);
            until += 7e6;
        }
        chunks.drain(&mut rows[1]);
        while steps.step() {
            steps.drain(&mut rows[2]);
        }
        steps.drain(&mut rows[2]);
        let [counts, others @ ..] = rows.each_ref().map(|rows| kinds(rows));
        assert_eq!(counts[1], 400);
        assert_eq!(counts[2], 400);
        assert!(counts[3] > 300, "{counts:?}");
        assert_eq!(others, [counts, counts]);
        let [whole, chunks, steps] =
            [whole, chunks, steps].map(|run| run.finish().expect("the load is valid"));
        assert_eq!((&whole, &whole), (&chunks, &steps));
    }

    #[test]
    fn issued_requests_have_their_place_on_the_disk() {
        let mut run = run(&experiment());
        run.advance(0.0);
        let mut rows = Vec::new();
        run.drain(&mut rows);
        let issues: Vec<_> = rows.chunks(rows::LENGTHS[1]).take_while(|row| row[0] == rows::ISSUE).collect();
        assert_eq!(issues.len(), 8);
        for row in issues {
            assert!(row[10] >= 0.0 && (0.0..1.0).contains(&row[11]) && row[12] == 0.0, "{row:?}");
        }
        let mut state = Vec::new();
        run.snapshot(0.0, &mut state);
        assert_eq!((state[5], state[23]), (8.0, 8.0), "eight commands, and each in the list");
    }

    #[test]
    fn unknown_key_is_rejected_with_the_nearest() {
        let experiment = experiment();
        let files = Box::leak(Box::new(experiment.memory_files().expect("it is base64")));
        let key = ("drive.queue.depht".to_string(), "3".to_string());
        let refused = SteppedRun::new(&experiment, files, &[key], "0").err().expect("there is no such key");
        assert!(refused.contains("did you mean `drive.queue.depth`?"), "{refused}");
        let refused = SteppedRun::new(&experiment, files, &[], "x").err().expect("it is no number");
        assert_eq!(refused, "seed: x is not a whole number");
    }
}
