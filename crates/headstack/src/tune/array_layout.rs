//! Aligns a file system to an array with an advised chunk: options of mkfs, and where partitions start.

use super::knobs::{KNOBS, KnobOwner};
use super::search::TuneOutcome;
use super::stripe;
use headstack_sim::rig::Rig;
use serde_json::{Value, json};

/// KiB of a block of ext4.
const EXT4_BLOCK_KIB: u64 = 4;

/// How a file system is aligned to an array: its allocation starts and ends at full stripes, so that writing one needs no read of old data or
/// parity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayLayout {
    /// KiB of the stripe unit.
    pub chunk_kib: u64,
    /// Drives' worth of data in a stripe.
    pub data_drives: u64,
}

impl ArrayLayout {
    /// KiB of data in a stripe: partitions start at a multiple of it.
    pub fn stripe_kib(&self) -> u64 {
        self.chunk_kib * self.data_drives
    }

    /// The options of mke2fs. *Source:* mke2fs(8), `stride` and `stripe_width`.
    pub fn ext4_options(&self) -> String {
        let [stride, width] = [self.chunk_kib, self.stripe_kib()].map(|kib| kib / EXT4_BLOCK_KIB);
        format!("-E stride={stride},stripe_width={width}")
    }

    /// The options of mkfs.xfs. *Source:* mkfs.xfs(8), `su` and `sw`.
    pub fn xfs_options(&self) -> String {
        format!("-d su={}k,sw={}", self.chunk_kib, self.data_drives)
    }

    /// The layout as a JSON object.
    pub fn to_json(&self) -> Value {
        json!({
            "chunk_kib": self.chunk_kib,
            "data_drives": self.data_drives,
            "partition_multiple_kib": self.stripe_kib(),
            "mkfs_ext4": self.ext4_options(),
            "mkfs_xfs": self.xfs_options(),
        })
    }
}

impl TuneOutcome {
    /// The layout on the array with the advised chunk; none where no chunk is advised, or the rig does not have exactly one array that
    /// stripes over whole drives.
    pub fn array_layout(&self, rig: &Rig) -> Option<ArrayLayout> {
        let is_of_array = |knob: usize| KNOBS[knob].owner == KnobOwner::Array;
        let advised = self.advised.iter().find(|advised| is_of_array(advised.choice.knob))?;
        let chunk_kib = advised.choice.text().parse().ok()?;
        Some(ArrayLayout { chunk_kib, data_drives: stripe::data_drives(rig)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_a_file_system_follow_from_chunk_and_data_drives() {
        let layout = ArrayLayout { chunk_kib: 512, data_drives: 4 };
        assert_eq!(layout.stripe_kib(), 2048);
        assert_eq!(layout.ext4_options(), "-E stride=128,stripe_width=512");
        assert_eq!(layout.xfs_options(), "-d su=512k,sw=4");
    }
}
