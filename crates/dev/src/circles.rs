//! Circles of modules: a crate's modules import each other in one direction only.
//!
//! A module imports another when a path in it leads to something that the other defines; re-exports are followed to where
//! the thing is. A parent imports a child by naming something in it, not by declaring it; re-exporting counts as naming.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;

use crate::source::{Module, ModulePath, Modules, Named, modules};

/// Modules that import each other, directly or through others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circle {
    /// The modules: the root first, the others by name.
    pub modules: Vec<String>,
    /// The imports between them.
    pub imports: Vec<Import>,
}

/// A module's first import of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The module that imports.
    pub from: String,
    /// The module that it imports from.
    pub to: String,
    /// The path as written.
    pub path: String,
    /// The file, from the crate's `src`.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
}

impl fmt::Display for Circle {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(f, "a circle of {} modules: {}", self.modules.len(), self.modules.join(", "))?;
        for Import { from, to, path, file, line } in &self.imports {
            writeln!(f, "  {from} -> {to}: {path} ({file}:{line})")?;
        }
        Ok(())
    }
}

/// The circles of the crate in that folder.
///
/// # Errors
/// When one of its files cannot be read, or is not made of Rust's tokens.
pub fn circles_of(krate: &Path) -> io::Result<Vec<Circle>> {
    Ok(circles(&modules(&krate.join("src"))?))
}

/// The circles among modules.
pub fn circles(modules: &Modules) -> Vec<Circle> {
    let imports = imports(modules);
    let numbers: BTreeMap<&ModulePath, usize> = modules.keys().zip(0..).collect();
    let mut to: Vec<Vec<usize>> = vec![Vec::new(); modules.len()];
    for (from, target) in imports.keys() {
        to[numbers[from]].push(numbers[target]);
    }
    let reached: Vec<Vec<bool>> = (0..to.len()).map(|from| reachable(&to, from)).collect();
    let paths: Vec<&ModulePath> = modules.keys().collect();
    let mut circles = Vec::new();
    let mut placed = vec![false; to.len()];
    for first in 0..to.len() {
        if placed[first] || !reached[first][first] {
            continue;
        }
        let members: Vec<usize> =
            (0..to.len()).filter(|&other| reached[first][other] && reached[other][first]).collect();
        members.iter().for_each(|&member| placed[member] = true);
        let inside = |path: &ModulePath| members.contains(&numbers[path]);
        circles.push(Circle {
            modules: members.iter().map(|&member| name(paths[member])).collect(),
            imports: imports
                .iter()
                .filter(|((from, target), _)| inside(from) && inside(target))
                .map(|((from, target), named)| Import {
                    from: name(from),
                    to: name(target),
                    path: named.path.join("::"),
                    file: modules[from].file.clone(),
                    line: named.line,
                })
                .collect(),
        });
    }
    circles
}

/// Modules to which imports lead from one; itself only by way of another.
fn reachable(to: &[Vec<usize>], from: usize) -> Vec<bool> {
    let mut reached = vec![false; to.len()];
    let mut open = vec![from];
    while let Some(at) = open.pop() {
        for &next in &to[at] {
            if !reached[next] {
                reached[next] = true;
                open.push(next);
            }
        }
    }
    reached
}

fn name(path: &ModulePath) -> String {
    if path.is_empty() { "crate".to_owned() } else { path.join("::") }
}

/// The first import for each pair of modules.
fn imports(modules: &Modules) -> BTreeMap<(ModulePath, ModulePath), Named> {
    let mut imports = BTreeMap::new();
    for (from, module) in modules {
        for named in &module.named {
            if let Some(target) = resolve(modules, from, &named.path, HOPS).filter(|target| target != from) {
                imports.entry((from.clone(), target)).or_insert_with(|| named.clone());
            }
        }
    }
    imports
}

/// The module that defines what a path in `from` leads to. `None`: it is not in this crate.
fn resolve(modules: &Modules, from: &ModulePath, path: &[String], hops: usize) -> Option<ModulePath> {
    let (first, rest) = path.split_first()?;
    let start = match first.as_str() {
        "crate" => Vec::new(),
        "self" => from.clone(),
        "super" => {
            let parent = from[..from.len().checked_sub(1)?].to_vec();
            if rest.first().is_some_and(|next| next == "super") {
                return resolve(modules, &parent, rest, hops);
            }
            parent
        }
        child => {
            Some([from.as_slice(), &[child.to_owned()]].concat()).filter(|at| modules.contains_key(at))?
        }
    };
    descend(modules, start, rest, hops)
}

/// Re-exports that are followed at most, should they lead in a circle themselves.
const HOPS: usize = 16;

/// Follows a path from a module on, through submodules and re-exports.
fn descend(modules: &Modules, mut at: ModulePath, path: &[String], hops: usize) -> Option<ModulePath> {
    for (done, next) in path.iter().enumerate() {
        let child = [at.as_slice(), std::slice::from_ref(next)].concat();
        if !modules.contains_key(&child) {
            return match behind(modules, &at, next) {
                Some(target) if hops > 0 => {
                    resolve(modules, &at, &[&target, &path[done + 1..]].concat(), hops - 1)
                }
                _ => Some(at),
            };
        }
        at = child;
    }
    Some(at)
}

/// The path that a name in a module stands for, if the module does not define it itself.
fn behind(modules: &Modules, at: &ModulePath, name: &str) -> Option<Vec<String>> {
    let module = modules.get(at)?;
    let defines = |module: &Module| module.defined.iter().any(|defined| defined == name);
    if name == "*" || defines(module) {
        return None;
    }
    if let Some((_, path)) = module.imports.iter().find(|(imported, _)| imported == name) {
        return Some(path.clone());
    }
    let everything = module.imports.iter().filter(|(imported, _)| imported == "*");
    let mut sources = everything.map(|(_, path)| &path[..path.len() - 1]);
    let source = sources.find(|source| {
        let target = resolve(modules, at, source, 0);
        target.and_then(|target| modules.get(&target)).is_some_and(defines)
    })?;
    Some([source, &[name.to_owned()]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::read_text;

    fn circles_of(files: &[(&str, &str)]) -> Vec<Circle> {
        let mut modules = Modules::new();
        for (path, text) in files {
            let file =
                if path.is_empty() { "lib.rs".to_owned() } else { format!("{}.rs", path.replace("::", "/")) };
            let path = path.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect();
            read_text(&file, text, path, &mut modules).unwrap();
        }
        circles(&modules)
    }

    fn members(files: &[(&str, &str)]) -> Vec<String> {
        circles_of(files).into_iter().map(|circle| circle.modules.join(" ")).collect()
    }

    #[test]
    fn two_modules_that_import_each_other_are_a_circle_and_its_imports_are_told() {
        let circles = circles_of(&[
            ("a", "use crate::b::B;\nstruct A;"),
            ("b", "struct B(\ncrate::a::A);"),
            ("c", "use crate::a::A;"),
        ]);
        let told: Vec<String> = circles.iter().map(Circle::to_string).collect();
        let expected =
            "a circle of 2 modules: a, b\n  a -> b: crate::b::B (a.rs:1)\n  b -> a: crate::a::A (b.rs:2)\n";
        assert_eq!(told, [expected]);
    }

    #[test]
    fn a_longer_way_round_is_a_circle_too_and_each_is_told_once() {
        let files = [
            ("a", "use crate::b::B;"),
            ("b", "use crate::c::C; struct B;"),
            ("c", "use super::a; struct C;"),
            ("d", "use crate::e::E; struct D;"),
            ("e", "use crate::d::D; struct E;"),
        ];
        assert_eq!(members(&files), ["a b c", "d e"]);
    }

    #[test]
    fn one_direction_is_none() {
        let files =
            [("", "pub use a::A;"), ("a", "use crate::b::{B, C}; struct A;"), ("b", "struct B; struct C;")];
        assert_eq!(members(&files), [""; 0]);
    }

    #[test]
    fn a_parent_that_uses_its_child_and_a_child_that_uses_its_parent_are_a_circle() {
        let child = ("a::b", "use super::A; struct B;");
        assert_eq!(members(&[("a", "mod b; struct A(b::B);"), child]), ["a a::b"]);
        // To declare a child is not to use it.
        assert_eq!(members(&[("a", "mod b; struct A;"), child]), [""; 0]);
    }

    #[test]
    fn re_exports_are_followed_to_where_a_thing_is_defined() {
        let root = ("", "pub use a::A; pub use b::*; use vcpulab_host::Host;");
        let child = ("c", "use crate::{A, B, Host};");
        assert_eq!(members(&[root, child, ("a", "struct A;"), ("b", "struct B;")]), [""; 0]);
        assert_eq!(members(&[root, child, ("a", "use crate::c::X; struct A;"), ("b", "struct B;")]), ["a c"]);
        assert_eq!(members(&[root, child, ("a", "struct A;"), ("b", "use crate::c::X; struct B;")]), ["b c"]);
        // What the root itself defines is the root's.
        assert_eq!(
            members(&[("", "pub use a::A; pub const X: u32 = 1;"), ("a", "use crate::X; struct A;")]),
            ["crate a"]
        );
    }
}
