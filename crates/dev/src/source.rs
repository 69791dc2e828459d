//! The modules of a crate and the paths by which they name each other, read from the source as text.
//!
//! Items under `#[cfg(test)]` are left out, and macros count where they are written. Nothing is compiled, so this works on a crate
//! that does not build.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use proc_macro2::{Delimiter, Group, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Ident, ItemUse, Token, UseTree};

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
/// When a file cannot be read, or is not made of Rust's tokens.
pub fn modules(src: &Path) -> io::Result<Modules> {
    let mut modules = Modules::new();
    let root = if src.join("lib.rs").exists() { "lib.rs" } else { "main.rs" };
    read_file(src, root, Vec::new(), &mut modules)?;
    Ok(modules)
}

fn read_file(src: &Path, file: &str, path: ModulePath, modules: &mut Modules) -> io::Result<()> {
    let text = std::fs::read_to_string(src.join(file))?;
    let children = read_text(file, &text, path, modules);
    for child in children.map_err(|error| io::Error::other(format!("{file}: {error}")))? {
        let folder = child.join("/");
        let candidates = [format!("{folder}.rs"), format!("{folder}/mod.rs")];
        if let Some(file) = candidates.iter().find(|file| src.join(file).exists()) {
            read_file(src, file, child, modules)?;
        }
    }
    Ok(())
}

/// Adds the modules of a file's text to `modules`; returns the modules that it declares and that are in files of their own.
///
/// # Errors
/// When the text is not made of Rust's tokens.
pub fn read_text(
    file: &str,
    text: &str,
    path: ModulePath,
    modules: &mut Modules,
) -> syn::Result<Vec<ModulePath>> {
    let mut reader = Reader { file, path, modules, declared: Vec::new() };
    (|input: ParseStream| reader.module(input)).parse_str(text)?;
    Ok(reader.declared)
}

const DEFINE: [&str; 8] = ["struct", "enum", "trait", "type", "fn", "const", "static", "union"];

struct Reader<'a> {
    file: &'a str,
    path: ModulePath,
    modules: &'a mut Modules,
    declared: Vec<ModulePath>,
}

impl Reader<'_> {
    fn here(&mut self) -> &mut Module {
        let file = self.file;
        self.modules
            .entry(self.path.clone())
            .or_insert_with(|| Module { file: file.to_owned(), ..Module::default() })
    }

    fn module(&mut self, input: ParseStream) -> syn::Result<()> {
        self.here();
        self.tokens(input, true)
    }

    /// Reads all tokens of the input; items define names of the module unless they are in braces.
    fn tokens(&mut self, input: ParseStream, defines: bool) -> syn::Result<()> {
        while !input.is_empty() {
            if input.peek(Token![#]) && input.peek2(syn::token::Bracket) {
                input.parse::<Token![#]>()?;
                let attribute: Group = input.parse()?;
                if is_test(&attribute) {
                    skip_item(input)?;
                } else {
                    (|input: ParseStream| self.tokens(input, false)).parse2(attribute.stream())?;
                }
            } else if input.peek(Token![mod]) && input.peek2(Ident) {
                self.submodule(input)?;
            } else if input.peek(Token![use]) && input.fork().parse::<ItemUse>().is_ok() {
                self.import(Vec::new(), &input.parse::<ItemUse>()?.tree);
            } else if input.peek(Token![::]) {
                input.parse::<Token![::]>()?;
                mention(input)?;
            } else if input.peek(Ident::peek_any) {
                let words = mention(input)?;
                let line = words[0].span().start().line;
                let path: Vec<String> = words.iter().map(Ident::to_string).collect();
                match path.as_slice() {
                    [word] if word == "macro_rules" && input.peek(Token![!]) => {
                        input.parse::<Token![!]>()?;
                        self.define(input);
                    }
                    [word] if defines && DEFINE.contains(&word.as_str()) => self.define(input),
                    [_] if !input.peek(Token![::]) => {}
                    _ => self.here().named.push(Named { path, line }),
                }
            } else if let TokenTree::Group(group) = input.parse()? {
                let defines = defines && group.delimiter() != Delimiter::Brace;
                (|input: ParseStream| self.tokens(input, defines)).parse2(group.stream())?;
            }
        }
        Ok(())
    }

    /// Adds the name that follows `struct` and the like, if there is one.
    fn define(&mut self, input: ParseStream) {
        if let Ok(name) = input.fork().call(Ident::parse_any) {
            self.here().defined.push(name.to_string());
        }
    }

    fn submodule(&mut self, input: ParseStream) -> syn::Result<()> {
        input.parse::<Token![mod]>()?;
        self.path.push(input.parse::<Ident>()?.to_string());
        if input.peek(syn::token::Brace) {
            let inside;
            syn::braced!(inside in input);
            self.module(&inside)?;
        } else {
            self.declared.push(self.path.clone());
        }
        self.path.pop();
        Ok(())
    }

    /// Adds the imports of a branch of a `use` tree after `path`.
    fn import(&mut self, mut path: Vec<String>, tree: &UseTree) {
        let (word, name, span) = match tree {
            UseTree::Path(branch) => {
                path.push(branch.ident.to_string());
                return self.import(path, &branch.tree);
            }
            UseTree::Group(branches) => {
                return branches.items.iter().for_each(|branch| self.import(path.clone(), branch));
            }
            UseTree::Name(leaf) => (leaf.ident.to_string(), None, leaf.ident.span()),
            UseTree::Rename(leaf) => {
                (leaf.ident.to_string(), Some(leaf.rename.to_string()), leaf.ident.span())
            }
            UseTree::Glob(star) => ("*".to_owned(), None, star.star_token.span),
        };
        if word != "self" || path.is_empty() {
            path.push(word);
        }
        let Some(name) = name.or_else(|| path.last().cloned()) else { return };
        let line = span.start().line;
        let module = self.here();
        module.imports.push((name, path.clone()));
        module.named.push(Named { path, line });
    }
}

/// Takes a path outside imports: `crate::queue::Queue::new`.
fn mention(input: ParseStream) -> syn::Result<Vec<Ident>> {
    let mut path = Vec::new();
    if input.peek(Ident::peek_any) {
        path.push(input.call(Ident::parse_any)?);
    }
    while input.peek(Token![::]) && input.peek3(Ident::peek_any) {
        input.parse::<Token![::]>()?;
        path.push(input.call(Ident::parse_any)?);
    }
    Ok(path)
}

/// Whether the attribute in brackets is `cfg(test)`, also with more conditions.
fn is_test(attribute: &Group) -> bool {
    let text = attribute.stream().to_string().replace(' ', "");
    text == "cfg(test)" || text.starts_with("cfg(all(test,")
}

/// Passes over the item that begins here.
fn skip_item(input: ParseStream) -> syn::Result<()> {
    while !input.is_empty() {
        match input.parse()? {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => break,
            TokenTree::Punct(punct) if punct.as_char() == ';' => break,
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(text: &str) -> Module {
        let mut modules = Modules::new();
        read_text("lib.rs", text, Vec::new(), &mut modules).unwrap();
        modules.remove(&Vec::new()).unwrap()
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
        let mut modules = Modules::new();
        assert_eq!(read_text("lib.rs", text, Vec::new(), &mut modules).unwrap(), [vec!["kept".to_owned()]]);
    }

    #[test]
    fn a_module_in_braces_is_one_of_its_own() {
        let mut modules = Modules::new();
        read_text("a.rs", "mod b { use super::c::D; }\nuse crate::e::F;", vec!["a".to_owned()], &mut modules)
            .unwrap();
        let paths = |path: &[&str]| {
            let path: Vec<String> = path.iter().map(|&name| name.to_owned()).collect();
            modules[&path].named.iter().map(|named| named.path.join("::")).collect::<Vec<_>>()
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
