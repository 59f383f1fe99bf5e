//! The advised settings as Linux commands, a udev rule and keys of a node file.

use super::knobs::{IO_MAX, KNOBS, Knob, KnobOwner, OTHERS};
use super::search::TuneOutcome;
use super::stripe;
use headstack_sim::rig::Rig;
use serde_json::{Value, json};

/// The names that commands have for the disks and the array of a rig.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TuneDevices {
    disks: Vec<String>,
    array: Option<String>,
}

impl TuneDevices {
    /// The devices of a rig: `disks`, one name for each drive of the rig (`sda`); without names `sda` and those after it. `array` is a name
    /// such as `md0`, which a rig without an array ignores.
    ///
    /// *Errors:* the rig has another number of drives.
    pub fn new(rig: &Rig, disks: &[String], array: &str) -> Result<TuneDevices, String> {
        let spec = rig.resolved();
        let drives: usize = spec.drive.iter().map(|group| group.keys.count as usize).sum();
        if !disks.is_empty() && disks.len() != drives {
            return Err(format!(
                "the rig has {drives} drives, each with the settings of a disk, and {} named: name each",
                if disks.len() == 1 { "one is".to_string() } else { format!("{} are", disks.len()) }
            ));
        }
        let disks = if disks.is_empty() { (0..drives).map(disk_name).collect() } else { disks.to_vec() };
        Ok(TuneDevices { disks, array: (!spec.array.is_empty()).then(|| array.to_string()) })
    }

    /// The device that the load uses: the array, or the disk.
    pub fn volume(&self) -> &str {
        self.array.as_ref().unwrap_or(&self.disks[0])
    }

    /// The devices that have an owner's attributes; none if it has none in `/sys/block`.
    fn of_owner(&self, owner: KnobOwner) -> Vec<&str> {
        match (owner, &self.array) {
            (KnobOwner::Volume, Some(array)) => vec![array],
            (KnobOwner::Disk | KnobOwner::Volume, _) => self.disks.iter().map(String::as_str).collect(),
            _ => Vec::new(),
        }
    }
}

/// The name that Linux gives to the disk of this number: `sda` to `sdz`, `sdaa` and so on.
fn disk_name(number: usize) -> String {
    let (mut rest, mut letters) = (number + 1, Vec::new());
    while rest > 0 {
        letters.push(char::from(b'a' + ((rest - 1) % 26) as u8));
        rest = (rest - 1) / 26;
    }
    format!("sd{}", letters.iter().rev().collect::<String>())
}

/// A command that moves or loses the data on the disks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RebuildCommand {
    /// The command.
    pub command: String,
    /// Whether all data are lost by it.
    pub destroys: bool,
}

impl RebuildCommand {
    pub(super) fn to_json(&self) -> Value {
        json!({"command": self.command, "destroys": self.destroys})
    }
}

impl TuneOutcome {
    /// Commands that apply the advised settings which move no data. Attributes of devices last until the next boot, a node's keys until the node
    /// stops. `PID` stands for each process of the other jobs.
    pub fn commands(&self, devices: &TuneDevices) -> Vec<String> {
        let mut all = Vec::new();
        for advised in self.in_order() {
            let knob @ Knob { owner, attribute, .. } = &KNOBS[advised.choice.knob];
            let value = advised.choice.text();
            match owner {
                KnobOwner::OtherJobs if knob.name == IO_MAX => {
                    all.push(io_max_commands(devices.volume(), value));
                }
                KnobOwner::OtherJobs => all.push(format!("ionice --class {value} --pid PID")),
                KnobOwner::Node => {
                    all.push(format!("headstack serve node.toml --set disk.{attribute}={value}"))
                }
                _ => all.extend(devices.of_owner(*owner).into_iter().flat_map(|device| {
                    let set = move |(attribute, value): (&str, &str)| {
                        format!("echo {value} > /sys/block/{device}/{attribute}")
                    };
                    [Some((*attribute, value)), knob.companion(value)].into_iter().flatten().map(set)
                })),
            }
        }
        all
    }

    /// Commands that apply the other advised settings: a chunk, for which mdadm moves all data of an array, and the start of a partition, which needs
    /// a new partition table. `rig` is the rig before the advice.
    pub fn rebuild_commands(&self, rig: &Rig, devices: &TuneDevices) -> Vec<RebuildCommand> {
        let after = self.advised_rig(rig);
        let volume = devices.volume();
        let one = |(knob, value): (&Knob, &str)| match knob.owner {
            KnobOwner::Array => {
                let command = format!("mdadm --grow /dev/{volume} {}={value}", knob.attribute);
                Some(RebuildCommand { command, destroys: false })
            }
            KnobOwner::Partition => {
                let start = after.resolved().host.partition_start * stripe::UNIT_BYTES;
                let command = format!("parted --script /dev/{volume} mklabel gpt mkpart data {start}B 100%");
                Some(RebuildCommand { command, destroys: true })
            }
            _ => None,
        };
        let advised = self.in_order().into_iter();
        advised.filter_map(|advised| one((&KNOBS[advised.choice.knob], advised.choice.text()))).collect()
    }

    /// A udev rule that applies the devices' settings whenever one appears, with `title` in its first line; none if no setting is of a device.
    pub fn udev_rule(&self, devices: &TuneDevices, title: &str) -> Option<String> {
        let lines: Vec<String> = [KnobOwner::Disk, KnobOwner::Volume]
            .into_iter()
            .filter_map(|owner| {
                let advised = self.of_owner(owner);
                let with_companion = |(knob, value): &(&Knob, &'static str)| {
                    [Some((knob.attribute, *value)), knob.companion(value)]
                };
                let one = |(attribute, value)| format!(", ATTR{{{attribute}}}=\"{value}\"");
                let settings: String = advised.iter().flat_map(with_companion).flatten().map(one).collect();
                let names = devices.of_owner(owner).join("|");
                let line =
                    format!("ACTION==\"add|change\", SUBSYSTEM==\"block\", KERNEL==\"{names}\"{settings}\n");
                (!advised.is_empty()).then_some(line)
            })
            .collect();
        let file = format!("# {title}: /etc/udev/rules.d/60-headstack-{}.rules\n", devices.volume());
        (!lines.is_empty()).then(|| file + &lines.concat())
    }

    /// The advised keys of a storage node, as lines below a `[[disk]]` of its node file; none if no setting is of a node.
    pub fn node_keys(&self, title: &str) -> Option<String> {
        let advised = self.of_owner(KnobOwner::Node);
        let lines: String =
            advised.iter().map(|(knob, value)| format!("{} = {value}\n", knob.attribute)).collect();
        (!advised.is_empty()).then(|| format!("# {title}: keys of a [[disk]]\n{lines}"))
    }
}

/// Commands that put processes into a control group and limit what it reads and writes of a disk or an array. *Source:* the kernel's "Control
/// Group v2".
fn io_max_commands(disk: &str, bytes_per_s: &str) -> String {
    let group = format!("/sys/fs/cgroup/{OTHERS}");
    let limits = format!("$(cat /sys/block/{disk}/dev) rbps={bytes_per_s} wbps={bytes_per_s}");
    format!(
        "echo +io > /sys/fs/cgroup/cgroup.subtree_control && mkdir -p {group} && echo \"{limits}\" > {group}/io.max && echo PID > {group}/cgroup.procs"
    )
}

#[cfg(test)]
mod tests {
    use super::super::goal::TuneFigures;
    use super::super::search::{AdvisedSetting, Gain, SettingChoice};
    use super::*;
    use crate::files::NoFiles;
    use crate::rig::load_rig;

    /// An outcome that advises these values.
    fn advising(settings: &[(&str, &str)]) -> TuneOutcome {
        let gain = Gain { log: 0.2, half_width: 0.01 };
        let choice = |(name, text): &(&str, &str)| {
            let knob = KNOBS.iter().position(|knob| knob.name == *name).expect("it is in the list");
            let value = KNOBS[knob].values.iter().position(|value| value == text).expect("it is tried");
            AdvisedSetting { choice: SettingChoice { knob, value }, gain }
        };
        let figures = TuneFigures::for_test(100.0, 10.0);
        TuneOutcome {
            advised: settings.iter().map(choice).collect(),
            whole: gain,
            by_metric: Vec::new(),
            before: figures.clone(),
            after: figures,
            runs: 0,
            whole_runs: 0.0,
            combinations: 1.0,
        }
    }

    #[test]
    fn settings_of_disks_go_to_every_member_and_read_ahead_to_the_array() {
        let rig = load_rig("raid5", &NoFiles).expect("it ships");
        let devices = TuneDevices::new(&rig, &[], "md7").expect("each drive has a name");
        let outcome = advising(&[("queue_depth", "8"), ("read_ahead_kb", "1024"), ("chunk", "512")]);
        let commands = outcome.commands(&devices);
        let depth = |disk| format!("echo 8 > /sys/block/{disk}/device/queue_depth");
        let mut expected: Vec<String> = ["sda", "sdb", "sdc", "sdd", "sde"].map(depth).to_vec();
        expected.push("echo 1024 > /sys/block/md7/queue/read_ahead_kb".to_string());
        assert_eq!(commands, expected);
        let rule = outcome.udev_rule(&devices, "tune").expect("settings are of devices");
        assert!(rule.contains("KERNEL==\"sda|sdb|sdc|sdd|sde\", ATTR{device/queue_depth}=\"8\"\n"), "{rule}");
        assert!(rule.contains("KERNEL==\"md7\", ATTR{queue/read_ahead_kb}=\"1024\"\n"), "{rule}");
        let rebuild = outcome.rebuild_commands(&rig, &devices);
        let command = "mdadm --grow /dev/md7 --chunk=512".to_string();
        assert_eq!(rebuild, [RebuildCommand { command, destroys: false }]);
        let refused = TuneDevices::new(&rig, &["sdq".to_string()], "md7").expect_err("four have no name");
        assert_eq!(
            refused,
            "the rig has 5 drives, each with the settings of a disk, and one is named: name each"
        );
    }

    #[test]
    fn command_that_loses_data_is_apart_from_those_that_set() {
        let mut rig = load_rig("workstation", &NoFiles).expect("it ships");
        rig.set("host.partition_start", "63").expect("each disk has that sector");
        let devices = TuneDevices::new(&rig, &["sdq".to_string()], "md7").expect("it has one drive");
        let outcome = advising(&[("partition_start", "2048")]);
        assert_eq!(outcome.commands(&devices), [""; 0]);
        let command = "parted --script /dev/sdq mklabel gpt mkpart data 1048576B 100%".to_string();
        assert_eq!(outcome.rebuild_commands(&rig, &devices), [RebuildCommand { command, destroys: true }]);
    }

    #[test]
    fn disks_are_named_as_linux_names_them() {
        assert_eq!(
            [0, 25, 26, 51, 52, 701, 702].map(disk_name),
            ["sda", "sdz", "sdaa", "sdaz", "sdba", "sdzz", "sdaaa"]
        );
    }
}
