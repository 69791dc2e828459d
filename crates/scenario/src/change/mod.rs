//! Changes of settings: the new text of a scenario, and the checked scenario.
//!
//! A change goes through four steps: [`address`] makes full paths of addresses such as `web.weight`; [`left_out`] finds the
//! fields that another scheduler does not have; [`edit`] sets and removes values in the user's own text; and the result is
//! parsed and checked, once.

mod address;
mod left_out;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

pub use address::{AddressError, NewNames};

use crate::change::address::Names;
use crate::edit::{Edit, EditError, edit};
use crate::file::copies::{in_text, templates_of, written};
use crate::outside::Outside;
use crate::scenario::Scenario;
use crate::text::problem::{Problem, Problems};

/// A scenario with other settings.
#[derive(Clone, Debug)]
pub struct Changed {
    /// The scenario.
    pub scenario: Scenario,
    /// The text of the scenario, and the fields that differ.
    pub edited: Edited,
}

/// The text of a scenario with other settings, which is not checked.
#[derive(Clone, PartialEq, Debug)]
pub struct Edited {
    /// The text.
    pub text: String,
    /// The fields that are set or removed, each with the number of the edit that does so. Without those that were to be
    /// removed and are not in the text.
    pub set: Vec<Set>,
    /// The numbers of the edits that remove a field and name none that is in the text.
    pub absent: Vec<usize>,
    /// The paths of the fields that are left out with the old scheduler.
    pub left_out: Vec<Vec<String>>,
}

/// A field that is set or, by null, removed.
#[derive(Clone, PartialEq, Debug)]
pub struct Set {
    /// The full path.
    pub path: Vec<String>,
    /// The value in the text.
    pub value: Json,
    /// The number of the edit among those given, from 0.
    pub edit: usize,
}

/// The reason why settings cannot be changed.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum ChangeError {
    /// An address of an edit leads nowhere, or to more than one place.
    #[error("{error}")]
    Address {
        /// The number of the edit, from 0.
        edit: usize,
        /// The problem.
        error: AddressError,
    },
    /// An edit sets a field that another edit sets.
    #[error("`{path}` is set twice")]
    Twice {
        /// The number of the second edit, from 0.
        edit: usize,
        /// The full path.
        path: String,
    },
    /// The edit does not fit the structure of the text.
    #[error("{0}")]
    Edit(#[from] EditError),
    /// The result is not a valid scenario.
    #[error("{problems}")]
    Scenario {
        /// Every problem.
        problems: Problems,
        /// For each problem the number of the edit whose field it is in, if any.
        edits: Vec<Option<usize>>,
    },
}

/// The scenario of a text with other settings; `file` is its name in messages. Comments, order and formatting of the text stay.
///
/// The steps of an edit are a full path (`domain.web.weight`) or an address: the name of a domain, client, pool, NIC, disk or
/// client machine first (`web.weight`), a client's field by the domain that it asks (`web.rate`), a pattern (`batch*.weight`),
/// or the name of a table with a `count`, for all its copies. A later edit may set again what a pattern set.
///
/// ```
/// use vcpulab_scenario::{NewNames, Outside, change, starter};
///
/// let edits = [(vec!["web".into(), "weight".into()], 512.into())];
/// let changed = change(starter(), &edits, NewNames::Refused, "web.toml", Outside::default()).unwrap();
/// assert_eq!(changed.edited.set[0].path, ["domain", "web", "weight"]);
/// assert!(changed.edited.text.contains("weight = 512"));
/// ```
///
/// # Errors
/// See [`ChangeError`].
pub fn change(
    text: &str,
    edits: &[Edit],
    new_names: NewNames,
    file: &str,
    outside: Outside<'_>,
) -> Result<Changed, ChangeError> {
    let edited = edit_settings(text, edits, new_names, outside)?;
    match Scenario::parse_in(&edited.text, file, outside) {
        Ok(scenario) => Ok(Changed { scenario, edited }),
        Err(problems) => {
            let edits = edits_at_fault(text, &edited.set, &problems);
            Err(ChangeError::Scenario { problems, edits })
        }
    }
}

/// The text with other settings, like [`change`]; neither the old text nor the new one need be a valid scenario.
///
/// # Errors
/// See [`ChangeError`].
pub fn edit_settings(
    text: &str,
    edits: &[Edit],
    new_names: NewNames,
    outside: Outside<'_>,
) -> Result<Edited, ChangeError> {
    let tables = written(text).map_err(EditError::Syntax)?;
    let templates = templates_of(text);
    let stated = in_text(text).map_err(EditError::Syntax)?;
    let names = Names { tables: &tables, stated: &stated, templates: &templates };
    let mut set: Vec<Set> = Vec::new();
    let mut absent: Vec<usize> = Vec::new();
    let mut place_of: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    let mut by_pattern: BTreeSet<usize> = BTreeSet::new();
    for (edit, (steps, value)) in edits.iter().enumerate() {
        let paths = names.paths(steps, new_names).map_err(|error| ChangeError::Address { edit, error })?;
        let is_pattern = paths.len() > 1 || address::has_pattern(steps);
        if value.is_null() && !paths.iter().any(|path| names.is_in_text(path)) {
            absent.push(edit);
        }
        for path in paths {
            let value = address::typed(&path, value);
            let place = place_of.get(&path).copied();
            if place.is_some_and(|place| !by_pattern.contains(&place)) {
                return Err(ChangeError::Twice { edit, path: address::shown(&path) });
            }
            let place = place.unwrap_or(set.len());
            if is_pattern {
                by_pattern.insert(place);
            } else {
                by_pattern.remove(&place);
            }
            place_of.insert(path.clone(), place);
            let field = Set { path, value, edit };
            match set.get_mut(place) {
                Some(earlier) => *earlier = field,
                None => set.push(field),
            }
        }
    }
    // A field that is not in the text has its default already.
    set.retain(|field| !field.value.is_null() || names.is_in_text(&field.path));
    let fields: Vec<Edit> = set.iter().map(|field| (field.path.clone(), field.value.clone())).collect();
    let left_out = left_out::left_out(&tables, &fields, outside);
    let removed = left_out.iter().map(|path| (path.clone(), Json::Null));
    let text = edit(text, &removed.chain(fields).collect::<Vec<_>>())?;
    Ok(Edited { text, set, absent, left_out })
}

/// The full paths of the settings that an address means in a text.
///
/// # Errors
/// The address matches no setting, or is ambiguous.
pub fn addressed(text: &str, address: &[String]) -> Result<Vec<Vec<String>>, ChangeError> {
    let tables = written(text).map_err(EditError::Syntax)?;
    let names = Names { tables: &tables, stated: &tables, templates: &templates_of(text) };
    let paths = names.paths(address, NewNames::Refused);
    paths.map_err(|error| ChangeError::Address { edit: 0, error })
}

/// For each problem of a changed scenario, the number of the edit whose field it is in.
fn edits_at_fault(text: &str, set: &[Set], problems: &Problems) -> Vec<Option<usize>> {
    let templates = templates_of(text);
    let mut fields: Vec<(String, usize)> = Vec::new();
    for Set { path, edit, .. } in set {
        fields.push((as_in_problems(path), *edit));
        // A problem of all copies is one of the table that stands for them.
        if let [kind, copy, rest @ ..] = &path[..]
            && let Some(template) = templates.iter().find(|t| t.kind == kind && t.copies.contains(copy))
        {
            let path = [&[kind.clone(), template.name.clone()], rest].concat();
            fields.push((as_in_problems(&path), *edit));
        }
    }
    let at_fault = |problem: &Problem| {
        let field = problem.field.as_deref()?;
        let is_in = |path: &str| {
            field.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        fields.iter().find(|(path, _)| is_in(path)).map(|&(_, edit)| edit)
    };
    problems.iter().map(at_fault).collect()
}

/// A path as problems have it: `domain.web.app[0].kind`.
fn as_in_problems(path: &[String]) -> String {
    let mut shown = String::new();
    for (index, step) in path.iter().enumerate() {
        // The second step may be a name of digits; `action` is a list.
        let is_item = index > 1 || path[0] == "action";
        shown = match step.parse::<usize>() {
            Ok(item) if is_item => format!("{shown}[{item}]"),
            _ => crate::text::problem::join(&shown, step),
        };
    }
    shown
}

#[cfg(test)]
mod tests;
