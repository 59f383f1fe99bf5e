//! The page cache: read-ahead, hits, write-back, limits, flushes.

use crate::support::*;
use headstack_model::{Instant, Lbn, Nanos, Op, Request, drives};
use headstack_sim::os::PageCache;
use headstack_sim::{Engine, Rig, TimeSplit};
use headstack_workload::{Issue, Load, Poll, ReadAdvice};
use proptest::prelude::*;
use proptest::sample::select;

/// One process that asks for these requests one after the other.
struct Chain {
    requests: Vec<Request>,
    next: usize,
    waits: bool,
    direct: bool,
    advice: ReadAdvice,
    volume: u32,
}

impl Chain {
    fn new(requests: Vec<Request>) -> Chain {
        Chain { requests, next: 0, waits: false, direct: false, advice: ReadAdvice::Normal, volume: 0 }
    }
}

impl Load for Chain {
    fn poll(&mut self, _now: Instant) -> Poll {
        match self.requests.get(self.next) {
            _ if self.waits => Poll::Waiting,
            None => Poll::Done,
            Some(request) => {
                self.waits = true;
                self.next += 1;
                let (direct, advice) = (self.direct, self.advice);
                Poll::Issue(Issue {
                    direct,
                    advice,
                    ..Issue::new(self.volume, *request, self.next as u64 - 1)
                })
            }
        }
    }

    fn handle_completion(&mut self, _now: Instant, _id: u64) {
        self.waits = false;
    }
}

fn sequential(count: u64, sectors: u32) -> Vec<Request> {
    reads((0..count).map(|index| index * u64::from(sectors)), sectors)
}

/// As [`run`], and the engine as it is then.
fn run_on(host_text: &str, load: &mut dyn Load) -> (Seen, Engine) {
    let mut engine =
        Engine::with_host(vec![drive(8)], &host(host_text)).unwrap_or_else(|error| panic!("{error}"));
    let mut seen = Seen::default();
    engine.run_observed(load, &mut seen);
    (seen, engine)
}

fn buffered(issues: Vec<(Instant, Issue)>) -> Script {
    Script::new(issues.into_iter().map(|(at, issue)| (at, Issue { direct: false, ..issue })).collect())
}

#[test]
fn read_ahead_brings_small_reads_to_the_media_rate() {
    // The same blocks in one command after the other, each as long as a window and always two outstanding, so that the
    // drive never waits for the host.
    let blocks = 40_000;
    let (long, _) = run_on("", &mut Script::at_once(&sequential(blocks / 256, 256)));
    let (small, engine) =
        run_on("page_cache.copy_us_per_page = 0", &mut Chain::new(sequential(blocks / 8, 8)));
    assert!(small.end().0 * 10 <= long.end().0 * 11, "{} against {}", small.end(), long.end());
    let (none, _) = run_on("page_cache.read_ahead_kb = 0", &mut Chain::new(sequential(blocks / 80, 8)));
    assert!(none.end().0 * 10 > 5 * small.end().0, "without read-ahead a tenth takes {}", none.end());
    let activity = engine.layer::<PageCache>(0).expect("there is one").activity();
    assert_eq!(activity.wanted_pages, blocks / 8);
    assert!(activity.read_pages < blocks / 8 + 65, "it reads no more than two windows too far: {activity:?}");
}

/// Blocks of each command of a reader of 64 KiB at a time in sequence, who said this about its reads.
fn command_blocks(host_text: &str, advice: ReadAdvice) -> Vec<u32> {
    let mut load = Chain { advice, ..Chain::new(sequential(64, 128)) };
    let (seen, _) = run_on(host_text, &mut load);
    seen.commands.iter().map(|command| command.request.sectors).collect()
}

#[test]
fn advice_doubles_read_ahead_or_turns_it_off() {
    let most = |blocks: Vec<u32>| blocks.into_iter().max().expect("there are commands");
    assert_eq!(most(command_blocks("page_cache = {}", ReadAdvice::Normal)), 256);
    assert_eq!(most(command_blocks("page_cache = {}", ReadAdvice::Sequential)), 512);
    let doubled = command_blocks("page_cache.read_ahead_kb = 256", ReadAdvice::Normal);
    assert_eq!(command_blocks("page_cache = {}", ReadAdvice::Sequential), doubled);
    // Without read-ahead, each read is a command of its own, whatever the setting.
    for host_text in ["page_cache = {}", "page_cache.read_ahead_kb = 4096"] {
        assert_eq!(command_blocks(host_text, ReadAdvice::Random), [128; 64]);
    }
}

#[test]
fn read_ahead_of_zero_reads_page_by_page() {
    for advice in [ReadAdvice::Normal, ReadAdvice::Sequential, ReadAdvice::Random] {
        assert_eq!(command_blocks("page_cache.read_ahead_kb = 0", advice), [8; 64 * 16]);
    }
}

/// A rig with this array of five drives, and these keys.
fn array_rig(organisation: &str, drives: u32, keys: &str) -> Rig {
    let text = format!(
        "[drive]\npreset = \"exos-x18\"\ncount = {drives}\nvolume = \"data\"\n[host.page_cache]\nmemory_mb = 64\n{keys}\n\
         [array]\norganisation = \"{organisation}\"\ndrives = [\"data0\", \"data1\", \"data2\", \"data3\"]\n"
    );
    let text = if organisation == "mirroring-whole" {
        text.replace("mirroring-whole", "mirroring").replace(", \"data2\", \"data3\"", "")
    } else {
        text + "stripe_unit_sectors = 256\n"
    };
    Rig::parse(&text, "rig", &mut |name| drives::load(name)).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn read_ahead_above_an_array_is_twice_the_data_of_a_stripe_by_default() {
    let default = |organisation: &str, drives: u32| {
        array_rig(organisation, drives, "")
            .resolved()
            .host
            .page_cache
            .as_ref()
            .and_then(|cache| cache.read_ahead_kb)
    };
    // Stripe units of 128 KiB on four drives.
    for (organisation, expected) in
        [("striping", 1024), ("raid-5", 768), ("raid-6", 512), ("parity-drive", 768), ("mirroring", 512)]
    {
        assert_eq!(default(organisation, 4), Some(expected), "{organisation}");
    }
    assert_eq!(default("mirroring-whole", 2), Some(128), "a mirror of whole drives has no stripe");
    // A fifth drive that is a volume of its own has another default than the array.
    assert_eq!(default("raid-5", 5), None);
}

#[test]
fn default_read_ahead_of_an_array_is_read_in_one_go_and_a_key_replaces_it() {
    let end = |keys: &str, drives: u32, volume: u32| {
        let mut engine = array_rig("raid-5", drives, keys).build(1).unwrap_or_else(|error| panic!("{error}"));
        let requests = sequential(400, 128);
        let mut load = Chain::new(requests);
        load.volume = volume;
        let mut seen = Seen::default();
        engine.run_observed(&mut load, &mut seen);
        seen.finished.last().map(|last| last.completion.completed)
    };
    let volumes = array_rig("raid-5", 5, "");
    let array = volumes.volumes().iter().position(|volume| volume.name == "array").expect("it is one") as u32;
    let of_default = end("", 5, array);
    assert_eq!(of_default, end("read_ahead_kb = 768", 5, array));
    assert_ne!(of_default, end("read_ahead_kb = 128", 5, array));
    // The drive outside the array has that of a disk.
    assert_eq!(end("", 5, 1 - array), end("read_ahead_kb = 128", 5, 1 - array));
}

#[test]
fn page_that_is_evicted_before_its_reader_continues_counts_as_one_miss() {
    // The first request waits for a transfer that fills the cache. When that ends, the request continues, and its next transfer evicts
    // the page for which the second one waits.
    let long = Issue { source: 1, ..Issue::new(0, Request::read(Lbn(0), 2400), 0) };
    let short = Issue { source: 2, ..Issue::new(0, Request::read(Lbn(80), 8), 1) };
    let host_text = "page_cache = { memory_mb = 1, read_ahead_kb = 1024 }\nqueue.max_sectors_kb = 1024";
    let (seen, engine) =
        run_on(host_text, &mut buffered(vec![(Instant::ZERO, long), (Instant(1000), short)]));
    assert_eq!(seen.finished.len(), 2);
    let activity = engine.layer::<PageCache>(0).expect("there is one").activity();
    assert!(activity.read_pages > 300, "the page is read twice: {activity:?}");
    assert_eq!(activity.wanted_pages, 301);
    assert!(activity.hit_pages < 301, "{activity:?}");
}

#[test]
fn cached_read_costs_only_its_copy() {
    let requests = [Request::read(Lbn(80_000), 16), Request::read(Lbn(80_000), 16)];
    let (seen, _) = run_on("page_cache.copy_us_per_page = 2.5", &mut Chain::new(requests.to_vec()));
    let second = &seen.finished[1];
    assert!(second.cached && !seen.finished[0].cached);
    assert_eq!(second.completion.response(), Nanos(5000));
    assert_eq!(second.completion.parts, TimeSplit { cache: Nanos(5000), ..TimeSplit::default() });
    assert_eq!(seen.commands.len(), 1);
    let (free, _) = run_on("page_cache.copy_us_per_page = 0", &mut Chain::new(requests.to_vec()));
    assert_eq!(free.finished[1].completion.response(), Nanos::ZERO);
}

#[test]
fn direct_requests_bypass_the_cache_and_invalidate_pages() {
    let mut load = Chain { direct: true, ..Chain::new(sequential(50, 8)) };
    let (seen, engine) = run_on("page_cache = {}", &mut load);
    assert_eq!(
        (seen.commands.len(), engine.layer::<PageCache>(0).expect("there is one").activity().wanted_pages),
        (50, 0)
    );
    let plain = run(vec![drive(8)], &host(""), &mut Chain { direct: true, ..Chain::new(sequential(50, 8)) });
    assert_eq!(seen.finished, plain.finished);
    let mut load = Chain { direct: true, ..Chain::new(sequential(50, 8)) };
    let (_, engine) = run_on("page_cache.buffer_direct = true", &mut load);
    assert_eq!(engine.layer::<PageCache>(0).expect("there is one").activity().wanted_pages, 50);
    // A write past the cache, and what was there has to be read again.
    let read = Request::read(Lbn(80_000), 8);
    let issue = |(id, (request, direct)): (usize, (Request, bool))| {
        (Instant::from_secs(id as u64), Issue { direct, ..Issue::new(0, request, id as u64) })
    };
    let story = [(read, false), (read, false), (Request::write(Lbn(80_004), 1), true), (read, false)];
    let (seen, _) =
        run_on("page_cache = {}", &mut Script::new(story.into_iter().enumerate().map(issue).collect()));
    let cached: Vec<bool> = seen.finished.iter().map(|one| one.cached).collect();
    assert_eq!(cached, [false, true, false, false]);
}

#[test]
fn random_reads_fetch_hardly_any_extra_pages() {
    let lbns = (0..300u64).map(|index| index * 7_919_993 % 1_700_000 * 8);
    let (_, engine) = run_on("page_cache = {}", &mut Chain::new(reads(lbns, 8)));
    let activity = engine.layer::<PageCache>(0).expect("there is one").activity();
    assert!(activity.read_pages <= 310, "{activity:?}");
}

#[test]
fn small_writes_complete_at_once_and_coalesce() {
    let requests = writes((0..1000).map(|index| 800_000 + index * 8), 8);
    let (seen, engine) = run_on("page_cache = {}", &mut Chain::new(requests.clone()));
    assert!(seen.finished.iter().all(|one| one.cached));
    assert_eq!((seen.commands.len(), engine.layer::<PageCache>(0).map_or(0, PageCache::dirty)), (0, 1000));
    let flush = requests.into_iter().chain([Request::flush()]).collect();
    let (seen, engine) = run_on("page_cache = {}", &mut Chain::new(flush));
    assert_eq!(engine.layer::<PageCache>(0).map_or(0, PageCache::dirty), 0);
    assert!(seen.commands.len() <= 5, "{} commands", seen.commands.len());
    assert_eq!(seen.commands.last().map(|command| command.request.op), Some(Op::Flush));
    assert_eq!(seen.sectors(), 8000);
}

#[test]
fn flusher_writes_expired_pages_only() {
    let write = |at: f64, page: u64| {
        (Instant::from_ms(at * 1e3), Issue::new(0, Request::write(Lbn(page * 8), 8), page))
    };
    // The last issue keeps the run going. Old at 30 s, looked for every 5 s.
    let issues = vec![write(1.0, 10), write(4.0, 20), write(6.0, 30), write(44.0, 40)];
    let (seen, engine) = run_on("page_cache = {}", &mut buffered(issues));
    let written: Vec<_> = seen
        .commands
        .iter()
        .map(|command| (command.request.lbn.0 / 8, command.submitted.as_secs()))
        .collect();
    assert_eq!(written, [(10, 35.0), (20, 35.0), (30, 40.0)]);
    assert_eq!(engine.layer::<PageCache>(0).map_or(0, PageCache::dirty), 1);
}

#[test]
fn dirty_pages_never_exceed_the_limit() {
    // 1 MiB holds 256 pages: a tenth is written in the background, a fifth is the limit.
    let lbns = (0..3000u64).map(|index| index * 7_919 % 40_000 * 8);
    let requests: Vec<Request> = lbns.map(|lbn| Request::write(Lbn(lbn), 8)).collect();
    let (seen, engine) = run_on("page_cache.memory_mb = 1", &mut Chain::new(requests.clone()));
    let activity = engine.layer::<PageCache>(0).expect("there is one").activity();
    assert_eq!(activity.unwritten_pages_max, 51);
    assert!(activity.throttled > 100, "{activity:?}");
    let waited = seen.finished.iter().map(|one| one.completion.parts.queued).max();
    assert!(waited > Some(Nanos::from_ms(1.0)), "a writer waits for the disk: {waited:?}");
    // One request larger than the limit gets through as well.
    let (seen, engine) =
        run_on("page_cache.memory_mb = 1", &mut Chain::new(vec![Request::write(Lbn(0), 2000)]));
    assert_eq!(seen.finished.len(), 1);
    assert_eq!(engine.layer::<PageCache>(0).expect("there is one").activity().unwritten_pages_max, 51);
}

#[test]
fn partial_page_write_reads_the_page_first() {
    let commands = |request: Request| {
        let (seen, _) = run_on("page_cache = {}", &mut Chain::new(vec![request, Request::flush()]));
        seen.commands.iter().map(|command| (command.request.op, command.request.lbn.0)).collect::<Vec<_>>()
    };
    let end = (Op::Flush, 0);
    assert_eq!(commands(Request::write(Lbn(8000), 16)), [(Op::Write, 8000), end]);
    assert_eq!(commands(Request::write(Lbn(8004), 4)), [(Op::Read, 8000), (Op::Write, 8000), end]);
    let both = [(Op::Read, 8000), (Op::Read, 8016), (Op::Write, 8000), end];
    assert_eq!(commands(Request::write(Lbn(8004), 16)), both);
}

/// Requests of a few processes in a narrow region, times in ms.
fn any_issues() -> impl Strategy<Value = Vec<(Instant, Issue)>> {
    let lbn = prop_oneof![4 => 0u64..5000, 1 => 17_900_000u64..17_938_900];
    let one = (lbn, 1u32..80, 0u32..12, 0u32..3, any::<bool>(), 0.0..900.0f64);
    prop::collection::vec(one, 1..80).prop_map(|all| {
        let issue = |(id, (lbn, sectors, kind, source, direct, ms)): (usize, _)| {
            let request = match kind {
                0 => Request::flush(),
                1 => Request { fua: true, ..Request::write(Lbn(lbn), sectors) },
                2..7 => Request::write(Lbn(lbn), sectors),
                _ => Request::read(Lbn(lbn), sectors),
            };
            let direct = direct && kind % 3 == 0;
            (Instant::from_ms(ms), Issue { source, direct, ..Issue::new(0, request, id as u64) })
        };
        all.into_iter().enumerate().map(issue).collect()
    })
}

fn any_host() -> impl Strategy<Value = String> {
    let queues =
        ["", "queue.elevator = \"deadline\"", "queue.elevator = \"bfq\"", "queue.order = \"c-look\""];
    let times = (0u32..3, select(vec![0.0, 0.4, 30.0]), 1u32..100, 0u32..60);
    (select(queues.to_vec()), 0u32..300, 1u32..40, 1u32..40, times).prop_map(
        |(queue, ahead, background, hard, (interval, copy, expire, in_flight))| {
            format!(
                "page_cache = {{ memory_mb = 1, read_ahead_kb = {ahead}, dirty_background_ratio = {background}, \
                 dirty_ratio = {hard}, dirty_writeback_centisecs = {}, dirty_expire_centisecs = {expire}, \
                 writeback_requests = {}, copy_us_per_page = {copy:?} }}\n{queue}",
                interval * 7,
                in_flight + 1
            )
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    #[test]
    fn every_page_cache_completes_each_request_once(host in any_host(), issues in any_issues()) {
        let issued: Vec<Issue> = issues.iter().map(|(_, issue)| *issue).collect();
        let (seen, engine) = run_on(&host, &mut Script::new(issues));
        seen.judge(&issued);
        let hard: u32 = host.split("dirty_ratio = ").nth(1).and_then(|rest| rest.split(',').next())
            .and_then(|text| text.parse().ok()).expect("it is there");
        let limit = u64::from((256 * hard / 100).max(1));
        let activity = engine.layer::<PageCache>(0).expect("there is one").activity();
        prop_assert!(activity.unwritten_pages_max <= limit, "{activity:?} with {limit}");
        prop_assert!(activity.hit_pages <= activity.wanted_pages);
    }

    #[test]
    fn flush_leaves_no_page_dirty(host in any_host(), issues in any_issues()) {
        let mut issues = issues;
        let last = issues.iter().map(|(at, _)| *at).max().expect("there is one");
        let id = issues.len() as u64;
        // Long after the last of them is done.
        issues.push((last + Nanos::from_secs(60), Issue::new(0, Request::flush(), id)));
        let (seen, engine) = run_on(&host, &mut Script::new(issues));
        prop_assert_eq!(engine.layer::<PageCache>(0).map_or(0, PageCache::dirty), 0);
        let flush = seen.finished.iter().find(|one| one.id == id).expect("it came back");
        let written = seen.commands.iter().filter(|command| command.request.op == Op::Write);
        prop_assert!(written.map(|command| command.completed).max() <= Some(flush.completion.completed));
    }
}
