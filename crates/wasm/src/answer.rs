//! Result tables as bytes that a browser reads without copying.
//!
//! A line of JSON says what follows; it ends at a multiple of eight bytes. Then come the columns of all tables, one after the other,
//! each value a little-endian float of eight bytes: a number; of text, its place among the column's `words`; of a flag, 0 or 1;
//! NaN where there is none. Numbers are whole up to 2^53, which is 104 days in nanoseconds.

use std::collections::BTreeMap;
use std::io;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, RecordBatch};
use serde_json::{Value, json};
use vcpulab_measure::{Results, Tabular, each_table};

macro_rules! answer {
    ($($(#[doc = $doc:literal])* $table:ident: $kept:ident<$row:ty>,)*) => {
        /// All tables of a run.
        ///
        /// # Errors
        /// What is kept elsewhere cannot be read.
        pub fn of(results: Results) -> io::Result<Vec<u8>> {
            let (mut tables, mut values) = (Vec::new(), Vec::new());
            $(tables.push(table(stringify!($table), results.$table, &mut values)?);)*
            let says = json!({
                "tables": tables,
                "not_attributed": results.not_attributed.map(|why| why.to_string()),
                "untraced": results.untraced,
                "rejected_actions": results.rejected_actions,
            });
            let mut bytes = says.to_string().into_bytes();
            bytes.resize((bytes.len() + 1).next_multiple_of(8) - 1, b' ');
            bytes.push(b'\n');
            bytes.extend(values.into_iter().flat_map(f64::to_le_bytes));
            Ok(bytes)
        }
    };
}
each_table!(answer);

/// Adds the values of a table, and their description.
fn table(name: &str, rows: impl Tabular, values: &mut Vec<f64>) -> io::Result<Value> {
    let parts = rows.in_parts();
    let parts: Vec<RecordBatch> = parts.iter().map(|part| part.read()).collect::<io::Result<_>>()?;
    let count: usize = parts.iter().map(RecordBatch::num_rows).sum();
    let schema = parts[0].schema();
    let columns = schema.fields().iter().enumerate().map(|(index, field)| {
        let mut words = Words::default();
        for part in &parts {
            column(part.column(index), &mut words, values);
        }
        match parts[0].column(index).as_string_opt::<i32>() {
            Some(_) => json!({ "name": field.name(), "words": words.in_order }),
            None => json!({ "name": field.name() }),
        }
    });
    let columns: Vec<Value> = columns.collect();
    Ok(json!({ "name": name, "rows": count, "columns": columns }))
}

/// The distinct texts of a column, in the order in which they occur.
#[derive(Default)]
struct Words {
    in_order: Vec<String>,
    places: BTreeMap<String, usize>,
}

impl Words {
    fn place(&mut self, word: &str) -> f64 {
        if let Some(&place) = self.places.get(word) {
            return place as f64;
        }
        let place = self.in_order.len();
        self.places.insert(word.to_owned(), place);
        self.in_order.push(word.to_owned());
        place as f64
    }
}

fn column(array: &ArrayRef, words: &mut Words, values: &mut Vec<f64>) {
    macro_rules! numbers {
        ($($kind:ty),*) => {$(
            if let Some(array) = array.as_primitive_opt::<$kind>() {
                return values.extend(array.iter().map(|value| value.map_or(f64::NAN, |value| value as f64)));
            }
        )*};
    }
    numbers!(Int64Type, UInt64Type, UInt32Type, Float64Type);
    if let Some(flags) = array.as_boolean_opt() {
        return values
            .extend(flags.iter().map(|flag| flag.map_or(f64::NAN, |flag| f64::from(u8::from(flag)))));
    }
    let texts = array.as_string::<i32>();
    values.extend(texts.iter().map(|text| text.map_or(f64::NAN, |text| words.place(text))));
}
