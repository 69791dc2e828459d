//! Problems of a scenario file, with their places.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::Serialize;

use vcpulab_spec::limits::NAME_CHARS_MAX;

use crate::text::limits::PROBLEMS_MAX;

/// A problem of a scenario: an error or, as a warning, a doubtful value.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Problem {
    /// The file's name as given.
    pub file: String,
    /// Line, from 1.
    pub line: Option<usize>,
    /// Column, from 1, in characters.
    pub column: Option<usize>,
    /// The field's dotted path, such as `domain.web.weight`.
    pub field: Option<String>,
    /// The value in the file.
    pub found: Option<String>,
    /// The values allowed there.
    pub allowed: Option<String>,
    /// A way to fix the problem.
    pub hint: Option<String>,
    /// The problem in one sentence, without the place.
    pub message: String,
}

impl Problem {
    /// A problem in its own words.
    pub(crate) fn says(message: impl Into<String>) -> Self {
        Problem { message: message.into(), ..Problem::default() }
    }

    /// A value that is not among the allowed ones. Unless described by `found`, it is quoted from the file.
    pub(crate) fn not_allowed(allowed: impl Into<String>) -> Self {
        Problem { allowed: Some(allowed.into()), ..Problem::default() }
    }

    pub(crate) fn found(mut self, found: impl fmt::Display) -> Self {
        self.found = Some(found.to_string());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn maybe_hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint.or(self.hint);
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, ":{line}:{column}")?;
        }
        if let Some(field) = &self.field {
            write!(f, ": {field}")?;
        }
        write!(f, ": {}", self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {hint}")?;
        }
        Ok(())
    }
}

/// All problems of a scenario, in the order of the file. Never empty.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// Each problem.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.0.iter()
    }
}

impl IntoIterator for Problems {
    type Item = Problem;
    type IntoIter = std::vec::IntoIter<Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Problems(vec![problem])
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            write!(f, "{}{problem}", if index == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

/// A problem with a file as a whole.
pub(crate) fn whole_file(file: &str, message: String) -> Problems {
    Problem { file: file.into(), ..Problem::says(message) }.into()
}

/// The text that these bytes of a file are.
pub(crate) fn text_of<'b>(bytes: &'b [u8], file: &str) -> Result<&'b str, Problems> {
    std::str::from_utf8(bytes).map_err(|error| {
        whole_file(file, format!("not a text file: byte {} is not valid UTF-8", error.valid_up_to()))
    })
}

/// A place in a file: a part of the text, and the field that it is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Place {
    pub span: Option<Range<usize>>,
    pub field: String,
}

impl Place {
    /// The place of a field that is not there, in the table that stands here.
    pub fn member(&self, name: &str) -> Place {
        Place { span: self.span.clone(), field: join(&self.field, name) }
    }
}

/// A dotted path with one more name, quoted if TOML would quote it.
pub(crate) fn join(path: &str, name: &str) -> String {
    let bare = !name.is_empty() && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_' || c == b'-');
    // Done for every field of a file.
    let mut joined = String::with_capacity(path.len() + name.len() + 3);
    joined.push_str(path);
    if !path.is_empty() {
        joined.push('.');
    }
    if bare {
        joined.push_str(name);
    } else {
        joined.push_str(&format!("{name:?}"));
    }
    joined
}

/// The text being read, and everything found wrong with it so far.
pub(crate) struct Report<'t> {
    file: &'t str,
    text: &'t str,
    line_starts: Vec<usize>,
    errors: Vec<(usize, Problem)>,
    warnings: Vec<(usize, Problem)>,
    errors_left_out: usize,
    /// By path of what has been written out: the path at which it is in the text.
    written: BTreeMap<String, String>,
}

impl<'t> Report<'t> {
    pub fn new(file: &'t str, text: &'t str) -> Self {
        let line_starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let (errors, warnings) = (Vec::new(), Vec::new());
        Report { file, text, line_starts, errors, warnings, errors_left_out: 0, written: BTreeMap::new() }
    }

    /// Problems at one path are those of another one, where the value is in the text.
    pub fn written_as(&mut self, path: String, in_text: String) {
        self.written.insert(path, in_text);
    }

    /// The paths at which that of the text has been written out.
    pub fn copies<'r>(&'r self, in_text: &'r str) -> impl Iterator<Item = &'r str> {
        self.written.iter().filter(move |(_, known)| *known == in_text).map(|(path, _)| path.as_str())
    }

    fn in_text(&self, field: &str) -> String {
        let ends = field.match_indices(['.', '[']).map(|(at, _)| at).chain([field.len()]);
        let found = ends.map(|end| field.split_at(end)).find_map(|(path, rest)| {
            let in_text = self.written.get(path)?;
            Some(format!("{in_text}{rest}"))
        });
        found.unwrap_or_else(|| field.to_owned())
    }

    /// Adds a problem that makes the scenario unusable.
    pub fn error(&mut self, place: &Place, problem: Problem) {
        if self.errors.len() == PROBLEMS_MAX {
            self.errors_left_out += 1;
        } else {
            let located = self.locate(place, problem);
            add(&mut self.errors, located);
        }
    }

    /// Adds an error like [`error`](Report::error), for a problem that takes work to describe: a flood of them costs nothing.
    pub fn error_with(&mut self, place: &Place, problem: impl FnOnce() -> Problem) {
        if self.errors.len() == PROBLEMS_MAX {
            self.errors_left_out += 1;
        } else {
            self.error(place, problem());
        }
    }

    /// Counts this number of further errors, which are not reported one by one.
    pub fn leave_out(&mut self, count: usize) {
        self.errors_left_out += count;
    }

    /// Adds the errors of a file that is named at this place.
    pub fn errors_of_file(&mut self, place: &Place, problems: Problems) {
        let offset = place.span.as_ref().map_or(usize::MAX, |span| span.start);
        self.errors.extend(problems.into_iter().map(|problem| (offset, problem)));
    }

    /// Adds a problem that is allowed, but probably not meant.
    pub fn warning(&mut self, place: &Place, problem: Problem) {
        if self.warnings.len() < PROBLEMS_MAX {
            let located = self.locate(place, problem);
            add(&mut self.warnings, located);
        }
    }

    pub fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// The warnings if nothing is wrong, or else all that is.
    pub fn finish(self) -> Result<Vec<Problem>, Problems> {
        if self.errors.is_empty() { Ok(in_file_order(self.warnings)) } else { Err(self.into_problems()) }
    }

    /// The errors.
    pub fn into_problems(mut self) -> Problems {
        if self.errors_left_out > 0 {
            let more = format!("{} more problems are not shown", self.errors_left_out);
            self.errors.push((usize::MAX, Problem { file: self.file.into(), ..Problem::says(more) }));
        }
        Problems(in_file_order(self.errors))
    }

    fn locate(&self, place: &Place, mut problem: Problem) -> (usize, Problem) {
        problem.file = self.file.into();
        problem.field = Some(self.in_text(&place.field)).filter(|field| !field.is_empty());
        let mut offset = usize::MAX;
        if let Some(span) = &place.span {
            offset = span.start;
            let line = self.line_starts.partition_point(|&start| start <= offset);
            let line_start = self.line_starts[line - 1];
            problem.line = Some(line);
            problem.column =
                Some(1 + self.text.get(line_start..offset).map_or(0, |text| text.chars().count()));
        }
        if let Some(allowed) = &problem.allowed {
            let described = problem.found.as_ref().map(|found| format!("found {found}; "));
            if problem.found.is_none() {
                problem.found = place.span.clone().and_then(|span| self.text.get(span)).map(excerpt);
            }
            let quoted = || problem.found.as_ref().map(|found| format!("found `{found}`; "));
            let found = described.or_else(quoted).unwrap_or_default();
            problem.message = format!("{found}allowed: {allowed}");
        }
        (offset, problem)
    }
}

/// Copies have the same problem at the same place: it is one.
fn add(problems: &mut Vec<(usize, Problem)>, (offset, problem): (usize, Problem)) {
    fn last(problem: &Problem) -> Option<&str> {
        problem.field.as_ref()?.rsplit('.').next()
    }
    let known = problems.iter().any(|(at, known)| {
        *at == offset && known.message == problem.message && last(known) == last(&problem)
    });
    if !known {
        problems.push((offset, problem));
    }
}

fn in_file_order(mut located: Vec<(usize, Problem)>) -> Vec<Problem> {
    located.sort_by_key(|(offset, _)| *offset);
    located.into_iter().map(|(_, problem)| problem).collect()
}

/// The first line of a text, shortened if long.
pub(crate) fn excerpt(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= CHARS_MAX && line.len() == text.len() {
        return line.to_owned();
    }
    line.chars().take(CHARS_MAX).chain("...".chars()).collect()
}

/// "did you mean ...?", if one of these names is close to the given one.
pub(crate) fn did_you_mean<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> Option<String> {
    closest(name, names).map(|close| format!("did you mean `{close}`?"))
}

/// The name that differs least, if it differs by few letters for its length.
pub(crate) fn closest<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    if name.chars().count() > NAME_CHARS_MAX {
        return None;
    }
    let lower = name.to_lowercase();
    names
        .into_iter()
        .map(|candidate| (strsim::osa_distance(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= 1.max(candidate.chars().count() / 3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestions_are_close_or_none() {
        let names = ["weight", "vcpus", "affinity", "nic"];
        assert_eq!(closest("wieght", names), Some("weight"));
        assert_eq!(closest("vCPU", names), Some("vcpus"));
        assert_eq!(closest("colour", names), None);
        assert_eq!(closest("", names), None);
    }

    #[test]
    fn lines_and_columns_count_characters() {
        let text = "a = 1\nä = \"ü\" # x\n";
        let mut report = Report::new("f.toml", text);
        let at = text.find("\"ü\"").unwrap();
        report.error(&Place { span: Some(at..at + 4), field: "ä".into() }, Problem::not_allowed("a number"));
        let problems = report.finish().unwrap_err();
        assert_eq!(problems.to_string(), "f.toml:2:5: ä: found `\"ü\"`; allowed: a number");
    }

    #[test]
    fn a_flood_of_problems_is_cut_and_counted() {
        let mut report = Report::new("f", "");
        for number in 0..PROBLEMS_MAX + 7 {
            report.error(&Place::default(), Problem::says(format!("wrong in way {number}")));
        }
        let problems = report.finish().unwrap_err();
        assert_eq!(problems.iter().len(), PROBLEMS_MAX + 1);
        assert_eq!(problems.iter().last().unwrap().message, "7 more problems are not shown");
    }
}
