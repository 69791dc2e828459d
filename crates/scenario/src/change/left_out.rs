//! Fields that do not stay when a host or pool gets another scheduler, or a domain another pool.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json};
use vcpulab_host::Scope;
use vcpulab_sched::{Generation, ParamSpec, declared, find, policies};

use crate::change::address::value_at;
use crate::edit::Edit;
use crate::file::copies::DOMAIN;
use crate::file::raw::POOL_0;
use crate::outside::{FoundPolicy, Outside};

const HOST: &str = "host";
const POOL: &str = "pool";
const SCHEDULER: &str = "scheduler";
const GENERATION: &str = "generation";

/// The field of a domain that is set when the host boots, not by an administrator.
const AT_BOOT: &str = "idle_tick_at";

/// The paths of the fields in a text that these changes leave without an owner: parameters that the new scheduler or its
/// release does not have, a release that does not have the scheduler, and what a reboot to another scheduler decides anew.
pub(super) fn left_out(tables: &Json, changes: &[Edit], outside: Outside<'_>) -> Vec<Vec<String>> {
    let of_schedulers =
        |path: &[String]| path.last().is_some_and(|f| f == SCHEDULER || f == GENERATION || f == POOL);
    if !changes.iter().any(|(path, _)| of_schedulers(path)) {
        return Vec::new();
    }
    let mut after = tables.clone();
    for (path, value) in changes {
        set(&mut after, path, value);
    }
    let mut left_out = Vec::new();
    if scheduling(&tables[HOST]) != scheduling(&after[HOST]) {
        let domains = entries(tables, DOMAIN).filter(|(_, domain)| domain.get(AT_BOOT).is_some());
        left_out.extend(domains.map(|(name, _)| path_of([DOMAIN, name, AT_BOOT])));
    }
    let further_pools =
        entries(&after, POOL).map(|(name, table)| (name.as_str(), path_of([POOL, name]), table));
    for (pool, path, table) in std::iter::once((POOL_0, path_of([HOST]), &after[HOST])).chain(further_pools) {
        let before = value_at(tables, &path).unwrap_or(&Json::Null);
        let ((old, old_release), (new, release)) = (scheduling(before), scheduling(table));
        let Some(new) = new else { continue };
        let has_changed = (old, old_release) != (Some(new), release);
        // The release of the host stays, if it had the new scheduler.
        let stays = old == Some(new) || release.is_none_or(|release| has_release(new, release));
        if has_changed && !stays {
            left_out.push([&path[..], &[GENERATION.to_owned()]].concat());
        }
        let Some(generation) = generation(new, release.filter(|_| stays), outside) else { continue };
        let unowned = |field: &str, scope, old: Option<&str>| {
            !generation.params.iter().any(|param| param.name == field)
                && (is_param(field, scope) || old.is_some_and(|old| is_own_param(old, field, scope, outside)))
        };
        if has_changed {
            let fields = before.as_object().into_iter().flat_map(Map::keys);
            let fields = fields.filter(|field| unowned(field, Scope::Global, old));
            left_out.extend(fields.map(|field| [&path[..], std::slice::from_ref(field)].concat()));
        }
        for (name, domain) in entries(tables, DOMAIN) {
            let now = after[DOMAIN].get(name);
            let was_in = pool_of(domain);
            if now.map(pool_of) == Some(pool) && (has_changed || was_in != pool) {
                let old = scheduling(pool_table(tables, was_in)).0;
                let fields = domain.as_object().into_iter().flat_map(Map::keys);
                let fields = fields.filter(|field| unowned(field, Scope::Domain, old));
                left_out.extend(fields.map(|field| path_of([DOMAIN, name, field])));
            }
        }
    }
    let stated: BTreeSet<&[String]> = changes.iter().map(|(path, _)| &path[..]).collect();
    left_out.retain(|path| !stated.contains(&path[..]));
    left_out
}

/// The scheduler and the release in the table of a host or pool.
fn scheduling(table: &Json) -> (Option<&str>, Option<&str>) {
    (table[SCHEDULER].as_str(), table[GENERATION].as_str())
}

/// Whether a release has a scheduler.
fn has_release(scheduler: &str, release: &str) -> bool {
    match find(scheduler) {
        Some(policy) => policy.generation(release).is_some(),
        None => declared(scheduler, Some(release)).is_some(),
    }
}

/// The generation of a scheduler in a release, without one the default; `None`: no such scheduler or release.
fn generation(scheduler: &str, release: Option<&str>, outside: Outside<'_>) -> Option<&'static Generation> {
    if let Some(policy) = find(scheduler) {
        return release
            .map_or_else(|| Some(policy.default_generation()), |release| policy.generation(release));
    }
    match outside.policies?(scheduler) {
        FoundPolicy::Found(policy) => Some(policy.default_generation()),
        FoundPolicy::Unknown(_) | FoundPolicy::Unusable(..) => None,
    }
}

/// Whether any scheduler of the registry has a parameter.
fn is_param(name: &str, scope: Scope) -> bool {
    let generations = policies().iter().flat_map(|policy| policy.generations);
    generations.flat_map(|generation| generation.params).any(|param| is_named(param, name, scope))
}

/// Whether a scheduler that is not in the registry has a parameter.
fn is_own_param(scheduler: &str, name: &str, scope: Scope, outside: Outside<'_>) -> bool {
    if find(scheduler).is_some() {
        return false;
    }
    let default = declared(scheduler, None).map(|policy| policy.default_generation());
    let own = default.or_else(|| generation(scheduler, None, outside));
    own.is_some_and(|generation| generation.params.iter().any(|param| is_named(param, name, scope)))
}

fn is_named(param: &ParamSpec, name: &str, scope: Scope) -> bool {
    param.name == name && param.scope == scope
}

/// The pool of a domain.
fn pool_of(domain: &Json) -> &str {
    domain[POOL].as_str().unwrap_or(POOL_0)
}

/// The table of a pool: that of Pool-0 is the host's.
fn pool_table<'j>(tables: &'j Json, pool: &str) -> &'j Json {
    if pool == POOL_0 { &tables[HOST] } else { &tables[POOL][pool] }
}

fn entries<'j>(tables: &'j Json, kind: &str) -> impl Iterator<Item = (&'j String, &'j Json)> {
    tables[kind].as_object().into_iter().flatten()
}

fn path_of<'s>(steps: impl IntoIterator<Item = &'s (impl AsRef<str> + ?Sized + 's)>) -> Vec<String> {
    steps.into_iter().map(|step| step.as_ref().to_owned()).collect()
}

/// Sets a value in tables or removes it. A path through a list or a value without fields changes nothing: editing refuses it, or
/// it is within an application.
fn set(tables: &mut Json, path: &[String], value: &Json) {
    let Some((last, before)) = path.split_last() else { return };
    let mut table = tables;
    for step in before {
        let Json::Object(fields) = table else { return };
        table = fields.entry(step.clone()).or_insert_with(|| Json::Object(Map::new()));
    }
    if let Json::Object(fields) = table {
        if value.is_null() {
            fields.shift_remove(last);
        } else {
            fields.insert(last.clone(), value.clone());
        }
    }
}
