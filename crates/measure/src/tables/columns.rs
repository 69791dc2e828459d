//! Result tables as row types: each field of the type is a column of the table, documented there.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, StringArray, UInt32Array, UInt64Array};

/// A type that a column can hold.
pub trait Cell: Sized {
    /// The column with these values.
    fn array(values: impl Iterator<Item = Self>) -> ArrayRef;
}

macro_rules! cells {
    ($($cell:ty => $array:ty),* $(,)?) => {$(
        impl Cell for $cell {
            fn array(values: impl Iterator<Item = Self>) -> ArrayRef {
                Arc::new(<$array>::from_iter(values.map(Some)))
            }
        }
        impl Cell for Option<$cell> {
            fn array(values: impl Iterator<Item = Self>) -> ArrayRef {
                Arc::new(<$array>::from_iter(values))
            }
        }
    )*};
}
cells!(
    bool => BooleanArray, u32 => UInt32Array, u64 => UInt64Array, i64 => Int64Array, f64 => Float64Array,
    String => StringArray, &'static str => StringArray,
);

/// A table's columns.
#[derive(Clone, Copy, Debug)]
pub struct Columns {
    /// The table's name.
    pub table: &'static str,
    /// The content of its rows.
    pub doc: &'static str,
    /// The columns in order: name and documentation.
    pub columns: &'static [(&'static str, &'static str)],
}

/// Declares a row type; each field is a column of the same name, its documentation that of the column.
macro_rules! columns {
    (
        $(#[doc = $doc:literal])*
        pub struct $row:ident in $table:literal {
            $($(#[doc = $column_doc:literal])* pub $column:ident: $cell:ty,)*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Default, PartialEq, Debug)]
        pub struct $row {
            $($(#[doc = $column_doc])* pub $column: $cell,)*
        }

        impl $row {
            /// The table's columns.
            pub const COLUMNS: $crate::tables::columns::Columns = $crate::tables::columns::Columns {
                table: $table,
                doc: concat!($($doc),*),
                columns: &[$((stringify!($column), concat!($($column_doc),*))),*],
            };
        }

        impl $crate::tables::Record for $row {
            fn batch(rows: &[Self]) -> arrow_array::RecordBatch {
                arrow_array::RecordBatch::try_from_iter_with_nullable([
                    $((
                        stringify!($column),
                        <$cell as $crate::tables::columns::Cell>::array(rows.iter().map(|row| row.$column.clone())),
                        true,
                    )),*
                ])
                .expect("all columns of a table are equally long")
            }
        }
    };
}
pub(crate) use columns;
