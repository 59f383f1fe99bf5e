//! A replay of measured response times that its caller stops.

use headstack::validation::replay_while;
use headstack_model::drives;
use headstack_sim::stats::Pair;
use headstack_workload::trace::{self, Trace};

#[test]
fn stopped_replay_has_the_same_first_pairs_as_the_whole_one() {
    let line = |index: u64| format!("R Miss {} 8 5000.0 100.0\n", index * 7_919_317 % 17_000_000);
    let text: String = (0..20).map(line).collect();
    let open = || {
        let trace = Trace::open(text.as_bytes(), "made", trace::named("validate"));
        trace.unwrap_or_else(|error| panic!("{error}"))
    };
    let spec = drives::load("atlas-10k").unwrap_or_else(|error| panic!("{error}"));
    let stopped_at = |count: usize| {
        let replay = replay_while(&spec, open(), open(), |issued, _| issued < count);
        replay.unwrap_or_else(|error| panic!("{error}"))
    };
    let whole = stopped_at(100);
    assert_eq!((whole.pairs.len(), whole.requests), (20, 20));
    let part = stopped_at(5);
    assert_eq!((part.pairs.len(), part.requests), (5, 20));
    let times = |pairs: &[Pair]| pairs.iter().map(|pair| pair.simulated).collect::<Vec<_>>();
    assert_eq!(times(&part.pairs), times(&whole.pairs[..5]));
    let none = stopped_at(0);
    assert_eq!((none.pairs.len(), none.requests), (0, 1), "it stops while the trace is read");
}
