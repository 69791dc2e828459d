//! The modules of a crate and the paths by which they name each other, read from the source as text.
//!
//! Only the words matter: comments, texts and items under `#[cfg(test)]` are left out, and macros count where they are
//! written. Nothing is compiled, so this works on a crate that does not build.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// A module's names from the crate's root; the root has none.
pub type ModulePath = Vec<String>;

/// A path that a module names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The path as written, `use` trees unfolded; it may begin with `crate`, `self` or `super`.
    pub path: Vec<String>,
    /// The line of the path, from 1.
    pub line: usize,
}

/// A module.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// The file of the module, from the crate's `src`.
    pub file: String,
    /// Paths that it names.
    pub named: Vec<Named>,
    /// Imports and re-exports of the module: the name in this module, and the path behind it.
    pub imports: Vec<(String, Vec<String>)>,
    /// Names that it defines.
    pub defined: Vec<String>,
}

/// The modules of a crate.
pub type Modules = BTreeMap<ModulePath, Module>;

/// Reads the crate whose sources are in `src`.
///
/// # Errors
/// When a file cannot be read.
pub fn modules(src: &Path) -> io::Result<Modules> {
    let mut found = Modules::new();
    let root = if src.join("lib.rs").exists() { "lib.rs" } else { "main.rs" };
    read_file(src, root, Vec::new(), &mut found)?;
    Ok(found)
}

fn read_file(src: &Path, file: &str, path: ModulePath, found: &mut Modules) -> io::Result<()> {
    let text = std::fs::read_to_string(src.join(file))?;
    for child in read_text(file, &text, path, found) {
        let folder = child.join("/");
        let candidates = [format!("{folder}.rs"), format!("{folder}/mod.rs")];
        if let Some(file) = candidates.iter().find(|file| src.join(file).exists()) {
            read_file(src, file, child, found)?;
        }
    }
    Ok(())
}

/// Adds the modules of a file's text to `found`; returns the modules that it declares and that are in files of their own.
pub fn read_text(file: &str, text: &str, path: ModulePath, found: &mut Modules) -> Vec<ModulePath> {
    let tokens = tokens(text);
    let mut reader = Reader { file, tokens: &tokens, at: 0, path, found, declared: Vec::new() };
    reader.module();
    reader.declared
}

/// A word or a sign, and its line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Token {
    text: String,
    line: usize,
}

fn is_word(text: &str) -> bool {
    text.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// The words and signs of a text, `::` as one; comments, texts, characters and lifetimes are left out.
fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let (mut rest, mut line) = (text, 1);
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment(rest),
            '"' => quoted(rest),
            'r' | 'b' | 'c' if raw_text(rest).is_some() => raw_text(rest).unwrap_or(1),
            '\'' => character(rest),
            first if first.is_alphanumeric() || first == '_' => {
                let end = |c: char| !(c.is_alphanumeric() || c == '_');
                let length = rest.find(end).unwrap_or(rest.len());
                tokens.push(Token { text: rest[..length].to_owned(), line });
                length
            }
            ':' if rest.starts_with("::") => {
                tokens.push(Token { text: "::".to_owned(), line });
                2
            }
            first => {
                if !first.is_whitespace() {
                    tokens.push(Token { text: first.to_string(), line });
                }
                first.len_utf8()
            }
        };
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    tokens
}

/// The length of a comment between `/*` and `*/`, which may hold others.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    at
}

/// The length of a text between quotes.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

/// The length of a raw text, if one begins here.
fn raw_text(text: &str) -> Option<usize> {
    let raw = text.trim_start_matches(['b', 'c']).strip_prefix('r')?;
    let hashes = raw.len() - raw.trim_start_matches('#').len();
    let inside = raw[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = inside.find(&end).map_or(inside.len(), |at| at + end.len());
    Some(text.len() - inside.len() + length)
}

/// The length of a character between single quotes, or of the sign before a lifetime.
fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some((at, _))) => {
            text[at + 1..].find('\'').map_or(text.len(), |end| at + 1 + end + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        // A lifetime: its name follows as a word, which does no harm.
        _ => 1,
    }
}

const DEFINE: [&str; 8] = ["struct", "enum", "trait", "type", "fn", "const", "static", "union"];

struct Reader<'a> {
    file: &'a str,
    tokens: &'a [Token],
    at: usize,
    path: ModulePath,
    found: &'a mut Modules,
    declared: Vec<ModulePath>,
}

impl Reader<'_> {
    fn text(&self, ahead: usize) -> &str {
        self.tokens.get(self.at + ahead).map_or("", |token| &token.text)
    }

    fn line(&self) -> usize {
        self.tokens.get(self.at).map_or(0, |token| token.line)
    }

    fn here(&mut self) -> &mut Module {
        let file = self.file;
        self.found
            .entry(self.path.clone())
            .or_insert_with(|| Module { file: file.to_owned(), ..Module::default() })
    }

    /// Reads up to the brace that closes the module, or the end.
    fn module(&mut self) {
        self.here();
        let mut depth = 0_usize;
        while self.at < self.tokens.len() {
            match self.text(0) {
                "#" if self.is_test_attribute() => self.skip_item(),
                "{" => depth += 1,
                "}" if depth == 0 => return,
                "}" => depth -= 1,
                "mod" if is_word(self.text(1)) => {
                    self.submodule();
                    continue;
                }
                "use" => {
                    self.at += 1;
                    self.import(&mut Vec::new());
                }
                "macro_rules" if self.text(1) == "!" => {
                    let name = self.text(2).to_owned();
                    self.here().defined.push(name);
                }
                word if depth == 0 && DEFINE.contains(&word) => {
                    let name = self.text(1).to_owned();
                    self.here().defined.push(name);
                }
                word if is_word(word) && self.text(1) == "::" => {
                    self.mention();
                    continue;
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    fn submodule(&mut self) {
        let name = self.text(1).to_owned();
        self.path.push(name);
        if self.text(2) == "{" {
            self.at += 3;
            self.module();
        } else {
            self.declared.push(self.path.clone());
            self.at += 2;
        }
        self.path.pop();
        self.at += 1;
    }

    /// A path outside imports: `crate::queue::Queue::new`.
    fn mention(&mut self) {
        let line = self.line();
        let outermost = self.at == 0 || self.tokens[self.at - 1].text != "::";
        let mut path = vec![self.text(0).to_owned()];
        self.at += 1;
        while self.text(0) == "::" && is_word(self.text(1)) {
            path.push(self.text(1).to_owned());
            self.at += 2;
        }
        if outermost {
            self.here().named.push(Named { path, line });
        }
    }

    /// Reads a branch of a `use` tree after `prefix`, up to the sign that ends the branch.
    fn import(&mut self, prefix: &mut Vec<String>) {
        let (line, before) = (self.line(), prefix.len());
        let mut name = None;
        loop {
            match self.text(0) {
                "{" => {
                    while self.text(0) != "}" && !self.text(0).is_empty() {
                        self.at += 1;
                        if self.text(0) != "}" {
                            self.import(prefix);
                        }
                    }
                    prefix.truncate(before);
                    self.at += 1;
                    return;
                }
                "as" => {
                    name = Some(self.text(1).to_owned());
                    self.at += 1;
                }
                word if is_word(word) || word == "*" => prefix.push(word.to_owned()),
                "::" => {}
                _ => break,
            }
            self.at += 1;
        }
        let mut path = prefix.clone();
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        prefix.truncate(before);
        let Some(last) = path.last().cloned() else { return };
        let module = self.here();
        module.imports.push((name.unwrap_or(last), path.clone()));
        module.named.push(Named { path, line });
    }

    /// `#[cfg(test)]`, also with more conditions.
    fn is_test_attribute(&self) -> bool {
        let words = ["#", "[", "cfg", "("];
        if !words.iter().enumerate().all(|(ahead, word)| self.text(ahead) == *word) {
            return false;
        }
        self.text(4) == "test" || self.text(4) == "all" && self.text(6) == "test"
    }

    /// Passes over an attribute and the item that it belongs to.
    fn skip_item(&mut self) {
        let (mut round, mut square, mut curly) = (0_usize, 0_usize, 0_usize);
        while self.at < self.tokens.len() {
            match self.text(0) {
                "(" => round += 1,
                ")" => round = round.saturating_sub(1),
                "[" => square += 1,
                "]" => square = square.saturating_sub(1),
                "{" => curly += 1,
                "}" => {
                    curly = curly.saturating_sub(1);
                    if curly == 0 {
                        return;
                    }
                }
                ";" if round + square + curly == 0 => return,
                _ => {}
            }
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(text: &str) -> Module {
        let mut found = Modules::new();
        read_text("lib.rs", text, Vec::new(), &mut found);
        found.remove(&Vec::new()).unwrap()
    }

    fn named(text: &str) -> Vec<String> {
        module(text).named.into_iter().map(|named| named.path.join("::")).collect()
    }

    #[test]
    fn trees_of_imports_are_unfolded() {
        let text = "use crate::a::{self, b::{C, D as E}, f::*};\npub use super::G;";
        assert_eq!(
            named(text),
            ["crate::a", "crate::a::b::C", "crate::a::b::D", "crate::a::f::*", "super::G"]
        );
        let imported: Vec<String> = module(text).imports.into_iter().map(|(name, _)| name).collect();
        assert_eq!(imported, ["a", "C", "E", "*", "G"]);
    }

    #[test]
    fn paths_in_code_count_and_those_in_comments_and_texts_do_not() {
        let text = r##"
            // crate::no::comment
            /* crate::no /* crate::no */ crate::no */
            const A: &str = "crate::no \" crate::no";
            const B: &str = r#"crate::no " crate::no"#;
            const C: [char; 2] = ['"', '\''];
            fn d<'a>(x: &'a crate::yes::X) -> u32 { $crate::also::y(x) + <X as crate::third::T>::z }
        "##;
        assert_eq!(named(text), ["crate::yes::X", "crate::also::y", "crate::third::T"]);
    }

    #[test]
    fn tests_are_left_out() {
        let text = "#[cfg(test)]\nmod tests { use crate::no; fn f() { crate::no::g() } }\nuse crate::yes;\n\
                    #[cfg(test)]\nmod more;\n#[cfg(all(test, unix))]\nuse crate::no;\nmod kept;";
        assert_eq!(named(text), ["crate::yes"]);
        let mut found = Modules::new();
        assert_eq!(read_text("lib.rs", text, Vec::new(), &mut found), [vec!["kept".to_owned()]]);
    }

    #[test]
    fn a_module_in_braces_is_one_of_its_own() {
        let mut found = Modules::new();
        read_text("a.rs", "mod b { use super::c::D; }\nuse crate::e::F;", vec!["a".to_owned()], &mut found);
        let paths = |path: &[&str]| {
            let path: Vec<String> = path.iter().map(|&name| name.to_owned()).collect();
            found[&path].named.iter().map(|named| named.path.join("::")).collect::<Vec<_>>()
        };
        assert_eq!(paths(&["a"]), ["crate::e::F"]);
        assert_eq!(paths(&["a", "b"]), ["super::c::D"]);
    }

    #[test]
    fn definitions_are_found() {
        let text =
            "pub struct A; enum B { C } impl A { const D: u32 = 0; fn e() {} } macro_rules! f { () => {} }";
        assert_eq!(module(text).defined, ["A", "B", "f"]);
    }

    #[test]
    fn lines_are_those_of_the_file() {
        let lines: Vec<usize> =
            module("\n\nuse crate::a;\n\"\n\n\"; use crate::b;").named.iter().map(|n| n.line).collect();
        assert_eq!(lines, [3, 6]);
    }
}
