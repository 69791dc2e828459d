//! The values of fields: how a file states each, which are allowed, and the default. [`record!`](crate::text::record) declares them.

use std::marker::PhantomData;
use std::ops::RangeInclusive;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::json;
use vcpulab_host::{Span, Time};
use vcpulab_spec::limits::RATE_PER_S_MAX;

use crate::text::problem::{Place, Problem, Report, did_you_mean};
use crate::text::read::{At, Field, Named, Node, Number, OneOrMany, Read, Reader, WordOrList};
use crate::text::units::{CpuList, Duration, Size};

/// The type of a field once it is checked.
pub(crate) trait Value {
    /// The type that is read from a file.
    type Raw;
}

/// A value that a table states by itself: one that can have a default.
pub(crate) trait Scalar: Value<Raw: Serialize> + Sized {
    /// The value as a file states it.
    fn raw(&self) -> Self::Raw;

    /// The value as a sentence states it.
    fn in_words(&self) -> String;

    /// The value that a file states; `None` if there is no such value, which is reported.
    fn checked(raw: &Self::Raw, place: &Place, report: &mut Report<'_>) -> Option<Self>;
}

/// A raw type with an order, which can be limited.
pub(crate) trait Bounded: Copy + PartialOrd + Serialize {
    /// The values from `least` to `most`, in words.
    fn allowed(least: Self, most: Self) -> String;

    /// The keywords of a schema for the least and the greatest value.
    const LIMITS: [&str; 2];

    /// Adds the limits to the schema of the type.
    fn limit(schema: &mut Schema, least: Self, most: Self) {
        for (keyword, limit) in Self::LIMITS.iter().zip([least, most]) {
            schema.insert((*keyword).to_owned(), json!(limit));
        }
    }
}

/// A type whose values are words in a file.
pub(crate) trait Words: Copy + PartialEq + 'static {
    /// The words with their values. A value may have no word.
    fn words() -> &'static [(&'static str, Self)];
}

/// A word of a file for a value of type `T`.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct Word<T> {
    pub text: String,
    #[serde(skip)]
    value: PhantomData<T>,
}

impl<T: Words> Word<T> {
    /// The word for a value, if it has one.
    pub fn of(value: T) -> Option<Self> {
        let (text, _) = T::words().iter().find(|(_, candidate)| *candidate == value)?;
        Some(Word { text: (*text).to_owned(), value: PhantomData })
    }
}

impl<T> Read for Word<T> {
    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        Some(Word { text: String::read(node, reader)?, value: PhantomData })
    }
}

impl<T: Words> JsonSchema for Word<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Word".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words: Vec<&str> = T::words().iter().map(|(word, _)| *word).collect();
        json_schema!({ "type": "string", "enum": words })
    }
}

impl<T: Words> Value for T {
    type Raw = Word<T>;
}

impl<T: Words> Scalar for T {
    fn raw(&self) -> Word<T> {
        Word::of(*self).expect("a default has a word")
    }

    fn in_words(&self) -> String {
        format!("`{}`", self.raw().text)
    }

    fn checked(raw: &Word<T>, place: &Place, report: &mut Report<'_>) -> Option<T> {
        choice(&raw.text, T::words(), place, report)
    }
}

/// The value of a word in a list of words; an unknown word is reported.
pub(crate) fn choice<T: Copy>(
    text: &str,
    words: &[(&str, T)],
    place: &Place,
    report: &mut Report<'_>,
) -> Option<T> {
    let value = words.iter().find(|(word, _)| *word == text);
    if value.is_none() {
        let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let problem = Problem::not_allowed(format!("one of {}", names.join(", ")));
        report.error(place, problem.maybe_hint(did_you_mean(text, names)));
    }
    value.map(|(_, value)| *value)
}

/// Declares scalars: `TYPE as RAW: to the raw value, from the raw value, to words;`.
macro_rules! scalars {
    ($($type:ty as $raw:ty: $to_raw:expr, $from_raw:expr, $in_words:expr;)*) => {$(
        impl Value for $type {
            type Raw = $raw;
        }

        impl Scalar for $type {
            fn raw(&self) -> $raw {
                let to_raw: fn($type) -> $raw = $to_raw;
                to_raw(self.clone())
            }

            fn in_words(&self) -> String {
                let in_words: fn($type) -> String = $in_words;
                in_words(self.clone())
            }

            fn checked(raw: &$raw, _: &Place, _: &mut Report<'_>) -> Option<$type> {
                let from_raw: fn($raw) -> $type = $from_raw;
                Some(from_raw(raw.clone()))
            }
        }
    )*};
}

scalars! {
    bool as bool: |value| value, |raw| raw, |value| format!("`{value}`");
    i64 as i64: |value| value, |raw| raw, |value| value.to_string();
    f64 as Number: Number, |raw| raw.0, |value| value.to_string();
    Size as Size: |value| value, |raw| raw, |value| format!("`{value}`");
    String as String: |value| value, |raw| raw, |value| format!("`{value}`");
    CpuList as CpuList: |value| value, |raw| raw, |value| format!("`{value}`");
    Span as Duration: Duration, |raw| raw.0, |value| match value {
        Span::ZERO => "none".to_owned(),
        value => format!("`{}`", Duration(value)),
    };
    Time as Duration: Duration::from, |raw| Time::ZERO + raw.0, |value| match value {
        Time::ZERO => "the start of the host".to_owned(),
        value => format!("`{}`", Duration::from(value)),
    };
}

/// Declares scalars that are integers with fewer bits than an integer of a file.
macro_rules! narrow_integers {
    ($($type:ty)*) => {$(
        impl Value for $type {
            type Raw = i64;
        }

        impl Scalar for $type {
            fn raw(&self) -> i64 {
                i64::from(*self)
            }

            fn in_words(&self) -> String {
                self.to_string()
            }

            fn checked(raw: &i64, place: &Place, report: &mut Report<'_>) -> Option<$type> {
                let value = <$type>::try_from(*raw).ok();
                if value.is_none() {
                    let allowed = i64::allowed(<$type>::MIN.into(), <$type>::MAX.into());
                    report.error(place, Problem::not_allowed(allowed));
                }
                value
            }
        }
    )*};
}

narrow_integers! { u32 u8 i8 }

/// Declares conversions of checked values to fields: `TYPE as RAW: the raw value, if there is one;`.
macro_rules! written {
    ($($type:ty as $raw:ty $(where $param:ident)?: $to_raw:expr;)*) => {$(
        impl$(<$param: Words>)? From<$type> for Field<$raw> {
            fn from(value: $type) -> Self {
                Some(value).into()
            }
        }

        impl$(<$param: Words>)? From<Option<$type>> for Field<$raw> {
            fn from(value: Option<$type>) -> Self {
                value.and_then($to_raw).into()
            }
        }
    )*};
}

written! {
    u32 as i64: |value| Some(value.raw());
    u8 as i64: |value| Some(value.raw());
    i8 as i64: |value| Some(value.raw());
    f64 as Number: |value| Some(value.raw());
    Span as Duration: |value| Some(value.raw());
    Time as Duration: |value| Some(value.raw());
    T as Word<T> where T: Word::of;
}

/// Declares values that are read as they are.
macro_rules! as_read {
    ($($type:ty $(where $param:ident)?;)*) => {$(
        impl$(<$param>)? Value for $type {
            type Raw = $type;
        }
    )*};
}

as_read! {
    Named<T> where T;
    Vec<At<T>> where T;
    OneOrMany<T> where T;
    WordOrList<T> where T;
}

impl Bounded for i64 {
    const LIMITS: [&str; 2] = ["minimum", "maximum"];

    fn allowed(least: i64, most: i64) -> String {
        format!("an integer from {least} to {most}")
    }
}

/// Numbers are rates per second.
impl Bounded for Number {
    const LIMITS: [&str; 2] = ["minimum", "maximum"];

    fn allowed(_: Number, _: Number) -> String {
        format!("a number above 0 (at least one a day) up to {RATE_PER_S_MAX} per second")
    }
}

impl Bounded for Duration {
    const LIMITS: [&str; 2] = ["formatMinimum", "formatMaximum"];

    fn allowed(least: Duration, most: Duration) -> String {
        format!("a time span from {least} to {most}")
    }
}

impl Bounded for Size {
    const LIMITS: [&str; 2] = ["formatMinimum", "formatMaximum"];

    fn allowed(least: Size, most: Size) -> String {
        format!("a size from {least} to {most}")
    }

    fn limit(schema: &mut Schema, least: Size, most: Size) {
        if let Some(bytes) = schema.pointer_mut("/anyOf/0") {
            (bytes["minimum"], bytes["maximum"]) = (json!(least.0), json!(most.0));
        }
        schema.insert("formatMinimum".to_owned(), json!(least));
        schema.insert("formatMaximum".to_owned(), json!(most));
    }
}

/// The value of a field; `None` if it is not given, or outside of the range, which is reported.
pub(crate) fn limited<V: Scalar<Raw: Bounded>>(
    field: &Field<V::Raw>,
    range: RangeInclusive<V>,
    report: &mut Report<'_>,
) -> Option<V> {
    within(field.0.as_ref()?, range, report)
}

/// The value at a place; `None` if it is outside of the range, which is reported.
pub(crate) fn within<V: Scalar<Raw: Bounded>>(
    At { value, place }: &At<V::Raw>,
    range: RangeInclusive<V>,
    report: &mut Report<'_>,
) -> Option<V> {
    let (least, most) = (range.start().raw(), range.end().raw());
    if (least..=most).contains(value) {
        return V::checked(value, place, report);
    }
    report.error(place, Problem::not_allowed(V::Raw::allowed(least, most)));
    None
}

/// The value of a field; `None` if it is not given, or there is no such value, which is reported.
pub(crate) fn scalar<V: Scalar>(field: &Field<V::Raw>, report: &mut Report<'_>) -> Option<V> {
    let At { value, place } = field.0.as_ref()?;
    V::checked(value, place, report)
}

/// Adds the limits of a field to its schema.
pub(crate) fn describe_limits<V: Scalar<Raw: Bounded>>(schema: &mut Schema, range: RangeInclusive<V>) {
    V::Raw::limit(schema, range.start().raw(), range.end().raw());
}

/// Adds the default of a field to its schema.
pub(crate) fn describe_default<V: Scalar>(schema: &mut Schema, default: V) {
    describe_usual(schema, &default.in_words());
    schema.insert("default".to_owned(), json!(default.raw()));
}

/// Adds to the description of a field what the default is.
pub(crate) fn describe_usual(schema: &mut Schema, usual: &str) {
    let description = schema.get("description").and_then(|text| text.as_str()).unwrap_or_default();
    let description = format!("{description} Default: {usual}.");
    schema.insert("description".to_owned(), description.into());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_integer_with_too_many_bits_is_reported_and_never_cut() {
        let place = Place { span: None, field: "host.pcpus".to_owned() };
        let mut report = Report::new("f.toml", "");
        assert_eq!(u32::checked(&i64::from(u32::MAX), &place, &mut report), Some(u32::MAX));
        assert_eq!(i8::checked(&-128, &place, &mut report), Some(-128));
        assert!(!report.has_errors());
        assert_eq!(u32::checked(&(1 << 32), &place, &mut report), None);
        assert_eq!(u8::checked(&-1, &place, &mut report), None);
        assert_eq!(i8::checked(&128, &place, &mut report), None);
        let problems = report.into_problems().to_string();
        for allowed in ["from 0 to 4294967295", "from 0 to 255", "from -128 to 127"] {
            assert!(problems.contains(allowed), "{problems}");
        }
    }
}
