//! `disksim_ioqueue`: the order of a queue, and whether urgent requests go first.

use crate::fields::{Fields, Notes};
use crate::parse::Block;
use crate::spec::SetupQueue;
use headstack_model::SpecError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The drive's, which knows the position of the arm.
    Drive,
    /// The host driver's, which knows block numbers.
    Driver,
    Controller,
}

pub(crate) fn convert(block: &Block, notes: &Notes, owner: Owner) -> Result<SetupQueue, SpecError> {
    let mut fields = Fields::new(block, notes);
    let key = "Scheduling policy";
    let policy = fields.count(key)?;
    let weight = fields.count_or("Timeout time/weight", 0)?;
    let below = fields.count_or("Timeout scheduling", 0)?;
    let Some((order, why)) = order(policy, weight, below) else {
        return Err(fields.error(key, format!("{policy} is none of 1 to 28")));
    };
    if !why.is_empty() {
        fields.note(key, format!("{policy} is carried over as `{order}`: {why}"));
    }
    if owner == Owner::Driver && !knows_blocks_only(&order) {
        let why = format!("`{order}` gets block numbers in a host's queue, in place of cylinders and times");
        fields.note(key, why);
    }
    if weight != 0 && !has_weight(policy) {
        fields.note("Timeout time/weight", format!("{weight} is not used: requests do not time out here"));
    }
    if below != 0 && policy != 19 {
        fields.note("Timeout scheduling", format!("{below} is not used: requests do not time out here"));
    }
    let urgent_first = urgent_first(&mut fields, policy, owner)?;
    fields.skip("Cylinder mapping strategy", "orders here know the whole layout, or block numbers alone");
    for key in [
        "Write initiation delay",
        "Read initiation delay",
        "Sequential stream scheme",
        "Maximum concat size",
        "Overlapping request scheme",
        "Sequential stream diff maximum",
        "Scheduling timeout scheme",
    ] {
        let why = "the queue neither joins or holds back commands nor has timeouts";
        crate::electronics::agree(&mut fields, key, 0.0, why)?;
    }
    fields.finish();
    Ok(SetupQueue { order, urgent_first })
}

/// Whether `Timeout time/weight` is the order's weight.
fn has_weight(policy: u32) -> bool {
    matches!(policy, 11..=16)
}

/// Whether an order uses block numbers alone.
fn knows_blocks_only(order: &str) -> bool {
    order == "fcfs" || order == "c-look" || order.ends_with("-lbn")
}

/// The order of a policy, and what of it is not carried over; none for an unknown policy. Numbers and names are those of DiskSim
/// 4.0's reference manual, the behaviour that of its sources.
fn order(policy: u32, weight: u32, below: u32) -> Option<(String, &'static str)> {
    let plain = |name: &str, why| Some((name.to_string(), why));
    let aged = |name: &str, why| Some((format!("{name}({})", weight.min(1_000_000)), why));
    let to_zero = |why| match weight {
        0 => plain("sptf", "the weight 0 leaves no age at which a request counts as no way at all"),
        _ => Some((format!("wstf({})", weight.min(10_000_000)), why)),
    };
    match policy {
        1 => plain("fcfs", ""),
        2 => plain("look-lbn", ""),
        3 => plain("c-look", ""),
        4 => plain("sstf-lbn", ""),
        5 => plain("look", ""),
        6 => plain("c-look-cylinder", ""),
        7 => plain("sstf", ""),
        8 => plain("sptf", ""),
        9 => plain("spctf", ""),
        10 => plain("sptf", "the transfer's own time is left out"),
        11 => to_zero(
            "past its weight's age the oldest request goes first, where DiskSim's formula turns round",
        ),
        12 => to_zero("the cache is left out, and past its weight's age the oldest request goes first"),
        13 => to_zero(
            "the transfer's own time is left out, and past its weight's age the oldest request goes first",
        ),
        14 => aged("asptf", ""),
        15 => aged("aspctf", ""),
        16 => aged("asptf", "the transfer's own time is left out"),
        17 => plain(
            "sstf-lbn",
            "DiskSim reads no reluctance to turn, and VSCAN by block number without is this",
        ),
        18 => plain("sstf", "DiskSim reads no reluctance to turn, and VSCAN by cylinder without is this"),
        19 => {
            let name = match below {
                2 => "look-lbn",
                3 => "c-look",
                _ => "sstf-lbn",
            };
            plain(name, "its priorities and ages are left out")
        }
        20 => plain("sptf", "urgent requests do not age"),
        21 => plain("spctf", "urgent requests do not age"),
        22 => plain("sstf-lbn", ""),
        23 => plain("sstf", "distances are whole cylinders"),
        24 | 25 => plain("sptf", "DiskSim reads no weight, and without one it is this"),
        26 => plain("sptf", "the weight of seeks is left out"),
        27 => plain("sptf", "what follows the next request is left out"),
        28 => plain("fcfs", "batches are left out"),
        _ => None,
    }
}

/// Whether requests that a process waits for precede others.
fn urgent_first(fields: &mut Fields, policy: u32, owner: Owner) -> Result<bool, SpecError> {
    let (scheme, among) = ("Scheduling priority scheme", "Priority scheduling");
    let urgent = fields.count_or(among, 0)?;
    let first = match fields.count_or(scheme, 0)? {
        0 => false,
        1 if owner == Owner::Controller => {
            fields.note(scheme, "1 is not modelled: a controller takes urgent requests as any other");
            false
        }
        1 => true,
        other => return Err(fields.error(scheme, format!("{other} is none of 0 and 1"))),
    };
    match first {
        true if urgent != policy => {
            fields
                .note(among, format!("{urgent} is not carried over: urgent requests go by the order of all"));
        }
        false if urgent != 0 => fields.note(among, "counts only with `Scheduling priority scheme` 1"),
        _ => {}
    }
    Ok(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_1_to_28_alone_map_to_orders() {
        let met: Vec<String> = (1..=28).filter_map(|policy| Some(order(policy, 30, 2)?.0)).collect();
        let wanted = "fcfs look-lbn c-look sstf-lbn look c-look-cylinder sstf sptf spctf sptf wstf(30) wstf(30) wstf(30) \
             asptf(30) aspctf(30) asptf(30) sstf-lbn sstf look-lbn sptf spctf sstf-lbn sstf sptf sptf sptf sptf fcfs";
        assert_eq!(met.join(" "), wanted);
        assert_eq!((order(0, 30, 2), order(29, 30, 2)), (None, None));
    }

    #[test]
    fn out_of_range_weight_is_clamped() {
        let name = |policy, weight| order(policy, weight, 0).expect("it is a policy").0;
        assert_eq!((name(11, 0), name(12, u32::MAX)), ("sptf".to_string(), "wstf(10000000)".to_string()));
        assert_eq!(
            (name(14, 0), name(15, u32::MAX)),
            ("asptf(0)".to_string(), "aspctf(1000000)".to_string())
        );
    }
}
