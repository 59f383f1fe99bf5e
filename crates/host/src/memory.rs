//! The memory of the machine: how much there is for this process, and how the heap returns what it does not need.

use headstack_nbd::Budget;
use std::path::Path;

/// Largest default of the memory for requests and replies of clients.
const MOST: u64 = 512 << 20;

/// Bytes that one connection has for itself, of [`Budget::OWN`] and of its input.
const CONNECTION: u64 = 256 << 10;

/// Bytes of memory that this process may use: the least of its control groups' limits, its address space and the machine's memory. None if
/// the system names none of these.
pub fn allowed() -> Option<u64> {
    let address_space = rustix::process::getrlimit(rustix::process::Resource::As).current;
    let all = [machine(), groups(Path::new("/proc/self/cgroup"), Path::new("/sys/fs/cgroup")), address_space];
    all.into_iter().flatten().min()
}

/// The default of the bytes of requests and replies that all clients together may hold: a quarter of what this process may use, at most
/// 512 MiB, and at least the largest request.
pub fn default_budget(allowed: Option<u64>) -> usize {
    let bytes = allowed.map_or(MOST, |allowed| (allowed / 4).min(MOST));
    usize::try_from(bytes).unwrap_or(usize::MAX).max(Budget::LEAST)
}

/// The number of connections whose own memory is at most a quarter of what this process may use, and at least 16.
pub fn connections(allowed: Option<u64>) -> usize {
    let most = allowed.map_or(u64::MAX, |allowed| (allowed / 4 / CONNECTION).max(16));
    usize::try_from(most).unwrap_or(usize::MAX)
}

#[allow(clippy::disallowed_methods, reason = "the system describes itself in a file")]
fn text(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// The machine's memory in bytes.
fn machine() -> Option<u64> {
    let text = text(Path::new("/proc/meminfo"))?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    total.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The least limit of the control groups of a process and of those above them. `own` is its list of groups, and the hierarchies are below
/// `root`. Both versions of control groups are known; a container may see its own group as the hierarchy's top.
fn groups(own: &Path, root: &Path) -> Option<u64> {
    let mut least = None;
    for line in text(own)?.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else { continue };
        let (top, file) = match controllers {
            "" => (root.to_path_buf(), "memory.max"),
            names if names.split(',').any(|name| name == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let below = top.join(group.trim_start_matches('/'));
        let folders = below.ancestors().take_while(|folder| folder.starts_with(&top));
        let limits = folders.filter_map(|folder| text(&folder.join(file))?.trim().parse::<u64>().ok());
        least = limits.chain(least).min();
    }
    least
}

/// Makes large allocations leave the process as soon as they are freed. Without it the heap keeps freed memory of earlier requests, and
/// takes more for later ones of another size. Call it once, before clients arrive.
pub fn return_large_allocations() {
    /// Bytes from which on an allocation is a mapping of its own. Smaller ones, which most requests are, would pay for new pages each time.
    #[cfg(target_env = "gnu")]
    const LARGE: i32 = (1 << 20) + 1;
    #[cfg(target_env = "gnu")]
    // SAFETY: it sets a number of the allocator, and is not called while another thread sets it.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
    }
}

/// Returns free memory of the heap to the system, if it is more than a thirty-second of the budget.
pub(crate) fn trim(budget: &Budget) {
    #[cfg(target_env = "gnu")]
    // SAFETY: both calls only inspect and shrink the allocator's free lists, and lock them.
    unsafe {
        if libc::mallinfo2().fordblks > budget.bytes() / 32 {
            libc::malloc_trim(0);
        }
    }
    #[cfg(not(target_env = "gnu"))]
    let _ = budget;
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a test writes the files that the system would show")]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn budget_is_a_quarter_of_the_memory_within_its_bounds() {
        assert_eq!(default_budget(None), 512 << 20);
        assert_eq!(default_budget(Some(64 << 30)), 512 << 20);
        assert_eq!(default_budget(Some(1 << 30)), 256 << 20);
        assert_eq!(default_budget(Some(64 << 20)), Budget::LEAST);
        assert_eq!((connections(Some(256 << 20)), connections(Some(1))), (256, 16));
    }

    #[test]
    fn least_limit_of_the_groups_counts() {
        let folder = tempfile::tempdir().expect("there is a temporary folder");
        let (own, root) = (folder.path().join("own"), folder.path().join("groups"));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("it has a folder")).expect("it is free");
            fs::write(path, text).expect("it is free");
        };
        write("a/memory.max", "157286400\n");
        write("a/b/memory.max", "max\n");
        write("memory/c/memory.limit_in_bytes", "9223372036854771712\n");
        fs::write(&own, "1:cpu:/\n0::/a/b\n").expect("it is free");
        assert_eq!(groups(&own, &root), Some(157_286_400));
        fs::write(&own, "4:memory:/c\n0::/\n").expect("it is free");
        assert_eq!(groups(&own, &root), Some(9_223_372_036_854_771_712));
        write("memory/memory.limit_in_bytes", "1048576");
        fs::write(&own, "4:memory:/not/mounted/here\n").expect("it is free");
        assert_eq!(groups(&own, &root), Some(1 << 20), "a container sees its own group as the top");
        fs::write(&own, "0::/none\n").expect("it is free");
        assert_eq!(groups(&own, &root), None);
    }

    #[test]
    fn this_machine_says_its_memory() {
        assert!(machine().is_some_and(|bytes| bytes > 64 << 20));
        assert!(allowed() <= machine());
    }
}
