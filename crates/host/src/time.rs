//! Simulated time in integer nanoseconds: [`Time`] is a point, [`Span`] a length. The two do not mix by accident.
//!
//! ```
//! use vcpulab_host::{Span, Time};
//! let start = Time::ZERO + Span::from_ms(30);
//! let end = start + 2 * Span::from_us(500);
//! assert_eq!(end - start, Span::from_ms(1));
//! assert_eq!((end - start) / Span::from_us(300), 3);
//! assert_eq!(end.to_string(), "31000000");
//! ```

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Rem, Sub, SubAssign};

/// A point in simulated time, counted from the start of the host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(i64);

/// A length of simulated time. It may be negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(i64);

/// Later than any event: the time of a timer that is not set.
pub const NEVER: Time = Time::NEVER;

impl Time {
    /// The start of the host.
    pub const ZERO: Time = Time(0);

    /// Later than any event.
    pub const NEVER: Time = Time(i64::MAX);

    /// The point this many nanoseconds after the start of the host.
    #[inline(always)]
    pub const fn from_ns(ns: i64) -> Self {
        Time(ns)
    }

    /// Nanoseconds since the start of the host.
    #[inline(always)]
    pub const fn ns(self) -> i64 {
        self.0
    }

    /// The point `span` later, or [`Time::NEVER`] if it is too far away to be counted.
    #[inline(always)]
    pub const fn saturating_add(self, span: Span) -> Self {
        Time(self.0.saturating_add(span.0))
    }

    /// The point `span` earlier, or the first that can be counted.
    #[inline(always)]
    pub const fn saturating_sub(self, span: Span) -> Self {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);

    /// The longest span, which stands for one without end.
    pub const MAX: Span = Span(i64::MAX);

    /// A span of this many nanoseconds.
    #[inline(always)]
    pub const fn from_ns(ns: i64) -> Self {
        Span(ns)
    }

    /// A span of this many microseconds.
    #[inline(always)]
    pub const fn from_us(us: i64) -> Self {
        Span(us * 1000)
    }

    /// A span of this many milliseconds.
    #[inline(always)]
    pub const fn from_ms(ms: i64) -> Self {
        Span(ms * 1_000_000)
    }

    /// A span of this many seconds.
    #[inline(always)]
    pub const fn from_secs(secs: i64) -> Self {
        Span(secs * 1_000_000_000)
    }

    /// Length of the span in nanoseconds.
    #[inline(always)]
    pub const fn ns(self) -> i64 {
        self.0
    }

    /// The sum, or the longest span (the most negative one) where it cannot be counted.
    #[inline(always)]
    pub const fn saturating_add(self, other: Span) -> Self {
        Span(self.0.saturating_add(other.0))
    }

    /// The difference, within the spans that can be counted.
    #[inline(always)]
    pub const fn saturating_sub(self, other: Span) -> Self {
        Span(self.0.saturating_sub(other.0))
    }

    /// The product, within the spans that can be counted.
    #[inline(always)]
    pub const fn saturating_mul(self, factor: i64) -> Self {
        Span(self.0.saturating_mul(factor))
    }

    /// Whether the span is zero.
    #[inline(always)]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Whether the span is negative.
    #[inline(always)]
    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// Length of the span without its sign.
    #[inline(always)]
    pub const fn abs(self) -> Self {
        Span(self.0.abs())
    }
}

/// `$left $op $right = $answer` on the numbers inside.
macro_rules! operators {
    ($($Trait:ident $name:ident: $Left:ident $op:tt $Right:ident = $Answer:ident;)*) => {$(
        impl $Trait<$Right> for $Left {
            type Output = $Answer;

            #[inline(always)]
            fn $name(self, right: $Right) -> $Answer {
                $Answer(self.0 $op right.0)
            }
        }
    )*};
}

operators! {
    Add add: Time + Span = Time;
    Sub sub: Time - Span = Time;
    Sub sub: Time - Time = Span;
    Add add: Span + Span = Span;
    Sub sub: Span - Span = Span;
    Rem rem: Span % Span = Span;
}

macro_rules! both {
    ($($Type:ident),*) => {$(
        impl AddAssign<Span> for $Type {
            #[inline(always)]
            fn add_assign(&mut self, span: Span) {
                self.0 += span.0;
            }
        }

        impl SubAssign<Span> for $Type {
            #[inline(always)]
            fn sub_assign(&mut self, span: Span) {
                self.0 -= span.0;
            }
        }

        /// The bare number of nanoseconds.
        impl fmt::Display for $Type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        /// The bare number of nanoseconds.
        impl fmt::Debug for $Type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    )*};
}

both!(Time, Span);

impl Neg for Span {
    type Output = Span;

    #[inline(always)]
    fn neg(self) -> Span {
        Span(-self.0)
    }
}

impl Mul<i64> for Span {
    type Output = Span;

    #[inline(always)]
    fn mul(self, factor: i64) -> Span {
        Span(self.0 * factor)
    }
}

impl Mul<Span> for i64 {
    type Output = Span;

    #[inline(always)]
    fn mul(self, span: Span) -> Span {
        Span(self * span.0)
    }
}

impl Div<i64> for Span {
    type Output = Span;

    #[inline(always)]
    fn div(self, divisor: i64) -> Span {
        Span(self.0 / divisor)
    }
}

/// The number of times that the divisor fits in it.
impl Div for Span {
    type Output = i64;

    #[inline(always)]
    fn div(self, divisor: Span) -> i64 {
        self.0 / divisor.0
    }
}

impl Sum for Span {
    fn sum<I: Iterator<Item = Span>>(spans: I) -> Span {
        Span(spans.map(Span::ns).sum())
    }
}

impl<'a> Sum<&'a Span> for Span {
    fn sum<I: Iterator<Item = &'a Span>>(spans: I) -> Span {
        spans.copied().sum()
    }
}
