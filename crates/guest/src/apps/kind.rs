//! A kind of application: its name, its parameters, the classes of requests that it answers, and its script.

use vcpulab_host::Span;

use crate::ids::ServiceId;
use crate::script::AppConfig;

/// A kind of application.
#[derive(Debug)]
pub struct AppKind {
    /// Name of the kind in a scenario.
    pub name: &'static str,
    /// A sentence on it.
    pub doc: &'static str,
    /// Parameters of the kind.
    pub params: &'static [AppParam],
    /// The classes of requests that it answers; none: it is no service.
    pub classes: &'static [RequestClass],
    /// The application with these values of the parameters: one for each, in order.
    pub build: fn(&Args<'_>) -> AppConfig,
}

/// A class of requests that a service answers.
#[derive(Clone, Copy, Debug)]
pub struct RequestClass {
    /// Name of the class in a scenario.
    pub name: &'static str,
    /// Size of a request, bytes.
    pub request_bytes: u32,
    /// Size of an answer, bytes, unless the client asks for another.
    pub reply_bytes: u32,
    /// Frequency relative to the other classes, unless a client gives another.
    pub weight: u32,
    /// The source of these values.
    pub source: &'static str,
}

/// A parameter of an application.
#[derive(Debug)]
pub struct AppParam {
    /// Name of the parameter in a scenario.
    pub name: &'static str,
    /// A sentence on it.
    pub doc: &'static str,
    /// Allowed values of the parameter.
    pub kind: AppParamKind,
    /// Value of the parameter where a scenario gives none.
    pub default: AppDefault,
    /// The source of the default, or the reason for it.
    pub source: &'static str,
}

/// The values that a parameter of an application takes. All but services come to integers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "each variant says what its fields are")]
pub enum AppParamKind {
    /// An integer from `min` to `max`.
    Int { min: i64, max: i64 },
    /// A time span from `min` to `max`, as its number of nanoseconds.
    Duration { min: Span, max: Span },
    /// A size from `min` to `max`, bytes.
    Size { min: i64, max: i64 },
    /// A share, percent.
    Percent,
    /// Yes or no, as 1 or 0.
    Flag,
    /// A word of this list, stored as its index.
    Choice(&'static [&'static str]),
    /// A service: an application of one of these kinds in the domain named.
    Service(&'static [&'static str]),
}

impl AppParamKind {
    /// Whether a number is allowed.
    pub fn allows(self, number: i64) -> bool {
        match self {
            AppParamKind::Int { min, max } | AppParamKind::Size { min, max } => (min..=max).contains(&number),
            AppParamKind::Duration { min, max } => (min.ns()..=max.ns()).contains(&number),
            AppParamKind::Percent => (0..=100).contains(&number),
            AppParamKind::Flag => (0..=1).contains(&number),
            AppParamKind::Choice(words) => (0..words.len() as i64).contains(&number),
            AppParamKind::Service(_) => false,
        }
    }
}

/// A parameter's value where none is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AppDefault {
    /// No default: a scenario must give the value.
    Required,
    /// A fixed value.
    Value(i64),
    /// The CPU time of this number of thousand cycles on the scenario's machine, ns.
    Kilocycles(i64),
    /// The constant of the hardware profile of this name.
    Profile(&'static str),
    /// No value: the parameter is left out.
    Absent,
}

/// A parameter's value. Services are named by `S`: for an application that is built, by their numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AppValue<S = ServiceId> {
    /// A number of ns, bytes or things, a percentage, the position of a word, or 1 for yes.
    Number(i64),
    /// A service that the application asks.
    Service(S),
    /// No value: the parameter is left out.
    Absent,
}

impl<S> AppValue<S> {
    /// The value with its service replaced by the result of `name`.
    pub fn map_service<T>(self, name: impl FnOnce(S) -> T) -> AppValue<T> {
        match self {
            AppValue::Number(number) => AppValue::Number(number),
            AppValue::Service(service) => AppValue::Service(name(service)),
            AppValue::Absent => AppValue::Absent,
        }
    }
}

/// The values of an application's parameters.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    /// Kind of the application.
    pub kind: &'a AppKind,
    /// Values of the kind's parameters, in order.
    pub values: &'a [AppValue],
    /// Spread of computations, percent to both sides.
    pub spread_percent: i64,
}

impl Args<'_> {
    /// The number that a parameter is set to.
    ///
    /// # Panics
    /// If the kind has no such parameter, or it has no number.
    pub fn get(&self, name: &str) -> i64 {
        match self.value(name) {
            AppValue::Number(number) => number,
            AppValue::Service(_) | AppValue::Absent => panic!("`{name}` has no number"),
        }
    }

    /// The time span that a parameter is set to.
    ///
    /// # Panics
    /// If the kind has no such parameter, or it has no number.
    pub fn span(&self, name: &str) -> Span {
        Span::from_ns(self.get(name))
    }

    /// The service that a required parameter names.
    ///
    /// # Panics
    /// If the kind has no such parameter, or it names none.
    pub fn service(&self, name: &str) -> ServiceId {
        self.optional_service(name).unwrap_or_else(|| panic!("`{name}` names no service"))
    }

    /// The service that a parameter names, if it is given.
    ///
    /// # Panics
    /// If the kind has no such parameter, or it is a number.
    pub fn optional_service(&self, name: &str) -> Option<ServiceId> {
        match self.value(name) {
            AppValue::Service(service) => Some(service),
            AppValue::Absent => None,
            AppValue::Number(_) => panic!("`{name}` is not a service"),
        }
    }

    fn value(&self, name: &str) -> AppValue {
        let position = self.kind.params.iter().position(|param| param.name == name);
        self.values[position.expect("an application asks for its own parameters only")]
    }

    /// The number that a parameter is set to, where its range fits.
    ///
    /// # Panics
    /// If the kind has no such parameter, or it has no number.
    pub fn get_u32(&self, name: &str) -> u32 {
        self.get(name).clamp(0, u32::MAX.into()) as u32
    }
}

impl AppParam {
    /// A CPU time that scales with the machine's clock.
    pub(super) const fn cpu(
        name: &'static str,
        doc: &'static str,
        kilocycles: i64,
        source: &'static str,
    ) -> Self {
        let kind = AppParamKind::Duration { min: Span::ZERO, max: SPAN_MAX };
        AppParam { name, doc, kind, default: AppDefault::Kilocycles(kilocycles), source }
    }

    /// A size from `min` on, bytes.
    pub(super) const fn size(
        name: &'static str,
        doc: &'static str,
        min: i64,
        default: i64,
        source: &'static str,
    ) -> Self {
        let kind = AppParamKind::Size { min, max: if min > 0 { SIZE_MAX } else { MEMORY_MAX } };
        AppParam { name, doc, kind, default: AppDefault::Value(default), source }
    }

    /// A number of things from `min` to `max`.
    pub(super) const fn count(
        name: &'static str,
        doc: &'static str,
        (min, max): (i64, i64),
        default: i64,
        source: &'static str,
    ) -> Self {
        AppParam {
            name,
            doc,
            kind: AppParamKind::Int { min, max },
            default: AppDefault::Value(default),
            source,
        }
    }

    /// A share, percent.
    pub(super) const fn percent(
        name: &'static str,
        doc: &'static str,
        default: i64,
        source: &'static str,
    ) -> Self {
        AppParam { name, doc, kind: AppParamKind::Percent, default: AppDefault::Value(default), source }
    }
}

/// Longest time span that a parameter may be: a day.
pub(super) const SPAN_MAX: Span = Span::from_secs(86_400);

/// Largest piece of data that a parameter may ask to move at once, bytes.
pub(super) const SIZE_MAX: i64 = 1 << 30;

/// Largest file or memory, bytes.
pub(super) const MEMORY_MAX: i64 = 1 << 44;
