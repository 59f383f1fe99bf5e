//! What a drive does one way or another: the alternatives that a trace can tell apart.

use headstack_model::DriveSpec;
use headstack_model::spec::{Delivery, ReadAhead, WriteCache, ZeroLatency};

/// A key with its alternatives.
pub(crate) struct FitChoice {
    /// The drive with each alternative.
    pub(crate) alternatives: fn(&DriveSpec) -> Vec<DriveSpec>,
}

fn with<T: Copy>(spec: &DriveSpec, values: &[T], set: impl Fn(&mut DriveSpec, T)) -> Vec<DriveSpec> {
    let changed = |value: &T| {
        let mut changed = spec.clone();
        set(&mut changed, *value);
        changed
    };
    values.iter().map(changed).collect()
}

macro_rules! flag {
    ($($field:ident).+) => {
        FitChoice {
            alternatives: |spec| with(spec, &[false, true], |spec, value| spec.$($field).+ = value),
        }
    };
}

/// All choices, those first that decide most.
pub(crate) const ALL: &[FitChoice] = &[
    FitChoice {
        alternatives: |spec| {
            use WriteCache::*;
            with(spec, &[None, Sequential, Segment, Full], |spec, value| {
                spec.cache.write_cache = value;
                if value == Full && spec.cache.dirty_max_sectors == 0 {
                    let sectors = u64::from(spec.cache.segments) * u64::from(spec.cache.segment_sectors);
                    (spec.cache.dirty_max_sectors, spec.cache.dirty_start_sectors) =
                        (sectors / 2, sectors / 4);
                }
            })
        },
    },
    FitChoice {
        alternatives: |spec| {
            use ReadAhead::*;
            with(spec, &[None, Track, Cylinder, Segment, Stream, Sequence, OnArrival], |spec, value| {
                spec.cache.read_ahead = value;
            })
        },
    },
    FitChoice {
        alternatives: |spec| {
            use ZeroLatency::*;
            with(spec, &[None, WithinTrack, PerFragment], |spec, value| {
                spec.mechanics.zero_latency_read = value
            })
        },
    },
    FitChoice {
        alternatives: |spec| {
            use ZeroLatency::*;
            with(spec, &[None, WithinTrack, PerFragment], |spec, value| {
                spec.mechanics.zero_latency_write = value
            })
        },
    },
    flag!(cache.read_on_arrival),
    flag!(cache.hits_take_arm),
    flag!(cache.read_ahead_on_hit),
    flag!(cache.read_hits_on_written),
    flag!(cache.write_prebuffering),
    flag!(cache.almost_hits),
    flag!(cache.read_ahead_stops_in_sector),
    flag!(cache.dedicated_write_segment),
    flag!(bus.holds_for_reads),
    flag!(bus.holds_for_writes),
    FitChoice {
        alternatives: |spec| {
            use Delivery::*;
            with(spec, &[InOrder, InOrderWhole, OutOfOrder], |spec, value| spec.bus.delivery = value)
        },
    },
    FitChoice {
        alternatives: |spec| {
            with(spec, &[0.0, 0.25, 0.5, 0.75, 1.0], |spec, value| spec.bus.buffer_full_ratio = value)
        },
    },
    FitChoice {
        alternatives: |spec| {
            let bytes = u64::from(spec.cache.segments) * u64::from(spec.cache.segment_sectors);
            let full = spec.cache.read_ahead_max_sectors + 1 >= spec.cache.segment_sectors;
            with(spec, &[1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32], |spec, segments| {
                spec.cache.segments = segments;
                spec.cache.segment_sectors = (bytes / u64::from(segments)).max(16) as u32;
                if full || spec.cache.read_ahead_max_sectors >= spec.cache.segment_sectors {
                    spec.cache.read_ahead_max_sectors = spec.cache.segment_sectors - 1;
                }
            })
        },
    },
    FitChoice {
        alternatives: |spec| {
            let all = spec.cache.segment_sectors;
            with(spec, &[1, 2, 4, 8, 16], |spec, part| {
                spec.cache.read_ahead_max_sectors = (all / part).saturating_sub(1).max(1);
            })
        },
    },
    FitChoice {
        alternatives: |spec| {
            let all = spec.cache.read_ahead_max_sectors;
            with(spec, &[0, 1, 2, 4], |spec, part| {
                spec.cache.read_ahead_min_sectors = all.checked_div(part).unwrap_or(0);
            })
        },
    },
    FitChoice {
        alternatives: |spec| with(spec, &[1, 2, 4, 8], |spec, committed| spec.queue.committed = committed),
    },
    FitChoice {
        alternatives: |spec| {
            with(spec, &["fcfs", "c-look", "sstf", "sptf", "bounded-sptf"], |spec, order| {
                spec.queue.order = order.to_string();
            })
        },
    },
    FitChoice {
        alternatives: |spec| {
            with(spec, &[16, 28, 64, 128, 256, 512, 1024, 2048, 4096], |spec, runs| {
                spec.cache.dirty_runs_max = runs
            })
        },
    },
    FitChoice {
        alternatives: |spec| {
            with(spec, &["fcfs", "c-look", "sptf"], |spec, order| {
                spec.cache.destage_order = order.to_string()
            })
        },
    },
    FitChoice {
        alternatives: |spec| {
            with(spec, &[1, 2, 4, 8], |spec, segments| {
                spec.cache.write_segments = segments.min(spec.cache.segments);
            })
        },
    },
];
