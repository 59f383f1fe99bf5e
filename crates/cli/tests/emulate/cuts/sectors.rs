//! An NBD client that writes a version number into each sector, with 16 requests in flight: writes, writes with FUA and flushes.

use super::{LIAR, Power, Witness, caught, live_through, must};
use crate::emulator::Emulator;
use crate::nbd::Client;
use crate::noise::Noise;
use std::collections::BTreeMap;
use std::ops::Range;

const SECTOR: usize = 512;
/// Number of sectors that are written.
const SECTORS: u64 = 1 << 15;
/// Number of requests in flight.
const DEPTH: usize = 16;

/// The versions that a sector may hold after a cut. A version is the number of a write, counted over all sectors; 0 is the content before
/// the first write.
#[derive(Default)]
struct Slot {
    /// The last version that is safe.
    safe: u64,
    /// Later versions, any of which may be on the media.
    later: Vec<u64>,
}

impl Slot {
    fn is_safe(&mut self, version: u64) {
        self.safe = self.safe.max(version);
        let safe = self.safe;
        self.later.retain(|&version| version > safe);
    }
}

/// A request in flight.
enum Asked {
    Write {
        sectors: Range<u64>,
        version: u64,
        fua: bool,
    },
    /// The versions of sectors whose writes had completed when the flush was sent.
    Flush(BTreeMap<u64, u64>),
}

struct Sectors {
    noise: Noise,
    version: u64,
    slots: Vec<Slot>,
}

impl Sectors {
    fn new() -> Sectors {
        Sectors { noise: Noise(3), version: 0, slots: (0..SECTORS).map(|_| Slot::default()).collect() }
    }

    /// Sends a flush, or a write to sectors that no write in flight touches.
    fn ask(&mut self, client: &mut Client, flight: &mut Flight) -> std::io::Result<()> {
        if self.noise.below(24) == 0 {
            let cookie = client.send_flush()?;
            flight.asked.insert(cookie, Asked::Flush(flight.written.clone()));
            return Ok(());
        }
        let first = self.noise.below(SECTORS - 16);
        let sectors = first..first + 1 + self.noise.below(16);
        if flight.touches(&sectors) {
            return Ok(());
        }
        self.version += 1;
        let (version, fua) = (self.version, self.noise.below(16) == 0);
        // From here on the version may reach the media, even if the connection fails.
        sectors.clone().for_each(|sector| self.slots[sector as usize].later.push(version));
        let data: Vec<u8> = sectors.clone().flat_map(|sector| contents(sector, version)).collect();
        let cookie = client.send_write(first * SECTOR as u64, &data, fua)?;
        flight.asked.insert(cookie, Asked::Write { sectors, version, fua });
        Ok(())
    }

    /// Reads a reply and updates what is safe.
    fn hear(&mut self, client: &mut Client, flight: &mut Flight, power: &mut Power) -> std::io::Result<()> {
        let reply = client.reply()?;
        let asked = flight.asked.remove(&reply.cookie).expect("an answer is to something that was asked");
        if reply.error != 0 {
            return Err(std::io::Error::from_raw_os_error(reply.error as i32));
        }
        match asked {
            Asked::Write { sectors, version, fua } => {
                for sector in sectors {
                    flight.written.insert(sector, version);
                    if fua {
                        self.slots[sector as usize].is_safe(version);
                    }
                }
            }
            Asked::Flush(written) => {
                for (sector, version) in written {
                    self.slots[sector as usize].is_safe(version);
                    if flight.written.get(&sector) == Some(&version) {
                        flight.written.remove(&sector);
                    }
                }
                power.safe();
            }
        }
        Ok(())
    }

    /// Checks what a sector holds, and records that version as the safe one.
    fn look(&mut self, sector: u64, found: Option<&[u8]>) -> Result<(), String> {
        let slot = &mut self.slots[sector as usize];
        let version = match found {
            // A torn sector cannot be read. Only a sector that was being written may be torn.
            None if !slot.later.is_empty() => return Ok(()),
            None => return Err(format!("sector {sector}, safe with version {}, cannot be read", slot.safe)),
            Some(bytes) => u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes are eight")),
        };
        let whole = found.is_some_and(|bytes| bytes == contents(sector, version));
        if !whole || (version != slot.safe && !slot.later.contains(&version)) {
            let (safe, later) = (slot.safe, &slot.later);
            return Err(format!(
                "sector {sector} holds version {version} (whole: {whole}), safe is {safe}, then {later:?}"
            ));
        }
        *slot = Slot { safe: version, later: Vec::new() };
        Ok(())
    }
}

/// Requests in flight on a connection.
#[derive(Default)]
struct Flight {
    asked: BTreeMap<u64, Asked>,
    /// The last completed version of each sector that no flush has made safe yet.
    written: BTreeMap<u64, u64>,
}

impl Flight {
    fn touches(&self, other: &Range<u64>) -> bool {
        self.asked.values().any(|asked| match asked {
            Asked::Write { sectors, .. } => sectors.start < other.end && other.start < sectors.end,
            Asked::Flush(_) => false,
        })
    }
}

/// The bytes of a sector in this version.
fn contents(sector: u64, version: u64) -> Vec<u8> {
    if version == 0 {
        return vec![0; SECTOR];
    }
    let mut bytes = version.to_le_bytes().to_vec();
    bytes.extend(Noise(sector << 32 ^ version).bytes(SECTOR - 8));
    bytes
}

impl Witness for Sectors {
    const SPEED: &str = "10";
    const MOUNTED: bool = false;

    fn prepare(&mut self, _: &Emulator) {}

    fn work(&mut self, emulator: &Emulator, power: &mut Power) {
        let (mut client, mut flight) = (emulator.client(), Flight::default());
        let mut step = || {
            while flight.asked.len() < DEPTH {
                self.ask(&mut client, &mut flight)?;
            }
            self.hear(&mut client, &mut flight, power)
        };
        while step().is_ok() {}
    }

    fn check(&mut self, emulator: &Emulator) -> Result<(), String> {
        let (mut client, run) = (emulator.client(), 128);
        for first in (0..SECTORS).step_by(run) {
            let whole = client.read(first * SECTOR as u64, (run * SECTOR) as u32).ok();
            for sector in first..first + run as u64 {
                let at = (sector - first) as usize * SECTOR;
                let alone = || client.read(sector * SECTOR as u64, SECTOR as u32).ok();
                let found = whole.as_ref().map(|bytes| bytes[at..at + SECTOR].to_vec()).or_else(alone);
                self.look(sector, found.as_deref())?;
            }
        }
        Ok(())
    }
}

#[test]
fn flushed_sectors_survive_power_cuts() {
    must(live_through(Sectors::new(), 6, 20, None));
}

#[test]
fn lost_sectors_expose_a_disk_that_ignores_flush() {
    caught(live_through(Sectors::new(), 6, 20, LIAR));
}

#[test]
#[ignore = "the long form: make cuts-real"]
fn flushed_sectors_survive_100_power_cuts() {
    must(live_through(Sectors::new(), 100, 40, None));
}
