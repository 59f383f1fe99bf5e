//! What a thread can ask of the system so that it is woken in time.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::panic::resume_unwind;
use std::thread::{Builder, scope};
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};

/// Puts the calling thread before all that is not real-time (`SCHED_FIFO`); says whether the system allowed it.
///
/// Linux allows it to root, to who has `CAP_SYS_NICE`, and within `RLIMIT_RTPRIO`.
pub(crate) fn set_realtime() -> bool {
    let priority =
        ThreadPriority::Crossplatform(50u8.try_into().expect("50 is within 0 to 99, the crate's own scale"));
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    set_thread_priority_and_policy(thread_native_id(), priority, policy).is_ok()
}

/// Does something short before all that is not real-time, where the system allows it: in a thread of its own, so that the calling
/// one stays as it is.
pub(crate) fn with_realtime<R: Send>(what: impl Fn() -> R + Sync) -> R {
    let done = scope(|scope| {
        let run = || {
            set_realtime();
            what()
        };
        // Where there is no thread it is done as the calling one is.
        let thread = Builder::new().name("look".to_string()).spawn_scoped(scope, run).ok()?;
        Some(thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    });
    done.unwrap_or_else(what)
}

/// Keeps idle processors from sleeping until it is dropped, where the system allows it: one that has to be woken is late by some
/// fifty microseconds, on the way to a disk and on the way back, and no disk has that in its response times. An idle processor
/// turns instead, which costs power.
///
/// *Source:* the kernel's "PM Quality Of Service Interface": `/dev/cpu_dma_latency`, which root may open.
#[derive(Debug)]
pub(crate) struct CpuLatencyLock {
    _request: Option<File>,
}

impl CpuLatencyLock {
    pub(crate) fn acquire(is_wanted: bool) -> CpuLatencyLock {
        let open = || -> io::Result<File> {
            let mut request = OpenOptions::new().write(true).open("/dev/cpu_dma_latency")?;
            request.write_all(&0i32.to_ne_bytes())?;
            Ok(request)
        };
        // Refused, processors sleep as they do, and clients' times say so.
        CpuLatencyLock { _request: is_wanted.then(open).and_then(Result::ok) }
    }
}

/// Has the calling thread's timers fire when they are due and not up to 50 us later, as others' may.
pub(crate) fn set_timer_slack() {
    // Refused only where the kernel is built without it: then wake-ups are later and the lateness says so.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

#[cfg(test)]
mod tests {
    use super::*;
    use thread_priority::thread_schedule_policy;

    #[test]
    fn real_time_priority_is_restored_after_the_call() {
        let before = thread_schedule_policy().expect("it has one");
        let meanwhile = with_realtime(|| thread_schedule_policy().expect("it has one"));
        let asked = Builder::new().spawn(set_realtime).expect("there are threads");
        let is_allowed = asked.join().expect("it does not fail");
        let fifo = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
        assert_eq!(meanwhile, if is_allowed { fifo } else { before });
        assert_eq!(thread_schedule_policy().expect("it has one"), before);
    }
}
