//! From a TOML document to values that remember where they stood.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::text::limits::FILE_BYTES_MAX;
use crate::text::problem::{Place, Problem, Problems, Report, did_you_mean, join, whole_file};
use crate::text::units::{CpuList, Duration, Size};

/// A value and where it stands.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[serde(transparent)]
pub(crate) struct At<T> {
    pub value: T,
    #[serde(skip)]
    pub place: Place,
}

impl<T> From<T> for At<T> {
    /// A value that is in no file.
    fn from(value: T) -> Self {
        At { value, place: Place::default() }
    }
}

/// Declares that the schema of these types is that of the value inside.
macro_rules! schema_of_value {
    ($($type:ident)*) => {$(
        impl<T: JsonSchema> JsonSchema for $type<T> {
            fn inline_schema() -> bool {
                T::inline_schema()
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                T::schema_name()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                T::json_schema(generator)
            }
        }
    )*};
}

schema_of_value! { At Field }

pub(crate) type Node<'i> = Spanned<DeValue<'i>>;

/// Reads one document.
pub(crate) struct Reader<'t> {
    pub report: Report<'t>,
    path: String,
}

/// A type that is read from a value.
pub(crate) trait Read: Sized {
    /// Reads it; what is wrong is reported, and `None` then.
    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self>;
}

/// A type that is read from a table.
pub(crate) trait ReadTable: Sized {
    /// The names of its fields.
    const FIELDS: &'static [&'static str];

    /// Reads it. The field `tag` has been read already; `elsewhere` are the fields of the other kinds of this table.
    fn read_table(table: &DeTable<'_>, place: &Place, kinds: Option<&Kinds>, reader: &mut Reader<'_>)
    -> Self;
}

/// For a table whose fields depend on its kind: the field that says which, and the fields of all kinds.
pub(crate) struct Kinds {
    pub tag: &'static str,
    pub fields: &'static [(&'static str, &'static [&'static str])],
}

/// Greatest number of syntax errors that are reported, the first ones: a text with more is hardly a scenario.
const SYNTAX_ERRORS_MAX: usize = 8;

/// A TOML document, and a reader for what is in it.
///
/// # Errors
/// It is too long, or no TOML: what the rest of such a file means is anyone's guess, so nothing more is said about it.
pub(crate) fn document<'t>(text: &'t str, file: &'t str) -> Result<(Node<'t>, Reader<'t>), Problems> {
    if text.len() > FILE_BYTES_MAX {
        let message = format!("the file has {} bytes; allowed: at most {FILE_BYTES_MAX}", text.len());
        return Err(whole_file(file, message));
    }
    let mut report = Report::new(file, text);
    let (document, syntax_errors) = DeTable::parse_recoverable(text);
    if !syntax_errors.is_empty() {
        report.leave_out(syntax_errors.len().saturating_sub(SYNTAX_ERRORS_MAX));
        for error in syntax_errors.into_iter().take(SYNTAX_ERRORS_MAX) {
            let place = Place { span: error.span(), field: String::new() };
            report.error_with(&place, || Problem::says(format!("not valid TOML: {}", error.message())));
        }
        return Err(report.finish().expect_err("there are syntax errors"));
    }
    Ok((Spanned::new(0..0, DeValue::Table(document.into_inner())), Reader::new(report)))
}

/// Names that fields had, and their names now.
const FORMER: [(&str, &str); 1] = [("card", "device")];

impl<'t> Reader<'t> {
    pub fn new(report: Report<'t>) -> Self {
        Reader { report, path: String::new() }
    }

    pub fn place(&self, node: &Node<'_>) -> Place {
        Place { span: Some(node.span()), field: self.path.clone() }
    }

    /// Reads a part of what is being read now.
    fn within<T>(&mut self, path: String, read: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.path, path);
        let value = read(self);
        self.path = outer;
        value
    }

    /// A field whose name is not known beforehand.
    pub fn named<T: Read>(
        &mut self,
        key: &Spanned<DeString<'_>>,
        node: &Node<'_>,
    ) -> Option<(At<String>, At<T>)> {
        let name = key.get_ref();
        let value = self.field(name, node)?;
        let place = Place { span: Some(key.span()), field: join(&self.path, name) };
        Some((At { value: name.clone().into_owned(), place }, value))
    }

    pub fn field<T: Read>(&mut self, name: &str, node: &Node<'_>) -> Option<At<T>> {
        self.within(join(&self.path, name), |reader| {
            Some(At { value: T::read(node, reader)?, place: reader.place(node) })
        })
    }

    fn wrong(&mut self, node: &Node<'_>, allowed: &str) {
        let place = self.place(node);
        let problem = Problem::not_allowed(allowed);
        let problem = match node.get_ref() {
            DeValue::Table(_) => problem.found("a table"),
            DeValue::Array(_) => problem.found("a list"),
            _ => problem,
        };
        self.report.error(&place, problem);
    }

    pub fn table<'n, 'i>(&mut self, node: &'n Node<'i>) -> Option<&'n DeTable<'i>> {
        let table = node.get_ref().as_table();
        if table.is_none() {
            self.wrong(node, "a table");
        }
        table
    }

    /// Reports those of these names that are not in the table.
    pub fn require(&mut self, table: &DeTable<'_>, place: &Place, names: &[&str]) {
        for name in names.iter().filter(|name| !table.iter().any(|(key, _)| key.get_ref() == *name)) {
            self.report.error(&place.member(name), Problem::says("required, but not given"));
        }
    }

    /// The name of a field as it is now: files may have one of earlier times.
    pub fn name_now<'k>(&mut self, key: &'k Spanned<DeString<'_>>, fields: &[&'static str]) -> &'k str {
        let name: &str = key.get_ref();
        let Some((_, now)) = FORMER.iter().find(|(then, now)| *then == name && fields.contains(now)) else {
            return name;
        };
        let place = Place { span: Some(key.span()), field: join(&self.path, name) };
        self.report.warning(&place, Problem::says(format!("now called `{now}`, and read as that")));
        now
    }

    pub fn unknown(&mut self, key: &Spanned<DeString<'_>>, fields: &[&'static str], kinds: Option<&Kinds>) {
        let name: &str = key.get_ref();
        let place = Place { span: Some(key.span()), field: join(&self.path, name) };
        self.report.error_with(&place, || {
            let other = kinds.and_then(|kinds| {
                let (kind, _) = kinds.fields.iter().find(|(_, fields)| fields.contains(&name))?;
                Some(format!("`{name}` belongs to {} `{kind}`", kinds.tag))
            });
            let all = kinds.map(|kinds| kinds.tag).into_iter().chain(fields.iter().copied());
            let hint = other.or_else(|| did_you_mean(name, all.clone()));
            let hint = hint.unwrap_or_else(|| format!("known here: {}", all.collect::<Vec<_>>().join(", ")));
            Problem::says("unknown field").found(name).hint(hint)
        });
    }

    /// Reads the field `tag` of a table, which must be one of these words.
    pub fn kind(&mut self, table: &DeTable<'_>, place: &Place, kinds: &Kinds) -> Option<At<String>> {
        let Some((_, node)) = table.iter().find(|(key, _)| key.get_ref() == kinds.tag) else {
            self.require(table, place, &[kinds.tag]);
            return None;
        };
        let kind: At<String> = self.field(kinds.tag, node)?;
        if kinds.fields.iter().any(|(word, _)| *word == kind.value) {
            return Some(kind);
        }
        self.report.error_with(&kind.place, || {
            let words: Vec<&str> = kinds.fields.iter().map(|(word, _)| *word).collect();
            let problem = Problem::not_allowed(format!("one of {}", words.join(", ")));
            problem.maybe_hint(did_you_mean(&kind.value, words))
        });
        None
    }
}

/// A float or an integer.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub(crate) struct Number(pub f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Whole numbers as people write them: 1100, not 1100.0.
        if self.0.fract() == 0.0 && self.0.abs() < 9e15 {
            serializer.serialize_i64(self.0 as i64)
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}

impl JsonSchema for Number {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Number".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": "number" })
    }
}

macro_rules! read_scalar {
    ($($type:ty: $allowed:expr, $pattern:pat => $value:expr;)*) => {$(
        impl Read for $type {
            fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
                let value = match node.get_ref() {
                    $pattern => $value,
                    _ => None,
                };
                if value.is_none() {
                    reader.wrong(node, $allowed);
                }
                value
            }
        }
    )*};
}

read_scalar! {
    bool: "true or false", DeValue::Boolean(value) => Some(*value);
    i64: "an integer", DeValue::Integer(value) => i64::from_str_radix(value.as_str(), value.radix()).ok();
    String: "a string", DeValue::String(value) => Some(value.clone().into_owned());
    Duration: Duration::ALLOWED, DeValue::String(value) => Duration::parse(value);
    CpuList: CpuList::ALLOWED, DeValue::String(value) => CpuList::parse(value);
}

impl Read for Number {
    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let value = match node.get_ref() {
            DeValue::Integer(value) if value.radix() == 10 => value.as_str().parse().ok(),
            DeValue::Float(value) => value.as_str().parse::<f64>().ok(),
            _ => None,
        };
        let value = value.filter(|value| value.is_finite());
        if value.is_none() {
            reader.wrong(node, "a number");
        }
        value.map(Number)
    }
}

impl Read for Size {
    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let value = match node.get_ref() {
            DeValue::Integer(value) => i64::from_str_radix(value.as_str(), value.radix()).ok().map(Size),
            DeValue::String(value) => Size::parse(value),
            _ => None,
        };
        if value.is_none() {
            reader.wrong(node, Size::ALLOWED);
        }
        value
    }
}

impl<T: Read> Read for Vec<At<T>> {
    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let Some(items) = node.get_ref().as_array() else {
            reader.wrong(node, "a list");
            return None;
        };
        let path = reader.path.clone();
        let read = |(index, item): (usize, &Node<'_>)| {
            reader.within(format!("{path}[{index}]"), |reader| {
                Some(At { value: T::read(item, reader)?, place: reader.place(item) })
            })
        };
        Some(items.iter().enumerate().filter_map(read).collect())
    }
}

/// A value, or a list of values.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(crate) enum OneOrMany<T> {
    One(T),
    Many(Vec<At<T>>),
}

impl<T: Read> Read for OneOrMany<T> {
    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        match node.get_ref() {
            DeValue::Array(_) => Vec::read(node, reader).map(OneOrMany::Many),
            _ => T::read(node, reader).map(OneOrMany::One),
        }
    }
}

/// A list, or a word that stands for one.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(crate) enum WordOrList<T> {
    Word(String),
    List(Vec<At<T>>),
}

impl<T: Read> Read for WordOrList<T> {
    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        match node.get_ref() {
            DeValue::String(word) => Some(WordOrList::Word(word.clone().into_owned())),
            _ => Vec::read(node, reader).map(WordOrList::List),
        }
    }
}

/// Tables by name, in file order.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Named<T>(pub Vec<(At<String>, At<T>)>);

/// A table and its name, which are in no file.
pub(crate) fn named<T>(name: &str, value: T) -> (At<String>, At<T>) {
    (name.to_owned().into(), value.into())
}

impl<T> Default for Named<T> {
    fn default() -> Self {
        Named(Vec::new())
    }
}

impl<T: Read> Read for Named<T> {
    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let table = reader.table(node)?;
        let mut named = Vec::new();
        for (key, node) in table {
            named.extend(reader.named(key, node));
        }
        Some(Named(named))
    }
}

impl<T: Serialize> Serialize for Named<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (&name.value, value)))
    }
}

impl<T: JsonSchema> JsonSchema for Named<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("Named_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": "object", "additionalProperties": generator.subschema_for::<T>() })
    }
}

/// A field that may be left out.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct Field<T>(pub Option<At<T>>);

impl<T> Field<T> {
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }

    pub fn get(&self) -> Option<&T> {
        self.0.as_ref().map(|at| &at.value)
    }
}

impl Field<i64> {
    /// Whether the field has this value or is not given: no fault made another value of it.
    pub fn is_or_none(&self, value: u32) -> bool {
        self.get().is_none_or(|given| *given == i64::from(value))
    }
}

impl<T> Default for Field<T> {
    fn default() -> Self {
        Field(None)
    }
}

impl<T> From<T> for Field<T> {
    fn from(value: T) -> Self {
        Field(Some(value.into()))
    }
}

impl<T> From<Option<T>> for Field<T> {
    fn from(value: Option<T>) -> Self {
        Field(value.map(At::from))
    }
}
