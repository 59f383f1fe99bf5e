//! Anything as a job file: read, built and run for a while, it ends without a panic. What follows a form feed is the file
//! that it includes.

#![no_main]

use headstack_model::{Instant, Nanos};
use headstack_workload::fio::JobFile;
use headstack_workload::{Load, Poll, VolumeInfo};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (text, included) = text.split_once('\u{c}').unwrap_or((text, ""));
    let mut include = |_: &str| Ok(included.to_string());
    let Ok(file) = JobFile::parse(text, "fuzz.fio", &mut include, &|_| None) else { return };
    let volume = |name: &str, sector_bytes| VolumeInfo { name: name.to_string(), sectors: 1 << 24, sector_bytes };
    let Ok(mut load) = file.build(&[volume("sda", 512), volume("sdb", 4096)], 1) else { return };
    let (mut now, mut out) = (Instant::ZERO, Vec::new());
    for _ in 0..2000 {
        match load.poll(now) {
            Poll::Issue(issue) => {
                assert!(issue.device < 2 && issue.request.end().0 <= 1 << 24, "{issue:?}");
                out.push(issue.id);
            }
            Poll::Compute { id, time } => load.handle_computed(now, id, now + time),
            Poll::Later(at) => {
                assert!(at > now, "the load wants to be asked again at once");
                now = at;
            }
            Poll::Done => break,
            Poll::Waiting => {
                assert!(!out.is_empty(), "the load waits for nothing");
                now += Nanos(1000);
            }
        }
        if out.len() > 8 {
            out.drain(..).for_each(|id| load.handle_completion(now, id));
        } else if let Some(id) = out.pop() {
            load.handle_completion(now, id);
        }
    }
});
