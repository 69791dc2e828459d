//! Faults of the source's layout: circles of modules, and dependencies against the crates' layers.

use std::io;
use std::path::Path;

use crate::{circles, layers};

/// The faults, a text for each; `except` names crates that are passed over.
///
/// # Errors
/// When the workspace or one of its files cannot be read.
pub fn broken(root: &Path, except: &[String]) -> io::Result<Vec<String>> {
    let mut broken = Vec::new();
    for krate in layers::workspace(root)?.iter().filter(|krate| !except.contains(&krate.name)) {
        let name = &krate.name;
        let circles = circles::circles_of(&krate.folder)?;
        broken.extend(circles.iter().map(|circle| format!("crates/{name}: {circle}")));
        let forbidden = layers::forbidden(krate).into_iter();
        broken.extend(
            forbidden.map(|used| format!("crates/{name}: depends on crates/{used}, against the layers\n")),
        );
    }
    Ok(broken)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_fault_of_each_kind_in_a_workspace_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let package = |name: &str| format!("[package]\nname = 'vcpulab-{name}'\nversion = '0.1.0'\n");
        write("Cargo.toml", "[workspace]\nmembers = ['crates/*']\nresolver = '3'\n");
        write("crates/run/Cargo.toml", &package("run"));
        write("crates/run/src/lib.rs", "mod a;\nmod b;\n");
        write("crates/run/src/a.rs", "pub struct A(crate::b::B);\n");
        write("crates/run/src/b.rs", "pub struct B;\nfn f() { vec![crate::a::A]; }\n");
        let uses_run = "[dependencies]\nvcpulab-run = { path = '../run' }\n";
        write("crates/host/Cargo.toml", &(package("host") + uses_run));
        write("crates/host/src/lib.rs", "");
        let expected = [
            "crates/host: depends on crates/run, against the layers\n",
            "crates/run: a circle of 2 modules: a, b\n  a -> b: crate::b::B (a.rs:1)\n  b -> a: crate::a::A (b.rs:2)\n",
        ];
        assert_eq!(broken(folder.path(), &[]).unwrap(), expected);
        assert_eq!(broken(folder.path(), &["run".to_owned()]).unwrap(), expected[..1]);
    }
}
