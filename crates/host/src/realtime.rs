//! System settings that make a thread wake up on time.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::panic::resume_unwind;
use std::thread::{Builder, scope};
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};

/// Sets the calling thread to real-time priority (`SCHED_FIFO`). Returns whether the system allowed it.
///
/// Linux allows it to root, with `CAP_SYS_NICE`, and within `RLIMIT_RTPRIO`.
pub(crate) fn set_realtime() -> bool {
    let priority =
        ThreadPriority::Crossplatform(50u8.try_into().expect("50 is within 0 to 99, the crate's own scale"));
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    set_thread_priority_and_policy(thread_native_id(), priority, policy).is_ok()
}

/// Runs something short in a separate thread with real-time priority, where the system allows it, so that the caller's priority
/// does not change.
pub(crate) fn with_realtime<R: Send>(what: impl Fn() -> R + Sync) -> R {
    let done = scope(|scope| {
        let run = || {
            set_realtime();
            what()
        };
        // Without a thread it runs at the caller's priority.
        let thread = Builder::new().name("look".to_string()).spawn_scoped(scope, run).ok()?;
        Some(thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    });
    done.unwrap_or_else(what)
}

/// Keeps idle processors from sleeping until it is dropped, where the system allows it: waking one adds some 50 µs to each
/// direction of a request, which are not part of a disk's response time. Idle processors spin instead, which costs power.
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
        // If the system refuses, processors sleep, and response times are longer.
        CpuLatencyLock { _request: is_wanted.then(open).and_then(Result::ok) }
    }
}

/// Sets the timer slack of the calling thread to 1 ns; by default, timers fire up to 50 µs late.
pub(crate) fn set_timer_slack() {
    // Fails only on a kernel without timer slack; the lateness shows that.
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
