//! How the advised settings are set on Linux.

use super::Tuned;
use headstack::tune::{AdvisedSetting, KNOBS};

/// The commands that set them until the next start, in the order in which they must be given: a scheduler's parameters exist once it is chosen.
pub(super) fn commands(tuned: &Tuned<'_>) -> Vec<String> {
    let one = |advised: &&AdvisedSetting| {
        let attribute = KNOBS[advised.choice.knob].attribute;
        format!("echo {} > /sys/block/{}/{attribute}", advised.choice.text(), tuned.command.disk)
    };
    in_order(tuned).iter().map(one).collect()
}

/// A udev rule that sets them whenever the disk appears.
pub(super) fn udev_rule(tuned: &Tuned<'_>) -> String {
    let one = |advised: &&AdvisedSetting| {
        format!(", ATTR{{{}}}=\"{}\"", KNOBS[advised.choice.knob].attribute, advised.choice.text())
    };
    let settings: String = in_order(tuned).iter().map(one).collect();
    let disk = &tuned.command.disk;
    format!(
        "# headstack tune {} {}: /etc/udev/rules.d/60-headstack-{disk}.rules\nACTION==\"add|change\", SUBSYSTEM==\"block\", KERNEL==\"{disk}\"{settings}\n",
        tuned.command.rig, tuned.command.load
    )
}

/// By their place in the list of settings, in which the scheduler is the first.
fn in_order<'a>(tuned: &'a Tuned<'_>) -> Vec<&'a AdvisedSetting> {
    let mut all: Vec<&AdvisedSetting> = tuned.outcome.advised.iter().collect();
    all.sort_by_key(|advised| advised.choice.knob);
    all
}
