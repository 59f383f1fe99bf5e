//! gzip and zstd: recognised by their first bytes when reading, by the file's ending when writing.

use std::io::{self, BufRead, BufReader, Read, Write};

use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Packing {
    None,
    Gzip,
    Zstd,
}

impl Packing {
    /// The compression that a file's name implies, and the name without that ending.
    pub fn of_name(name: &str) -> (Packing, &str) {
        let endings = [(".gz", Packing::Gzip), (".zst", Packing::Zstd)];
        let found = endings.into_iter().find_map(|(end, packing)| Some((packing, name.strip_suffix(end)?)));
        found.unwrap_or((Packing::None, name))
    }

    fn of_head(head: &[u8]) -> Packing {
        match head {
            [0x1f, 0x8b, ..] => Packing::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Packing::Zstd,
            _ => Packing::None,
        }
    }
}

const BUFFER: usize = 1 << 17;
/// Bytes at the start that identify the compression.
const MAGIC: usize = 4;

/// The first `wanted` bytes of an input, and the whole input.
pub(super) fn peek<'a>(
    mut input: impl BufRead + 'a,
    wanted: usize,
) -> io::Result<(Vec<u8>, impl BufRead + 'a)> {
    let mut head = Vec::with_capacity(wanted);
    input.by_ref().take(wanted as u64).read_to_end(&mut head)?;
    Ok((head.clone(), io::Cursor::new(head).chain(input)))
}

/// An input that is not compressed.
pub(super) struct Unpacked<'a> {
    pub(super) input: Box<dyn BufRead + 'a>,
    /// Whether it is the text of a Parquet file's rows.
    pub(super) is_parquet: bool,
}

/// The input, decompressed if it is compressed, and as text if it is a Parquet file.
pub(super) fn unpack<'a>(input: impl Read + 'a) -> io::Result<Unpacked<'a>> {
    let (head, input) = peek(decompressed(input)?, MAGIC)?;
    if head != *b"PAR1" {
        return Ok(Unpacked { input: Box::new(input), is_parquet: false });
    }
    #[cfg(feature = "parquet")]
    return Ok(Unpacked { input: super::parquet::unpack(input)?, is_parquet: true });
    #[cfg(not(feature = "parquet"))]
    Err(io::Error::new(io::ErrorKind::Unsupported, "a Parquet file, which this program was built without"))
}

fn decompressed<'a>(input: impl Read + 'a) -> io::Result<Box<dyn BufRead + 'a>> {
    let (head, input) = peek(BufReader::with_capacity(BUFFER, input), MAGIC)?;
    Ok(match Packing::of_head(&head) {
        Packing::None => Box::new(input),
        Packing::Gzip => Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(input))),
        #[cfg(feature = "zstd")]
        Packing::Zstd => {
            let unpacked = ZstdOutput(zstd::Decoder::with_buffer(input)?);
            Box::new(BufReader::with_capacity(BUFFER, unpacked))
        }
        #[cfg(not(feature = "zstd"))]
        Packing::Zstd => return Err(without_zstd()),
    })
}

/// The error of a program that was built without the feature `zstd`.
#[cfg(not(feature = "zstd"))]
fn without_zstd() -> io::Error {
    let message = "packed by zstd, which this program was built without; unpack it first: zstd -d";
    io::Error::new(io::ErrorKind::Unsupported, message)
}

/// The output of zstd's decompressor; its error for exceeding the one limit is put in words.
#[cfg(feature = "zstd")]
struct ZstdOutput<R>(R);

#[cfg(feature = "zstd")]
impl<R: Read> Read for ZstdOutput<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into).map_err(|error| {
            if error.to_string().contains("too much memory") {
                io::Error::new(
                    io::ErrorKind::InvalidData,
                    "packed by zstd with a window of more than 128 MiB; unpack it first: zstd -d --long=31",
                )
            } else {
                error
            }
        })
    }
}

pub(super) enum Packer<W: Write> {
    None(W),
    Gzip(GzEncoder<W>),
    #[cfg(feature = "zstd")]
    Zstd(zstd::Encoder<'static, W>),
}

impl<W: Write> Packer<W> {
    pub(super) fn new(output: W, packing: Packing) -> io::Result<Packer<W>> {
        Ok(match packing {
            Packing::None => Packer::None(output),
            Packing::Gzip => Packer::Gzip(GzEncoder::new(output, flate2::Compression::default())),
            #[cfg(not(feature = "zstd"))]
            Packing::Zstd => return Err(without_zstd()),
            #[cfg(feature = "zstd")]
            Packing::Zstd => Packer::Zstd(zstd::Encoder::new(output, zstd::DEFAULT_COMPRESSION_LEVEL)?),
        })
    }

    pub(super) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Packer::None(output) => output.write_all(bytes),
            Packer::Gzip(output) => output.write_all(bytes),
            #[cfg(feature = "zstd")]
            Packer::Zstd(output) => output.write_all(bytes),
        }
    }

    /// Writes what is left, and returns the output.
    pub(super) fn finish(self) -> io::Result<W> {
        let mut output = match self {
            Packer::None(output) => output,
            Packer::Gzip(output) => output.finish()?,
            #[cfg(feature = "zstd")]
            Packer::Zstd(output) => output.finish()?,
        };
        output.flush()?;
        Ok(output)
    }
}
