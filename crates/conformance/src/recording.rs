//! The recording of a vector's host: decisions and state, as compressed CSV.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use flate2::read::GzDecoder;
use serde::Serialize;
use vcpulab_host::StateRow;

/// Largest recording once uncompressed, bytes: a small file may unpack to a huge one.
pub const UNCOMPRESSED_MAX: u64 = 256 << 20;

const TRACE_HEADER: &str = "time_ns,pcpu,from_domain,from_vcpu,to_domain,to_vcpu";
const STATE_COLUMNS: &str = "time_ns,domain,vcpu,";

/// A decision that changed what a pCPU runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Decision {
    /// Time of the decision, ns.
    pub time_ns: i64,
    /// The pCPU's number.
    pub pcpu: i64,
    /// The domain that ran until then (−1: idle).
    pub from_domain: i64,
    /// The vCPU that ran until then.
    pub from_vcpu: i64,
    /// The domain that runs from then on (−1: idle).
    pub to_domain: i64,
    /// The vCPU that runs from then on.
    pub to_vcpu: i64,
}

/// A value of the scheduler's state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct State {
    /// Time of the report, ns.
    pub time_ns: i64,
    /// The domain's number (−1: a pCPU).
    pub domain: i64,
    /// The vCPU's number (−1: the domain as a whole).
    pub vcpu: i64,
    /// The name of the value.
    pub key: String,
    /// The value.
    pub value: i64,
}

impl State {
    /// Whether the policy reported the same.
    pub fn equals(&self, row: &StateRow) -> bool {
        (self.time_ns, self.domain, self.vcpu, self.value) == (row.time.ns(), row.domain, row.vcpu, row.value)
            && self.key == row.key
    }
}

impl From<&StateRow> for State {
    fn from(row: &StateRow) -> Self {
        let key = row.key.to_owned();
        State { time_ns: row.time.ns(), domain: row.domain, vcpu: row.vcpu, key, value: row.value }
    }
}

/// Reads the decisions.
///
/// # Errors
/// The problem, with its line.
pub fn read_trace(path: &Path) -> Result<Vec<Decision>, String> {
    let parse = |line: &str| {
        let mut fields = line.split(',').map(|field| field.parse::<i64>().ok());
        let mut next = || fields.next().flatten();
        let decision = Decision {
            time_ns: next()?,
            pcpu: next()?,
            from_domain: next()?,
            from_vcpu: next()?,
            to_domain: next()?,
            to_vcpu: next()?,
        };
        fields.next().is_none().then_some(decision)
    };
    read_rows(path, |header| header == TRACE_HEADER, parse)
}

/// Reads the state.
///
/// # Errors
/// The problem, with its line.
pub fn read_state(path: &Path) -> Result<Vec<State>, String> {
    let parse = |line: &str| {
        let mut fields = line.split(',');
        let mut number = || fields.next()?.parse().ok();
        let (time_ns, domain, vcpu) = (number()?, number()?, number()?);
        let key = fields.next()?.to_owned();
        let value = fields.next()?.parse().ok()?;
        fields.next().is_none().then_some(State { time_ns, domain, vcpu, key, value })
    };
    read_rows(path, |header| header.starts_with(STATE_COLUMNS), parse)
}

fn read_rows<T>(
    path: &Path,
    is_header: impl Fn(&str) -> bool,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, String> {
    let file = File::open(path).map_err(|failure| failure.to_string())?;
    let mut lines = BufReader::new(GzDecoder::new(file).take(UNCOMPRESSED_MAX));
    let mut rows = Vec::new();
    let (mut line, mut number, mut size) = (String::new(), 0, 0);
    loop {
        line.clear();
        number += 1;
        let read = lines.read_line(&mut line).map_err(|failure| format!("line {number}: {failure}"))?;
        size += read as u64;
        if read == 0 {
            break;
        }
        let text = line.trim_end();
        if number == 1 {
            if !is_header(text) {
                return Err(format!("line 1: found `{text:.80}`, which is not the header"));
            }
        } else {
            rows.push(
                parse(text)
                    .ok_or_else(|| format!("line {number}: found `{text:.80}`, which is not a row"))?,
            );
        }
    }
    if size >= UNCOMPRESSED_MAX {
        return Err(format!("unpacks to more than {UNCOMPRESSED_MAX} bytes"));
    }
    if number == 1 {
        return Err("is empty; a header is needed".into());
    }
    Ok(rows)
}
