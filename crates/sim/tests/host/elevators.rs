//! What each elevator promises.

use crate::support::*;
use headstack_model::{Instant, Lbn, Nanos, Op, Request};
use headstack_policy::elevator;
use headstack_sim::Completion;
use headstack_workload::{Issue, Load, Poll};
use std::collections::BTreeMap;

/// A process that asks one thing at a time, thinks, and asks the next.
#[derive(Clone, Copy)]
struct Process {
    first: u64,
    /// Blocks from one request to the next; 0 for all over the million blocks from `first` on.
    step: u64,
    op: Op,
    think: Nanos,
    urgent: bool,
    idle: bool,
    /// Requests in all.
    count: u64,
}

impl Process {
    fn reader(first: u64, think_ms: f64) -> Process {
        let think = Nanos::from_ms(think_ms);
        Process { first, step: 8, op: Op::Read, think, urgent: false, idle: false, count: u64::MAX }
    }

    fn scattered(first: u64, think_ms: f64) -> Process {
        Process { step: 0, ..Process::reader(first, think_ms) }
    }
}

/// Processes side by side, until a time.
struct Processes {
    all: Vec<Process>,
    /// When each asks again, while it does not wait.
    due: Vec<Option<Instant>>,
    issued: Vec<u64>,
    until: Instant,
}

impl Processes {
    fn new(all: &[Process], seconds: u64) -> Processes {
        let due = vec![Some(Instant::ZERO); all.len()];
        Processes { all: all.to_vec(), due, issued: vec![0; all.len()], until: Instant::from_secs(seconds) }
    }
}

impl Load for Processes {
    fn poll(&mut self, now: Instant) -> Poll {
        let due = self.due.iter().enumerate().filter_map(|(index, due)| due.map(|due| (due, index))).min();
        let Some((at, index)) = due.filter(|(at, _)| *at < self.until) else { return Poll::Waiting };
        if at > now {
            return Poll::Later(at);
        }
        let (process, issued) = (self.all[index], self.issued[index]);
        let spread = issued * 7_368_787 % 125_000 * 8;
        let lbn = Lbn(process.first + if process.step == 0 { spread } else { issued * process.step });
        self.issued[index] += 1;
        self.due[index] = None;
        let request = Request { op: process.op, lbn, sectors: 8, fua: false };
        let id = (issued << 8) | index as u64;
        let Process { urgent, idle, .. } = process;
        Poll::Issue(Issue { source: index as u32, urgent, idle, ..Issue::new(0, request, id) })
    }

    fn handle_completion(&mut self, now: Instant, id: u64) {
        let index = (id & 0xff) as usize;
        self.due[index] = (self.issued[index] < self.all[index].count).then(|| now + self.all[index].think);
    }
}

/// What a process got.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    requests: u64,
    /// The disk's time for them.
    service: Nanos,
    longest: Nanos,
}

fn shares(host_text: &str, depth: u32, processes: &[Process], seconds: u64) -> Vec<Share> {
    let mut load = Processes::new(processes, seconds);
    let seen = run(vec![drive(depth)], &host(host_text), &mut load);
    let mut shares = vec![Share::default(); processes.len()];
    for one in &seen.finished {
        let share = &mut shares[one.source as usize];
        share.requests += 1;
        share.service += one.completion.response() - one.completion.parts.queued;
        share.longest = share.longest.max(one.completion.response());
    }
    shares
}

/// By how much the greatest differs from the least, as a share of the greatest.
fn spread(values: impl Iterator<Item = u64> + Clone) -> f64 {
    let (most, least) = (values.clone().max().unwrap_or(0) as f64, values.min().unwrap_or(0) as f64);
    (most - least) / most
}

fn total(shares: &[Share]) -> u64 {
    shares.iter().map(|share| share.requests).sum()
}

#[test]
fn anticipation_speeds_up_two_sequential_readers() {
    let readers = [Process::reader(100_000, 0.3), Process::reader(9_000_000, 0.3)];
    let noop = total(&shares("queue.elevator = \"noop\"", 1, &readers, 20));
    let deadline = total(&shares("queue.elevator = \"deadline\"", 1, &readers, 20));
    for waits in ["anticipatory", "cfq", "bfq"] {
        let found = total(&shares(&format!("queue.elevator = \"{waits}\""), 1, &readers, 20));
        assert!(
            found * 2 > noop * 3 && found * 2 > deadline * 3,
            "{waits}: {found}, noop {noop}, {deadline}"
        );
    }
    let never = total(&shares(
        "queue = { elevator = \"anticipatory\", anticipatory.antic_expire = 0 }",
        1,
        &readers,
        20,
    ));
    assert!(never * 10 < noop * 13, "without the pause: {never}, noop {noop}");
}

/// The most commands that were at the drive at once, merged ones counted once.
fn most_at_the_drive(elevator: &str, processes: &[Process]) -> usize {
    let mut load = Processes::new(processes, 5);
    let seen = run(vec![drive(32)], &host(&format!("queue.elevator = \"{elevator}\"")), &mut load);
    let sent = |command: &Completion| command.submitted;
    let at_once = |now: Instant| {
        seen.commands.iter().filter(|command| sent(command) <= now && now < command.completed).count()
    };
    seen.commands.iter().map(|command| at_once(sent(command))).max().unwrap_or(0)
}

#[test]
fn anticipation_keeps_one_command_at_a_queueing_drive() {
    let readers: Vec<_> = (0..8).map(|index| Process::reader(index * 2_000_000, 0.3)).collect();
    assert_eq!(most_at_the_drive("anticipatory", &readers), 1);
    assert_eq!(most_at_the_drive("deadline", &readers), 8);
    // Where each read of a process is far from the one before, others' are closer: nothing is worth a wait.
    let scattered: Vec<_> = (0..8).map(|index| Process::scattered(index * 13_000, 0.3)).collect();
    assert!(most_at_the_drive("anticipatory", &scattered) > 4);
}

#[test]
fn anticipation_gains_as_much_before_a_queueing_drive() {
    let readers = [Process::reader(100_000, 0.3), Process::reader(9_000_000, 0.3)];
    let of = |depth| total(&shares("queue.elevator = \"anticipatory\"", depth, &readers, 20));
    let (one, many) = (of(1), of(32));
    assert!(many * 20 > one * 19, "{one} at depth 1, {many} at depth 32");
}

#[test]
fn anticipation_does_not_wait_for_long_think_times() {
    let readers = [Process::scattered(100_000, 30.0), Process::scattered(9_000_000, 0.0)];
    let deadline = shares("queue.elevator = \"deadline\"", 1, &readers, 20);
    for waits in ["anticipatory", "cfq", "bfq"] {
        let found = shares(&format!("queue.elevator = \"{waits}\""), 1, &readers, 20);
        assert!(total(&found) * 10 > total(&deadline) * 9, "{waits}: {found:?}, deadline {deadline:?}");
    }
}

#[test]
fn bfq_waits_for_half_as_long_a_think_time_as_cfq() {
    let most = |elevator, think_ms| {
        let readers: Vec<_> = (0..8).map(|index| Process::reader(index * 2_000_000, think_ms)).collect();
        most_at_the_drive(elevator, &readers)
    };
    // CFQ begins with the next process before the last one's request is back.
    assert!(most("cfq", 3.0) <= 2 && most("cfq", 5.0) <= 2, "it waits for up to 8 ms");
    assert_eq!(most("bfq", 3.0), 1, "it waits for up to 4 ms");
    assert!(most("bfq", 5.0) > 2, "that is too long to wait for");
}

#[test]
fn cfq_and_bfq_share_disk_time_fairly() {
    for elevator in ["cfq", "bfq"] {
        let queue = format!("queue.elevator = \"{elevator}\"");
        // Alike, but one is always nearer to where the arm is: near ones would win all under an order by distance.
        let alike: Vec<_> = (0..5).map(|index| Process::scattered(index * 3_000_000, 0.0)).collect();
        let found = shares(&queue, 1, &alike, 60);
        assert!(spread(found.iter().map(|share| share.service.0)) < 0.1, "{elevator}: {found:?}");
        let streams: Vec<_> = (0..4).map(|index| Process::reader(index * 3_000_000, 0.0)).collect();
        let found = shares(&queue, 1, &streams, 60);
        assert!(spread(found.iter().map(|share| share.service.0)) < 0.1, "{elevator}: {found:?}");
        assert!(spread(found.iter().map(|share| share.requests)) < 0.2, "{elevator}: {found:?}");
    }
}

#[test]
fn bfq_shares_throughput_by_weight() {
    let streams: Vec<_> = (0..3).map(|index| Process::reader(index * 3_000_000, 0.0)).collect();
    let found = shares("queue = { elevator = \"bfq\", bfq.weights = [300, 100, 100] }", 1, &streams, 60);
    let ratio = found[0].requests as f64 / found[1].requests as f64;
    assert!((2.4..3.6).contains(&ratio), "{found:?}");
    let ratio = found[1].requests as f64 / found[2].requests as f64;
    assert!((0.8..1.25).contains(&ratio), "{found:?}");
}

#[test]
fn sequential_reader_keeps_its_share_against_random_reads() {
    // By time, not by requests: a process that jumps must not take the disk from a stream.
    let mixed = [Process::reader(0, 0.0), Process::scattered(9_000_000, 0.0)];
    let alone = shares("queue.elevator = \"noop\"", 1, &mixed[..1], 30)[0].requests;
    let noop = shares("queue.elevator = \"noop\"", 1, &mixed, 30)[0].requests;
    for elevator in ["cfq", "bfq"] {
        let found = shares(&format!("queue.elevator = \"{elevator}\""), 1, &mixed, 30)[0].requests;
        assert!(found > noop && found * 5 > alone * 2, "{elevator}: {found}, noop {noop}, alone {alone}");
    }
}

#[test]
fn deadline_expiry_bounds_the_read_response() {
    // Two readers overtake each other upward, so that one of them always has the next block ahead; a third reader far
    // away would wait for ever. The writer has its deadline, too.
    let ahead = |first| Process { step: 16, ..Process::reader(first, 0.0) };
    let processes = [
        ahead(0),
        ahead(8),
        Process::scattered(12_000_000, 0.0),
        Process { op: Op::Write, ..Process::scattered(15_000_000, 0.0) },
    ];
    let keys = "read_expire = 50, write_expire = 100, writes_starved = 1000000";
    let queue = format!("queue = {{ elevator = \"deadline\", merge = \"none\", deadline = {{ {keys} }} }}");
    let found = shares(&queue, 1, &processes, 30);
    // No access of this drive takes 25 ms. When its time is up, a read waits for the batch that runs.
    assert!(found[2].longest.as_ms() < 50.0 + 17.0 * 25.0, "{:?}", found[2]);
    assert!(found[2].requests > 100, "{:?}", found[2]);
    // No expiry, no end of a batch: it waits until the others are done.
    let lax = "read_expire = 50000, fifo_batch = 100000";
    let lax = format!("queue = {{ elevator = \"deadline\", merge = \"none\", deadline = {{ {lax} }} }}");
    assert!(shares(&lax, 1, &processes, 30)[2].longest.as_secs() > 20.0, "the limits are what bounds it");
}

#[test]
fn writes_starved_bounds_read_batches_before_writes() {
    let issue = |(id, request): (u64, Request)| (Instant::ZERO, Issue::new(0, request, id));
    let reads = (0..200u64).map(|id| (id, Request::read(Lbn(id * 16), 8)));
    let writes = (200..220u64).map(|id| (id, Request::write(Lbn(id * 16), 8)));
    for starved in [0, 1, 3] {
        let spec = host(&format!(
            "queue = {{ elevator = \"deadline\", deadline = {{ writes_starved = {starved}, fifo_batch = 4 }} }}"
        ));
        let mut load = Script::new(reads.clone().chain(writes.clone()).map(issue).collect());
        let seen = run(vec![drive(1)], &spec, &mut load);
        let first = seen.commands.iter().position(|command| command.request.op == Op::Write);
        // Those that they may, and the one that runs when they come.
        assert_eq!(first, Some(4 * (starved + 1)));
    }
}

#[test]
fn idle_class_is_served_by_deadline_after_ten_seconds_and_by_bfq_five_times_a_second() {
    // Three processes have a request each at all times, and so has the one of the idle class.
    let mut processes = [0, 3, 6, 9].map(|part| Process::scattered(part * 1_000_000, 0.0));
    processes[3].idle = true;
    let idle = |elevator: &str| shares(&format!("queue.elevator = \"{elevator}\""), 1, &processes, 25)[3];
    let deadline = idle("deadline");
    assert_eq!(deadline.requests, 3, "after 10 s, after 20 s, and the last once the others have ended");
    assert!(
        deadline.longest >= Nanos::from_secs(10) && deadline.longest < Nanos::from_secs(11),
        "{deadline:?}"
    );
    // A turn after 200 ms at least, once the queue that is served has had its time of 125 ms at most.
    let bfq = idle("bfq");
    assert!((25 * 1000 / 325..=25 * 1000 / 200).contains(&bfq.requests), "{bfq:?}");
    for elevator in ["noop", "kyber"] {
        let found = idle(elevator);
        assert!(found.requests > 500, "{elevator} knows no classes: {found:?}");
    }
}

#[test]
fn idle_class_has_the_whole_disk_where_no_other_request_waits() {
    for elevator in ["deadline", "bfq"] {
        let host = format!("queue.elevator = \"{elevator}\"");
        let mut processes = [Process::scattered(0, 0.0)];
        let plain = total(&shares(&host, 1, &processes, 10));
        processes[0].idle = true;
        assert_eq!(total(&shares(&host, 1, &processes, 10)), plain, "{elevator}");
    }
    // Of two in sequence, each has one request at a time, because bfq does not idle for them.
    let mut readers = [Process::reader(100_000, 0.3), Process::reader(9_000_000, 0.3)];
    let plain = total(&shares("queue.elevator = \"bfq\"", 1, &readers, 10));
    readers.iter_mut().for_each(|reader| reader.idle = true);
    let idle = total(&shares("queue.elevator = \"bfq\"", 1, &readers, 10));
    assert!(idle * 4 < plain * 3, "{idle} against {plain}");
}

/// Processes of the idle class that come first fill the disk's queue; bfq then idles for a process that jumps, too, because two classes have requests.
#[test]
fn bfq_serves_a_reader_among_the_idle_class_in_either_order_of_arrival() {
    let reader = Process::scattered(0, 0.0);
    let idle: Vec<Process> =
        (1..=12).map(|part| Process { idle: true, ..Process::scattered(part * 1_000_000, 0.0) }).collect();
    let host = "queue.elevator = \"bfq\"";
    let first = shares(host, 16, &[vec![reader], idle.clone()].concat(), 20)[0];
    let last = shares(host, 16, &[idle, vec![reader]].concat(), 20)[12];
    let alone = shares(host, 16, &[reader], 20)[0];
    for found in [first, last] {
        assert!(found.requests * 10 > alone.requests * 7, "{found:?} of {alone:?}");
    }
}

#[test]
fn deadline_serves_the_idle_class_only_while_no_other_request_is_at_the_device() {
    // The disk takes 4 commands. Of two processes without a pause one has a request there whenever that of the other completes.
    let mut processes = [0, 3, 6].map(|part| Process::scattered(part * 1_000_000, 0.0));
    processes[2].idle = true;
    let two = shares("queue.elevator = \"deadline\"", 4, &processes, 9);
    assert!(two[2].requests <= 1, "{two:?}");
    // One alone leaves the device empty when its request completes.
    let one = shares("queue.elevator = \"deadline\"", 4, &processes[1..], 9);
    assert!(one[1].requests > 200, "{one:?}");
}

#[test]
fn priority_elevators_favour_urgent_requests() {
    for elevator in ["deadline", "cfq", "bfq"] {
        let mut processes: Vec<_> = (0..8).map(|index| Process::scattered(index * 1_000_000, 0.0)).collect();
        let queue = format!("queue.elevator = \"{elevator}\"");
        let plain = shares(&queue, 1, &processes, 20);
        processes[3].urgent = true;
        let urgent = shares(&queue, 1, &processes, 20);
        assert!(urgent[3].requests > 3 * plain[3].requests, "{elevator}: {urgent:?} against {plain:?}");
        // Nor does it shut the others out where there is ageing.
        assert!(elevator != "deadline" || urgent.iter().all(|share| share.requests > 0), "{urgent:?}");
    }
}

#[test]
fn every_elevator_serves_every_process() {
    // Many kinds of processes at once; each gets something done, and no one is forgotten at the end.
    let mut processes: Vec<_> = (0..4).map(|index| Process::reader(index * 2_000_000, 0.1)).collect();
    processes
        .extend((0..4).map(|index| Process::scattered(index * 2_500_000, f64::from(index as u32) * 4.0)));
    processes
        .extend((0..3).map(|index| Process { op: Op::Write, ..Process::scattered(index * 4_000_000, 1.0) }));
    for listed in elevator::all() {
        for depth in [1, 8] {
            let found = shares(&format!("queue.elevator = \"{}\"", listed.name), depth, &processes, 20);
            assert!(
                found.iter().all(|share| share.requests > 20),
                "{} at depth {depth}: {found:?}",
                listed.name
            );
        }
    }
}

#[test]
fn every_elevator_serves_each_request_once() {
    for listed in elevator::all() {
        let requests: BTreeMap<u64, Request> =
            (0..300u64).map(|id| (id, Request::read(Lbn(id * 7_919 % 1000 * 8), 8))).collect();
        let issues: Vec<Issue> = requests
            .iter()
            .map(|(id, r)| Issue { source: (*id % 5) as u32, ..Issue::new(0, *r, *id) })
            .collect();
        let script = issues.iter().map(|issue| (Instant(issue.id * 1_000_000), *issue)).collect();
        let spec = host(&format!("queue.elevator = \"{}\"", listed.name));
        run(vec![drive(4)], &spec, &mut Script::new(script)).judge(&issues);
    }
}
