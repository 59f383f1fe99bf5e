//! `--user`: drops the privileges of a node that root started.

use crate::failure::Failure;
use headstack_host::Address;
use nix::unistd::{Uid, User, geteuid, initgroups, setgid, setuid};
use std::ffi::CString;
use std::os::unix::fs::lchown;

/// The user of a name or number.
///
/// *Errors:* an unknown user; another user, if the process is not root.
pub(super) fn find(name: &str) -> Result<User, Failure> {
    let wrong = |message: &str| Failure::Input(format!("user {name}: {message}"));
    let found = match name.parse::<u32>() {
        Ok(number) => User::from_uid(Uid::from_raw(number)),
        Err(_) => User::from_name(name),
    };
    let user = found.map_err(|error| wrong(error.desc()))?.ok_or_else(|| wrong("there is none"))?;
    if user.uid != geteuid() && !geteuid().is_root() {
        return Err(wrong("only root may change to another user"));
    }
    Ok(user)
}

/// Switches all threads to a user and its groups, and gives the user the Unix sockets.
pub(super) fn become_user(user: &User, addresses: &[Address]) -> Result<(), Failure> {
    if user.uid == geteuid() {
        return Ok(());
    }
    for address in addresses {
        if let Address::Unix(path) = address {
            let (uid, gid) = (user.uid.as_raw(), user.gid.as_raw());
            // The link itself, not its target.
            lchown(path, Some(uid), Some(gid))
                .map_err(|error| Failure::Input(format!("{address}: {error}")))?;
        }
    }
    let name = CString::new(user.name.as_str()).expect("the system's names have no zeros");
    let done = initgroups(&name, user.gid).and_then(|()| setgid(user.gid)).and_then(|()| setuid(user.uid));
    done.map_err(|error| Failure::Input(format!("user {}: {}", user.name, error.desc())))
}

/// Forbids the process to gain privileges from set-user-ID programs. It runs none.
pub(super) fn want_no_more_rights() {
    // On a system without this call nothing changes.
    let _ = rustix::thread::set_no_new_privs(true);
}
