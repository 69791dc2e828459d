//! Declarations of tables: from one of [`record!`] follow the reader (which reports every unknown, missing and mistyped field
//! and continues), the checks of single values, the writer, and the JSON schema.

/// A field's name in the file: without Rust's mark for a name that is also a keyword.
pub(crate) const fn plain(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}

/// Declares the fields of a table: `record! { struct Name { field: Type = DEFAULT; RANGE, } required [field] params params }`.
///
/// The type is that of the checked value. What follows it is in the schema and in the reference, and makes a method of the
/// field's name, which checks the value:
/// * `= DEFAULT`: the value of a field that is not given. The method returns it for a faulty value, too, which is reported.
/// * `=> "WORDS"`: the default, in words, where it depends on other fields: an argument of the method if there is a range.
/// * `; RANGE`: the values allowed. Without `= DEFAULT`, the method returns `None` for a value outside of it, which is
///   reported, and for a field that is not given and has no default.
/// * `; RANGE => most`: the greatest value depends on other fields: another argument of the method.
///
/// With `params`, the scheduler's parameters may be in the table too: `RawParams`, which the module imports.
macro_rules! record {
    (@limits $type:ty, $range:expr) => {
        |schema: &mut schemars::Schema| $crate::text::value::describe_limits::<$type>(schema, $range)
    };
    (@default $type:ty, $default:expr) => {
        |schema: &mut schemars::Schema| $crate::text::value::describe_default::<$type>(schema, $default)
    };
    (@usual $usual:literal) => {
        |schema: &mut schemars::Schema| $crate::text::value::describe_usual(schema, $usual)
    };
    (@first $first:ty, $second:literal) => { $first };
    (@method $field:ident: $type:ty = $default:expr; $range:expr $(=> $most:ident)?) => {
        pub fn $field(&self, $($most: $type,)? report: &mut $crate::text::problem::Report<'_>) -> $type {
            let range: std::ops::RangeInclusive<$type> = $range;
            $(let range = *range.start()..=$most;)?
            $crate::text::value::limited(&self.$field, range, report).unwrap_or($default)
        }
    };
    (@method $field:ident: $type:ty $(=> $usual:literal)?; $range:expr $(=> $most:ident)?) => {
        pub fn $field(
            &self,
            $(usual: $crate::text::record::record!(@first $type, $usual),)?
            $($most: $type,)?
            report: &mut $crate::text::problem::Report<'_>,
        ) -> Option<$type> {
            let range: std::ops::RangeInclusive<$type> = $range;
            $(let range = *range.start()..=$most;)?
            $(if self.$field.is_none() { let _ = $usual; return Some(usual); })?
            $crate::text::value::limited(&self.$field, range, report)
        }
    };
    (@method $field:ident: $type:ty = $default:expr) => {
        pub fn $field(&self, report: &mut $crate::text::problem::Report<'_>) -> $type {
            $crate::text::value::scalar(&self.$field, report).unwrap_or($default)
        }
    };
    (@method $($declaration:tt)*) => {};
    (
        $(#[$meta:meta])*
        struct $name:ident { $(
            $(#[$doc:meta])*
            $field:ident: $type:ty $(= $default:expr)? $(=> $usual:literal)? $(; $range:expr $(=> $most:ident)?)?,
        )* }
        $(required [$($required:ident),*])?
        $(params $params:ident)?
    ) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Debug, Default, serde::Serialize, schemars::JsonSchema)]
        #[schemars(deny_unknown_fields $(, extend("required" = [$(stringify!($required)),*]))?)]
        pub(crate) struct $name {
            $(
                $(#[schemars(transform = $crate::text::record::record!(@limits $type, $range))])?
                $(#[schemars(transform = $crate::text::record::record!(@default $type, $default))])?
                $(#[schemars(transform = $crate::text::record::record!(@usual $usual))])?
                $(#[$doc])*
                #[serde(default, skip_serializing_if = "crate::text::read::Field::is_none")]
                pub $field: $crate::text::read::Field<<$type as $crate::text::value::Value>::Raw>,
            )*
            $(#[serde(flatten)] #[schemars(skip)] pub $params: RawParams,)?
        }

        #[allow(dead_code, reason = "the range of some fields depends on so much that their check is code")]
        impl $name {
            $($crate::text::record::record! {
                @method $field: $type $(= $default)? $(=> $usual)? $(; $range $(=> $most)?)?
            })*
        }

        impl $crate::text::value::Value for $name {
            type Raw = $name;
        }

        impl $crate::text::read::ReadTable for $name {
            const FIELDS: &'static [&'static str] = &[$($crate::text::record::plain(stringify!($field))),*];

            #[allow(unused_mut, reason = "a table may have no fields")]
            fn read_table(
                table: &toml::de::DeTable<'_>,
                place: &$crate::text::problem::Place,
                kinds: Option<&$crate::text::read::Kinds>,
                reader: &mut $crate::text::read::Reader<'_>,
            ) -> Self {
                use $crate::text::read::Field;
                use $crate::text::record::plain;
                let mut record = Self::default();
                for (key, node) in table {
                    match reader.name_now(key, Self::FIELDS) {
                        tag if kinds.is_some_and(|kinds| kinds.tag == tag) => {}
                        $(name if name == plain(stringify!($field)) => record.$field = Field(reader.field(name, node)),)*
                        $(_ => record.$params.0.extend(reader.named(key, node)),)?
                        #[allow(unreachable_patterns, reason = "with `params` any name is read")]
                        _ => reader.unknown(key, Self::FIELDS, kinds),
                    }
                }
                reader.require(table, place, &[$($(stringify!($required)),*)?]);
                record
            }
        }

        impl $crate::text::read::Read for $name {
            fn read(
                node: &$crate::text::read::Node<'_>,
                reader: &mut $crate::text::read::Reader<'_>,
            ) -> Option<Self> {
                let place = reader.place(node);
                let table = reader.table(node)?;
                Some($crate::text::read::ReadTable::read_table(table, &place, None, reader))
            }
        }
    };
}

/// Declares a table whose fields depend on one of them: `tagged! { enum Name by "kind" { "word" => Variant(Record), } }`.
macro_rules! tagged {
    (
        $(#[$meta:meta])*
        enum $name:ident by $tag:literal { $($(#[$doc:meta])* $word:literal => $variant:ident($record:ident),)* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Debug, serde::Serialize, schemars::JsonSchema)]
        #[serde(tag = $tag)]
        pub(crate) enum $name {
            $($(#[$doc])* #[serde(rename = $word)] $variant($record),)*
        }

        impl $crate::text::read::Read for $name {
            fn read(
                node: &$crate::text::read::Node<'_>,
                reader: &mut $crate::text::read::Reader<'_>,
            ) -> Option<Self> {
                use $crate::text::read::{Kinds, ReadTable};
                const KINDS: Kinds =
                    Kinds { tag: $tag, fields: &[$(($word, <$record as ReadTable>::FIELDS)),*] };
                let place = reader.place(node);
                let table = reader.table(node)?;
                let kind = reader.kind(table, &place, &KINDS)?;
                match kind.value.as_str() {
                    $($word => {
                        Some($name::$variant($record::read_table(table, &place, Some(&KINDS), reader)))
                    })*
                    _ => None,
                }
            }
        }
    };
}

pub(crate) use {record, tagged};
