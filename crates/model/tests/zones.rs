//! The zones of a shingled disk, compared with a simple implementation of the standard's rules.

use headstack_model::zones::{ZoneCommand, ZoneLayout, ZoneModel, ZoneState, Zones};
use headstack_model::{Lbn, Request};
use proptest::prelude::*;

const ZONE: u64 = 16;
const COUNT: u64 = 9;
const CONVENTIONAL: u64 = 2;
/// The last zone is shorter than the others.
const SECTORS: u64 = COUNT * ZONE - 5;
const OPEN_MAX: u32 = 3;

fn layout(model: ZoneModel, active_max: Option<u32>) -> ZoneLayout {
    ZoneLayout {
        model,
        sectors: SECTORS,
        zone_sectors: ZONE,
        conventional: CONVENTIONAL as u32,
        open_max: OPEN_MAX,
        active_max,
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Condition {
    NoPointer,
    Empty,
    Implicit,
    Explicit,
    Closed,
    Full,
}

/// A zone in the standard's terms. The simple implementation keeps no totals: it counts zones each time.
#[derive(Clone, Copy, Debug)]
struct PlainZone {
    condition: Condition,
    pointer: u64,
    written_at: u32,
}

#[derive(Clone, Debug)]
struct PlainZones {
    zones: Vec<PlainZone>,
    active_max: Option<usize>,
    now: u32,
}

fn end_of(zone: usize) -> u64 {
    SECTORS.min((zone as u64 + 1) * ZONE)
}

impl PlainZones {
    fn new(active_max: Option<u32>) -> PlainZones {
        let zone = |number: u64| PlainZone {
            condition: if number < CONVENTIONAL { Condition::NoPointer } else { Condition::Empty },
            pointer: number * ZONE,
            written_at: 0,
        };
        PlainZones {
            zones: (0..COUNT).map(zone).collect(),
            active_max: active_max.map(|most| most as usize),
            now: 0,
        }
    }

    fn count(&self, conditions: &[Condition]) -> usize {
        self.zones.iter().filter(|zone| conditions.contains(&zone.condition)).count()
    }

    /// Takes an open resource for a zone. Returns false if there is none and none can be freed.
    fn open(&mut self, zone: usize, condition: Condition) -> bool {
        let found = self.zones[zone].condition;
        let is_active = [Condition::Implicit, Condition::Explicit, Condition::Closed].contains(&found);
        let active = self.count(&[Condition::Implicit, Condition::Explicit, Condition::Closed]);
        if !is_active && self.active_max.is_some_and(|most| active >= most) {
            return false;
        }
        let is_open = [Condition::Implicit, Condition::Explicit].contains(&found);
        if !is_open && self.count(&[Condition::Implicit, Condition::Explicit]) == OPEN_MAX as usize {
            let implicit = self.zones.iter_mut().filter(|zone| zone.condition == Condition::Implicit);
            match implicit.min_by_key(|zone| zone.written_at) {
                Some(oldest) => oldest.condition = Condition::Closed,
                None => return false,
            }
        }
        self.zones[zone].condition = condition;
        true
    }

    fn write(&mut self, lbn: u64, sectors: u64, is_managed: bool) -> bool {
        self.now += 1;
        let (zone, end) = ((lbn / ZONE) as usize, lbn + sectors);
        let found = self.zones[zone];
        match found.condition {
            Condition::NoPointer => return end <= CONVENTIONAL * ZONE,
            _ if end > end_of(zone) => return false,
            Condition::Full => return !is_managed,
            _ => {}
        }
        if is_managed && lbn != found.pointer {
            return false;
        }
        if found.condition != Condition::Explicit && !self.open(zone, Condition::Implicit) {
            return false;
        }
        let zone_now = &mut self.zones[zone];
        zone_now.written_at = self.now;
        zone_now.pointer = zone_now.pointer.max(end);
        if zone_now.pointer == end_of(zone) {
            zone_now.condition = Condition::Full;
        }
        true
    }

    fn command(&mut self, command: ZoneCommand, zone: usize) -> bool {
        use Condition::*;
        let (found, start) = (self.zones[zone], zone as u64 * ZONE);
        match (command, found.condition) {
            (_, NoPointer) => return false,
            (ZoneCommand::Open, Empty | Implicit | Closed) => return self.open(zone, Explicit),
            (ZoneCommand::Close, Implicit | Explicit) => {
                self.zones[zone].condition = if found.pointer == start { Empty } else { Closed };
            }
            (ZoneCommand::Finish, _) => {
                (self.zones[zone].condition, self.zones[zone].pointer) = (Full, end_of(zone))
            }
            (ZoneCommand::Reset, _) => {
                (self.zones[zone].condition, self.zones[zone].pointer) = (Empty, start)
            }
            (ZoneCommand::Open, Full | Explicit) | (ZoneCommand::Close, Empty | Closed | Full) => {}
        }
        true
    }

    fn command_all(&mut self, command: ZoneCommand) -> bool {
        use Condition::*;
        if command == ZoneCommand::Open && self.count(&[Explicit, Closed]) > OPEN_MAX as usize {
            return false;
        }
        let concerned: &[Condition] = match command {
            ZoneCommand::Open => &[Closed],
            ZoneCommand::Close => &[Implicit, Explicit],
            ZoneCommand::Finish => &[Implicit, Explicit, Closed],
            ZoneCommand::Reset => &[Implicit, Explicit, Closed, Full],
        };
        let zones: Vec<usize> =
            (0..self.zones.len()).filter(|zone| concerned.contains(&self.zones[*zone].condition)).collect();
        zones.into_iter().all(|zone| self.command(command, zone))
    }

    fn lose_power(&mut self, kept: u64) {
        use Condition::*;
        for (number, zone) in self.zones.iter_mut().enumerate() {
            if [Implicit, Explicit, Closed, Full].contains(&zone.condition) {
                let (start, before) = (number as u64 * ZONE, zone.pointer);
                zone.pointer = start + (before - start).min(kept);
                zone.condition = match zone.condition {
                    Full if zone.pointer == before => Full,
                    _ if zone.pointer == start => Empty,
                    _ => Closed,
                };
            }
        }
    }
}

fn condition(state: ZoneState) -> Condition {
    match state {
        ZoneState::Conventional => Condition::NoPointer,
        ZoneState::Empty => Condition::Empty,
        ZoneState::ImplicitlyOpen => Condition::Implicit,
        ZoneState::ExplicitlyOpen => Condition::Explicit,
        ZoneState::Closed => Condition::Closed,
        ZoneState::Full => Condition::Full,
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A write of a zone from its write pointer on.
    AtPointer {
        zone: u64,
        sectors: u64,
    },
    Anywhere {
        lbn: u64,
        sectors: u64,
    },
    One(ZoneCommand, u64),
    All(ZoneCommand),
    LosePower {
        kept: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let command = || {
        use ZoneCommand::*;
        prop::sample::select(vec![Open, Close, Finish, Reset])
    };
    prop_oneof![
        12 => (0..COUNT, 1..ZONE).prop_map(|(zone, sectors)| Step::AtPointer { zone, sectors }),
        3 => (0..SECTORS, 1..ZONE).prop_map(|(lbn, sectors)| Step::Anywhere { lbn, sectors }),
        6 => (command(), 0..COUNT).prop_map(|(command, zone)| Step::One(command, zone)),
        1 => command().prop_map(Step::All),
        1 => (0..ZONE).prop_map(|kept| Step::LosePower { kept }),
    ]
}

/// Executes a step on both implementations. Returns whether each accepted it.
fn take_step(zones: &mut Zones, plain: &mut PlainZones, step: Step) -> (bool, bool) {
    let is_managed = zones.layout().model == ZoneModel::HostManaged;
    let (lbn, sectors) = match step {
        Step::One(command, zone) => {
            return (zones.command(command, zone as u32).is_ok(), plain.command(command, zone as usize));
        }
        Step::All(command) => return (zones.command_all(command).is_ok(), plain.command_all(command)),
        Step::LosePower { kept } => {
            zones.lose_power(|zone| Lbn(zone.start.0 + kept));
            plain.lose_power(kept);
            return (true, true);
        }
        Step::AtPointer { zone, sectors } => (plain.zones[zone as usize].pointer, sectors),
        Step::Anywhere { lbn, sectors } => (lbn, sectors),
    };
    if lbn + sectors > SECTORS {
        return (true, true);
    }
    let accepted = zones.accept(&Request::write(Lbn(lbn), sectors as u32)).is_ok();
    (accepted, plain.write(lbn, sectors, is_managed))
}

proptest! {
    #[test]
    fn zones_follow_a_plain_statement_of_the_standard(
        is_managed: bool,
        active_max in prop::option::of(3..6u32),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let model = if is_managed { ZoneModel::HostManaged } else { ZoneModel::HostAware };
        let mut zones = Zones::new(layout(model, active_max));
        let mut plain = PlainZones::new(active_max);
        let mut has_lost = false;
        for step in steps {
            let before: Vec<_> = zones.iter().collect();
            let (accepted, expected) = take_step(&mut zones, &mut plain, step);
            prop_assert_eq!(accepted, expected, "{:?}", step);
            let found: Vec<_> = zones.iter().collect();
            if !accepted && !matches!(step, Step::All(_)) {
                prop_assert_eq!(&before, &found, "a refused {:?} changed something", step);
            }
            for (zone, plain) in found.iter().zip(&plain.zones) {
                prop_assert_eq!(condition(zone.state), plain.condition, "{:?}: {:?}", step, zone);
                prop_assert_eq!(zone.write_pointer.0, plain.pointer, "{:?}: {:?}", step, zone);
            }
            prop_assert!(zones.open() <= OPEN_MAX);
            // After a power loss, full zones that lost data become closed, even if there are then more active zones than allowed.
            has_lost |= matches!(step, Step::LosePower { .. });
            prop_assert!(has_lost || active_max.is_none_or(|most| zones.active() <= most));
        }
    }
}

#[test]
fn read_needs_an_access_up_to_the_last_write_pointer() {
    let mut zones = Zones::new(layout(ZoneModel::HostManaged, None));
    let written = |zones: &Zones, lbn: u64, sectors: u32| zones.written(&Request::read(Lbn(lbn), sectors));
    assert_eq!(written(&zones, 0, 8), 8, "a conventional zone has data");
    assert_eq!(written(&zones, 40, 30), 0, "two empty zones");
    zones.accept(&Request::write(Lbn(48), 4)).expect("it is at the pointer");
    assert_eq!(written(&zones, 48, 16), 4);
    assert_eq!(written(&zones, 52, 4), 0);
    assert_eq!(written(&zones, 40, 20), 12, "beyond an empty zone");
    zones.command(ZoneCommand::Finish, 3).expect("it is no conventional zone");
    assert_eq!(written(&zones, 48, 16), 16);
    assert_eq!(zones.accept(&Request::read(Lbn(30), 4)), Ok(()), "reads may cross zones");
}

#[test]
fn refusal_says_what_to_do() {
    let mut zones = Zones::new(layout(ZoneModel::HostManaged, Some(4)));
    let mut refused = |request: Request| zones.accept(&request).expect_err("it is not allowed").to_string();
    assert_eq!(
        refused(Request::write(Lbn(40), 4)),
        "the write begins at block 40, and the write pointer of its zone is at 32"
    );
    assert_eq!(
        refused(Request::write(Lbn(32), 17)),
        "the write ends beyond its zone, whose last block is 47"
    );
    for zone in 2..5 {
        zones.command(ZoneCommand::Open, zone).expect("three may be open");
    }
    let error = zones.command(ZoneCommand::Open, 5).expect_err("three are open");
    assert_eq!(error.to_string(), "3 zones are explicitly open, the most that can be; close one first");
}
