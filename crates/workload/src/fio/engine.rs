//! fio's engines: which of them are synchronous, which bypass the page cache, and which access no disk.
//!
//! *Source:* the flags `FIO_SYNCIO`, `FIO_DISKLESSIO` and `FIO_RAWIO` of the engines of fio 3.33; which ones cap the depth was
//! checked by running each of them.

use super::error::nearest;
use super::value::Given;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Engine {
    pub(super) name: &'static str,
    /// It waits for each request, so that one is outstanding whatever `iodepth` says.
    pub(super) synchronous: bool,
    /// Its requests never meet the host's page cache.
    pub(super) past_cache: bool,
    /// It finds its disk by `uri`: the export of an NBD server.
    pub(super) by_uri: bool,
}

const fn engine(name: &'static str, synchronous: bool, past_cache: bool) -> Engine {
    Engine { name, synchronous, past_cache, by_uri: false }
}

/// fio's default on Linux.
pub(super) const PSYNC: Engine = engine("psync", true, false);

const ENGINES: [Engine; 32] = [
    PSYNC,
    engine("sync", true, false),
    engine("vsync", true, false),
    engine("pvsync", true, false),
    engine("pvsync2", true, false),
    engine("mmap", true, false),
    engine("splice", true, false),
    engine("libpmem", true, true),
    engine("dev-dax", true, true),
    engine("pmemblk", true, true),
    engine("mtd", true, true),
    engine("gfapi", true, true),
    engine("libhdfs", true, true),
    engine("libzbc", true, true),
    engine("libcufile", true, true),
    engine("libhipfile", true, true),
    engine("libaio", false, false),
    engine("io_uring", false, false),
    engine("io_uring_cmd", false, true),
    engine("posixaio", false, false),
    engine("sg", false, true),
    engine("null", false, false),
    engine("cpp_null", false, false),
    engine("xnvme", false, true),
    engine("libiscsi", false, true),
    engine("windowsaio", false, false),
    engine("solarisaio", false, false),
    engine("gfapi_async", false, true),
    engine("rados", false, true),
    engine("rbd", false, true),
    engine("libblkio", false, true),
    Engine { by_uri: true, ..engine("nbd", false, true) },
];

/// Engines that make no reads and writes of a disk, with what they do instead.
const OTHERS: [(&str, &str); 25] = [
    ("cpuio", "only computes"),
    ("net", "sends over a network"),
    ("netsplice", "sends over a network"),
    ("rdma", "sends over a network"),
    ("librpma_apm_client", "sends over a network"),
    ("librpma_apm_server", "receives from a network"),
    ("librpma_gpspm_client", "sends over a network"),
    ("librpma_gpspm_server", "receives from a network"),
    ("http", "sends over a network"),
    ("dfs", "sends over a network"),
    ("nfs", "sends over a network"),
    ("ime_psync", "sends over a network"),
    ("ime_psyncv", "sends over a network"),
    ("ime_aio", "sends over a network"),
    ("filexattr", "reads the attributes of files"),
    ("ftruncate", "changes the length of files"),
    ("filecreate", "makes files"),
    ("filestat", "looks files up"),
    ("filedelete", "removes files"),
    ("dircreate", "makes folders"),
    ("dirstat", "looks folders up"),
    ("dirdelete", "removes folders"),
    ("falloc", "reserves the blocks of files"),
    ("e4defrag", "moves the blocks of files"),
    ("exec", "runs a program"),
];

impl Engine {
    /// The engine that `ioengine` names.
    ///
    /// *Errors:* it accesses no disk, or there is none of that name; the error names the nearest.
    pub(super) fn named(given: &Given<'_>) -> Result<Engine, String> {
        let name = given.text()?;
        if let Some((name, does)) = OTHERS.iter().find(|(known, _)| *known == name) {
            return Err(format!("`{name}` {does} and makes no disk requests; leave such jobs out"));
        }
        let names = ENGINES.iter().map(|engine| engine.name);
        let found = ENGINES.iter().find(|engine| engine.name == name);
        found.copied().ok_or_else(|| {
            let known: Vec<&str> = names.clone().collect();
            let hint = nearest(name, names);
            format!("`{}`, where {} is allowed{hint}", super::error::show(name), known.join(", "))
        })
    }
}
