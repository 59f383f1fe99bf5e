//! Commands one at a time, with exact input and output bytes.

use headstack_model::{Instant, Nanos};
use headstack_nbd::{Answer, BlockError, Operation, StatusExtent};
use headstack_nbd::{Breach, Ending, Limits, Request, Session, Wire};

use crate::client::*;

const NOW: Instant = Instant::ZERO;

/// The only request that the session passes on for these bytes.
fn only(session: &mut Session, bytes: &[u8]) -> Request {
    let mut requests = ask(session, NOW, bytes);
    assert_eq!(requests.len(), 1, "{requests:?}");
    requests.remove(0)
}

/// The bytes of a write with its payload.
fn write(flags: u16, cookie: u64, offset: u64, data: &[u8]) -> Vec<u8> {
    [request(flags, WRITE, cookie, offset, data.len() as u32), data.to_vec()].concat()
}

/// The error of a refused request. Checks that the reply has the negotiated form.
fn refused(session: &mut Session, bytes: &[u8]) -> u32 {
    assert_eq!(ask(session, NOW, bytes), [], "it is not passed on");
    let heard = replies(&get(session, NOW), |_| 0);
    assert_eq!(heard.len(), 1);
    assert_eq!(heard[0].cookie, 9);
    assert!(session.ending().is_none());
    heard[0].error
}

#[test]
fn every_command_maps_to_its_operation() {
    let mut session = session(true, limits());
    let data = vec![7; 512];
    let cases = [
        (request(0, READ, 1, 512, 1024), Operation::Read { offset: 512, bytes: 1024, fua: false }),
        (request(FUA | DF, READ, 1, 512, 1024), Operation::Read { offset: 512, bytes: 1024, fua: true }),
        (write(0, 1, 0, &data), Operation::Write { offset: 0, data: data.clone(), fua: false }),
        (write(FUA, 1, 0, &data), Operation::Write { offset: 0, data, fua: true }),
        (request(0, FLUSH, 1, 0, 0), Operation::Flush),
        (request(FUA, FLUSH, 1, 0, 0), Operation::Flush),
        (request(0, TRIM, 1, 512, 512), Operation::Trim { offset: 512, bytes: 512 }),
        (
            request(FUA, TRIM, 1, 512, 512),
            Operation::WriteZeroes { offset: 512, bytes: 512, may_trim: true, fua: true },
        ),
        (request(0, CACHE, 1, 512, 512), Operation::Prefetch { offset: 512, bytes: 512 }),
        (
            request(0, WRITE_ZEROES, 1, 0, 1 << 20),
            Operation::WriteZeroes { offset: 0, bytes: 1 << 20, may_trim: true, fua: false },
        ),
        (
            request(FUA | NO_HOLE, WRITE_ZEROES, 1, 0, 512),
            Operation::WriteZeroes { offset: 0, bytes: 512, may_trim: false, fua: true },
        ),
        (request(0, BLOCK_STATUS, 1, 0, 1 << 20), Operation::Allocation { offset: 0, bytes: 1 << 20 }),
    ];
    for (bytes, operation) in cases {
        assert_eq!(only(&mut session, &bytes).operation, operation);
    }
}

#[test]
fn simple_replies_match_the_protocol() {
    let mut session = session(false, limits());
    let first = only(&mut session, &request(0, READ, 11, 512, 512));
    let second = only(&mut session, &request(0, READ, 12, 512, 512));
    let third = only(&mut session, &request(0, FLUSH, 13, 0, 0));
    let fourth = only(&mut session, &write(0, 14, 0, &[1; 512]));
    session.answer(NOW, third.handle, Ok(Answer::Done));
    session.answer(NOW, first.handle, Ok(Answer::Data(vec![5; 512])));
    session.answer(NOW, fourth.handle, Err(BlockError::NoSpace));
    session.answer_read(NOW, second.handle, |_| Err(BlockError::Medium));
    let expected = [simple(OK, 13), simple(OK, 11), vec![5; 512], simple(ENOSPC, 14), simple(EIO, 12)];
    assert_eq!(get(&mut session, NOW), expected.concat());
}

#[test]
fn structured_replies_match_the_protocol() {
    let mut session = session(true, limits());
    let read = only(&mut session, &request(0, READ, 11, 512, 512));
    session.answer_read(NOW, read.handle, |room| {
        room.fill(5);
        Ok(())
    });
    let payload = Message::default().u64(512).bytes(&[5; 512]).0;
    assert_eq!(get(&mut session, NOW), last_chunk(1, 11, &payload));

    let write = only(&mut session, &write(0, 12, 0, &[1; 512]));
    session.answer(NOW, write.handle, Ok(Answer::Done));
    assert_eq!(get(&mut session, NOW), simple(OK, 12));

    for fails in [request(0, READ, 13, 0, 512), request(0, FLUSH, 13, 0, 0)] {
        let handle = only(&mut session, &fails).handle;
        session.answer(NOW, handle, Err(BlockError::Medium));
        let payload = Message::default().u32(EIO).u16(12).bytes(b"medium error").0;
        assert_eq!(get(&mut session, NOW), last_chunk(0x8001, 13, &payload));
    }
}

#[test]
fn disk_failures_map_to_nbd_error_numbers() {
    let mut session = session(false, limits());
    let cases = [
        (BlockError::Invalid, EINVAL),
        (BlockError::Medium, EIO),
        (BlockError::Dead, EIO),
        (BlockError::NoSpace, ENOSPC),
        (BlockError::ShuttingDown, ESHUTDOWN),
    ];
    for (error, number) in cases {
        let handle = only(&mut session, &request(0, FLUSH, 1, 0, 0)).handle;
        session.answer(NOW, handle, Err(error));
        assert_eq!(get(&mut session, NOW), simple(number, 1));
    }
}

#[test]
fn invalid_request_is_rejected_and_the_session_continues() {
    let disk = [
        (request(0, 8, 9, 0, 0), EINVAL),
        (request(0, 0xffff, 9, 0, 512), EINVAL),
        (request(0, READ, 9, 0, 0), EINVAL),
        (request(0, WRITE, 9, 0, 0), EINVAL),
        (request(0, TRIM, 9, 0, 0), EINVAL),
        (request(0, READ, 9, 1, 512), EINVAL),
        (request(0, READ, 9, 0, 511), EINVAL),
        (request(0, READ, 9, 1 << 20, 512), EINVAL),
        (request(0, READ, 9, (1 << 20) - 512, 1024), EINVAL),
        (request(0, READ, 9, u64::MAX - 511, 512), EINVAL),
        (request(0, TRIM, 9, 1 << 20, 512), EINVAL),
        (request(0, CACHE, 9, 1 << 20, 512), EINVAL),
        (request(0, BLOCK_STATUS, 9, 1 << 20, 512), EINVAL),
        (request(0, WRITE_ZEROES, 9, 1 << 20, 512), ENOSPC),
        (write(0, 9, 1 << 20, &[1; 512]), ENOSPC),
        (write(0, 9, u64::MAX - 511, &[1; 512]), ENOSPC),
        (write(0, 9, 1, &[1; 512]), EINVAL),
        (write(DF, 9, 0, &[1; 512]), EINVAL),
        (write(0, 9, 0, &vec![1; (256 << 10) + 512]), EINVAL),
        (request(0, READ, 9, 0, (256 << 10) + 512), EINVAL),
        (request(DF, READ, 9, 0, (256 << 10) + 512), EOVERFLOW),
        (request(0, READ, 9, 0, u32::MAX), EINVAL),
        (request(NO_HOLE, READ, 9, 0, 512), EINVAL),
        (request(REQ_ONE, READ, 9, 0, 512), EINVAL),
        (request(1 << 5, READ, 9, 0, 512), EINVAL),
        (request(1 << 15, FLUSH, 9, 0, 0), EINVAL),
        (request(0, FLUSH, 9, 512, 0), EINVAL),
        (request(0, FLUSH, 9, 0, 512), EINVAL),
        (request(FAST_ZERO, WRITE_ZEROES, 9, 0, 512), ENOTSUP),
        (request(FAST_ZERO | NO_HOLE, WRITE_ZEROES, 9, 1 << 20, 512), ENOSPC),
        (request(FAST_ZERO, TRIM, 9, 0, 512), EINVAL),
    ];
    let mut session = session(true, limits());
    for (bytes, error) in disk {
        assert_eq!(refused(&mut session, &bytes), error, "{:?}", &bytes[..28]);
    }
    let good = only(&mut session, &request(0, READ, 1, 0, 256 << 10));
    assert_eq!(good.operation, Operation::Read { offset: 0, bytes: 256 << 10, fua: false });
}

#[test]
fn command_that_was_not_offered_is_rejected() {
    let cases = [
        (write(0, 9, 0, &[1; 512]), EPERM),
        (request(0, FLUSH, 9, 0, 0), EINVAL),
        (request(0, TRIM, 9, 0, 512), EPERM),
        (request(0, WRITE_ZEROES, 9, 0, 512), EPERM),
        (request(0, CACHE, 9, 0, 512), EINVAL),
        (request(FUA, READ, 9, 0, 512), EINVAL),
        (request(DF, READ, 9, 0, 512), EINVAL),
        (request(0, BLOCK_STATUS, 9, 0, 512), EINVAL),
    ];
    let mut tape = session_with("tape", false, limits());
    for (bytes, error) in cases {
        assert_eq!(refused(&mut tape, &bytes), error, "{:?}", &bytes[..28]);
    }
    only(&mut tape, &request(0, READ, 1, 0, 512));
}

#[test]
fn payload_of_a_rejected_write_is_skipped() {
    let mut session = session(false, limits());
    // The payload of the write looks like requests, but must not be parsed as requests.
    let payload = request(0, FLUSH, 66, 0, 0).repeat(30_000);
    let said = [write(0, 9, 1, &payload), request(0, FLUSH, 2, 0, 0)].concat();
    let flush = only(&mut session, &said);
    session.answer(NOW, flush.handle, Ok(Answer::Done));
    assert_eq!(get(&mut session, NOW), [simple(EINVAL, 9), simple(OK, 2)].concat());
}

#[test]
fn rejection_waits_for_the_whole_payload() {
    let mut session = session(false, limits());
    let said = write(0, 9, 1, &[1; 100]);
    assert_eq!(ask(&mut session, NOW, &said[..127]), []);
    assert!(session.output().is_empty(), "clients that still send do not expect an answer");
    ask(&mut session, NOW, &said[127..]);
    assert_eq!(get(&mut session, NOW), simple(EINVAL, 9));
}

#[test]
fn bad_magic_or_oversized_payload_ends_the_connection() {
    let mut first = session(true, limits());
    let read = only(&mut first, &request(0, READ, 1, 0, 512));
    assert_eq!(ask(&mut first, NOW, &[0xff; 28]), []);
    let met = 0xffff_ffff;
    assert_eq!(first.ending(), Some(&Ending::Broken(Breach::RequestMagic { met })));
    assert!(first.is_over() && !first.wants_input());
    first.answer(NOW, read.handle, Ok(Answer::Data(vec![0; 512])));
    assert!(first.output().is_empty() && first.in_flight() == 0);

    let mut second = session(true, limits());
    ask(&mut second, NOW, &request(0, WRITE, 1, 0, (1 << 20) + 1));
    let breach = Breach::Payload { bytes: (1 << 20) + 1, allowed: 1 << 20 };
    assert_eq!(second.ending(), Some(&Ending::Broken(breach)));
}

#[test]
fn requests_in_flight_are_answered_after_a_disconnect() {
    let mut session = session(false, limits());
    let said =
        [request(0, FLUSH, 1, 0, 0), request(0xff, DISC, 2, 5, 5), request(0, FLUSH, 3, 0, 0)].concat();
    let flush = only(&mut session, &said);
    assert_eq!(session.ending(), Some(&Ending::Disconnected));
    assert!(!session.is_over() && !session.wants_input());
    session.answer(NOW, flush.handle, Ok(Answer::Done));
    assert!(!session.is_over());
    assert_eq!(get(&mut session, NOW), simple(OK, 1));
    assert!(session.is_over());
}

#[test]
fn requests_in_flight_are_answered_after_a_hangup() {
    let limits = Limits { requests: 1, ..limits() };
    let mut session = session(false, limits);
    let said = [request(0, FLUSH, 1, 0, 0), request(0, FLUSH, 2, 0, 0), vec![1; 27]].concat();
    let first = only(&mut session, &said);
    session.input_ended();
    assert!(session.next_request().is_none() && session.ending().is_none() && !session.wants_input());
    session.answer(NOW, first.handle, Ok(Answer::Done));
    let second = session.next_request().expect("it was asked for before");
    session.answer(NOW, second.handle, Ok(Answer::Done));
    assert!(session.next_request().is_none());
    assert_eq!(session.ending(), Some(&Ending::HungUp));
    assert_eq!(get(&mut session, NOW), [simple(OK, 1), simple(OK, 2)].concat());
    assert!(session.is_over());
}

#[test]
fn long_payload_is_read_in_place() {
    let mut session = session(false, limits());
    let data: Vec<u8> = (0..256 << 10).map(|at: u32| (at / 7) as u8).collect();
    let said = write(0, 1, 512, &data);
    assert_eq!(ask(&mut session, NOW, &said[..1000]), []);
    assert_eq!(
        session.input_space().len(),
        128 << 10,
        "the rest goes where it is used, and takes memory as it arrives"
    );
    let rest = [&said[1000..], &request(0, FLUSH, 2, 0, 0)].concat();
    let requests = ask(&mut session, NOW, &rest);
    assert_eq!(requests[0].operation, Operation::Write { offset: 512, data, fua: false });
    assert_eq!(requests[1].operation, Operation::Flush);
}

/// The descriptors that a session reports for these extents (bytes, whether it is a hole).
fn reported(flags: u16, length: u32, extents: &[(u64, bool)]) -> Vec<(u32, u32)> {
    let mut session = session(true, Limits { extents: 4, ..limits() });
    let handle = only(&mut session, &request(flags, BLOCK_STATUS, 3, 0, length)).handle;
    let extents = extents.iter().map(|&(bytes, hole)| StatusExtent { bytes, hole }).collect();
    session.answer(NOW, handle, Ok(Answer::Allocation(extents)));
    let heard = replies(&get(&mut session, NOW), |_| 0);
    let [Reply { cookie: 3, error: OK, kind: Some(5), payload }] = heard.as_slice() else {
        panic!("{heard:?}")
    };
    let field = |at: usize| u32::from_be_bytes(payload[at..at + 4].try_into().expect("there are four"));
    assert_eq!(field(0), 1, "the ID announced when contexts were set");
    (4..payload.len()).step_by(8).map(|at| (field(at), field(at + 4))).collect()
}

#[test]
fn allocation_is_reported_within_the_requested_range() {
    assert_eq!(
        reported(0, 4096, &[(512, false), (512, true), (1 << 40, false)]),
        [(512, 0), (512, 3), (3072, 0)]
    );
    assert_eq!(
        reported(0, 4096, &[(512, true), (0, false), (512, true)]),
        [(1024, 3)],
        "neighbours are joined"
    );
    assert_eq!(reported(0, 1024, &[(1024, true), (512, false)]), [(1024, 3)]);
    assert_eq!(reported(REQ_ONE, 4096, &[(512, true), (512, true), (512, false)]), [(1024, 3)]);
    let many: Vec<_> = (0..8).map(|at| (512, at % 2 == 0)).collect();
    assert_eq!(reported(0, 4096, &many), [(512, 3), (512, 0), (512, 3), (512, 0)], "no more than the limit");
}

#[test]
#[should_panic(expected = "the first byte")]
fn empty_allocation_panics() {
    reported(0, 4096, &[]);
}

#[test]
#[should_panic(expected = "is not answered by")]
fn answer_of_the_wrong_kind_panics() {
    let mut session = session(false, limits());
    let read = only(&mut session, &request(0, READ, 1, 0, 512));
    session.answer(NOW, read.handle, Ok(Answer::Done));
}

#[test]
fn requests_in_flight_stay_within_the_limit() {
    let mut session = session(false, Limits { requests: 3, ..limits() });
    let said: Vec<u8> = (0..5).flat_map(|cookie| request(0, FLUSH, cookie, 0, 0)).collect();
    let mut in_flight = ask(&mut session, NOW, &said);
    assert_eq!((in_flight.len(), session.in_flight()), (3, 3));
    assert!(!session.wants_input());
    assert_eq!(session.poll_timeout(), None, "the client is not to blame");
    session.answer(NOW, in_flight.remove(1).handle, Ok(Answer::Done));
    assert!(session.next_request().is_some() && session.next_request().is_none());
    assert!(!session.wants_input());
    session.answer(NOW, in_flight.remove(0).handle, Ok(Answer::Done));
    assert!(session.next_request().is_some() && session.next_request().is_none());
    assert!(session.wants_input());
}

#[test]
fn unread_replies_take_bounded_memory() {
    let mut session = session(false, Limits { held_bytes: 64 << 10, ..limits() });
    let reads = request(0, READ, 1, 0, 16 << 10).repeat(20);
    let mut in_flight = ask(&mut session, NOW, &reads);
    assert_eq!(in_flight.len(), 4);
    for request in in_flight.drain(..) {
        session.answer_read(NOW, request.handle, |_| Ok(()));
    }
    // What the disk has done, the client has not taken: one reply's worth is over the limit by its header.
    assert!(session.next_request().is_none() && !session.wants_input());
    assert_eq!(session.said() - session.taken(), 4 * ((16 << 10) + 16));
    session.sent(NOW, 2 * ((16 << 10) + 16));
    assert_eq!(std::iter::from_fn(|| session.next_request()).count(), 1);

    // Error replies are limited in the same way.
    let mut second = crate::client::session(false, Limits { held_bytes: 64 << 10, ..limits() });
    let bad = request(0, 99, 1, 0, 0).repeat(9000);
    assert_eq!(ask(&mut second, NOW, &bad), []);
    assert!(!second.wants_input());
    assert!(second.output().len() <= (64 << 10) + 16, "{}", second.output().len());
}

#[test]
fn single_request_larger_than_the_memory_limit_passes() {
    let mut session = session(false, Limits { held_bytes: 1000, ..limits() });
    let said = [write(0, 1, 0, &vec![1; 128 << 10]), request(0, READ, 2, 0, 4096)].concat();
    let mut first = ask(&mut session, NOW, &said);
    assert_eq!(first.len(), 1);
    session.answer(NOW, first.remove(0).handle, Ok(Answer::Done));
    get(&mut session, NOW);
    assert_eq!(std::iter::from_fn(|| session.next_request()).count(), 1);
}

#[test]
fn incomplete_request_times_out() {
    let limit = Nanos::from_secs(30);
    let small = write(0, 1, 0, &[1; 512]);
    let large = write(0, 1, 0, &vec![1; 128 << 10]);
    let refused = write(0, 1, 1, &vec![1; 128 << 10]);
    for said in [small, large, refused] {
        for cut in [1, 27, 28, 29, said.len() - 1] {
            let mut session = session(false, limits());
            assert_eq!(session.poll_timeout(), None, "a client may idle for ever");
            ask(&mut session, Instant(5), &said[..cut]);
            assert_eq!(session.poll_timeout(), Some(Instant(5) + limit));
            let mut completed = crate::client::session(false, limits());
            ask(&mut completed, Instant(5), &said[..cut]);
            ask(&mut completed, Instant(6), &said[cut..]);
            get(&mut completed, Instant(6));
            assert_eq!(completed.poll_timeout(), None);
            session.handle_timeout(Instant(4) + limit);
            assert!(!session.is_over());
            session.handle_timeout(Instant(5) + limit);
            assert_eq!(session.ending(), Some(&Ending::Broken(Breach::SlowRequest)));
        }
    }
}

#[test]
fn unread_replies_time_out() {
    let (limit, mut session) = (Nanos::from_secs(30), session(false, limits()));
    let mut requests = ask(&mut session, NOW, &request(0, FLUSH, 1, 0, 0).repeat(2));
    session.answer(Instant(7), requests.remove(0).handle, Ok(Answer::Done));
    session.answer(Instant(9), requests.remove(0).handle, Ok(Answer::Done));
    assert_eq!(session.poll_timeout(), Some(Instant(7) + limit));
    session.sent(Instant(20), 1);
    assert_eq!(session.poll_timeout(), Some(Instant(20) + limit), "one byte is progress");
    session.handle_timeout(Instant(19) + limit);
    assert!(!session.is_over());
    session.handle_timeout(Instant(20) + limit);
    assert_eq!(session.ending(), Some(&Ending::Broken(Breach::SlowReader)));
    assert!(session.is_over() && session.output().is_empty());
}
