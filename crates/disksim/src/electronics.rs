//! `disksim_disk` into `[overhead]`, `[cache]`, `[bus]` and `[queue]`.

use crate::fields::Fields;
use crate::queue::{self, Owner};
use crate::spec::SetupQueue;
use headstack_model::SpecError;
use headstack_model::spec::{
    BusSpec, CacheSpec, Interface, OverheadSet, OverheadSpec, QueueSpec, ReadAhead, WatermarkOf, WriteCache,
    WriteDisconnect, ZeroLatency,
};

/// The keys of a `disksim_disk` block other than its model.
pub(crate) struct Electronics {
    pub(crate) overhead: OverheadSpec,
    pub(crate) cache: CacheSpec,
    pub(crate) bus: BusSpec,
    pub(crate) queue: QueueSpec,
    pub(crate) zero_latency_read: ZeroLatency,
    pub(crate) zero_latency_write: ZeroLatency,
}

/// Converts a `disksim_disk` block without its model.
pub(crate) fn convert(mut fields: Fields) -> Result<Electronics, SpecError> {
    let zero_latency_read = zero_latency(&mut fields, "Immediate buffer read")?;
    let cache = cache(&mut fields, zero_latency_read)?;
    let scale = fields.optional_number("Time scale for overheads")?.unwrap_or(1.0);
    let electronics = Electronics {
        overhead: overhead(&mut fields, scale, cache.write_cache)?,
        bus: bus(&mut fields, scale)?,
        queue: queue(&mut fields)?,
        zero_latency_read,
        zero_latency_write: zero_latency(&mut fields, "Immediate buffer write")?,
        cache,
    };
    for (key, modelled, why) in BEHAVIOUR {
        agree(&mut fields, key, modelled, why)?;
    }
    fields.skip("Print stats", crate::topology::PRINTS);
    fields.skip("Calc sector by sector", "is a switch of DiskSim's own that changes no time");
    fields.skip("Avg sectors per cylinder", "is a hint for schedulers outside the drive");
    fields.finish();
    Ok(electronics)
}

/// Switches whose behaviour is fixed in the model: the key, the value that means the same, and the behaviour.
const BEHAVIOUR: [(&str, f64, &str); 7] = [
    (
        "Allow sneaky intermediate read hits",
        0.0,
        "a queued read is looked up when it comes in, not while it waits",
    ),
    ("Preseeking level", 2.0, "the arm continues with the next command once its work on the media is done"),
    ("Disconnect write if seek", 0.0, "a write does not give up the bus because it must seek"),
    ("Combine seq writes", 1.0, "a write that continues the one before it is joined to it"),
    ("Write hit stop prefetch", 1.0, "a write stops the read-ahead"),
    ("Read directly to buffer", 1.0, "data go from the media straight into the segment"),
    ("Immed transfer partial hit", 1.0, "the cached part of a read is sent as soon as it comes in"),
];

/// Notes a switch whose value differs from what the model does.
pub(crate) fn agree(fields: &mut Fields, key: &str, modelled: f64, why: &str) -> Result<(), SpecError> {
    if let Some(value) = fields.optional_number(key)?
        && value != modelled
    {
        fields.note(key, format!("{value} is not modelled: {why}"));
    }
    Ok(())
}

fn zero_latency(fields: &mut Fields, key: &str) -> Result<ZeroLatency, SpecError> {
    // Firmware reads on arrival only when one track holds the whole request.
    Ok(if fields.flag(key)? { ZeroLatency::WithinTrack } else { ZeroLatency::None })
}

fn overhead(fields: &mut Fields, scale: f64, write_cache: WriteCache) -> Result<OverheadSpec, SpecError> {
    let each = fields.optional_number("Per-request overhead time")?.unwrap_or(0.0);
    let set = |fields: &mut Fields, after: &str| {
        let mut one = |kind: &str| {
            Ok::<f64, SpecError>(
                scale * (each + fields.number_or_zero(&format!("{kind} over. after {after}"))?),
            )
        };
        let (read_hit_ms, read_miss_ms) = (one("Read hit")?, one("Read miss")?);
        let (hit, miss) = (one("Write hit")?, one("Write miss")?);
        let write_ms = if write_cache == WriteCache::None { miss } else { hit };
        if hit != miss {
            let (key, why) = match write_cache {
                WriteCache::None => {
                    ("Write hit", "counts only when writes are reported before they are on the media")
                }
                _ => (
                    "Write miss",
                    "is not used: with `Fast write level` above 0 every write has the overhead of a hit",
                ),
            };
            fields.note(&format!("{key} over. after {after}"), why);
        }
        Ok::<OverheadSet, SpecError>(OverheadSet { read_hit_ms, read_miss_ms, write_ms })
    };
    let (after_read, after_write) = (set(fields, "read")?, set(fields, "write")?);
    Ok(OverheadSpec {
        after_read,
        after_write,
        read_completion_ms: scale * fields.number_or_zero("Read completion overhead")?,
        write_completion_ms: scale * fields.number_or_zero("Write completion overhead")?,
        data_preparation_ms: scale * fields.number_or_zero("Data preparation overhead")?,
        ..OverheadSpec::default()
    })
}

/// Whether a read hit occupies the arm: hits that bypass other commands are "sneaky".
fn hits_take_arm(fields: &mut Fields) -> Result<bool, SpecError> {
    let sneaky = fields.flag("Allow sneaky full read hits")?;
    let as_full = "the cached part of a read bypasses other commands where a whole one does";
    agree(fields, "Allow sneaky partial read hits", f64::from(u8::from(sneaky)), as_full)?;
    Ok(!sneaky)
}

fn cache(fields: &mut Fields, zero_latency_read: ZeroLatency) -> Result<CacheSpec, SpecError> {
    let segments = fields.count_or("Number of buffer segments", 1)?.max(1);
    let segment_sectors = fields.count_or("Segment size (in blks)", 1)?.max(1);
    // Levels 1 and 2 both report writes early. They differ only with a queue: at level 1 a write joins the one being written to
    // the media if no other command waits, and in FCFS order level 2 can do no more.
    let write_cache =
        choice(fields, "Fast write level", [WriteCache::None, WriteCache::Segment, WriteCache::Segment])?;
    let read_ahead_max_sectors = bounded(fields, "Maximum read-ahead (blks)", segment_sectors)?;
    let read_ahead = choice(
        fields,
        "Buffer continuous read",
        [ReadAhead::None, ReadAhead::Track, ReadAhead::Cylinder, ReadAhead::Segment, ReadAhead::Stream],
    )?;
    Ok(CacheSpec {
        enabled: choice(fields, "Enable caching in buffer", [false, true, true])?,
        segments,
        segment_sectors,
        read_ahead,
        read_ahead_min_sectors: bounded(fields, "Minimum read-ahead (blks)", read_ahead_max_sectors)?,
        read_ahead_max_sectors,
        read_ahead_over_requested: over_requested(fields, read_ahead_max_sectors)?,
        read_ahead_past_segment: read_ahead == ReadAhead::Stream,
        // With zero latency, a read takes what passes under the head meanwhile, and waits for no room.
        read_ahead_waits_for_room: zero_latency_read == ZeroLatency::None,
        read_ahead_on_hit: fields.flag("Read-ahead on idle hit")?,
        read_ahead_stops_in_sector: fields.flag("Stop prefetch in sector")?,
        read_on_arrival: fields.flag("Read any free blocks")?,
        almost_hits: fields.flag("Allow almost read hits")?,
        read_hits_on_written: fields.flag("Allow read hits on write data")?,
        hits_take_arm: hits_take_arm(fields)?,
        write_cache,
        write_segments: bounded(fields, "Maximum number of write segments", segments)?.max(1),
        dedicated_write_segment: fields.flag("Use separate write segment")?,
        write_prebuffering: prebuffering(fields, write_cache)?,
        ..CacheSpec::default()
    })
}

/// Whether the data of a write are received while the arm is busy. It matters if writes are reported once received.
fn prebuffering(fields: &mut Fields, write_cache: WriteCache) -> Result<bool, SpecError> {
    let key = "Allow write prebuffering";
    if write_cache == WriteCache::Segment {
        return fields.flag(key);
    }
    agree(fields, key, 1.0, "the data of a write are taken as soon as it comes in")?;
    Ok(CacheSpec::default().write_prebuffering)
}

/// A count of at most `most`; a larger one is reduced to it, which is noted.
fn bounded(fields: &mut Fields, key: &str, most: u32) -> Result<u32, SpecError> {
    let count = fields.count_or(key, 0)?;
    if count > most {
        fields.note(key, format!("{count} is more than can be used; carried over as {most}"));
    }
    Ok(count.min(most))
}

/// The value that stands for 0, 1, 2 …
fn choice<T: Copy, const N: usize>(fields: &mut Fields, key: &str, values: [T; N]) -> Result<T, SpecError> {
    let number = fields.count_or(key, 0)?;
    let value = values.get(number as usize).copied();
    value.ok_or_else(|| fields.error(key, format!("{number} is none of 0 to {}", N - 1)))
}

fn over_requested(fields: &mut Fields, read_ahead_max_sectors: u32) -> Result<bool, SpecError> {
    let key = "Read-ahead over requested";
    match fields.number_or_zero(key)? {
        0.0 if read_ahead_max_sectors > 0 => {
            fields
                .note(key, "0 has no effect in DiskSim where Maximum read-ahead is given; carried over as 1");
            Ok(true)
        }
        0.0 => Ok(false),
        1.0 => Ok(true),
        -1.0 => {
            fields.note(key, "-1 (the request's data are dropped as soon as they are sent) is carried over as 1 (may be overwritten)");
            Ok(true)
        }
        other => Err(fields.error(key, format!("{other} is none of -1, 0, 1"))),
    }
}

fn bus(fields: &mut Fields, scale: f64) -> Result<BusSpec, SpecError> {
    let us_per_sector = crate::drive::us_of_ms(fields.number_or_zero("Bulk sector transfer time")?);
    let ms = |fields: &mut Fields, key: &str| Ok::<f64, SpecError>(scale * fields.number_or_zero(key)?);
    let write_disconnect = write_disconnect(fields, scale)?;
    Ok(BusSpec {
        // DiskSim's disk module models a SCSI disk.
        interface: Some(Interface::Scsi),
        read_us_per_sector: us_per_sector,
        write_us_per_sector: us_per_sector,
        never_disconnects: fields.flag("Never disconnect")?,
        holds_for_reads: fields.flag("Hold bus entire read xfer")?,
        holds_for_writes: fields.flag("Hold bus entire write xfer")?,
        buffer_full_ratio: fields.number_or_zero("High (read) water mark")?,
        buffer_empty_ratio: fields.number_or_zero("Low (write) water mark")?,
        ratio_of: if fields.flag("Set watermark by reqsize")? {
            WatermarkOf::Request
        } else {
            WatermarkOf::Segment
        },
        disconnect_read_after_read_ms: ms(fields, "Read disconnect afterread")?,
        disconnect_read_after_write_ms: ms(fields, "Read disconnect afterwrite")?,
        disconnect_write_ms: ms(fields, "Write disconnect overhead")?,
        reconnect_first_ms: ms(fields, "First reselect overhead")?,
        reconnect_other_ms: ms(fields, "Other reselect overhead")?,
        write_seek_min_ms: ms(fields, "Minimum seek delay")?,
        // In DiskSim, the media write of such a drive waits for ten sectors of the request.
        write_start_sectors: if write_disconnect.is_some() {
            10
        } else {
            BusSpec::default().write_start_sectors
        },
        write_disconnect,
        ..BusSpec::default()
    })
}

fn write_disconnect(fields: &mut Fields, scale: f64) -> Result<Option<WriteDisconnect>, SpecError> {
    let keys = [
        "Extradisc command overhead",
        "Extradisc disconnect overhead",
        "Extradisc inter-disconnect delay",
        "Extradisc 2nd disconnect overhead",
        "Extradisc seek delta",
    ];
    let mut times = [0.0; 5];
    for (time, key) in times.iter_mut().zip(keys) {
        *time = scale * fields.number_or_zero(key)?;
    }
    if fields.flag("Extra write disconnect")? {
        let [command_ms, disconnect_ms, away_ms, second_disconnect_ms, seek_delay_ms] = times;
        let extra =
            WriteDisconnect { command_ms, disconnect_ms, away_ms, second_disconnect_ms, seek_delay_ms };
        return Ok(Some(extra));
    }
    for (time, key) in times.iter().zip(keys) {
        if *time != 0.0 {
            fields.note(key, "counts only with `Extra write disconnect`");
        }
    }
    Ok(None)
}

pub(crate) fn queue(fields: &mut Fields) -> Result<QueueSpec, SpecError> {
    let key = "Max queue length";
    let depth = fields.count_or(key, 1)?;
    if !(1..=1024).contains(&depth) {
        fields.note(key, format!("{depth} is outside 1 to 1024; carried over as the nearest"));
    }
    let SetupQueue { order, urgent_first } =
        queue::convert(fields.block("Scheduler")?, fields.notes, Owner::Drive)?;
    Ok(QueueSpec { depth: depth.clamp(1, 1024), order, urgent_first, ..QueueSpec::default() })
}
