//! Laws of admission, and bounds that the simulated drive must keep.

use super::hard::Worst;
use super::soft::{Depth, Reading, Reads, Task};
use super::{Server, published};
use headstack_personalities::video::Chunk;

fn server() -> Server {
    published().expect("the drive is shipped")
}

#[test]
fn first_zone_has_tracks_of_264_kb() {
    let server = server();
    assert_eq!(server.tracks.len(), 2023 * 5 + 1);
    assert_eq!(server.bytes(1.0), 264.0 * 1024.0);
    assert!((server.period(1.0) - 0.5407).abs() < 1e-4);
    assert_eq!(server.start_up(0.5), 5.5);
}

#[test]
fn simulated_round_never_exceeds_the_worst_case() {
    let server = server();
    for streams in [1, 10, 60] {
        for (reads, tracks) in
            [(Reads::Tracks, 1.0), (Reads::Tracks, 2.0), (Reads::Anywhere, 1.0), (Reads::Anywhere, 1.7)]
        {
            let sectors = tracks * server.track_sectors();
            // Requests lie in the first zone, and a sweep of it is shorter than one of the disk.
            let bound = Worst::complete(&server, 2023, sectors).round(reads, sectors, streams).as_secs();
            let round = server
                .round(Depth::TWO, server.chunk(reads, tracks), streams, 200)
                .expect("the server is good");
            assert!(round <= bound, "{streams} {reads:?} {tracks}: {round} s of {bound}");
            // A loose bound would hold whatever the drive did.
            assert!(
                streams == 1 || round > 0.6 * bound,
                "{streams} {reads:?} {tracks}: {round} s of {bound}"
            );
        }
    }
}

#[test]
fn round_grows_with_streams_and_request_size_not_alignment() {
    let server = server();
    let round = |chunk, streams| server.round(Depth::TWO, chunk, streams, 100).expect("the server is good");
    let mut before = 0.0;
    for streams in [1, 5, 20, 50] {
        let [aligned, unaligned] = Reads::BOTH.map(|reads| round(server.chunk(reads, 1.0), streams));
        assert!(aligned <= unaligned, "{streams}: {aligned} and {unaligned} s");
        assert!(aligned > before, "{streams}");
        before = aligned;
    }
    assert!(round(Chunk::Tracks(2), 20) > round(Chunk::Tracks(1), 20));
    assert!(round(Chunk::Blocks(800), 20) > round(Chunk::Blocks(528), 20));
}

#[test]
fn longer_rounds_and_alignment_never_admit_fewer_streams() {
    let server = server();
    let worst = Worst::study(&server, 16055);
    let mut before = [0; 2];
    for tracks in [1.0, 2.0, 4.0, 8.0] {
        let most = Reads::BOTH.map(|reads| worst.most(&server, reads, server.bytes(tracks)));
        assert!(most[0] >= most[1], "{tracks}");
        assert!(most[0] >= before[0] && most[1] >= before[1], "{tracks}");
        before = most;
    }
    let task =
        Task { reading: Reading::Rounds, reads: Reads::Tracks, depth: Depth::TWO, tracks: 1.0, seconds: 0.0 };
    let most = |seconds| server.most(Task { seconds, ..task }, 50).expect("the server is good");
    let counts = [0.005, 0.1, 0.3, 0.5].map(most);
    assert!(counts.is_sorted() && counts[0] == 0 && counts[3] > 50, "{counts:?}");
}

#[test]
fn least_request_suffices_and_a_fifth_less_does_not() {
    let server = server();
    let least = server
        .least(Reads::Anywhere, Depth::TWO, 65, 20.0, 100)
        .expect("the server is good")
        .expect("there is one");
    assert!(least.tracks > 1.0 && least.round <= server.period(least.tracks));
    let smaller = 0.8 * least.tracks;
    let round = server
        .round(Depth::TWO, server.chunk(Reads::Anywhere, smaller), 65, 100)
        .expect("the server is good");
    assert!(round > server.period(smaller), "{smaller} tracks");
    let none = server.least(Reads::Anywhere, Depth::TWO, 80, 20.0, 20).expect("the server is good");
    assert!(none.is_none(), "80 streams leave no time to seek");
}
