//! Changes in a scenario's own text: comments, order and formatting stay.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::Value as Json;
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, Value};

use crate::file::copies::{Template, templates_of};

/// A value to set: the steps of the path that leads to it, and the value; null removes the field.
pub type Edit = (Vec<String>, Json);

/// The reason why a text cannot be edited.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EditError {
    /// The text is not TOML.
    #[error("not valid TOML: {0}")]
    Syntax(String),
    /// The path is empty.
    #[error("a path names at least one field")]
    NoPath,
    /// The path continues where there are no fields.
    #[error("`{path}`: there are no fields in `{found}`")]
    NoFields {
        /// The path.
        path: String,
        /// The path of the value that has no fields.
        found: String,
    },
    /// The path names an item of a list that is not there.
    #[error("`{path}`: found `{step}`; allowed: an item from 0 to {last}")]
    NoItem {
        /// The path.
        path: String,
        /// The step that leads nowhere.
        step: String,
        /// The last item that is there.
        last: i64,
    },
    /// The field to be removed is not there.
    #[error("`{0}` is not there to be removed")]
    Absent(String),
    /// A value given for all copies of a table cannot be removed from a single copy.
    #[error(
        "`{path}`: [{template}] says it for all its copies; allowed: another value, or the change of all of them"
    )]
    OfAll {
        /// The path.
        path: String,
        /// The table that stands for them.
        template: String,
    },
    /// TOML has no such value, or not there.
    #[error("`{0}`: TOML has no such value there")]
    Value(String),
}

/// The text of a TOML file with these values set, one after the other. Items of a list are counted from 0, and the number
/// after the last adds one. What is set for all copies of a table with a `count` is set there; for one of them, in a table of
/// that one's name.
///
/// ```
/// let edits = [(vec!["domain".into(), "web".into(), "weight".into()], 512.into())];
/// let text = "[domain.web]   # sells\nweight = 256 # for now\n";
/// assert_eq!(vcpulab_scenario::edit(text, &edits).unwrap(), "[domain.web]   # sells\nweight = 512 # for now\n");
/// ```
///
/// # Errors
/// See [`EditError`].
pub fn edit(text: &str, edits: &[Edit]) -> Result<String, EditError> {
    let mut document: DocumentMut = text.parse().map_err(syntax)?;
    let had_values = !document.get_values().is_empty();
    for (steps, value) in &of_copies(text, &mut document, edits)? {
        let (last, before) = steps.split_last().ok_or(EditError::NoPath)?;
        let path = steps.join(".");
        let mut here = Here::Table(document.as_table_mut(), Level::Root);
        for name in before {
            here = here.step(name, &path)?;
        }
        here.set(last, value, &path)?;
    }
    let edited = document.to_string();
    let first_values = !had_values && !document.get_values().is_empty();
    Ok(if first_values { title_first(text, edited) } else { edited })
}

/// The edits that make the same scenario of a text in which tables stand for several.
fn of_copies(text: &str, document: &mut DocumentMut, edits: &[Edit]) -> Result<Vec<Edit>, EditError> {
    let templates = templates_of(text);
    let template_of: BTreeMap<(&str, &str), &Template> = templates
        .iter()
        .flat_map(|one| one.copies.iter().map(move |copy| ((one.kind, copy.as_str()), one)))
        .collect();
    let given: BTreeMap<&[String], &Json> =
        edits.iter().rev().map(|(steps, value)| (&steps[..], value)).collect();
    let mut of_all: BTreeMap<Vec<String>, Option<OfMost>> = BTreeMap::new();
    let mut found: Vec<Edit> = Vec::new();
    for (steps, value) in edits {
        let named = steps.get(1).and_then(|name| template_of.get(&(steps[0].as_str(), name.as_str())));
        let Some(template) = named else {
            found.push((steps.clone(), value.clone()));
            continue;
        };
        let [kind, copy, rest @ ..] = &steps[..] else { unreachable!("it has a kind and a name") };
        let at = |name: &String| [&[kind.clone(), name.clone()], rest].concat();
        let most = of_all.entry(at(&template.name)).or_insert_with(|| {
            OfMost::of(template.copies.iter().map(|name| given.get(&at(name)[..]).copied()))
        });
        if let Some(most) = most.as_ref().filter(|most| most.value == *value) {
            // With the first of them, for all.
            if *copy == template.copies[most.first] {
                let alike = template.copies.iter().map(at).filter(|path| given[&path[..]] == value);
                let own = alike.filter(|path| item_at(document, path).is_some());
                found.extend(own.map(|path| (path, Json::Null)));
                found.push((at(&template.name), value.clone()));
            }
        } else if rest.is_empty() || (value.is_null() && item_at(document, steps).is_none()) {
            let template = format!("{kind}.{}", template.name);
            return Err(EditError::OfAll { path: steps.join("."), template });
        } else {
            // A list is one value: the copy gets one of its own before an item of it changes.
            let list = at(&template.name)[..3].to_vec();
            if rest.len() > 1
                && item_at(document, &steps[..3]).is_none()
                && let Some(Item::Value(list @ Value::Array(_))) =
                    item_at(document, &list).cloned().map(as_value)
            {
                let mut here = Here::Table(document.as_table_mut(), Level::Root);
                for name in &steps[..2] {
                    here = here.step(name, &rest[0])?;
                }
                match here {
                    Here::Table(table, _) => drop(table.insert(&rest[0], Item::Value(list))),
                    Here::Inline(table) => drop(table.insert(&rest[0], list)),
                    Here::Array(_) | Here::Tables(_) => {}
                }
            }
            found.push((steps.clone(), value.clone()));
        }
    }
    Ok(found)
}

/// The value that most copies of a table have, if all have one.
struct OfMost {
    value: Json,
    /// The first copy that is given it.
    first: usize,
}

impl OfMost {
    fn of<'j>(given: impl Iterator<Item = Option<&'j Json>>) -> Option<Self> {
        let values: Vec<&Json> = given.collect::<Option<_>>()?;
        let mut firsts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for (index, value) in values.iter().enumerate() {
            firsts.entry(value.to_string()).or_insert((index, 0)).1 += 1;
        }
        let (first, _) = firsts.into_values().max_by_key(|&(first, times)| (times, Reverse(first)))?;
        Some(OfMost { value: values[first].clone(), first })
    }
}

/// Lists of tables as one value, which needs no headers.
fn as_value(item: Item) -> Item {
    item.into_value().map_or(Item::None, Item::Value)
}

fn item_at<'d>(document: &'d DocumentMut, steps: &[String]) -> Option<&'d Item> {
    steps.iter().try_fold(document.as_item(), |here, step| here.get(step))
}

/// The first values at the top stand below the comment with which the file begins, if an empty line ends that.
fn title_first(text: &str, edited: String) -> String {
    let Some((title, _)) = text.split_once("\n\n") else { return edited };
    if !title.lines().all(|line| line.starts_with('#')) {
        return edited;
    }
    let title = format!("{title}\n\n");
    title.clone() + &edited.replacen(&title, "\n", 1)
}

fn syntax(error: toml_edit::TomlError) -> EditError {
    EditError::Syntax(error.message().to_owned())
}

/// The way in which a table that is new is written in another one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    /// With a header of its own, as all tables at the top.
    Root,
    /// With dotted keys, unless the other one consists of tables with headers.
    Inner,
}

/// A part of a document that has others.
enum Here<'d> {
    Table(&'d mut Table, Level),
    Inline(&'d mut InlineTable),
    Array(&'d mut Array),
    Tables(&'d mut ArrayOfTables),
}

impl<'d> Here<'d> {
    fn of_item(item: &'d mut Item, path: &str) -> Result<Self, EditError> {
        match item {
            Item::Table(table) => Ok(Here::Table(table, Level::Inner)),
            Item::ArrayOfTables(tables) => Ok(Here::Tables(tables)),
            Item::Value(value) => Here::of_value(value, path),
            Item::None => Err(EditError::NoPath),
        }
    }

    fn of_value(value: &'d mut Value, path: &str) -> Result<Self, EditError> {
        match value {
            Value::InlineTable(table) => Ok(Here::Inline(table)),
            Value::Array(array) => Ok(Here::Array(array)),
            value => {
                let found = value.clone().decorated("", "").to_string();
                Err(EditError::NoFields { path: path.to_owned(), found })
            }
        }
    }

    /// Takes a step down the path. A table that does not exist yet is made.
    fn step(self, name: &str, path: &str) -> Result<Here<'d>, EditError> {
        match self {
            Here::Table(table, level) => {
                let dotted = !has_sections(table, level);
                let item = table.entry(name).or_insert_with(|| {
                    let mut fresh = Table::new();
                    fresh.set_implicit(true);
                    fresh.set_dotted(dotted);
                    Item::Table(fresh)
                });
                Here::of_item(item, path)
            }
            Here::Inline(table) => {
                Here::of_value(table.entry(name).or_insert(InlineTable::new().into()), path)
            }
            Here::Array(array) => {
                let index = index(name, array.len(), path)?;
                Here::of_value(array.get_mut(index).expect("the index is in the list"), path)
            }
            Here::Tables(tables) => {
                let index = index(name, tables.len(), path)?;
                let table = tables.get_mut(index).expect("the index is in the list");
                Ok(Here::Table(table, Level::Inner))
            }
        }
    }

    fn set(self, name: &str, value: &Json, path: &str) -> Result<(), EditError> {
        match (self, value) {
            (Here::Table(table, _), Json::Null) => {
                table.remove(name).map(drop).ok_or_else(|| EditError::Absent(path.to_owned()))
            }
            (Here::Inline(table), Json::Null) => {
                table.remove(name).map(drop).ok_or_else(|| EditError::Absent(path.to_owned()))
            }
            (Here::Table(table, level), value) => set_in_table(table, level, name, value, path),
            (Here::Inline(table), value) => {
                let fresh = inline(value, path)?;
                match table.get_mut(name) {
                    Some(old) => replace(old, fresh),
                    None => drop(table.insert(name, fresh)),
                }
                Ok(())
            }
            (Here::Array(array), value) if name == array.len().to_string() => {
                array.push(inline(value, path)?);
                Ok(())
            }
            (Here::Array(array), value) => {
                array.replace(index(name, array.len(), path)?, inline(value, path)?);
                Ok(())
            }
            (Here::Tables(tables), value) if name == tables.len().to_string() => {
                tables.push(section(value, path)?);
                Ok(())
            }
            (Here::Tables(tables), value) => {
                let index = index(name, tables.len(), path)?;
                let fresh = in_place_of(
                    &tables.iter().nth(index).cloned().unwrap_or_default(),
                    section(value, path)?,
                );
                tables.replace(index, fresh);
                Ok(())
            }
        }
    }
}

/// Whether a new table in this one gets a header.
fn has_sections(table: &Table, level: Level) -> bool {
    level == Level::Root || (table.is_implicit() && !table.is_dotted())
}

fn set_in_table(
    table: &mut Table,
    level: Level,
    name: &str,
    value: &Json,
    path: &str,
) -> Result<(), EditError> {
    let sections = has_sections(table, level);
    match table.get_mut(name) {
        Some(Item::Value(old)) => replace(old, inline(value, path)?),
        Some(Item::Table(old)) if value.is_object() => *old = in_place_of(old, section(value, path)?),
        Some(_) => {
            let fresh = inline(value, path)?;
            table.remove(name);
            table.insert(name, Item::Value(fresh));
        }
        None if value.is_object() && sections => {
            table.insert(name, Item::Table(section(value, path)?));
        }
        None => drop(table.insert(name, Item::Value(inline(value, path)?))),
    }
    Ok(())
}

/// A value where another one was, with its comments.
fn replace(old: &mut Value, mut fresh: Value) {
    *fresh.decor_mut() = old.decor().clone();
    *old = fresh;
}

/// A table where another one was, with its place, comments and style.
fn in_place_of(old: &Table, mut fresh: Table) -> Table {
    fresh.set_position(old.position());
    fresh.set_dotted(old.is_dotted());
    *fresh.decor_mut() = old.decor().clone();
    fresh
}

fn index(step: &str, len: usize, path: &str) -> Result<usize, EditError> {
    let found = step.parse().ok().filter(|&index| index < len);
    found.ok_or_else(|| EditError::NoItem {
        path: path.to_owned(),
        step: step.to_owned(),
        last: len as i64 - 1,
    })
}

/// A table with a header.
fn section(value: &Json, path: &str) -> Result<Table, EditError> {
    match inline(value, path)? {
        Value::InlineTable(table) => Ok(table.into_table()),
        _ => Err(EditError::Value(path.to_owned())),
    }
}

fn inline(value: &Json, path: &str) -> Result<Value, EditError> {
    let none = || EditError::Value(path.to_owned());
    Ok(match value {
        Json::Null => return Err(none()),
        Json::Bool(value) => (*value).into(),
        Json::String(text) => text.as_str().into(),
        Json::Number(number) if number.is_f64() => number.as_f64().ok_or_else(none)?.into(),
        Json::Number(number) => number.as_i64().ok_or_else(none)?.into(),
        Json::Array(items) => {
            let items: Vec<Value> = items.iter().map(|item| inline(item, path)).collect::<Result<_, _>>()?;
            Value::Array(items.into_iter().collect())
        }
        Json::Object(fields) => {
            let mut table = InlineTable::new();
            for (name, value) in fields {
                table.insert(name, inline(value, path)?);
            }
            Value::InlineTable(table)
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::file::copies::written;
    use crate::scenario::Scenario;
    use crate::tests::right::right;

    const TEXT: &str = "\
# A web server.
# For tests.

seed = 7                # any
[run]
duration = \"1s\"         # short

[host]
scheduler = \"credit\"    # the old one
pcpus = 2
costs = { decision_ns = 5, context_switch_ns = 7 } # inline

# The machine of all drivers.
[domain.dom0]
driver_domain = true

[domain.web] # sells
weight = 256
nic.driver_domain = \"dom0\" # dotted
app = [
    { kind = \"web-server\" }, # answers
    { kind = \"hog\" },
]

[client.users]
kind = \"open-loop\"
server = \"web\"
rate = 10

[[action]]
at = \"1s\" # soon
op = \"pause\"
domain = \"web\"

[[action]]
at = \"2s\"
op = \"unpause\"
domain = \"web\"
";

    fn steps(path: &str) -> Vec<String> {
        path.split('.').map(str::to_owned).collect()
    }

    /// Changes the value in another way, to compare the results: read, set, and compared as values.
    fn set(document: &mut toml::Value, steps: &[String], value: &Json) {
        let (last, before) = steps.split_last().unwrap();
        let mut here = document;
        for name in before {
            here = match here {
                toml::Value::Array(items) => &mut items[name.parse::<usize>().unwrap()],
                here => here.as_table_mut().unwrap().entry(name).or_insert(toml::Table::new().into()),
            };
        }
        match (here, value) {
            (toml::Value::Array(items), value) => {
                let value = toml::Value::try_from(value).unwrap();
                match last.parse::<usize>().unwrap() {
                    index if index < items.len() => items[index] = value,
                    _ => items.push(value),
                }
            }
            (here, Json::Null) => drop(here.as_table_mut().unwrap().remove(last).unwrap()),
            (here, value) => {
                here.as_table_mut().unwrap().insert(last.clone(), toml::Value::try_from(value).unwrap());
            }
        }
    }

    fn edited(text: &str, edits: &[(&str, Json)]) -> String {
        let edits: Vec<Edit> = edits.iter().map(|(path, value)| (steps(path), value.clone())).collect();
        let found = edit(text, &edits).unwrap_or_else(|error| panic!("{error}"));
        let mut expected = toml::Value::Table(toml::from_str(text).unwrap());
        edits.iter().for_each(|(steps, value)| set(&mut expected, steps, value));
        assert_eq!(toml::Value::Table(toml::from_str(&found).unwrap()), expected, "{found}");
        found
    }

    /// The lines that are not in both.
    fn changes(edits: &[(&str, Json)]) -> Vec<String> {
        let after = edited(TEXT, edits);
        let gone = TEXT.lines().filter(|line| !after.lines().any(|other| other == *line));
        let new = after.lines().filter(|line| !TEXT.lines().any(|other| other == *line));
        gone.map(|line| format!("-{line}")).chain(new.map(|line| format!("+{line}"))).collect()
    }

    #[test]
    fn a_text_without_edits_stays_as_it_is() {
        assert_eq!(edited(TEXT, &[]), TEXT);
    }

    #[test]
    fn only_the_value_changes_where_there_is_one() {
        assert_eq!(
            changes(&[("domain.web.weight", json!(512)), ("run.duration", json!("2s"))]),
            [
                "-duration = \"1s\"         # short",
                "-weight = 256",
                "+duration = \"2s\"         # short",
                "+weight = 512"
            ]
        );
        assert_eq!(
            changes(&[("domain.web.nic.driver_domain", json!("sys"))]),
            ["-nic.driver_domain = \"dom0\" # dotted", "+nic.driver_domain = \"sys\" # dotted"]
        );
        assert_eq!(
            changes(&[("host.costs.decision_ns", json!(0))]),
            [
                "-costs = { decision_ns = 5, context_switch_ns = 7 } # inline",
                "+costs = { decision_ns = 0, context_switch_ns = 7 } # inline"
            ]
        );
    }

    #[test]
    fn new_fields_stand_with_the_others_of_their_table() {
        let after = edited(TEXT, &[("domain.web.cap", json!(50)), ("domain.web.nic.tso", json!(true))]);
        assert!(after.contains("\nnic.driver_domain = \"dom0\" # dotted\nnic.tso = true\n"), "{after}");
        assert!(after.contains("\n]\ncap = 50\n\n[client.users]"), "{after}");
        assert_eq!(changes(&[("host.costs.interrupt_ns", json!(1))]).len(), 2, "in the same line");
        assert_eq!(changes(&[("domain.dom0.disk.device", json!("d"))]), ["+disk.device = \"d\""]);
    }

    #[test]
    fn new_tables_stand_with_their_like() {
        let after = edited(
            TEXT,
            &[("domain.batch.weight", json!(64)), ("domain.batch.app", json!([{"kind": "hog"}]))],
        );
        let batch = "\n]\n\n[domain.batch]\nweight = 64\napp = [{ kind = \"hog\" }]\n\n[client.users]";
        assert!(after.contains(batch), "{after}");
        let after = edited("[host]\nscheduler = \"credit\"\n", &[("run.duration", json!("1s"))]);
        assert_eq!(after, "[host]\nscheduler = \"credit\"\n\n[run]\nduration = \"1s\"\n");
    }

    #[test]
    fn the_title_stays_first() {
        let after = edited("# A title.\n\n# The host.\n[host]\npcpus = 1\n", &[("seed", json!(2))]);
        assert_eq!(after, "# A title.\n\nseed = 2\n\n# The host.\n[host]\npcpus = 1\n");
        assert_eq!(edited("[host]\npcpus = 1\n", &[("seed", json!(2))]), "seed = 2\n[host]\npcpus = 1\n");
    }

    #[test]
    fn items_of_lists_are_changed_and_added() {
        let after = edited(TEXT, &[("domain.web.app.1.kind", json!("spin")), ("action.0.at", json!("1.5s"))]);
        assert!(
            after.contains("    { kind = \"web-server\" }, # answers\n    { kind = \"spin\" },\n]"),
            "{after}"
        );
        assert!(after.contains("at = \"1.5s\" # soon\n"), "{after}");
        let third = json!({"at": "3s", "op": "pause", "domain": "web"});
        let after = edited(TEXT, &[("action.2", third), ("domain.web.app.2", json!({"kind": "spin"}))]);
        assert!(after.ends_with("\n[[action]]\nat = \"3s\"\nop = \"pause\"\ndomain = \"web\"\n"), "{after}");
    }

    #[test]
    fn fields_are_removed_and_whole_tables_replaced() {
        assert_eq!(changes(&[("domain.web.weight", json!(null))]), ["-weight = 256"]);
        assert_eq!(
            changes(&[("host.costs.decision_ns", json!(null))])[1],
            "+costs = { context_switch_ns = 7 } # inline"
        );
        let after = edited(TEXT, &[("run", json!({"duration": "3s", "warmup": "0s"}))]);
        assert!(after.contains("\n[run]\nduration = \"3s\"\nwarmup = \"0s\"\n"), "{after}");
        let after = edited(TEXT, &[("action", json!([]))]);
        assert!(!after.contains("[[action]]") && after.contains("action = []"), "{after}");
    }

    const ALIKE: &str = "\
[host]
scheduler = \"credit\"

[domain.batch] # alike
count = 3
weight = 256 # usual
[[domain.batch.app]]
kind = \"hog\"

[domain.batch2]
cap = 50

[client.users]
kind = \"open-loop\"
server = \"batch\"
rate = 10
";

    /// A text after edits of it, whose copies say what was meant.
    fn of_alike(edits: &[(&str, Json)]) -> String {
        let edits: Vec<Edit> = edits.iter().map(|(path, value)| (steps(path), value.clone())).collect();
        let found = edit(ALIKE, &edits).unwrap_or_else(|error| panic!("{error}"));
        let says = written(&found).unwrap();
        for (steps, value) in &edits {
            let at = format!("/{}", steps.join("/"));
            assert_eq!(says.pointer(&at).unwrap_or(&Json::Null), value, "{at}\n{found}");
        }
        found
    }

    #[test]
    fn what_all_copies_get_stands_where_they_do() {
        let all = |field: &str, value: Json| {
            let paths = (1..=3).map(|number| format!("domain.batch{number}.{field}"));
            let paths: Vec<String> = paths.collect();
            of_alike(&paths.iter().map(|path| (path.as_str(), value.clone())).collect::<Vec<_>>())
        };
        assert_eq!(all("weight", json!(128)), ALIKE.replace("256", "128"));
        assert_eq!(all("weight", json!(null)), ALIKE.replace("weight = 256 # usual\n", ""));
        let capped = all("cap", json!(20));
        assert!(capped.contains("[[domain.batch.app]]") && !capped.contains("cap = 50"), "{capped}");
        let rates = (1..=3).map(|number| format!("client.users{number}.rate")).collect::<Vec<_>>();
        let rates: Vec<(&str, Json)> = rates.iter().map(|path| (path.as_str(), json!(70))).collect();
        assert_eq!(of_alike(&rates), ALIKE.replace("rate = 10", "rate = 70"));
        let most = [
            ("domain.batch1.weight", json!(5)),
            ("domain.batch2.weight", json!(7)),
            ("domain.batch3.weight", json!(5)),
        ];
        assert_eq!(
            of_alike(&most),
            ALIKE.replace("256", "5").replace("cap = 50\n", "cap = 50\nweight = 7\n")
        );
    }

    #[test]
    fn what_one_copy_gets_stands_in_a_table_of_its_own() {
        let after = of_alike(&[("domain.batch3.weight", json!(64)), ("domain.batch2.cap", json!(null))]);
        assert!(
            after.contains("\n[domain.batch3]\nweight = 64\n") && after.contains("weight = 256"),
            "{after}"
        );
        let after = of_alike(&[("domain.batch1.app.0.instance", json!(2))]);
        assert!(after.contains("app = [{ kind = \"hog\", instance = 2 }]"), "{after}");
        let refused = edit(ALIKE, &[(steps("domain.batch1.weight"), json!(null))]).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "`domain.batch1.weight`: [domain.batch] says it for all its copies; allowed: another value, or the change of \
             all of them"
        );
        assert!(edit(ALIKE, &[(steps("domain.batch1"), json!(null))]).is_err());
    }

    #[test]
    fn other_line_ends_and_newer_toml_are_read() {
        let text = "\u{feff}[host]\r\npcpus = 1\r\ncosts = {\r\n  decision_ns = 5, # a\r\n}\r\n";
        let after = edit(text, &[(steps("host.costs.decision_ns"), json!(6))]).unwrap();
        assert_eq!(after.lines().nth(3), Some("  decision_ns = 6, # a"));
    }

    #[test]
    fn paths_that_lead_nowhere_are_explained() {
        let says = |path: &str, value: Json| edit(TEXT, &[(steps(path), value)]).unwrap_err().to_string();
        assert_eq!(says("run.warmup", json!(null)), "`run.warmup` is not there to be removed");
        assert_eq!(says("seed.a", json!(1)), "`seed.a`: there are no fields in `7`");
        assert_eq!(
            says("action.5.at", json!("1s")),
            "`action.5.at`: found `5`; allowed: an item from 0 to 1"
        );
        assert_eq!(says("seed", json!(u64::MAX)), "`seed`: TOML has no such value there");
        assert_eq!(
            edit("a = ", &[]).unwrap_err().to_string().lines().next(),
            Some("not valid TOML: string values must be quoted, expected literal string")
        );
        assert_eq!(edit("", &[(Vec::new(), json!(1))]), Err(EditError::NoPath));
    }

    proptest! {
        #[test]
        fn the_scenario_is_the_one_meant(text in right(), weight in 1..60_000_i64, seed in any::<u32>()) {
            let edits = [("domain.dom0.weight", json!(weight)), ("seed", json!(seed)), ("run.warmup", json!(null)),
                ("host.costs.decision_ns", json!(9)), ("domain.new.vcpus", json!(2))];
            let after = edited(&text, &edits);
            let scenario = Scenario::parse(&after, "f").unwrap_or_else(|problems| panic!("{after}\n{problems}"));
            prop_assert_eq!(scenario.seed, u64::from(seed));
            prop_assert_eq!(&scenario.domains.iter().last().unwrap().name, "new");
        }
    }
}
