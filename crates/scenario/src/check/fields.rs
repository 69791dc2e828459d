//! The checks' common state; names, and sets of pCPUs.

use std::collections::BTreeMap;

use vcpulab_host::{CpuMask, DomId, PoolId, Table};
use vcpulab_spec::limits::NAME_CHARS_MAX;
use vcpulab_spec::{DomainSpec, PoolSpec};

use crate::outside::Outside;
use crate::text::problem::{Place, Problem, Report, did_you_mean, join};
use crate::text::read::{At, Field};
use crate::text::units::CpuList;
use crate::text::value::choice;

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

impl Checker<'_, '_> {
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

    /// A CPU pool that is referred to.
    pub fn pool_named(&mut self, field: &Field<String>, pools: &Table<PoolId, PoolSpec>) -> Option<PoolId> {
        let At { value, place } = field.0.as_ref()?;
        let names: Vec<(&str, PoolId)> =
            pools.enumerate().map(|(id, pool)| (pool.name.as_str(), id)).collect();
        choice(value, &names, place, self.report)
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
