//! Reader of records in bounded memory, with the position of each record.

use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};
use std::ops::Range;

use crate::Format;
use crate::bad_record::{BadRecord, Flaw};
use crate::csv::{BYTE_ORDER_MARK, Quotes};

/// The maximum length of a record: a payload has at most 1 MiB, and quotes and escapes need additional bytes.
pub const RECORD_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A complete record and its position in the file.
#[derive(Debug, Default)]
pub struct Record {
    /// Its bytes, with the line ending.
    pub text: Vec<u8>,
    /// The line in which it begins, counted from 1.
    pub line: u64,
    /// The bytes of the file that it covers.
    pub bytes: Range<u64>,
}

/// The result of reading the next record.
#[derive(Debug)]
pub enum Next {
    /// A record.
    Record,
    /// A bad record.
    Bad(BadRecord),
    /// The end of the file.
    End,
}

/// Reads records.
pub struct RecordReader<R> {
    input: R,
    format: Format,
    /// The numbers of bytes and of lines before the next record.
    position: u64,
    lines: u64,
}

/// How a line ended.
enum LineEnd {
    Newline,
    File,
    TooLong,
}

impl<R: BufRead + Seek> RecordReader<R> {
    /// Creates a reader of `input`, which must be at its start.
    pub fn new(mut input: R, format: Format) -> io::Result<Self> {
        input.seek(SeekFrom::Start(0))?;
        let mut reader = Self { input, format, position: 0, lines: 0 };
        let mut mark = Vec::new();
        reader.input.by_ref().take(3).read_to_end(&mut mark)?;
        // Spreadsheets write a byte order mark before the text.
        if mark == BYTE_ORDER_MARK {
            reader.position = 3;
        } else {
            reader.input.seek(SeekFrom::Start(0))?;
        }
        Ok(reader)
    }

    /// Returns the number of bytes read.
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// Reads the next record into `record`. Empty lines are skipped. Blank lines are skipped too, except in CSV, where a row of blanks is a
    /// field.
    pub fn next(&mut self, record: &mut Record) -> io::Result<Next> {
        loop {
            record.text.clear();
            record.line = self.lines + 1;
            let start = self.position;
            let next = match self.format {
                Format::Jsonl => self.next_line(&mut record.text)?,
                Format::Csv => self.next_row(&mut record.text)?,
            };
            record.bytes = start..self.position;
            match next {
                Ok(()) if self.position == start => return Ok(Next::End),
                Ok(()) if self.is_none(&record.text) => {}
                Ok(()) => return Ok(Next::Record),
                Err(flaw) => {
                    let bytes = record.bytes.clone();
                    return Ok(Next::Bad(BadRecord::new(&record.text, record.line, bytes, flaw)));
                }
            }
        }
    }

    fn is_none(&self, text: &[u8]) -> bool {
        match self.format {
            Format::Jsonl => text.trim_ascii().is_empty(),
            Format::Csv => text.iter().all(|byte| matches!(byte, b'\r' | b'\n')),
        }
    }

    /// Copies an already read byte range of the file unchanged.
    pub fn copy(&mut self, bytes: Range<u64>, to: &mut impl Write) -> io::Result<()> {
        self.input.seek(SeekFrom::Start(bytes.start))?;
        io::copy(&mut self.input.by_ref().take(bytes.end - bytes.start), to)?;
        self.input.seek(SeekFrom::Start(self.position))?;
        Ok(())
    }

    fn next_line(&mut self, text: &mut Vec<u8>) -> io::Result<Result<(), Flaw>> {
        Ok(match self.line(text, RECORD_BYTES_MAX)? {
            LineEnd::Newline | LineEnd::File => Ok(()),
            LineEnd::TooLong => Err(too_long()),
        })
    }

    fn next_row(&mut self, text: &mut Vec<u8>) -> io::Result<Result<(), Flaw>> {
        let mut quotes = Quotes::new();
        let mut after_first_line = None;
        loop {
            let line_start = text.len();
            let end = self.line(text, RECORD_BYTES_MAX)?;
            let first = *after_first_line.get_or_insert((self.position, self.lines));
            let flaw = match (quotes.follow(&text[line_start..]), end) {
                (Err(flaw), _) => flaw,
                (Ok(true), LineEnd::Newline | LineEnd::File) => return Ok(Ok(())),
                (Ok(true), LineEnd::TooLong) => too_long(),
                (Ok(false), LineEnd::Newline) => continue,
                (Ok(false), LineEnd::File) => quotes.never_closed(),
                (Ok(false), LineEnd::TooLong) => quotes.too_far(RECORD_BYTES_MAX),
            };
            // A surplus quote must not consume the lines up to the next quote, or the rest of the file.
            (self.position, self.lines) = first;
            self.input.seek(SeekFrom::Start(self.position))?;
            return Ok(Err(flaw));
        }
    }

    /// Appends the next line, with its line ending, to `text`. `text` does not grow beyond `bytes_max`; the remaining bytes of the line are
    /// skipped.
    fn line(&mut self, text: &mut Vec<u8>, bytes_max: usize) -> io::Result<LineEnd> {
        let room = bytes_max.saturating_sub(text.len()) as u64;
        let read = self.input.by_ref().take(room).read_until(b'\n', text)? as u64;
        self.position += read;
        if read > 0 && text.ends_with(b"\n") {
            self.lines += 1;
            return Ok(LineEnd::Newline);
        }
        if read < room {
            self.lines += u64::from(read > 0);
            return Ok(LineEnd::File);
        }
        self.position += self.input.skip_until(b'\n')? as u64;
        self.lines += 1;
        Ok(LineEnd::TooLong)
    }
}

fn too_long() -> Flaw {
    Flaw::new(0, format!("this line is longer than {} MiB", RECORD_BYTES_MAX >> 20))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// Formats what the reader returns: `line: text`, or `line:column flaw`.
    fn records(text: &str, format: Format) -> Vec<String> {
        let mut reader = RecordReader::new(Cursor::new(text.as_bytes().to_vec()), format).unwrap();
        let mut record = Record::default();
        let mut found = Vec::new();
        loop {
            match reader.next(&mut record).unwrap() {
                Next::End => return found,
                Next::Record => {
                    let text = String::from_utf8_lossy(&record.text).into_owned();
                    found.push(format!("{}: {}", record.line, text.trim_end()));
                }
                Next::Bad(bad) => {
                    let mut copy = Vec::new();
                    reader.copy(bad.bytes.clone(), &mut copy).unwrap();
                    let copy = String::from_utf8_lossy(&copy).into_owned();
                    let copy: String = copy.trim_end().chars().take(9).collect();
                    found.push(format!("{}:{} {copy}", bad.line, bad.column));
                }
            }
        }
    }

    #[test]
    fn lines_are_counted_over_blank_ones_and_any_ends() {
        assert_eq!(records("\u{feff}1\n\n2\r\n  \n3", Format::Jsonl), ["1: 1", "3: 2", "5: 3"]);
        assert_eq!(records("", Format::Jsonl), [""; 0]);
    }

    #[test]
    fn a_row_may_go_over_lines_inside_quotes() {
        assert_eq!(records("a,\"b\nc\"\r\nd,e\n", Format::Csv), ["1: a,\"b\nc\"", "3: d,e"]);
    }

    #[test]
    fn an_unclosed_quote_takes_only_its_own_line() {
        assert_eq!(
            records("a,b\nc,\"d\ne,f\ng,h\n", Format::Csv),
            ["1: a,b", "2:3 c,\"d", "3: e,f", "4: g,h"]
        );
    }

    #[test]
    fn a_stray_quote_takes_only_its_own_line_though_another_quote_seems_to_close_it() {
        assert_eq!(
            records("1,\"oops\n2,a\n3,b\n4,\"c\"\n5,d\n", Format::Csv),
            ["1:3 1,\"oops", "2: 2,a", "3: 3,b", "4: 4,\"c\"", "5: 5,d"]
        );
        assert_eq!(records("a,\"b\nc\",d\"e\nf\n", Format::Csv), ["2:5 a,\"b", "2:2 c\",d\"e", "3: f"]);
    }

    #[test]
    fn a_row_of_blanks_is_a_row_and_an_empty_line_is_none() {
        assert_eq!(records("a\n  \n\r\n\nb\n", Format::Csv), ["1: a", "2: ", "5: b"]);
    }

    #[test]
    fn a_field_longer_than_a_record_may_be_is_not_called_unclosed() {
        let text = format!("a,\"{}\"\nb,c\n", "x\n".repeat(RECORD_BYTES_MAX / 2));
        let mut reader = RecordReader::new(Cursor::new(text.into_bytes()), Format::Csv).unwrap();
        let Next::Bad(bad) = reader.next(&mut Record::default()).unwrap() else { panic!("it is a record") };
        assert_eq!((bad.line, bad.column), (1, 3));
        assert!(bad.why.contains("not closed within 4 MiB"), "{}", bad.why);
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over() {
        let long = "x".repeat(RECORD_BYTES_MAX + 10);
        assert_eq!(records(&format!("1\n{long}\n2\n"), Format::Jsonl), ["1: 1", "2:1 xxxxxxxxx", "3: 2"]);
        assert_eq!(records(&format!("1\n{long}\n2\n"), Format::Csv), ["1: 1", "2:1 xxxxxxxxx", "3: 2"]);
    }
}
