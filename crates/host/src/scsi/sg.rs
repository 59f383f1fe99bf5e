//! Linux's `SG_IO`: sends a SCSI command to a device, and returns its result.
//!
//! This is a place with `unsafe`, because the kernel gets the addresses of the command, its data and the sense data, which all
//! outlive the call.
//!
//! *Source:* Linux `include/scsi/sg.h`; the SCSI generic how-to, <https://sg.danny.cz/sg/p/sg_v3_ho.html>.

use super::commands::{Command, Sense};
use super::{CommandError, Data, Transport};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

const SG_IO: libc::c_ulong = 0x2285;
/// `SG_DXFER_TO_DEV` and `SG_DXFER_FROM_DEV`.
const TO_DEVICE: i32 = -2;
const FROM_DEVICE: i32 = -3;
/// The status that comes with sense data.
const CHECK_CONDITION: u8 = 2;
/// Timeout of a command.
const TIMEOUT_MS: u32 = 60_000;
/// The driver reports that there are sense data, which is no failure.
const DRIVER_SENSE: u16 = 0x08;

/// `struct sg_io_hdr`, version 3.
#[repr(C)]
struct Header {
    interface_id: i32,
    direction: i32,
    command_length: u8,
    sense_room: u8,
    pieces: u16,
    data_length: u32,
    data: *mut libc::c_void,
    command: *const u8,
    sense: *mut u8,
    timeout: u32,
    flags: u32,
    pack_id: i32,
    user: *mut libc::c_void,
    status: u8,
    masked_status: u8,
    message_status: u8,
    sense_written: u8,
    host_status: u16,
    driver_status: u16,
    residue: i32,
    duration: u32,
    info: u32,
}

/// A device that takes SCSI commands: `/dev/sdX` or `/dev/sgN`.
#[derive(Debug)]
pub struct Device {
    file: File,
}

impl Device {
    /// Opens a device for reading. Diagnostics require `CAP_SYS_RAWIO`, which root has.
    ///
    /// *Errors:* the system's.
    pub fn open(path: &Path) -> io::Result<Device> {
        #[allow(clippy::disallowed_methods, reason = "a device is a file")]
        let file = File::open(path)?;
        Ok(Device { file })
    }
}

impl Transport for Device {
    fn run(&mut self, command: &Command, data: Data<'_>) -> Result<usize, CommandError> {
        let name = command.name;
        let (direction, address, length) = match data {
            // The kernel only reads the data to the device.
            Data::Out(bytes) => (TO_DEVICE, bytes.as_ptr().cast_mut(), bytes.len()),
            Data::In(room) => (FROM_DEVICE, room.as_mut_ptr(), room.len()),
        };
        let data_length = u32::try_from(length).map_err(|_| CommandError::System {
            command: name,
            error: io::Error::other("more than 4 GiB of data"),
        })?;
        let mut again = true;
        loop {
            let mut sense = [0u8; 64];
            let bytes = command.bytes();
            let mut header = Header {
                interface_id: i32::from(b'S'),
                direction,
                command_length: bytes.len() as u8,
                sense_room: sense.len() as u8,
                pieces: 0,
                data_length,
                data: address.cast(),
                command: bytes.as_ptr(),
                sense: sense.as_mut_ptr(),
                timeout: TIMEOUT_MS,
                flags: 0,
                pack_id: 0,
                user: std::ptr::null_mut(),
                status: 0,
                masked_status: 0,
                message_status: 0,
                sense_written: 0,
                host_status: 0,
                driver_status: 0,
                residue: 0,
                duration: 0,
                info: 0,
            };
            // SAFETY: the header has the layout of `struct sg_io_hdr`. Command, data and sense are borrowed until the call returns, with
            // the lengths in the header; only data from the device and sense are written, and both are mutable.
            let done = unsafe { libc::ioctl(self.file.as_raw_fd(), SG_IO as _, &raw mut header) };
            if done < 0 {
                return Err(CommandError::System { command: name, error: io::Error::last_os_error() });
            }
            if header.status != 0 {
                let written = usize::from(header.sense_written).min(sense.len());
                let sense = Sense::decode(&sense[..written]);
                match fate(header.status, sense) {
                    Fate::Done => {}
                    Fate::Again if again => {
                        again = false;
                        continue;
                    }
                    _ => return Err(CommandError::Refused { command: name, status: header.status, sense }),
                }
            }
            if header.host_status != 0 || header.driver_status & !DRIVER_SENSE != 0 {
                let (host, driver) = (header.host_status, header.driver_status);
                return Err(CommandError::Lost { command: name, host, driver });
            }
            return Ok(length.saturating_sub(header.residue.max(0) as usize));
        }
    }
}

/// Result of a command that did not simply succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Carried out, after recovery.
    Done,
    /// The disk reported an event; the command is to be repeated.
    Again,
    Refused,
}

fn fate(status: u8, sense: Sense) -> Fate {
    match (status, sense.key) {
        (CHECK_CONDITION, Sense::RECOVERED_ERROR) => Fate::Done,
        (CHECK_CONDITION, Sense::UNIT_ATTENTION) => Fate::Again,
        _ => Fate::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_has_the_kernel_layout() {
        // 88 bytes on 64-bit machines, with the status after eight fields and three addresses.
        #[cfg(target_pointer_width = "64")]
        assert_eq!((size_of::<Header>(), std::mem::offset_of!(Header, status)), (88, 64));
        assert_eq!(std::mem::offset_of!(Header, data), 16);
    }

    #[test]
    fn recovered_error_succeeds_and_unit_attention_is_retried() {
        let of = |status, key| fate(status, Sense { key, code: 0, qualifier: 0 });
        assert_eq!((of(2, 1), of(2, 6), of(2, 5)), (Fate::Done, Fate::Again, Fate::Refused));
        // Busy, whatever is in the sense buffer.
        assert_eq!(of(8, 1), Fate::Refused);
    }

    #[test]
    fn scsi_command_to_a_regular_file_is_rejected() {
        let file = tempfile::NamedTempFile::new().expect("there is room");
        let mut device = Device::open(file.path()).expect("it is there");
        let error =
            device.run(&Command::read_capacity_10(), Data::In(&mut [0; 8])).expect_err("it is a file");
        assert!(error.to_string().starts_with("READ CAPACITY(10): "), "{error}");
    }
}
