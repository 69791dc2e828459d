//! Alike domains: a table with a `count` stands for that many numbered ones.
//!
//! `[domain.batch]` with `count = 12` is `batch01` to `batch12`. A client whose server is `batch`, and an action on `batch`,
//! stand for one of each copy. `[domain.batch03]`, or `[client.users03]`, says in which values that copy differs. All of it is
//! written out here, between the text and the fields: whatever reads a scenario sees plain tables. Their values keep
//! their places in the text.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize as _;
use toml::Spanned;
use toml::de::{DeArray, DeString, DeTable, DeValue};
use vcpulab_spec::limits::{DOMAINS_MAX, VCPUS_MAX};

use crate::file::words::DOM0;
use crate::text::limits::FILE_BYTES_MAX;
use crate::text::problem::{Place, Problem, Report, join};
use crate::text::read::{Node, document};

/// The field of a domain that holds the number of its copies.
pub(crate) const COUNT: &str = "count";
pub(crate) const DOMAIN: &str = "domain";
pub(crate) const CLIENT: &str = "client";
pub(crate) const ACTION: &str = "action";
/// The field by which a client, and an action, names its domain.
pub(crate) const SERVER: &str = "server";

/// A table that stands for several.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Template {
    /// Kind of the table: `domain` or `client`.
    pub kind: &'static str,
    pub name: String,
    /// The domain whose copies these are, or are clients of.
    domain: String,
    /// The names of its copies, in order.
    pub copies: Vec<String>,
}

/// The tables of a text that stand for several: kind, name, and the names of the copies. None in a text that is not TOML.
pub fn copies(text: &str) -> Vec<(&'static str, String, Vec<String>)> {
    templates_of(text).into_iter().map(|one| (one.kind, one.name, one.copies)).collect()
}

pub(crate) fn templates_of(text: &str) -> Vec<Template> {
    // Most files have none, and are not read for that.
    match text.contains(COUNT).then(|| DeTable::parse(text)) {
        Some(Ok(table)) => templates(table.get_ref(), &mut Report::new("", text)),
        _ => Vec::new(),
    }
}

/// The tables of a scenario's text as JSON, with all copies written out.
///
/// # Errors
/// The text is not TOML.
pub fn written(text: &str) -> Result<serde_json::Value, String> {
    let (node, mut reader) = document(text, "").map_err(|problems| problems.to_string())?;
    as_json(written_out(node, &mut reader.report))
}

/// The tables of a text as they are there, without copies.
///
/// # Errors
/// The text is not TOML.
pub(crate) fn in_text(text: &str) -> Result<serde_json::Value, String> {
    let (node, _) = document(text, "").map_err(|problems| problems.to_string())?;
    as_json(node)
}

fn as_json(node: Node<'_>) -> Result<serde_json::Value, String> {
    let span = node.span();
    let DeValue::Table(table) = node.into_inner() else {
        return Err("no table".to_owned());
    };
    let table = toml::Deserializer::from(Spanned::new(span, table));
    serde_json::Value::deserialize(table).map_err(|error| error.to_string())
}

/// A document with all copies written out.
pub(crate) fn written_out<'i>(node: Node<'i>, report: &mut Report<'_>) -> Node<'i> {
    let span = node.span();
    let DeValue::Table(mut root) = node.into_inner() else { unreachable!("a document is a table") };
    let has_count = |table: &DeTable<'_>| {
        table.values().any(|node| node.get_ref().as_table().is_some_and(|table| table.contains_key(COUNT)))
    };
    if table_in(&root, DOMAIN).is_some_and(has_count) {
        let templates = templates(&root, report);
        for kind in [DOMAIN, CLIENT] {
            if let Some(DeValue::Table(table)) = root.get_mut(kind).map(Spanned::get_mut) {
                let of_kind: Vec<&Template> = templates.iter().filter(|one| one.kind == kind).collect();
                *table = tables(std::mem::take(table), kind, &of_kind, report);
            }
        }
        if let Some(DeValue::Array(actions)) = root.get_mut(ACTION).map(Spanned::get_mut) {
            let mut all = Vec::new();
            for (index, action) in std::mem::replace(actions, DeArray::new()).into_iter().enumerate() {
                for one in action_on(action, &templates) {
                    report.written_as(format!("{ACTION}[{}]", all.len()), format!("{ACTION}[{index}]"));
                    all.push(one);
                }
            }
            *actions = all.into_iter().collect();
        }
    }
    Spanned::new(span, DeValue::Table(root))
}

/// The tables that stand for several. What is wrong with one is reported, and it stands for itself.
fn templates(root: &DeTable<'_>, report: &mut Report<'_>) -> Vec<Template> {
    let Some(domains) = table_in(root, DOMAIN) else { return Vec::new() };
    let mut found: Vec<Template> = Vec::new();
    // The names that are taken, and by which of them.
    let mut by: BTreeMap<String, &str> = BTreeMap::new();
    let mut size = Size { domains: domains.len(), vcpus: 0, bytes: 0 };
    for (key, node) in domains {
        let name: &str = key.get_ref();
        let Some(field) = node.get_ref().as_table().and_then(|table| table.get(COUNT)) else { continue };
        if by.contains_key(name) {
            // That it says what a copy must not is reported with that copy.
            continue;
        }
        let place = Place { span: Some(field.span()), field: join(&join(DOMAIN, name), COUNT) };
        let count = count_of(field.get_ref());
        let copies = count.map_or_else(Vec::new, |count| names(name, count));
        let problem = match count {
            _ if name == DOM0 => Some(Problem::says("`dom0` is domain number 0, of which there is one")),
            None => Some(Problem::not_allowed(format!("an integer from 1 to {DOMAINS_MAX}"))),
            Some(_) => size.with(root, name, node, &copies).or_else(|| {
                let name = copies.iter().find_map(|copy| by.get(copy))?;
                Some(Problem::says(format!("its copies and those of [domain.{name}] have the same names")))
            }),
        };
        match problem {
            Some(problem) => report.error(&place, problem),
            None => {
                by.extend(copies.iter().map(|copy| (copy.clone(), name)));
                by.insert(name.to_owned(), name);
                found.push(Template { kind: DOMAIN, name: name.to_owned(), domain: name.to_owned(), copies })
            }
        }
    }
    let clients = table_in(root, CLIENT).into_iter().flatten();
    let of_clients: Vec<Template> = clients
        .filter_map(|(key, node)| {
            let server = word(node, SERVER)?;
            let asked = found.iter().find(|one| one.name == server)?;
            let copies = names(key.get_ref(), asked.copies.len());
            Some(Template {
                kind: CLIENT,
                name: key.get_ref().to_string(),
                domain: server.to_owned(),
                copies,
            })
        })
        .collect();
    found.extend(of_clients);
    found
}

/// The size that a scenario has with all copies: limited before any is made.
struct Size {
    domains: usize,
    vcpus: u64,
    bytes: usize,
}

impl Size {
    /// Adds copies of a domain, with its clients and actions; the problem if that is too much.
    fn with(
        &mut self,
        root: &DeTable<'_>,
        name: &str,
        node: &Node<'_>,
        copies: &[String],
    ) -> Option<Problem> {
        let count = copies.len();
        // The table of a copy that differs is there already, and adds no domain.
        let there = table_in(root, DOMAIN)
            .map_or(0, |domains| copies.iter().filter(|copy| domains.contains_key(copy.as_str())).count());
        let vcpus = node.get_ref().as_table().and_then(|table| integer(table.get("vcpus")?.get_ref()));
        let clients = table_in(root, CLIENT).into_iter().flat_map(DeTable::values);
        let asking = clients.filter(|node| word(node, SERVER) == Some(name));
        let actions = root.get(ACTION).and_then(|node| node.get_ref().as_array()).into_iter().flatten();
        let acting = actions.filter(|node| word(node, DOMAIN) == Some(name));
        let once: usize = std::iter::once(node).chain(asking).chain(acting).map(bytes).sum();
        self.domains = self.domains + count - 1 - there;
        self.vcpus += count as u64 * vcpus.unwrap_or(1).clamp(1, i64::from(VCPUS_MAX)) as u64;
        self.bytes += once.saturating_mul(count);
        let too_many = |allowed: String, found: String| Some(Problem::not_allowed(allowed).found(found));
        if self.domains > DOMAINS_MAX {
            return too_many(
                format!("1 to {DOMAINS_MAX} domains"),
                format!("{} domains in all", self.domains),
            );
        }
        if self.vcpus > VCPUS_MAX.into() {
            let allowed = format!("at most {VCPUS_MAX} vCPUs in all domains together");
            return too_many(allowed, format!("{} vCPUs or more", self.vcpus));
        }
        if self.bytes > FILE_BYTES_MAX {
            let allowed = format!("at most {FILE_BYTES_MAX} bytes of copies, written out");
            return too_many(allowed, format!("{} bytes", self.bytes));
        }
        None
    }
}

/// `batch01` to `batch12`: as many digits as the highest number has.
fn names(name: &str, count: usize) -> Vec<String> {
    let digits = count.to_string().len();
    (1..=count).map(|number| format!("{name}{number:0digits$}")).collect()
}

/// Tables with those that stand for several written out, each copy with what a table of its own name says.
fn tables<'i>(
    all: DeTable<'i>,
    kind: &'static str,
    templates: &[&Template],
    report: &mut Report<'_>,
) -> DeTable<'i> {
    let copies: BTreeSet<&str> = templates.iter().flat_map(|one| &one.copies).map(String::as_str).collect();
    let (of_copies, others): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(key, _)| copies.contains(key.get_ref().as_ref()));
    let mut own: BTreeMap<String, Node<'i>> =
        of_copies.into_iter().map(|(key, node)| (key.get_ref().to_string(), node)).collect();
    let mut written = DeTable::new();
    for (key, mut node) in others {
        if let (DOMAIN, DeValue::Table(table)) = (kind, node.get_mut()) {
            table.remove(COUNT);
        }
        let Some(template) = templates.iter().find(|one| one.name == key.get_ref().as_ref()) else {
            written.insert(key, node);
            continue;
        };
        let servers = names(&template.domain, template.copies.len());
        for (copy, server) in template.copies.iter().zip(servers) {
            let mut one = node.clone();
            if let (CLIENT, DeValue::Table(table)) = (kind, one.get_mut()) {
                rename(table, SERVER, server);
            }
            match own.remove(copy) {
                Some(differs) => merge(&mut one, what_differs(differs, kind, copy, template, report)),
                None => report.written_as(join(kind, copy), join(kind, &template.name)),
            }
            written.insert(Spanned::new(key.span(), copy.clone().into()), one);
        }
    }
    written
}

/// Removes from the table of a single copy the field that only its template may have: the number of copies, or the
/// domain that they ask.
fn what_differs<'i>(
    mut node: Node<'i>,
    kind: &str,
    copy: &str,
    template: &Template,
    report: &mut Report<'_>,
) -> Node<'i> {
    let field = if kind == CLIENT { SERVER } else { COUNT };
    if let DeValue::Table(table) = node.get_mut()
        && let Some(value) = table.remove(field)
    {
        let place = Place { span: Some(value.span()), field: join(&join(kind, copy), field) };
        let template = join(kind, &template.name);
        let problem = Problem::says(format!("`{copy}` is one of the copies that [{template}] stands for"));
        report.error(&place, problem.hint("give it another name, or only the values in which it differs"));
    }
    node
}

/// An action, or one of it for each copy of its domain.
fn action_on<'i>(action: Node<'i>, templates: &[Template]) -> Vec<Node<'i>> {
    let domain = word(&action, DOMAIN);
    let Some(template) = templates.iter().find(|one| one.kind == DOMAIN && Some(one.name.as_str()) == domain)
    else {
        return vec![action];
    };
    let one = |copy: &String| {
        let mut action = action.clone();
        if let DeValue::Table(table) = action.get_mut() {
            rename(table, DOMAIN, copy.clone());
        }
        action
    };
    template.copies.iter().map(one).collect()
}

fn rename(table: &mut DeTable<'_>, field: &str, name: String) {
    if let Some(value) = table.get_mut(field) {
        *value.get_mut() = DeValue::String(DeString::Owned(name));
    }
}

/// Values in place of others; tables are gone through.
fn merge<'i>(base: &mut Node<'i>, over: Node<'i>) {
    if !(base.get_ref().is_table() && over.get_ref().is_table()) {
        *base = over;
        return;
    }
    if let (DeValue::Table(base), DeValue::Table(over)) = (base.get_mut(), over.into_inner()) {
        for (key, value) in over {
            match base.get_mut(key.get_ref().as_ref()) {
                Some(there) => merge(there, value),
                None => drop(base.insert(key, value)),
            }
        }
    }
}

fn table_in<'n, 'i>(table: &'n DeTable<'i>, name: &str) -> Option<&'n DeTable<'i>> {
    table.get(name)?.get_ref().as_table()
}

fn word<'n>(node: &'n Node<'_>, field: &str) -> Option<&'n str> {
    node.get_ref().as_table()?.get(field)?.get_ref().as_str()
}

fn integer(value: &DeValue<'_>) -> Option<i64> {
    let digits = value.as_integer()?;
    i64::from_str_radix(digits.as_str(), digits.radix()).ok()
}

fn count_of(value: &DeValue<'_>) -> Option<usize> {
    integer(value)
        .and_then(|count| usize::try_from(count).ok())
        .filter(|count| (1..=DOMAINS_MAX).contains(count))
}

/// About the length of the text that says this.
fn bytes(node: &Node<'_>) -> usize {
    match node.get_ref() {
        DeValue::String(text) => text.len() + 3,
        DeValue::Array(items) => 2 + items.iter().map(bytes).sum::<usize>(),
        DeValue::Table(table) => table.iter().map(|(key, node)| key.get_ref().len() + 4 + bytes(node)).sum(),
        _ => 8,
    }
}
