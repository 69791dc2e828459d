//! Simple values: each within its limits, each name in use.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use vcpulab_host::{CpuMask, DomId, PoolId, Span, Table, Time};
use vcpulab_spec::limits::{NAME_CHARS_MAX, RATE_PER_S_MAX, SPAN_MAX};
use vcpulab_spec::{DomainSpec, PoolSpec};

use crate::outside::Outside;
use crate::text::problem::{Place, Problem, Report, did_you_mean, join};
use crate::text::read::{At, Field, Number};
use crate::text::units::{CpuList, Duration, Size};

/// The checks' common state.
pub(crate) struct Checker<'r, 't> {
    pub report: &'r mut Report<'t>,
    /// The things that the scenario may name though they are not built in.
    pub outside: Outside<'r>,
    /// The domain that a scenario cannot name: it is made.
    pub hidden: Option<DomId>,
    /// The domains by their names, as many as have been looked for.
    domains: BTreeMap<String, DomId>,
}

impl<'r, 't> Checker<'r, 't> {
    pub fn new(report: &'r mut Report<'t>, outside: Outside<'r>) -> Self {
        Checker { report, outside, hidden: None, domains: BTreeMap::new() }
    }
}

/// Simple values. Each function answers with the default where a field is not given, and with `None` where it is wrong.
impl Checker<'_, '_> {
    pub fn int(&mut self, field: &Field<i64>, default: i64, range: RangeInclusive<i64>) -> Option<i64> {
        let Some(At { value, place }) = &field.0 else { return Some(default) };
        self.within(*value, &range, place, || format!("an integer from {} to {}", range.start(), range.end()))
    }

    /// Without a default, the reader has already reported that it is missing.
    pub fn span(
        &mut self,
        field: &Field<Duration>,
        default: Option<Span>,
        range: RangeInclusive<Span>,
    ) -> Option<Span> {
        let Some(At { value, place }) = &field.0 else { return default };
        let allowed =
            || format!("a time span from {} to {}", Duration(*range.start()), Duration(*range.end()));
        self.within(value.0, &range, place, allowed)
    }

    /// A time since the start of the host: in the warm-up or in what is measured. Without a default as for a span.
    pub fn time(&mut self, field: &Field<Duration>, default: Option<Time>) -> Option<Time> {
        let default = default.map(|time| time - Time::ZERO);
        self.span(field, default, Span::ZERO..=2 * SPAN_MAX).map(|span| Time::ZERO + span)
    }

    pub fn size(&mut self, field: &Field<Size>, default: i64, range: RangeInclusive<i64>) -> Option<i64> {
        let Some(At { value, place }) = &field.0 else { return Some(default) };
        let allowed = || format!("a size from {} to {}", Size(*range.start()), Size(*range.end()));
        self.within(value.0, &range, place, allowed)
    }

    pub fn rate(&mut self, field: &Field<Number>) -> Option<f64> {
        let At { value, place } = field.0.as_ref()?;
        let least = 1.0 / (SPAN_MAX / Span::from_secs(1)) as f64;
        let allowed = || format!("a number above 0 (at least one a day) up to {RATE_PER_S_MAX} per second");
        self.within(value.0, &(least..=RATE_PER_S_MAX), place, allowed)
    }

    pub fn within<T: PartialOrd>(
        &mut self,
        value: T,
        range: &RangeInclusive<T>,
        place: &Place,
        allowed: impl FnOnce() -> String,
    ) -> Option<T> {
        if range.contains(&value) {
            return Some(value);
        }
        self.report.error(place, Problem::not_allowed(allowed()));
        None
    }

    pub fn count(&mut self, count: usize, least: usize, most: usize, what: &str, place: &Place) -> bool {
        let fits = (least..=most).contains(&count);
        if !fits {
            let problem = Problem::not_allowed(format!("{least} to {most} {what}"));
            self.report.error(place, problem.found(count));
        }
        fits
    }

    /// A name: it becomes part of paths, columns and legends.
    pub fn identifier(&mut self, name: &At<String>) {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if name.value.is_empty()
            || name.value.chars().count() > NAME_CHARS_MAX
            || !name.value.chars().all(plain)
        {
            let allowed = format!("1 to {NAME_CHARS_MAX} letters, digits, `_`, `-` and `.`");
            self.report.error(&name.place, Problem::not_allowed(allowed));
        }
    }

    /// A name that becomes a word of commands, too.
    pub fn word_of_commands(&mut self, name: &At<String>) {
        self.identifier(name);
        if name.value.starts_with('-') {
            let problem = Problem::not_allowed("a name that does not begin with `-`");
            self.report.error(&name.place, problem.hint("commands would take it for an option"));
        }
    }

    /// The value of a word; the first one's where none is given.
    pub fn word<T: Copy>(&mut self, field: &Field<String>, words: &[(&'static str, T)]) -> T {
        self.choice(field, words, |(word, _)| word).unwrap_or(&words[0]).1
    }

    /// The item of `all` that the field names.
    pub fn choice<'a, T>(
        &mut self,
        field: &Field<String>,
        all: &'a [T],
        name: fn(&T) -> &str,
    ) -> Option<&'a T> {
        let At { value, place } = field.0.as_ref()?;
        let found = all.iter().find(|thing| name(thing) == value);
        if found.is_none() {
            let names: Vec<&str> = all.iter().map(name).collect();
            let problem = Problem::not_allowed(format!("one of {}", names.join(", ")));
            self.report.error(place, problem.maybe_hint(did_you_mean(value, names)));
        }
        found
    }

    /// A CPU pool that is referred to.
    pub fn pool_named(&mut self, field: &Field<String>, pools: &Table<PoolId, PoolSpec>) -> Option<PoolId> {
        let found = self.choice(field, pools.as_slice(), |pool| &pool.name)?;
        pools.ids().find(|&pool| pools[pool].name == found.name)
    }

    /// A domain that is referred to.
    pub fn domain(&mut self, field: &Field<String>, domains: &Table<DomId, DomainSpec>) -> Option<DomId> {
        let At { value, place } = field.0.as_ref()?;
        for id in (self.domains.len()..domains.len()).map(|index| DomId(index as u32)) {
            // A user's own comes before the host's, if it has its name.
            self.domains.entry(domains[id].name.clone()).or_insert(id);
        }
        let found = self.domains.get(value).copied().filter(|&found| Some(found) != self.hidden);
        if found.is_none() {
            let path = join("domain", value);
            let copies: Vec<&str> = self.report.copies(&path).collect();
            let several = copies.first().zip(copies.last()).map(|(first, last)| {
                let [first, last] = [first, last].map(|path| path.trim_start_matches("domain."));
                format!("`{value}` stands for several domains: name one, from {first} to {last}")
            });
            self.report.error_with(place, || {
                let hidden = self.hidden;
                let named = domains.enumerate().filter(move |(id, _)| Some(*id) != hidden);
                let names = || named.clone().map(|(_, domain)| domain.name.as_str());
                let hint = several.or_else(|| did_you_mean(value, names())).unwrap_or_else(|| {
                    const SHOWN: usize = 10;
                    let more = if domains.len() > SHOWN { ", ..." } else { "" };
                    format!("domains: {}{more}", names().take(SHOWN).collect::<Vec<_>>().join(", "))
                });
                Problem::says(format!("there is no domain `{value}`")).found(value).hint(hint)
            });
        }
        found
    }

    /// The part of a set that is in this pool, `None` if that is the whole pool.
    pub fn cpus(
        &mut self,
        list: &CpuList,
        place: &Place,
        pcpus: u32,
        pool: &CpuMask,
        pool_name: &str,
    ) -> Option<CpuMask> {
        let mask = list.on_host(pcpus).and(pool);
        let host_has = match pcpus {
            _ if pool.len() < pcpus => format!("pool `{pool_name}` has pCPUs {}", CpuList::from(pool)),
            1 => "the host has one pCPU, 0".to_owned(),
            _ => format!("the host has pCPUs 0 to {}", pcpus - 1),
        };
        if mask.is_empty() {
            let problem =
                Problem::says(format!("found `{list}`, which leaves no pCPU to run on; {host_has}"));
            self.report.error(place, problem.found(list));
        } else if list.highest().is_some_and(|highest| highest >= pcpus) {
            let problem = Problem::says(format!("`{list}` names pCPUs that are not there; {host_has}"));
            self.report.warning(place, problem.found(list));
        }
        (mask != *pool).then_some(mask)
    }
}
