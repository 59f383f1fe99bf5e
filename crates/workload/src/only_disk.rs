//! The disk for which the only volume of a rig stands.
//!
//! On a rig of one volume any `/dev/…` is that volume. Two disks would become one without a word, and share an arm: so the first name counts, and
//! that of another disk is refused.

/// The name of the disk that a rig's only volume stands for, once one is met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OnlyDisk {
    first: Option<String>,
}

impl OnlyDisk {
    /// Accepts a device file of the disk: the same name, or a partition of it.
    ///
    /// *Errors:* it is another disk; the first name is returned.
    pub(crate) fn admit(&mut self, name: &str) -> Result<(), String> {
        let first = self.first.get_or_insert_with(|| name.to_string());
        if whole_disk(first) == whole_disk(name) { Ok(()) } else { Err(first.clone()) }
    }
}

/// The disk of a device file: that of a partition is the name without the partition's number (`sda1`, `nvme0n1p1`, `…-part1`).
fn whole_disk(name: &str) -> &str {
    let bare = name.trim_end_matches(|digit: char| digit.is_ascii_digit());
    if bare.len() == name.len() {
        return name;
    }
    if let Some(disk) = bare.strip_suffix("-part") {
        return disk;
    }
    let ends_in_digit = |text: &str| text.ends_with(|last: char| last.is_ascii_digit());
    if let Some(disk) = bare.strip_suffix('p').filter(|disk| ends_in_digit(disk)) {
        return disk;
    }
    let file = bare.rsplit('/').next().unwrap_or(bare);
    let has_letters = ["sd", "hd", "vd", "xvd"].iter().any(|kind| file.starts_with(kind));
    if has_letters { bare } else { name }
}
