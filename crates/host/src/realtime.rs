//! What a thread can ask of the system so that it is woken in time.

use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};

/// Puts the calling thread before all that is not real-time (`SCHED_FIFO`); says whether the system allowed it.
///
/// Linux allows it to root, to who has `CAP_SYS_NICE`, and within `RLIMIT_RTPRIO`.
pub(crate) fn go_first() -> bool {
    let priority =
        ThreadPriority::Crossplatform(50u8.try_into().expect("50 is within 0 to 99, the crate's own scale"));
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    set_thread_priority_and_policy(thread_native_id(), priority, policy).is_ok()
}

/// Has the calling thread's timers fire when they are due and not up to 50 us later, as others' may.
pub(crate) fn be_punctual() {
    // Refused only where the kernel is built without it: then wake-ups are later and the lateness says so.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}
