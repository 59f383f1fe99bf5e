//! Bytes as in the standards, and a disk that decodes commands and answers from a layout.

use super::*;
use commands::{TRANSLATE_ADDRESS, translate_page, translated};
use headstack_model::{DriveSpec, Geometry, drives};
use headstack_probe::simulated::{Noise, SimulatedDisk};
use headstack_probe::{Disk, Extraction, drive, query, scsi};
use headstack_tracks::{TrackMap, check};

#[test]
fn commands_match_the_standard_bytes() {
    assert_eq!(Command::send_diagnostic(14).bytes(), [0x1D, 0x10, 0, 0, 14, 0]);
    assert_eq!(Command::receive_diagnostic(0x40, 256).bytes(), [0x1C, 0x01, 0x40, 1, 0, 0]);
    assert_eq!(Command::read_capacity_10().bytes(), [0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let long = Command::read_capacity_16(32);
    assert_eq!(long.bytes(), [0x9E, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0]);
    let defects = Command::read_defect_data_12(DefectFormat::PhysicalSector, 0x1_0008);
    assert_eq!(defects.bytes(), [0xB7, 0x1D, 0, 0, 0, 0, 0, 1, 0, 8, 0, 0]);
}

#[test]
fn translate_pages_match_the_standard_bytes() {
    let page = translate_page(Address::block(Lbn(0x0102_0304)), Address::PHYSICAL).expect("it fits");
    assert_eq!(page, [0x40, 0, 0, 10, 0, 5, 1, 2, 3, 4, 0, 0, 0, 0]);
    let page = translate_page(Address::block(Lbn(0x01_0203_0405)), Address::PHYSICAL).expect("it fits");
    assert_eq!(page, [0x40, 0, 0, 10, 3, 5, 0, 0, 0, 1, 2, 3, 4, 5]);
    let place = Address::Physical { cylinder: 0x01_0203, head: 4, sector: 0x0506 };
    let page = translate_page(place, Address::SHORT).expect("it fits");
    assert_eq!(page, [0x40, 0, 0, 10, 5, 0, 1, 2, 3, 4, 0, 0, 5, 6]);
    assert!(translate_page(Address::Physical { cylinder: 1 << 24, head: 0, sector: 0 }, 0).is_err());

    let answer = [0x40, 0, 0, 18, 0, 0x45, 1, 2, 3, 4, 0, 0, 5, 6, 0, 0, 9, 1, 0, 0, 0, 7];
    let second = Address::Physical { cylinder: 9, head: 1, sector: 7 };
    assert_eq!(translated(&answer).expect("it is whole"), [place, second]);
    // No block is there.
    assert_eq!(translated(&[0x40, 0, 0, 2, 5, 0]).expect("it is whole"), []);
}

#[test]
fn capacities_and_defects_decode_from_bytes() {
    let found = commands::capacity_10(&[0x01, 0x11, 0xBA, 0x89, 0, 0, 2, 0]).expect("it is whole");
    assert_eq!(found, Capacity { sectors: 0x0111_BA8A, sector_bytes: 512, physical_sectors: 1 });
    assert!(commands::capacity_10(&[0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 2, 0]).is_err());
    let mut long = [0; 32];
    long[..14].copy_from_slice(&[0, 0, 0, 9, 0x18, 0x4E, 0x72, 0xAF, 0, 0, 2, 0, 0, 3]);
    let found = commands::capacity_16(&long).expect("it is whole");
    assert_eq!(found, Capacity { sectors: 0x09_184E_72B0, sector_bytes: 512, physical_sectors: 8 });
    let list = [0, 0x1D, 0, 0, 0, 0, 0, 16, 0, 0, 7, 2, 0, 0, 0, 99, 0, 1, 0, 0, 0, 0, 1, 0];
    assert_eq!(commands::defects(&list).expect("it is whole"), [(7, 2, 99), (256, 0, 256)]);
    let whole = [0, 0x1D, 0, 0, 0, 0, 0, 8, 0, 0, 7, 2, 0xFF, 0xFF, 0xFF, 0xFF];
    let error = commands::defects(&whole).expect_err("it is a whole track").to_string();
    assert!(error.contains("the whole track of cylinder 7, head 2 is a defect"), "{error}");
}

#[test]
fn malformed_answers_are_rejected_with_the_reason() {
    let reported = |error: CommandError| error.to_string();
    let error = translated(&[0x40, 0, 0]).expect_err("it is short");
    assert_eq!(
        reported(error),
        "RECEIVE DIAGNOSTIC RESULTS: byte 3: the answer ends here, and needs 4 bytes"
    );
    let error = translated(&[0x40, 0, 0, 10, 0, 5]).expect_err("it is short");
    assert_eq!(
        reported(error),
        "RECEIVE DIAGNOSTIC RESULTS: byte 6: the answer ends here, and needs 14 bytes"
    );
    let error = translated(&[0x41, 0, 0, 0]).expect_err("another page");
    assert!(reported(error).contains("page 0x41; 0x40 was asked for"));
    let error = translated(&[0x40, 0, 0, 10, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0]).expect_err("another format");
    assert!(reported(error).contains("format 4; 0, 3 and 5 are known"));
    let error = translated(&[0x40, 0, 0, 3, 0, 5, 1]).expect_err("it is odd");
    assert!(reported(error).contains("a page of 3 bytes"));
    let error =
        commands::defects(&[0, 0x1C, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0]).expect_err("another format");
    assert!(reported(error).contains("format 4; 5 (physical sector) was asked for"));
    assert!(commands::defects(&[0, 0x1D, 0, 0, 0, 0, 0, 16, 0]).is_err());
    let fixed = [0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x24, 0];
    assert_eq!(Sense::decode(&fixed), Sense { key: 5, code: 0x24, qualifier: 0 });
    assert_eq!(Sense::decode(&[0x72, 5, 0x20, 0]).to_string(), "illegal request (5/20/00)");
    assert_eq!(Sense::decode(&[]).to_string(), "no sense (0/00/00)");
}

struct Target {
    spec: DriveSpec,
    geometry: Geometry,
    defects: Vec<(u32, u32, u32)>,
    page: Vec<u8>,
}

impl Target {
    fn new(spec: &DriveSpec) -> Target {
        let geometry = Geometry::new(spec).expect("it holds");
        let zones = spec.geometry.zones.iter().enumerate();
        let defects = zones.flat_map(|(zone, keys)| keys.slips.iter().map(move |slip| (zone, *slip)));
        let defects = defects.map(|(zone, slip)| geometry.sector_at(zone, slip)).collect();
        Target { spec: spec.clone(), geometry, defects, page: Vec::new() }
    }

    fn translate(&mut self, page: &[u8]) -> Result<(), CommandError> {
        let field: [u8; 8] = page[6..14].try_into().expect("the page is 14 bytes long");
        let bits = u64::from_be_bytes(field);
        let address = match page[4] {
            0 if bits >> 32 < self.geometry.sectors() => {
                let place = self.geometry.locate(Lbn(bits >> 32));
                let (cylinder, head) = (place.cylinder.to_be_bytes(), place.head as u8);
                let mut bytes = vec![cylinder[1], cylinder[2], cylinder[3], head];
                bytes.extend(place.sector.to_be_bytes());
                Some(bytes)
            }
            5 => {
                let place = ((bits >> 40) as u32, (bits >> 32) as u32 & 0xFF, bits as u32);
                let lbn = self.geometry.lbn_at(place.0, place.1, place.2);
                lbn.map(|lbn| [&(lbn.0 as u32).to_be_bytes()[..], &[0; 4]].concat())
            }
            _ => {
                let sense = Sense { key: Sense::ILLEGAL_REQUEST, code: 0x26, qualifier: 0 };
                return Err(CommandError::Refused { command: "SEND DIAGNOSTIC", status: 2, sense });
            }
        };
        let address = address.unwrap_or_default();
        self.page =
            [&[TRANSLATE_ADDRESS, 0, 0, 2 + address.len() as u8, page[4], page[5]], &address[..]].concat();
        Ok(())
    }
}

impl Transport for Target {
    fn run(&mut self, command: &Command, data: Data<'_>) -> Result<usize, CommandError> {
        let answer = match (command.bytes()[0], &data) {
            (0x1D, Data::Out(page)) => {
                self.translate(page)?;
                Vec::new()
            }
            (0x1C, _) => self.page.clone(),
            (0x25, _) => {
                [(self.geometry.sectors() as u32 - 1).to_be_bytes(), self.spec.sector_bytes.to_be_bytes()]
                    .concat()
            }
            (0xB7, _) => {
                let mut list = vec![0, 0x1D, 0, 0];
                list.extend((self.defects.len() as u32 * 8).to_be_bytes());
                for (cylinder, head, sector) in &self.defects {
                    list.extend((cylinder << 8 | head).to_be_bytes());
                    list.extend(sector.to_be_bytes());
                }
                list
            }
            _ => {
                let sense = Sense { key: Sense::ILLEGAL_REQUEST, code: 0x20, qualifier: 0 };
                return Err(CommandError::Refused { command: command.name, status: 2, sense });
            }
        };
        let Data::In(room) = data else { return Ok(0) };
        let length = answer.len().min(room.len());
        room[..length].copy_from_slice(&answer[..length]);
        Ok(length)
    }
}

fn found<T, F>(spec: &DriveSpec, extractor: impl FnOnce(Disk) -> F) -> T
where
    F: Future<Output = T> + 'static,
{
    let disk = SimulatedDisk::new(spec, Noise::NONE, 1).expect("it holds");
    let clock = Clock::new(1.0).expect("real time is a speed");
    let mut disk = Translating::new(disk, Translator::new(Target::new(spec)), clock);
    let mut extraction = Extraction::new(disk.info(), extractor);
    drive::run(&mut extraction, &mut disk, |_, _, _| true)
        .expect("it cannot fail")
        .expect("it is not cancelled")
}

#[test]
fn scsi_and_query_probes_find_the_exact_map() {
    let spec = drives::load("atlas-10k").expect("it is shipped");
    let truth = TrackMap::of_geometry(&Geometry::new(&spec).expect("it holds"));
    let exact = check::compare(&truth, &truth);
    let steps = found(&spec, scsi::extract).expect("it is understood");
    assert_eq!(check::compare(&steps.map, &truth), exact);
    let walk = found(&spec, query::extract).expect("it translates");
    assert_eq!(check::compare(&walk.map, &truth), exact);
}

#[test]
fn address_translations_take_simulated_time() {
    let spec = drives::load("atlas-10k").expect("it is shipped");
    let ends = async |disk: Disk| {
        let mut ends = Vec::new();
        for lbn in 0..100 {
            ends.push(disk.execute(ProbeCommand::Locate(Lbn(lbn))).await.ended);
        }
        ends
    };
    let ends = found(&spec, ends);
    assert!(ends.is_sorted() && ends[0] < ends[99], "{:?} to {:?}", ends[0], ends[99]);
}

#[test]
fn translator_answers_only_address_questions() {
    let spec = drives::load("atlas-10k").expect("it is shipped");
    let mut translator = Translator::new(Target::new(&spec)).tried().expect("it translates");
    assert_eq!(translator.capacity().expect("it tells").sectors, spec.capacity_sectors);
    assert_eq!(translator.answer(&ProbeCommand::Locate(Lbn(1 << 40))), Some(Outcome::Refused));
    assert_eq!(translator.answer(&ProbeCommand::BlockAt(99_999, 0, 0)), Some(Outcome::Block(None)));
    assert_eq!(translator.answer(&ProbeCommand::Flush), None);
}

#[test]
fn partition_is_rejected_by_the_translator() {
    let spec = drives::load("atlas-10k").expect("it is shipped");
    let info = drive::ProbeTarget::info(&SimulatedDisk::new(&spec, Noise::NONE, 1).expect("it holds"));
    let translator = || Translator::new(Target::new(&spec));
    assert!(translator().for_disk(&info).is_ok());
    let error = translator().for_disk(&DiskInfo { sectors: 1_000, ..info }).err().expect("it is a part");
    assert!(error.to_string().ends_with("a part of it or another: 1000 of 512"), "{error}");
    let error = translator().for_disk(&DiskInfo { sector_bytes: 4096, ..info }).err().expect("it is another");
    assert!(matches!(error, CommandError::Elsewhere { here_bytes: 4096, .. }), "{error}");
}
