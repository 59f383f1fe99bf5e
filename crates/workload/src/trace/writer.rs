//! A trace of any format, written one record at a time.

use std::io::{self, Write};

use super::packed::{Packer, Packing};
use super::{Encode, Format, Header, Losses, Record};

const CHUNK: usize = 1 << 16;

/// Writes a trace of any format.
pub struct TraceWriter<W: Write> {
    format: &'static Format,
    encoder: Box<dyn Encode>,
    output: Packer<W>,
    chunk: Vec<u8>,
    losses: Losses,
    written: u64,
    begun: bool,
}

impl<W: Write> TraceWriter<W> {
    /// A writer of `format` to `output`.
    ///
    /// *Errors:* the packing cannot begin.
    pub fn new(output: W, format: &'static Format, packing: Packing) -> io::Result<TraceWriter<W>> {
        Ok(TraceWriter {
            format,
            encoder: (format.write)(),
            output: Packer::new(output, packing)?,
            chunk: Vec::with_capacity(CHUNK + 4096),
            losses: Losses::default(),
            written: 0,
            begun: false,
        })
    }

    /// Writes a record of a trace with this header, as far as the format can express it.
    ///
    /// *Errors:* the output cannot be written.
    pub fn write(&mut self, record: &Record, header: &Header) -> io::Result<()> {
        let mut record = *record;
        if !self.format.carries.fit(&mut record, &mut self.losses) {
            return Ok(());
        }
        self.begin(header);
        self.encoder.record(&record, header, &mut self.chunk);
        self.written += 1;
        if self.chunk.len() >= CHUNK {
            self.output.write_all(&self.chunk)?;
            self.chunk.clear();
        }
        Ok(())
    }

    fn begin(&mut self, header: &Header) {
        if !std::mem::replace(&mut self.begun, true) {
            self.encoder.begin(header, &mut self.chunk);
        }
    }

    /// Writes what the format has after the last record; returns the output and what was lost.
    ///
    /// *Errors:* the output cannot be written.
    pub fn finish(mut self, header: &Header) -> io::Result<(W, Losses)> {
        self.begin(header);
        self.encoder.end(header, &mut self.chunk);
        self.output.write_all(&self.chunk)?;
        Ok((self.output.finish()?, self.losses))
    }

    /// Records written so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// What was lost so far.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }
}
