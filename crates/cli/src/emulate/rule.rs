//! The commands of `--control` and of `headstack fault`: faults that a test sets and clears.

use headstack_host::DiskHandle;
use headstack_host::disk::{Emulator, FaultEffect, FaultRule, StruckOperations};
use headstack_model::spec::did_you_mean;
use headstack_model::{Geometry, Lbn, Nanos};
use std::ops::Range;
use std::str::FromStr;

/// The commands, each with its form.
const FORMS: [(&str, &str); 7] = [
    ("fail", "fail [reads|writes|flushes|any] [disk=NAME] [blocks=LBN[+COUNT]] [head=N] [nth=N] [count=N]"),
    ("delay", "delay TIME [reads|writes|flushes|any] […]"),
    ("corrupt", "corrupt [reads|writes|any] […]"),
    ("gone", "gone [disk=NAME]"),
    ("back", "back [disk=NAME]"),
    ("clear", "clear [NUMBER]"),
    ("list", "list"),
];

/// Longest delay.
const DELAY_MAX: Nanos = Nanos(3_600_000_000_000);

/// A rule for a disk by its name, or for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedRule {
    disk: Option<String>,
    rule: FaultRule,
}

/// Carries out a command, and returns its answer in one line.
///
/// *Errors:* what is wrong with the command.
pub(super) fn carry_out(line: &str, disks: &[DiskHandle]) -> Result<String, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        ["list"] => Ok(list(disks)),
        ["clear"] => Ok(removed(disks, |_, _, _| true)),
        ["clear", number] => {
            let number: u32 = whole(number)?;
            match remove(disks, |_, id, _| id == number) {
                0 => Err(format!("there is no fault {number}")),
                _ => Ok(format!("ok: fault {number} is cleared")),
            }
        }
        ["back", ..] => {
            let disk = disk_of(&words[1..], "back")?;
            check_name(disks, disk.as_deref())?;
            let gone = |name: &str, _: u32, rule: &FaultRule| {
                rule.effect == FaultEffect::Gone && disk.as_deref().is_none_or(|only| only == name)
            };
            match remove(disks, gone) {
                0 => Err("no such disk is gone".to_string()),
                _ => Ok("ok: back".to_string()),
            }
        }
        _ => {
            let NamedRule { disk, rule } = line.parse()?;
            check_name(disks, disk.as_deref())?;
            add(disks, disk.as_deref(), &rule)
        }
    }
}

/// Sets a rule for a volume, or for all; every disk gets the same number.
fn add(disks: &[DiskHandle], only: Option<&str>, rule: &FaultRule) -> Result<String, String> {
    let number = 1 + numbers(disks).into_iter().max().unwrap_or(0);
    for disk in disks {
        for (volume, info) in disk.volumes().iter().enumerate() {
            if only.is_some_and(|only| only != info.name) {
                continue;
            }
            let rule = FaultRule { volume: Some(volume as u32), ..rule.clone() };
            disk.change_faults(|emulator| set(emulator, number, rule))
                .map_err(|error| format!("{}: {error}", info.name))?;
        }
    }
    Ok(format!("ok: fault {number}"))
}

/// Makes reads under a head of a volume fail.
///
/// *Errors:* it is no single drive, or has no such head.
pub(super) fn fail_head(emulator: &mut Emulator, volume: u32, head: u32) -> Result<(), String> {
    if volume as usize >= emulator.volumes().len() {
        return Err("it is no single drive, so it has no heads".to_string());
    }
    let number = emulator.rules().last_number() + 1;
    let (operations, effect) = (StruckOperations::Reads, FaultEffect::Fail);
    let (blocks, head, skip, count) = (None, Some(head), 0, None);
    set(emulator, number, FaultRule { volume: Some(volume), operations, blocks, head, skip, count, effect })
}

fn set(emulator: &mut Emulator, number: u32, rule: FaultRule) -> Result<(), String> {
    let volume = rule.volume.unwrap_or(0);
    if let Some(head) = rule.head {
        let geometry = emulator.geometry(volume).ok_or("it is no single drive, so it has no heads")?;
        if !has_head(geometry, head) {
            return Err(format!("it has no head {head}"));
        }
    }
    let sectors = emulator.volumes()[volume as usize].info().sectors;
    if let Some(blocks) = rule.blocks.as_ref().filter(|blocks| blocks.end > sectors) {
        return Err(format!(
            "blocks {} to {} (not included) are outside its 0 to {sectors}",
            blocks.start, blocks.end
        ));
    }
    emulator.rules().set(number, rule);
    Ok(())
}

/// Whether a drive has a head. Each cylinder has blocks under all of its heads, but for single spare or bad ones.
fn has_head(geometry: &Geometry, head: u32) -> bool {
    let last = geometry.sectors() - 1;
    [0, last / 2, last].into_iter().any(|lbn| {
        let cylinder = geometry.track_at(Lbn(lbn)).cylinder;
        (0..16).any(|sector| geometry.lbn_at(cylinder, head, sector).is_some())
    })
}

fn numbers(disks: &[DiskHandle]) -> Vec<u32> {
    let of = |disk: &DiskHandle| disk.change_faults(|emulator| emulator.rules().last_number());
    disks.iter().map(of).collect()
}

/// Removes the faults that `choose` selects by the volume's name, the number and the rule; returns how many.
fn remove(disks: &[DiskHandle], choose: impl Fn(&str, u32, &FaultRule) -> bool) -> usize {
    let from = |disk: &DiskHandle| {
        let name = |rule: &FaultRule| disk.volumes()[rule.volume.unwrap_or(0) as usize].name.as_str();
        disk.change_faults(|emulator| {
            emulator.rules().remove(|number, rule| choose(name(rule), number, rule))
        })
    };
    disks.iter().map(from).sum()
}

fn removed(disks: &[DiskHandle], choose: impl Fn(&str, u32, &FaultRule) -> bool) -> String {
    format!("ok: {} cleared", remove(disks, choose))
}

fn list(disks: &[DiskHandle]) -> String {
    let mut all = Vec::new();
    for disk in disks {
        let rules = disk.change_faults(|emulator| emulator.rules().all().to_vec());
        all.extend(rules.into_iter().map(|(number, rule)| {
            let name = &disk.volumes()[rule.volume.unwrap_or(0) as usize].name;
            format!("{number} {}", described(name, &rule))
        }));
    }
    if all.is_empty() { "ok: none".to_string() } else { format!("ok: {}", all.join("; ")) }
}

/// A rule in the form of the command that sets it.
fn described(name: &str, rule: &FaultRule) -> String {
    let mut words = vec![match rule.effect {
        FaultEffect::Fail => "fail".to_string(),
        FaultEffect::Delay(time) => format!("delay {}ms", time.as_ms()),
        FaultEffect::Corrupt => "corrupt".to_string(),
        FaultEffect::Gone => "gone".to_string(),
    }];
    words.extend(
        OPERATIONS.iter().find(|(_, kind)| *kind == rule.operations).map(|(word, _)| (*word).to_string()),
    );
    words.push(format!("disk={name}"));
    let blocks = rule.blocks.as_ref();
    words.extend(blocks.map(|blocks| format!("blocks={}+{}", blocks.start, blocks.end - blocks.start)));
    words.extend(rule.head.map(|head| format!("head={head}")));
    words.extend((rule.skip > 0).then(|| format!("nth={}", rule.skip + 1)));
    words.extend(rule.count.map(|count| format!("count={count}")));
    words.join(" ")
}

fn check_name(disks: &[DiskHandle], name: Option<&str>) -> Result<(), String> {
    let names = || disks.iter().flat_map(DiskHandle::volumes).map(|volume| volume.name.as_str());
    match name.filter(|name| !names().any(|known| known == *name)) {
        Some(name) => Err(format!("there is no disk `{name}`{}", did_you_mean(name, names()))),
        None => Ok(()),
    }
}

/// The words for operations.
const OPERATIONS: [(&str, StruckOperations); 4] = [
    ("reads", StruckOperations::Reads),
    ("writes", StruckOperations::Writes),
    ("flushes", StruckOperations::Flushes),
    ("any", StruckOperations::Any),
];

impl FromStr for NamedRule {
    type Err = String;

    fn from_str(line: &str) -> Result<NamedRule, String> {
        let mut words = line.split_whitespace().peekable();
        let name = words.next().unwrap_or_default();
        let effect = match name {
            "fail" => FaultEffect::Fail,
            "delay" => FaultEffect::Delay(delay(words.next().ok_or_else(|| wrong(name))?)?),
            "corrupt" => FaultEffect::Corrupt,
            "gone" => FaultEffect::Gone,
            _ => return Err(wrong(name)),
        };
        let operations = words.peek().and_then(|word| OPERATIONS.iter().find(|(known, _)| known == word));
        let operations = operations.map(|(_, operations)| *operations);
        words.next_if(|_| operations.is_some());
        let operations = operations.unwrap_or_default();
        if effect == FaultEffect::Corrupt && operations == StruckOperations::Flushes {
            return Err("a flush has no data to corrupt".to_string());
        }
        let (blocks, head, skip, count) = (None, None, 0, None);
        let mut rule = FaultRule { volume: None, operations, blocks, head, skip, count, effect };
        let mut disk = None;
        for word in words {
            let (key, value) = word.split_once('=').ok_or_else(|| wrong(name))?;
            match key {
                "disk" => disk = Some(value.to_string()),
                _ if effect == FaultEffect::Gone => return Err(wrong(name)),
                "blocks" => rule.blocks = Some(blocks_of(value)?),
                "head" => rule.head = Some(whole(value)?),
                "nth" => {
                    rule.skip = positive(key, value)? - 1;
                    // The n-th alone, unless `count` says more.
                    rule.count.get_or_insert(1);
                }
                "count" => rule.count = Some(positive(key, value)?),
                _ => {
                    let known = ["disk", "blocks", "head", "nth", "count"];
                    return Err(format!("there is no `{key}`{}", did_you_mean(key, known)));
                }
            }
        }
        Ok(NamedRule { disk, rule })
    }
}

fn disk_of(words: &[&str], name: &str) -> Result<Option<String>, String> {
    match words {
        [] => Ok(None),
        [word] => match word.strip_prefix("disk=") {
            Some(disk) => Ok(Some(disk.to_string())),
            None => Err(wrong(name)),
        },
        _ => Err(wrong(name)),
    }
}

fn wrong(name: &str) -> String {
    if let Some((_, form)) = FORMS.iter().find(|(known, _)| *known == name) {
        return format!("must be written as {form}");
    }
    let forms: Vec<&str> = FORMS.iter().map(|(name, _)| *name).collect();
    let hint = did_you_mean(name, forms.iter().copied());
    format!("no such command{hint} (there are {})", forms.join(", "))
}

fn delay(text: &str) -> Result<Nanos, String> {
    let time =
        humantime::parse_duration(text).map_err(|error| format!("`{text}`: {error} (such as 30ms)"))?;
    let nanos = u64::try_from(time.as_nanos()).ok().map(Nanos);
    nanos
        .filter(|time| *time > Nanos::ZERO && *time <= DELAY_MAX)
        .ok_or_else(|| format!("`{text}` is outside 1ns to 1h"))
}

fn whole<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{text}` is no whole number, or too large a one"))
}

fn positive(key: &str, text: &str) -> Result<u64, String> {
    match whole(text)? {
        0 => Err(format!("{key}=0: must be at least 1")),
        number => Ok(number),
    }
}

/// The blocks of `LBN[+COUNT]`.
fn blocks_of(text: &str) -> Result<Range<u64>, String> {
    let (first, count) = text.split_once('+').unwrap_or((text, "1"));
    let (first, count): (u64, u64) = (whole(first)?, positive("COUNT", count)?);
    let end = first.checked_add(count).ok_or_else(|| format!("`{text}` ends beyond block 2^64"))?;
    Ok(first..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(line: &str) -> FaultRule {
        line.parse::<NamedRule>().unwrap_or_else(|error| panic!("{line}: {error}")).rule
    }

    #[test]
    fn command_is_parsed_and_described_alike() {
        for line in [
            "fail writes disk=sda blocks=100+8",
            "fail reads disk=sda head=2",
            "delay 30ms any disk=sda nth=5 count=2",
            "corrupt reads disk=sda count=1",
            "gone any disk=sda",
        ] {
            assert_eq!(described("sda", &rule(line)), line);
        }
        let nth = rule("fail reads nth=3");
        assert_eq!((nth.skip, nth.count), (2, Some(1)), "the n-th alone");
        assert_eq!(rule("fail reads count=4 nth=3").count, Some(4));
        assert_eq!("fail disk=sdb".parse::<NamedRule>().expect("it is a rule").disk.as_deref(), Some("sdb"));
    }

    #[test]
    fn wrong_command_is_refused_with_its_form() {
        let error = |line: &str| line.parse::<NamedRule>().expect_err("it is no rule");
        assert!(error("").starts_with("no such command (there are fail, delay"));
        assert!(error("fial").contains("did you mean `fail`?"));
        assert!(error("fail sometimes").starts_with("must be written as fail [reads|"));
        assert!(error("fail reads blok=7").contains("did you mean `blocks`?"));
        assert!(error("fail blocks=7+0").contains("COUNT=0: must be at least 1"));
        assert!(error("fail nth=0").contains("nth=0"));
        assert!(error("delay").starts_with("must be written as delay TIME"));
        assert!(error("delay soon").contains("such as 30ms"));
        assert!(error("delay 2h").contains("outside 1ns to 1h"));
        assert!(error("corrupt flushes").contains("no data"));
        assert!(error("gone head=2").starts_with("must be written as gone"));
        assert!(error("fail head=-1").contains("`-1` is no whole number"));
    }
}
