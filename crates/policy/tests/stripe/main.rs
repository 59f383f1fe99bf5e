//! Arrays keep the data that are written to them. Bytes are written and read by an array's plans, with and without failed members.

mod bytes;

use bytes::{Bytes, Somewhere};
use headstack_model::{Lbn, Op, Request};
use headstack_policy::stripe::{
    Array, Organisation, Plan, Policy, ReadChoice, Rotation, Shape, Unit, UnitRun, WriteOrder,
};
use proptest::prelude::*;

const ORGANISATIONS: [Organisation; 7] = [
    Organisation::Concatenation,
    Organisation::Striping,
    Organisation::Mirroring,
    Organisation::ParityDrive,
    Organisation::Raid5,
    Organisation::Raid6,
    Organisation::ChainedDeclustering,
];

const ROTATIONS: [Rotation; 4] =
    [Rotation::LeftSymmetric, Rotation::LeftAsymmetric, Rotation::RightAsymmetric, Rotation::RightSymmetric];

const CHOICES: [ReadChoice; 5] = [
    ReadChoice::Primary,
    ReadChoice::Random,
    ReadChoice::RoundRobin,
    ReadChoice::Nearest,
    ReadChoice::ShortestQueue,
];

fn shape(organisation: Organisation, members: usize, unit: u64) -> Shape {
    let unit = if organisation == Organisation::Concatenation { Unit::Member } else { Unit::Sectors(unit) };
    Shape { seed: 1, ..Shape::new(organisation, vec![120; members], unit) }
}

/// Shapes of every organisation, without failed members.
fn shapes() -> impl Strategy<Value = Shape> {
    let unit = prop_oneof![
        (1u64..40).prop_map(Unit::Sectors),
        prop::collection::vec((1u64..20, 1u64..5), 1..5).prop_map(|runs| {
            Unit::Lengths(
                runs.iter().map(|(sectors, count)| UnitRun { sectors: *sectors, count: *count }).collect(),
            )
        }),
    ];
    let parity = prop::option::of(1u64..4);
    let policy = prop_oneof![Just(Policy::FewestReads), (0.0..1.0f64).prop_map(Policy::Threshold)];
    let picks = (0usize..7, 0usize..4, 0usize..5, 2u32..4, 4usize..8, 0u64..30);
    let write_order = prop_oneof![Just(WriteOrder::Together), Just(WriteOrder::DataFirst)];
    (picks, unit, parity, policy, write_order).prop_map(
        |((which, rotation, choice, copies, members, more), unit, parity, policy, write_order)| {
            let organisation = ORGANISATIONS[which];
            let members =
                if organisation == Organisation::Mirroring { members / 2 * copies as usize } else { members };
            let parity_unit_sectors = match unit {
                Unit::Sectors(sectors) => parity.map(|rows| rows * sectors),
                _ => None,
            };
            let mut shape = Shape {
                unit,
                copies,
                read_choice: CHOICES[choice],
                rotation: ROTATIONS[rotation],
                parity_unit_sectors,
                policy,
                write_order,
                ..shape(organisation, members, 1)
            };
            // The members have different sizes.
            shape.members[0] += more;
            shape
        },
    )
}

/// Shapes with at most as many failed members as they survive, some of which have a spare.
fn worn() -> impl Strategy<Value = Shape> {
    (shapes(), any::<u64>(), 0usize..3).prop_map(|(mut shape, seed, spares)| {
        let members = shape.members.len() as u64;
        for turn in 0..2 {
            let member = ((seed >> (8 * turn)) % members) as u32;
            if !shape.failed.contains(&member) {
                shape.failed.push(member);
                if shape.check().is_err() {
                    shape.failed.pop();
                }
            }
        }
        shape.spares = spares.min(shape.failed.len());
        shape
    })
}

fn plan(array: &mut Array, request: Request) -> Plan {
    let mut plan = Plan::default();
    array.plan(&request, &Somewhere(9), &mut plan);
    plan
}

/// The numbers of reads and writes of a plan.
fn counts(plan: &Plan) -> (usize, usize) {
    let of = |op: Op| plan.accesses().filter(|access| access.request.op == op).count();
    (of(Op::Read), of(Op::Write))
}

proptest! {
    #[test]
    fn every_block_maps_to_one_place_and_back(shape in shapes()) {
        let array = Array::new(shape.clone()).expect("the shape is good");
        let mut met = std::collections::BTreeSet::new();
        for block in 0..array.sectors() {
            let (member, lbn) = array.locate(Lbn(block));
            prop_assert!(lbn.0 < shape.members[member as usize]);
            prop_assert!(met.insert((member, lbn)), "{:?} holds two blocks", (member, lbn));
            prop_assert_eq!(array.block_at(member, lbn), Some(Lbn(block)));
        }
    }

    #[test]
    fn member_that_fails_later_leaves_the_plans_of_one_that_had_failed(
        shape in worn(),
        requests in prop::collection::vec((any::<u32>(), 1u32..60, any::<bool>()), 1..12),
    ) {
        let mut begun = Array::new(shape.clone()).expect("the shape is good");
        let mut later = Array::new(Shape { failed: vec![], ..shape.clone() }).expect("the shape is good");
        for member in &shape.failed {
            prop_assert!(later.fail(*member) && later.has_failed(*member));
        }
        prop_assert_eq!(later.progress(), begun.progress());
        let mut steps = [Plan::default(), Plan::default()];
        for (from, length, reads) in requests {
            let from = u64::from(from) % begun.sectors();
            let sectors = u64::from(length).min(begun.sectors() - from) as u32;
            let op = if reads { Request::read } else { Request::write };
            let request = op(Lbn(from), sectors);
            prop_assert_eq!(plan(&mut later, request), plan(&mut begun, request));
            let step = later.plan_rebuild(20, &mut steps[0]);
            prop_assert_eq!(step, begun.plan_rebuild(20, &mut steps[1]));
            prop_assert_eq!(&steps[0], &steps[1]);
            later.rebuilt();
            begun.rebuilt();
        }
    }

    #[test]
    fn array_survives_the_failures_that_its_shape_allows(shape in shapes(), order in any::<u64>()) {
        let mut array = Array::new(shape.clone()).expect("the shape is good");
        let mut failed = Vec::new();
        let members = shape.members.len() as u64;
        for turn in 0..8 {
            let member = ((order >> (8 * turn)) % members) as u32;
            if failed.contains(&member) {
                continue;
            }
            failed.push(member);
            let allowed = Shape { failed: failed.clone(), ..shape.clone() }.check().is_ok();
            prop_assert_eq!(array.fail(member), allowed);
            prop_assert_eq!(array.has_failed(member), allowed);
            if !allowed {
                failed.pop();
            }
        }
    }

    #[test]
    fn written_data_is_read_back_despite_failed_members(
        shape in worn(),
        writes in prop::collection::vec((any::<u32>(), 1u32..60, any::<u8>()), 1..12),
        steps in prop::collection::vec(0u64..50, 12),
    ) {
        let mut bytes = Bytes::new(shape);
        let sectors = bytes.array.sectors();
        for ((from, length, value), step) in writes.into_iter().zip(steps) {
            let from = u64::from(from) % sectors;
            let length = u64::from(length).min(sectors - from);
            let data: Vec<u8> = (0..length).map(|block| value.wrapping_add(block as u8 * 3)).collect();
            bytes.write(from, &data);
            if step > 0 {
                bytes.rebuild(step);
            }
            let near = from.saturating_sub(10);
            let read = bytes.read(near, (length + 10).min(sectors - near) as u32, from);
            prop_assert_eq!(&read[..], &bytes.truth[near as usize..near as usize + read.len()]);
        }
        let all = bytes.read(0, sectors as u32, 3);
        prop_assert_eq!(&all, &bytes.truth);
        // After the rebuild, the spares must hold the lost data, so that other members may fail.
        while bytes.rebuild(64) {}
        let (done, whole) = bytes.array.progress();
        prop_assert_eq!(done, whole);
        let all = bytes.read(0, sectors as u32, 3);
        prop_assert_eq!(&all, &bytes.truth);
    }

    #[test]
    fn each_write_phase_accesses_a_block_once(shape in worn(), from in any::<u32>(), length in 1u32..200) {
        let mut array = Array::new(shape).expect("the shape is good");
        let from = u64::from(from) % array.sectors();
        let length = u64::from(length).min(array.sectors() - from) as u32;
        let plan = plan(&mut array, Request::write(Lbn(from), length));
        for phase in plan.phases() {
            let mut met = std::collections::BTreeSet::new();
            for access in phase {
                prop_assert!(access.request.sectors > 0);
                for block in access.request.lbn.0..access.request.end().0 {
                    prop_assert!(met.insert((access.member, block)));
                }
            }
        }
    }
}

#[test]
fn small_write_costs_four_accesses() {
    for organisation in [Organisation::ParityDrive, Organisation::Raid5] {
        let mut array = Array::new(shape(organisation, 5, 8)).expect("the shape is good");
        for block in 0..array.sectors() {
            assert_eq!(counts(&plan(&mut array, Request::write(Lbn(block), 1))), (2, 2));
        }
    }
    // With two parities six, and with few members fewer, as the rest of the row is less than the old data and parities.
    let mut array = Array::new(shape(Organisation::Raid6, 8, 8)).expect("the shape is good");
    assert_eq!(counts(&plan(&mut array, Request::write(Lbn(3), 1))), (3, 3));
    let mut array = Array::new(shape(Organisation::Raid5, 3, 8)).expect("the shape is good");
    assert_eq!(counts(&plan(&mut array, Request::write(Lbn(3), 1))), (1, 2));
}

#[test]
fn full_row_write_needs_no_reads() {
    for (organisation, width) in
        [(Organisation::ParityDrive, 5), (Organisation::Raid5, 5), (Organisation::Raid6, 4)]
    {
        let mut array = Array::new(shape(organisation, 6, 8)).expect("the shape is good");
        for row in 0..array.sectors() / (8 * width) {
            let whole = Request::write(Lbn(row * 8 * width), 8 * width as u32);
            assert_eq!(counts(&plan(&mut array, whole)), (0, 6), "{organisation}");
        }
    }
}

#[test]
fn degraded_read_costs_one_read_of_each_survivor() {
    let failed = Shape { failed: vec![2], ..shape(Organisation::Raid5, 5, 8) };
    let mut array = Array::new(failed).expect("the shape is good");
    for block in 0..array.sectors() {
        let wanted = if array.locate(Lbn(block)).0 == 2 { 4 } else { 1 };
        assert_eq!(counts(&plan(&mut array, Request::read(Lbn(block), 1))), (wanted, 0));
    }
}

#[test]
fn write_method_follows_fewest_reads_or_the_threshold() {
    // Ten members: `units` of a row's nine units of data are written.
    let reads = |policy: Policy, units: u32| {
        let mut array =
            Array::new(Shape { policy, ..shape(Organisation::Raid5, 10, 4) }).expect("the shape is good");
        counts(&plan(&mut array, Request::write(Lbn(0), 4 * units))).0
    };
    let fewest: Vec<usize> = (1..=9).map(|units| reads(Policy::FewestReads, units)).collect();
    assert_eq!(fewest, [2, 3, 4, 5, 4, 3, 2, 1, 0]);
    let half: Vec<usize> = (1..=9).map(|units| reads(Policy::Threshold(0.3), units)).collect();
    assert_eq!(half, [2, 3, 6, 5, 4, 3, 2, 1, 0]);
}

#[test]
fn request_over_many_rows_is_one_access_per_member() {
    for organisation in [Organisation::Striping, Organisation::ParityDrive] {
        let mut array = Array::new(shape(organisation, 4, 5)).expect("the shape is good");
        let whole = Request::read(Lbn(0), array.sectors() as u32);
        let members = plan(&mut array, whole).accesses().count();
        assert_eq!(members, if organisation == Organisation::Striping { 4 } else { 3 });
    }
}

#[test]
fn left_symmetric_rows_match_the_textbook() {
    let array = Array::new(shape(Organisation::Raid5, 5, 1)).expect("the shape is good");
    let rows: Vec<String> = (0..5)
        .map(|row| {
            let of = |member: u32| match array.block_at(member, Lbn(row)) {
                Some(block) => block.0.to_string(),
                None => "P".to_string(),
            };
            (0..5).map(of).collect::<Vec<String>>().join(" ")
        })
        .collect();
    assert_eq!(rows, ["0 1 2 3 P", "5 6 7 P 4", "10 11 P 8 9", "15 P 12 13 14", "P 16 17 18 19"]);
}

#[test]
fn failures_beyond_redundancy_are_rejected() {
    let said = |organisation: Organisation, failed: &[u32]| {
        let shape = Shape { failed: failed.to_vec(), ..shape(organisation, 6, 8) };
        Array::new(shape).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(said(Organisation::Raid6, &[1, 4]), Ok(()));
    assert_eq!(said(Organisation::Mirroring, &[0, 1, 5]), Ok(()));
    assert_eq!(said(Organisation::ChainedDeclustering, &[0, 2, 4]), Ok(()));
    let refused = |organisation, failed: &[u32], wanted: &str| {
        assert_eq!(said(organisation, failed), Err(format!("failed: {wanted}")));
    };
    refused(Organisation::Striping, &[1], "`striping` survives 0 failed drives, and 1 are named");
    refused(Organisation::Raid5, &[1, 2], "`raid-5` survives 1 failed drive, and 2 are named");
    refused(Organisation::Mirroring, &[1, 4], "no copy is left of some blocks");
    refused(Organisation::ChainedDeclustering, &[0, 5], "no copy is left of some blocks");
}
