//! Addresses of settings: full paths, and the shorter forms that people type.

use serde_json::{Map, Value as Json};

use crate::file::copies::{ACTION, CLIENT, COUNT, DOMAIN, SERVER, Template};
use crate::file::raw::{RawClosedLoop, RawDomain, RawOpenLoop, RawScenario, RawStream};
use crate::text::problem::closest;
use crate::text::read::ReadTable as _;

const POOL: &str = "pool";

/// The tables of a scenario whose entries have names of the user's.
const NAMED: [&str; 6] = [DOMAIN, CLIENT, POOL, "nic", "disk", "client_machine"];

/// The fields that hold sets of pCPUs, by the kind of their table.
const PCPU_SETS: [(&str, &[&str]); 4] = [
    ("host", &["isolated_cpus", "nohz_full"]),
    (DOMAIN, &["affinity", "soft_affinity", "emulator_affinity", "iothread_affinity"]),
    (POOL, &["pcpus"]),
    ("cgroup", &["cpus"]),
];

/// Whether an address may name a table that is not in the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NewNames {
    /// An unknown name is a typing mistake.
    Refused,
    /// A full path adds the table.
    Added,
}

/// The reason why an address means no setting.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{reason}; allowed: {}", choices.join(", "))]
pub struct AddressError {
    /// The problem.
    pub reason: String,
    /// The name that no table has; `None`: the address has several meanings.
    pub unknown: Option<String>,
    /// The names of tables or, of an address with several meanings, the addresses that have one.
    pub choices: Vec<String>,
}

impl AddressError {
    fn unknown(reason: String, name: &str, names: impl IntoIterator<Item = String>) -> Self {
        AddressError { reason, unknown: Some(name.to_owned()), choices: names.into_iter().collect() }
    }
}

/// The names that a scenario's text has.
pub(super) struct Names<'t> {
    /// The tables of the text, with all copies.
    pub tables: &'t Json,
    /// The tables as they are in the text, without copies: an action on several domains is one item there.
    pub stated: &'t Json,
    /// The tables that stand for several.
    pub templates: &'t [Template],
}

impl Names<'_> {
    /// The full paths of the settings that an address means: one, or one for each name that a pattern matches and for each
    /// copy.
    pub fn paths(&self, address: &[String], new_names: NewNames) -> Result<Vec<Vec<String>>, AddressError> {
        let stated = address.first().and_then(|first| NAMED.into_iter().find(|kind| kind == first));
        let kinds = stated.map_or(NAMED.to_vec(), |kind| vec![kind]);
        let steps = &address[usize::from(stated.is_some())..];
        let Some((name, fields)) = steps.split_first() else {
            return self.path(address, new_names).map(|path| vec![path]);
        };
        let copies = |kind| match fields {
            [field] if field == COUNT => None,
            _ => self.template(kind, name).map(|template| template.copies.clone()),
        };
        let is_name = kinds.iter().any(|kind| self.has(kind, name));
        if is_name || !(is_pattern(name) || kinds.iter().any(|kind| copies(kind).is_some())) {
            return self.path(address, new_names).map(|path| vec![path]);
        }
        for &kind in &kinds {
            let matching = || self.names(kind).filter(|candidate| matches(name, candidate)).collect();
            let names = copies(kind).unwrap_or_else(matching);
            // A field of clients, by the domains that they ask.
            let of_clients = stated.is_none() && kind == DOMAIN && is_of_clients_only(fields);
            if !names.is_empty() {
                let path = |name: String| match of_clients {
                    true => self.path(&[&[name], fields].concat(), new_names),
                    false => Ok([&[kind.to_owned(), name], fields].concat()),
                };
                return names.into_iter().map(path).collect();
            }
        }
        let names = kinds.iter().flat_map(|kind| self.names(kind));
        Err(AddressError::unknown(format!("nothing matches `{name}`"), name, names))
    }

    /// The full path of an address without a pattern.
    fn path(&self, address: &[String], new_names: NewNames) -> Result<Vec<String>, AddressError> {
        let with = |kind: &str, steps: &[String]| [&[kind.to_owned()], steps].concat();
        if let [.., name, field] = address
            && field == COUNT
            && self.template(DOMAIN, name).is_some()
        {
            return Ok(with(DOMAIN, &address[address.len() - 2..]));
        }
        let (first, rest) =
            address.split_first().map_or(("", address), |(first, rest)| (first.as_str(), rest));
        if NAMED.contains(&first) {
            let name = rest.first().map_or("", String::as_str);
            // A field of a pool that is not there makes a pool: the checks name the fields that it lacks.
            let is_new_pool = first == POOL
                && rest.len() == 2
                && closest(name, self.names(first).collect::<Vec<_>>().iter().map(String::as_str)).is_none();
            if new_names == NewNames::Added || is_new_pool || self.has(first, name) {
                return Ok(address.to_vec());
            }
            return Err(AddressError::unknown(
                format!("there is no {first} `{name}`"),
                name,
                self.names(first),
            ));
        }
        if RawScenario::FIELDS.contains(&first) {
            return Ok(address.to_vec());
        }
        let kinds: Vec<&str> = NAMED.into_iter().filter(|kind| self.has(kind, first)).collect();
        if kinds.contains(&DOMAIN) && is_of_clients_only(rest) {
            let asking = self.table(CLIENT).into_iter().flatten();
            let asking =
                asking.filter(|(_, client)| client.get(SERVER).is_some_and(|server| server == first));
            let clients: Vec<String> = asking.map(|(name, _)| name.clone()).collect();
            match &clients[..] {
                [] => {}
                [client] => return Ok(with(CLIENT, &[std::slice::from_ref(client), rest].concat())),
                _ => {
                    let reason = format!("`{first}` has several clients");
                    return Err(AddressError { reason, unknown: None, choices: clients });
                }
            }
        }
        match kinds[..] {
            [] => {
                let fields = RawScenario::FIELDS.iter().filter(|field| !NAMED.contains(field));
                let names = NAMED.into_iter().flat_map(|kind| self.names(kind));
                let names = names.chain(fields.map(|&field| field.to_owned()));
                Err(AddressError::unknown(format!("there is no `{first}`"), first, names))
            }
            [kind] => Ok(with(kind, address)),
            _ => {
                let reason = "could mean several paths".to_owned();
                let choices = kinds.iter().map(|kind| shown(&with(kind, address))).collect();
                Err(AddressError { reason, unknown: None, choices })
            }
        }
    }

    /// Whether there is a value at a path in the text.
    pub fn is_in_text(&self, path: &[String]) -> bool {
        let is_of_template = matches!(path, [kind, name, ..] if self.template(kind, name).is_some());
        let tables = if path[0] == ACTION { self.stated } else { self.tables };
        is_of_template || value_at(tables, path).is_some()
    }

    fn template(&self, kind: &str, name: &str) -> Option<&Template> {
        self.templates.iter().find(|template| template.kind == kind && template.name == name)
    }

    fn table(&self, kind: &str) -> Option<&Map<String, Json>> {
        self.tables.get(kind)?.as_object()
    }

    fn names(&self, kind: &str) -> impl Iterator<Item = String> {
        self.table(kind).into_iter().flat_map(Map::keys).cloned()
    }

    fn has(&self, kind: &str, name: &str) -> bool {
        self.table(kind).is_some_and(|table| table.contains_key(name))
    }
}

/// The value at a path, through tables and items of lists.
pub(super) fn value_at<'j>(tables: &'j Json, path: &[String]) -> Option<&'j Json> {
    path.iter().try_fold(tables, |value, step| match value {
        Json::Array(items) => items.get(step.parse::<usize>().ok()?),
        value => value.get(step),
    })
}

/// Whether the first of these steps is a field that clients have and domains do not.
fn is_of_clients_only(steps: &[String]) -> bool {
    let Some(field) = steps.first().map(String::as_str) else { return false };
    let of_clients = [RawOpenLoop::FIELDS, RawClosedLoop::FIELDS, RawStream::FIELDS];
    (field == "kind" || of_clients.iter().any(|fields| fields.contains(&field)))
        && !RawDomain::FIELDS.contains(&field)
}

/// A value in the type of its field: a pCPU is text, although it looks like a number.
pub(super) fn typed(path: &[String], value: &Json) -> Json {
    let [kind, .., field] = path else { return value.clone() };
    if !PCPU_SETS.iter().any(|(table, fields)| table == kind && fields.contains(&field.as_str())) {
        return value.clone();
    }
    match value {
        Json::Number(number) if !number.is_f64() => number.to_string().into(),
        Json::Array(items) => items.iter().map(|item| typed(path, item)).collect(),
        value => value.clone(),
    }
}

/// Whether an address has a pattern.
pub(super) fn has_pattern(address: &[String]) -> bool {
    address.iter().any(|step| is_pattern(step))
}

fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '['])
}

/// An address as text.
pub(super) fn shown(steps: &[String]) -> String {
    let quoted =
        steps.iter().map(|step| if step.contains('.') { format!("\"{step}\"") } else { step.clone() });
    quoted.collect::<Vec<_>>().join(".")
}

/// Whether a name matches a pattern, as names of files do in a shell: `*` any characters, `?` one, `[a-c]` one of these and
/// `[!a-c]` any other.
fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut p, mut n) = (0, 0);
    // After the last `*`: the place in the pattern, and the first character that it has not taken yet.
    let mut star: Option<(usize, usize)> = None;
    loop {
        if n == name.len() {
            return pattern[p..].iter().all(|&c| c == '*');
        }
        if pattern.get(p) == Some(&'*') {
            (p, star) = (p + 1, Some((p + 1, n)));
            continue;
        }
        match step(&pattern[p..], name[n]) {
            Some(length) => (p, n) = (p + length, n + 1),
            None => match star {
                Some((after, taken)) => (p, n, star) = (after, taken + 1, Some((after, taken + 1))),
                None => return false,
            },
        }
    }
}

/// The length of the part of a pattern that one character matches; `None`: it does not match.
fn step(pattern: &[char], character: char) -> Option<usize> {
    match pattern {
        ['[', set @ ..] => {
            let negated = set.first() == Some(&'!');
            let start = usize::from(negated);
            // A bracket that comes first is in the set.
            let Some(end) = set.iter().skip(start + 1).position(|&c| c == ']').map(|at| at + start + 1)
            else {
                return (character == '[').then_some(1);
            };
            let mut members = &set[start..end];
            let mut is_member = false;
            while let [first, rest @ ..] = members {
                members = match rest {
                    ['-', last, rest @ ..] => {
                        is_member |= (*first..=*last).contains(&character);
                        rest
                    }
                    rest => {
                        is_member |= *first == character;
                        rest
                    }
                };
            }
            (is_member != negated).then_some(end + 2)
        }
        ['?', ..] => Some(1),
        [first, ..] => (*first == character).then_some(1),
        [] => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::schema::schema;

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, name, is_match) in [
            ("batch*", "batch12", true),
            ("*b*", "web", true),
            ("*b*c", "abcbd", false),
            ("batch?", "batch", false),
            ("batch[1-3]", "batch2", true),
            ("batch[!1-3]", "batch2", false),
            ("a[]]b", "a]b", true),
            ("a[b", "a[b", true),
            ("*", "", true),
            ("web", "webs", false),
        ] {
            assert_eq!(matches(pattern, name), is_match, "{pattern} {name}");
        }
    }

    #[test]
    fn sets_of_pcpus_are_those_of_the_schema() {
        let schema = schema();
        for (table, kind) in [("Host", "host"), ("Domain", DOMAIN), ("Pool", POOL), ("Cgroup", "cgroup")] {
            let fields = schema["$defs"][table]["properties"].as_object().unwrap();
            let sets = fields.iter().filter(|(_, field)| field.to_string().contains("pcpu-set"));
            let (_, stated) = PCPU_SETS.iter().find(|(of, _)| *of == kind).unwrap();
            assert_eq!(sets.map(|(name, _)| name).collect::<Vec<_>>(), *stated, "{table}");
        }
    }
}
