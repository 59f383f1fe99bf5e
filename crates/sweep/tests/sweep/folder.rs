//! The files of a sweep's folder: damage, types of the columns, state and merged table.

use super::{Place, SWEEP, files, in_parts, parts, rows};
use headstack_sweep::{
    ColumnValues, MODEL_VERSION, SweepPart, SweepRun, SweepStatus, merged_table, read_rows, read_table,
    write_table,
};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// A small generator of numbers for places and bits.
fn shuffled(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize
}

#[test]
fn damaged_part_is_named_and_repaired_whatever_its_bytes() {
    let place = Place::new();
    let whole = place.rows(SWEEP, "out");
    let folder = place.path("out");
    let name = parts(&folder).remove(0);
    let path = folder.join("parts").join(&name);
    let bytes = fs::read(&path).expect("it is there");
    let plan = place.plan(SWEEP);
    let mut state = 1;
    for case in 0..200 {
        let mut changed = bytes.clone();
        match case % 4 {
            0 => changed[shuffled(&mut state) % bytes.len()] ^= 1 << (shuffled(&mut state) % 8),
            1 => changed.truncate(shuffled(&mut state) % bytes.len()),
            2 => changed.push(0),
            _ => {
                (0..9).for_each(|_| changed[shuffled(&mut state) % bytes.len()] = shuffled(&mut state) as u8)
            }
        }
        if changed == bytes {
            continue;
        }
        fs::write(&path, &changed).expect("the folder is writable");
        let refused = read_rows(&folder).expect_err("it is damaged").to_string();
        assert!(refused.contains(&name) && refused.contains("run the sweep again"), "{refused}");
        let status = SweepStatus::read(&folder).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((status.finished, &status.damaged), (0, &vec![path.clone()]));
        // The cells run again in one case of each kind.
        if case < 4 {
            let summary =
                SweepRun::new(&plan, &folder, &files).run().unwrap_or_else(|error| panic!("{error}"));
            assert_eq!((summary.ran, &summary.damaged), (24, &vec![path.clone()]));
            assert_eq!(fs::read(&path).expect("it is there again"), bytes);
            assert_eq!(rows(&folder), whole);
        }
    }
}

#[test]
fn file_that_another_program_wrote_is_refused_without_a_panic() {
    let place = Place::new();
    place.rows(SWEEP, "out");
    let folder = place.path("out");
    let path = folder.join("parts").join(parts(&folder).remove(0));
    let bytes = fs::read(&path).expect("it is there");
    let mut state = 2;
    for _ in 0..100 {
        // The name has the right hash of wrong bytes.
        let mut changed = bytes.clone();
        changed[shuffled(&mut state) % bytes.len()] ^= 1 << (shuffled(&mut state) % 8);
        let hash = blake3::hash(&changed).to_hex()[..32].to_string();
        let forged = folder.join("parts").join(format!("1-of-1-{hash}.parquet"));
        fs::write(&forged, &changed).expect("the folder is writable");
        // Either is right: the changed byte may be one of a figure.
        let _ = read_rows(&folder);
        let _ = SweepStatus::read(&folder);
        fs::remove_file(forged).expect("the folder is writable");
    }
    fs::write(folder.join("parts/rows.parquet"), &bytes).expect("the folder is writable");
    let refused = read_rows(&folder).expect_err("it has no hash").to_string();
    assert!(refused.contains("rows.parquet") && refused.contains("use a new folder"), "{refused}");
}

#[test]
fn settings_are_numbers_where_all_their_values_are() {
    let place = Place::new();
    let text = "rigs = [\"atlas-10k\"]\nloads = [\"load.fio\"]\n[grid]\ndrive.queue_depth = [16, 4]\n\
                mechanics.rpm = [10000, 10025.5]\ndrive.fua = [true]\ndrive.order = [\"sptf\", \"fcfs\"]\n";
    let text = text.replace("mechanics.rpm", "drive.mechanics.rpm").replace("drive.fua = [true]\n", "");
    let found = place.rows(&text, "out");
    assert_eq!(found.len(), 8);
    let depths: Vec<i64> =
        found.iter().map(|row| row["drive.queue_depth"].as_i64().expect("whole")).collect();
    assert!(depths.contains(&16) && depths.contains(&4));
    assert!(found.iter().all(|row| row["drive.mechanics.rpm"].is_f64() && row["drive.order"].is_string()));
    let table = read_table(&place.plan(&text), &place.path("out")).unwrap_or_else(|error| panic!("{error}"));
    assert!(matches!(table.column("drive.queue_depth"), Some(ColumnValues::Whole(_))));
    assert!(matches!(table.column("drive.mechanics.rpm"), Some(ColumnValues::Real(_))));
    let planned: Vec<Option<String>> =
        place.plan(&text).cells().map(|cell| Some(place.plan(&text).key(&cell))).collect();
    let Some(ColumnValues::Text(keys)) = table.column("key") else { panic!("keys are text") };
    let keys: Vec<Option<String>> = keys.iter().map(|key| key.as_deref().map(str::to_string)).collect();
    assert_eq!(keys, planned, "the table is in the order of the plan");
}

#[test]
fn each_job_has_its_figures() {
    let place = Place::new();
    place.write(
        "load.fio",
        "[global]\nsize=1g\nnumber_ios=50\n[log]\nrw=write\nbs=4k\nfdatasync=1\n[scan]\nrw=read\nbs=64k\n",
    );
    let found = place.rows("rigs = [\"atlas-10k\"]\nloads = [\"load.fio\"]\nby_job = true\n", "out");
    let figure = |name: &str| found[0].get(name).and_then(Value::as_f64);
    // The last write is followed by none.
    assert_eq!(figure("job.log.flush_requests"), Some(49.0), "{:?}", found[0]);
    assert_eq!(figure("job.scan.read_requests"), Some(50.0));
    assert_eq!(figure("job.scan.read_p99_ms"), found[0]["read_p99_ms"].as_f64());
    assert_eq!(figure("job.log.flush_p99_ms"), found[0]["flush_p99_ms"].as_f64());
    assert_eq!(figure("job.log.read_requests"), None);
}

#[test]
fn merged_table_has_each_row_once_in_the_order_of_the_plan() {
    let place = Place::new();
    let folder = in_parts(&place, "out");
    let table = merged_table(&folder).unwrap_or_else(|error| panic!("{error}"));
    let planned = read_table(&place.plan(SWEEP), &folder).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(table, planned);
    let status = SweepStatus::read(&folder).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((status.cells, status.finished, status.failed, status.parts.len()), (24, 24, 0, 3));
    // After a larger definition has run, its cells and those of the smaller one are all there, each once.
    let larger = SWEEP.replace("seeds = 3", "seeds = 4");
    let plan = place.plan(&larger);
    let summary = SweepRun::new(&plan, &folder, &files).run().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((summary.reused, summary.ran), (24, 8));
    assert_eq!(merged_table(&folder).unwrap_or_else(|error| panic!("{error}")).rows(), 32);
    assert_eq!(read_table(&plan, &folder).unwrap_or_else(|error| panic!("{error}")).rows(), 32);
    let path = place.path("all.parquet");
    write_table(&table, &path).unwrap_or_else(|error| panic!("{error}"));
    assert!(fs::metadata(path).expect("it is there").len() > 1000);
}

#[test]
fn folder_is_no_url() {
    let place = Place::new();
    let plan = place.plan(SWEEP);
    let refused = SweepRun::new(&plan, Path::new("s3://bucket/rows"), &files).run().expect_err("a URL");
    assert!(refused.to_string().contains("is a URL (s3:)"), "{refused}");
}

#[test]
fn plan_of_ten_million_cells_is_made_without_listing_them() {
    let place = Place::new();
    let plan = place.plan(&SWEEP.replace("seeds = 3", "seeds = 1250000"));
    assert_eq!(plan.len(), 10_000_000);
    let last = plan.cell(9_999_999);
    assert_eq!((last.rig, last.settings, last.seed), (1, 3, 1_249_999));
    assert!(plan.label(&last).contains("cheetah-9lp drive.order=sptf drive.queue_depth=8"));
    let part = SweepPart { number: 7, of: 1_000_000 };
    assert_eq!(plan.part(part).collect::<Vec<_>>()[..2], [6, 1_000_006]);
    let refused = place.plan_of(&SWEEP.replace("seeds = 3", "seeds = 1250001"), MODEL_VERSION);
    assert!(refused.err().expect("too many").to_string().contains("more than 10000000 cells"));
}
