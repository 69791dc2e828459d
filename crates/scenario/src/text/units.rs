//! Quantities as people write them: time spans (`10ms`), sizes (`10KB`), sets of pCPUs (`0-3,5`).
//!
//! All are read exactly, in integers; no value passes through a float.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use vcpulab_host::{CpuMask, PcpuId, Span, Time, mask::PCPUS_MAX};

/// Units of time, ns, longest first.
const TIME_UNITS: [(&str, i64); 5] =
    [("min", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];

/// Units of size, bytes: decimal and binary ones, largest first; the last is what remains.
const SIZE_UNITS: [(&str, i64); 8] = [
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("KB", 1_000),
    ("kB", 1_000),
    ("B", 1),
];

/// A span of simulated time, written as a string such as `"1.5s"`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Duration(pub Span);

/// A size, bytes, written as a string such as `"64KiB"`, or as a plain number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Size(pub i64);

impl Duration {
    /// The texts allowed, in words.
    pub const ALLOWED: &str = "a time span such as \"10ms\", \"1.5s\" or \"2min\" (units ns, us, ms, s, min)";

    /// Reads one; `None` if it is not one, or finer than 1 ns, or too large for any unit.
    pub fn parse(text: &str) -> Option<Self> {
        quantity(text, &TIME_UNITS).map(|ns| Duration(Span::from_ns(ns)))
    }
}

/// A point in time is written as the time span since the start of the host.
impl From<Time> for Duration {
    fn from(time: Time) -> Self {
        Duration(time - Time::ZERO)
    }
}

impl Size {
    /// The texts allowed, in words.
    pub const ALLOWED: &str =
        "a size such as \"10KB\" (10000 bytes), \"64KiB\" (65536 bytes) or a number of bytes";

    /// Reads one; `None` if it is not one or not a whole number of bytes.
    pub fn parse(text: &str) -> Option<Self> {
        quantity(text, &SIZE_UNITS).map(Size)
    }
}

/// A decimal number and one of these units, exactly, in the smallest unit.
fn quantity(text: &str, units: &[(&str, i64)]) -> Option<i64> {
    let split = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(split);
    let scale = units.iter().find(|(name, _)| *name == unit)?.1;
    let number = number.trim_end_matches(' ');
    let (sign, digits) = number.strip_prefix('-').map_or((1, number), |digits| (-1, digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_number = |s: &str| !s.is_empty() && s.len() <= 19 && s.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) {
        return None;
    }
    // 19 digits times the largest scale stays far below the limit of i128.
    let scale = i128::from(scale);
    let part = fraction.parse::<i128>().ok()? * scale;
    let divisor = 10_i128.pow(fraction.len() as u32);
    if part % divisor != 0 {
        return None;
    }
    i64::try_from(sign * (whole.parse::<i128>().ok()? * scale + part / divisor)).ok()
}

/// In the largest unit that gives a whole number.
fn write_quantity(f: &mut fmt::Formatter<'_>, value: i64, units: &[(&str, i64)]) -> fmt::Result {
    let fits = |(_, scale): &&(&str, i64)| value % scale == 0;
    let (unit, scale) =
        if value == 0 { None } else { units.iter().find(fits) }.unwrap_or(&units[units.len() - 1]);
    write!(f, "{}{unit}", value / scale)
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_quantity(f, self.0.ns(), &TIME_UNITS)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_quantity(f, self.0, &SIZE_UNITS)
    }
}

/// A set of pCPUs as written: `"all"`, `"0-3,5"`, `"all,^0"` (all but 0).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CpuList(Vec<CpuRange>);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct CpuRange {
    taken_out: bool,
    /// First and last pCPU; `None`: all.
    ends: Option<(u32, u32)>,
}

impl CpuList {
    /// The texts allowed, in words.
    pub const ALLOWED: &str = "a set of pCPUs such as \"0-3,5\", \"all\" or \"all,^0\" (all but 0)";

    /// Reads one; `None` if it is not one.
    pub fn parse(text: &str) -> Option<Self> {
        text.split(',').map(|part| CpuRange::parse(part.trim())).collect::<Option<_>>().map(CpuList)
    }

    /// All pCPUs.
    pub fn all() -> Self {
        CpuList(vec![CpuRange { taken_out: false, ends: None }])
    }

    /// The pCPUs of the list that exist on a host with `pcpus` pCPUs.
    pub fn on_host(&self, pcpus: u32) -> CpuMask {
        let mut mask = CpuMask::EMPTY;
        for range in &self.0 {
            let part: CpuMask = match range.ends {
                None => CpuMask::first_n(pcpus),
                Some((first, last)) => (first..pcpus.min(last.saturating_add(1))).map(PcpuId).collect(),
            };
            mask = if range.taken_out { mask.without(&part) } else { mask.or(&part) };
        }
        mask
    }

    /// The highest pCPU that it names, if it names one.
    pub fn highest(&self) -> Option<u32> {
        self.0.iter().filter(|range| !range.taken_out).filter_map(|range| Some(range.ends?.1)).max()
    }
}

impl CpuRange {
    fn parse(text: &str) -> Option<Self> {
        let (taken_out, text) = text.strip_prefix('^').map_or((false, text), |text| (true, text));
        if text == "all" {
            return Some(CpuRange { taken_out, ends: None });
        }
        let number = |s: &str| s.bytes().all(|b| b.is_ascii_digit()).then(|| s.parse::<u32>().ok()).flatten();
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let ends = (number(first)?, number(last)?);
        (ends.0 <= ends.1).then_some(CpuRange { taken_out, ends: Some(ends) })
    }
}

impl From<&CpuMask> for CpuList {
    fn from(mask: &CpuMask) -> Self {
        let range =
            |(first, last): (PcpuId, PcpuId)| CpuRange { taken_out: false, ends: Some((first.0, last.0)) };
        CpuList(mask.ranges().into_iter().map(range).collect())
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, range) in self.0.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { "," })?;
            f.write_str(if range.taken_out { "^" } else { "" })?;
            match range.ends {
                None => f.write_str("all")?,
                Some((first, last)) if first == last => write!(f, "{first}")?,
                Some((first, last)) => write!(f, "{first}-{last}")?,
            }
        }
        Ok(())
    }
}

macro_rules! written_as_text {
    ($($type:ident: $schema:expr;)*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    )*};
}

written_as_text! {
    Duration: json_schema!({
        "type": "string",
        "format": "time-span",
        "pattern": r"^[0-9]+(\.[0-9]+)? *(ns|us|ms|s|min)$",
    });
    Size: json_schema!({ "format": "size", "anyOf": [
        { "type": "integer", "minimum": 0 },
        { "type": "string", "pattern": r"^[0-9]+(\.[0-9]+)? *([kKMG]B|[KMG]iB|B)$" },
    ] });
    CpuList: json_schema!({
        "type": "string",
        "format": "pcpu-set",
        "pattern": r"^ *\^?(all|[0-9]+(-[0-9]+)?) *(, *\^?(all|[0-9]+(-[0-9]+)?) *)*$",
        "description": format!("pCPUs are numbered from 0; a host has at most {PCPUS_MAX}"),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ns(text: &str) -> Option<i64> {
        Duration::parse(text).map(|d| d.0.ns())
    }

    #[test]
    fn durations_are_exact() {
        assert_eq!(ns("10ms"), Some(10_000_000));
        assert_eq!(ns("1.5s"), Some(1_500_000_000));
        assert_eq!(ns("0.1s"), Some(100_000_000));
        assert_eq!(ns("2min"), Some(120_000_000_000));
        assert_eq!(ns("30 us"), Some(30_000));
        assert_eq!(ns("-1s"), Some(-1_000_000_000), "read, for a better message than `not a time span`");
        for bad in
            ["", "10", "ms", "10 m", "1.5ns", "1e3s", ".5s", "1.s", "1,5s", "9999999999999999min", "١s"]
        {
            assert_eq!(ns(bad), None, "{bad}");
        }
    }

    #[test]
    fn sizes_tell_decimal_from_binary() {
        assert_eq!(Size::parse("10KB"), Some(Size(10_000)));
        assert_eq!(Size::parse("64KiB"), Some(Size(65_536)));
        assert_eq!(Size::parse("1.5kB"), Some(Size(1_500)));
        assert_eq!(Size::parse("0.5B"), None);
    }

    #[test]
    fn cpu_lists_pick_what_the_host_has() {
        let picked = |text: &str| {
            CpuList::parse(text).map(|list| list.on_host(8).iter().map(|p| p.0).collect::<Vec<_>>())
        };
        assert_eq!(picked("0-3, 5"), Some(vec![0, 1, 2, 3, 5]));
        assert_eq!(picked("all,^0"), Some((1..8).collect()));
        assert_eq!(picked("6-4000000000"), Some(vec![6, 7]));
        assert_eq!(picked("9"), Some(vec![]));
        for bad in ["", "3-1", "a", "1-", "-1", "0,,1", "+1"] {
            assert_eq!(picked(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(value in any::<i64>()) {
            // The most negative number has one digit more than is accepted.
            prop_assume!(value != i64::MIN);
            prop_assert_eq!(ns(&Duration(Span::from_ns(value)).to_string()), Some(value));
            prop_assert_eq!(Size::parse(&Size(value).to_string()), Some(Size(value)));
        }

        #[test]
        fn masks_read_back(pcpus in prop::collection::vec(0u32..PCPUS_MAX, 1..20)) {
            let mask: CpuMask = pcpus.into_iter().map(PcpuId).collect();
            let text = CpuList::from(&mask).to_string();
            prop_assert_eq!(CpuList::parse(&text).map(|list| list.on_host(PCPUS_MAX)), Some(mask));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,40}") {
            let _ = (Duration::parse(&text), Size::parse(&text), CpuList::parse(&text).map(|l| l.on_host(256)));
        }
    }
}
