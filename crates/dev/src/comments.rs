//! Doc comments that open with a pronoun: their first word does not name the documented thing, so that a hover window does not explain it.

use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

/// A doc comment that opens with a pronoun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PronounComment {
    /// The path of the file from the root of the repository.
    pub file: String,
    /// The line on which the comment starts, from 1.
    pub line: usize,
    /// The first line of the comment, with its `///` or `//!`.
    pub comment: String,
}

impl fmt::Display for PronounComment {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(f, "{}:{}: {}", self.file, self.line, self.comment)
    }
}

/// Words that refer to a thing which the comment has not named yet.
const PRONOUNS: &str = "it its he his she her they them their theirs we us our ours you your i my this that these those such \
    same one ones others what whatever who whoever whom whose which whichever where wherever when \
    whenever how why so as someone somebody something everyone everybody everything anyone anybody \
    anything nobody nothing none";

/// Words that name no thing either: where a comment opens with them, its second word must not be a pronoun.
const OPENERS: &str = "the whether all is are was were has have does do did may can of for from by with if once until only \
    each both any most not there";

/// The doc comments in the sources of all crates that open with a pronoun, in order of path and line.
///
/// # Errors
/// When a file or a folder cannot be read.
pub fn pronoun_comments(root: &Path) -> io::Result<Vec<PronounComment>> {
    let comments = sources(root)?.into_iter().flat_map(|(file, text)| comments_in(&file, &text));
    Ok(comments.collect())
}

/// The path and the text of each source file of all crates, in order of path.
///
/// # Errors
/// When a file or a folder cannot be read.
pub fn sources(root: &Path) -> io::Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(root.join("crates"))? {
        let source = entry?.path().join("src");
        if source.is_dir() {
            collect_files(&source, &mut files)?;
        }
    }
    files.sort();
    let text = |path: PathBuf| {
        let file = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        Ok((file, fs::read_to_string(&path)?))
    };
    files.into_iter().map(text).collect()
}

fn collect_files(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect_files(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// The doc comments in the text of a file that open with a pronoun.
pub fn comments_in(file: &str, text: &str) -> Vec<PronounComment> {
    let mut comments = Vec::new();
    let mut previous = None;
    for (line, text) in (1..).zip(text.lines()) {
        let comment = text.trim();
        let marker = marker(comment);
        if marker.is_some() && marker != previous && opens_with_pronoun(&comment[3..]) {
            comments.push(PronounComment { file: file.to_owned(), line, comment: comment.to_owned() });
        }
        previous = marker;
    }
    comments
}

/// The sign that makes a line a doc comment.
fn marker(line: &str) -> Option<&'static str> {
    ["///", "//!"].into_iter().find(|marker| line.starts_with(marker) && !line[3..].starts_with('/'))
}

fn opens_with_pronoun(comment: &str) -> bool {
    let mut words = comment.split_whitespace().map(bare);
    let first = words.next().unwrap_or_default();
    is_in(PRONOUNS, &first)
        || is_in(OPENERS, &first) && words.next().is_some_and(|second| is_in(PRONOUNS, &second))
}

fn is_in(list: &str, word: &str) -> bool {
    list.split(' ').any(|listed| listed == word)
}

/// A word in lower case without its punctuation and without what follows an apostrophe. A word of code stays as it is.
fn bare(word: &str) -> String {
    let word = word.split('\'').next().unwrap_or_default();
    word.trim_end_matches(|c: char| c.is_ascii_punctuation() && c != '`').to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        comments_in("a.rs", text).into_iter().map(|comment| comment.line).collect()
    }

    #[test]
    fn a_comment_that_opens_with_a_pronoun_is_reported_with_its_place() {
        let [comment] =
            comments_in("crates/x/src/a.rs", "struct A {\n    /// Its path.\n    pub path: Path,\n}")
                .try_into()
                .unwrap();
        assert_eq!(comment.to_string(), "crates/x/src/a.rs:2: /// Its path.\n");
    }

    #[test]
    fn every_kind_of_item_and_every_pronoun_counts() {
        for word in PRONOUNS.split(' ') {
            assert_eq!(
                lines(&format!("/// {word} is here.\nenum A {{\n/// {word}: a\nB }}")),
                [1, 3],
                "{word}"
            );
            assert_eq!(lines(&format!("//! {word} is here.")), [1], "{word}");
            for opener in OPENERS.split(' ') {
                assert_eq!(
                    lines(&format!("/// {opener} {word} for pools.\nfn a() {{}}")),
                    [1],
                    "{opener} {word}"
                );
            }
        }
        assert_eq!(lines("/// It's full."), [1]);
        assert_eq!(lines("/// Is it there?"), [1]);
        assert_eq!(lines("/// What"), [1]);
    }

    #[test]
    fn a_comment_that_opens_with_a_noun_or_a_verb_does_not_count() {
        for comment in [
            "The path of the file, whose lines are those that it has.",
            "Whether the vCPU runs.",
            "Returns the same.",
            "`It` of a crate.",
            "Itself.",
            "",
        ] {
            assert_eq!(lines(&format!("/// {comment}\nfn a() {{}}")), [0; 0], "{comment}");
        }
    }

    #[test]
    fn only_the_first_line_of_a_doc_comment_counts() {
        assert_eq!(lines("/// A file.\n/// It has a path.\n///\n/// Its name.\nfn a() {}"), [0; 0]);
        assert_eq!(lines("//! A module.\n/// It is a struct.\nstruct A;"), [2]);
        assert_eq!(lines("// It is no doc comment.\n//// It is none.\nlet a = 1; // It is none."), [0; 0]);
    }
}
