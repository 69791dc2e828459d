//! A file of events, read back.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch, StringArray};

/// A vCPU (domain −1: idle), a domain (vCPU −1), a pCPU (domain −1, vCPU its number).
pub type Thing = (i64, i64);

/// An event.
pub struct Event<'a> {
    pub time_ns: i64,
    pub kind: &'a str,
    pub pcpu: Option<u32>,
    pub whose: Option<Thing>,
    pub by: Option<Thing>,
    pub what: Option<&'a str>,
    pub value: Option<i64>,
    pub id: Option<u64>,
}

/// The columns of a batch of events.
pub struct Columns<'a> {
    time_ns: &'a arrow_array::Int64Array,
    kind: StringArray,
    pcpu: &'a arrow_array::UInt32Array,
    numbers: [&'a arrow_array::Int64Array; 5],
    what: StringArray,
    id: &'a arrow_array::UInt64Array,
}

impl<'a> Columns<'a> {
    pub fn of(batch: &'a RecordBatch) -> Option<Self> {
        let numbers = |name: &str| batch.column_by_name(name)?.as_primitive_opt::<Int64Type>();
        // Texts of other writers have wider offsets.
        let text = |name: &str| {
            let column = batch.column_by_name(name)?;
            let wide = || column.as_string_opt::<i64>().map(|wide| wide.iter().collect());
            column.as_string_opt::<i32>().cloned().or_else(wide)
        };
        Some(Columns {
            time_ns: numbers("time_ns")?,
            kind: text("kind")?,
            pcpu: batch.column_by_name("pcpu")?.as_primitive_opt::<UInt32Type>()?,
            numbers: [
                numbers("domain")?,
                numbers("vcpu")?,
                numbers("by_domain")?,
                numbers("by_vcpu")?,
                numbers("value")?,
            ],
            what: text("what")?,
            id: batch.column_by_name("id")?.as_primitive_opt::<UInt64Type>()?,
        })
    }

    pub fn at(&self, i: usize) -> Event<'_> {
        let [domain, vcpu, by_domain, by_vcpu, value] =
            self.numbers.map(|column| column.is_valid(i).then(|| column.value(i)));
        let thing = |domain: Option<i64>, vcpu: Option<i64>| Some((domain?, vcpu.unwrap_or(-1)));
        Event {
            time_ns: self.time_ns.value(i),
            kind: self.kind.value(i),
            pcpu: self.pcpu.is_valid(i).then(|| self.pcpu.value(i)),
            whose: thing(domain, vcpu),
            by: thing(by_domain, by_vcpu),
            what: self.what.is_valid(i).then(|| self.what.value(i)),
            value,
            id: self.id.is_valid(i).then(|| self.id.value(i)),
        }
    }
}
