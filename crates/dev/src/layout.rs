//! Faults of the source's layout: circles of modules, and dependencies against the crates' layers.

use std::path::Path;
use std::{fs, io};

use crate::{circles, layers};

/// The faults, a text for each; `except` names crates that are passed over.
///
/// # Errors
/// When a file cannot be read.
pub fn broken(root: &Path, except: &[String]) -> io::Result<Vec<String>> {
    let crates = root.join("crates");
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(&crates)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.retain(|name| !except.contains(name) && crates.join(name).join("Cargo.toml").exists());
    names.sort();
    let mut broken = Vec::new();
    for name in names {
        let found = circles::circles_of(&crates.join(&name))?;
        broken.extend(found.iter().map(|circle| format!("crates/{name}: {circle}")));
        let found = layers::forbidden(&crates, &name)?;
        broken.extend(
            found.iter().map(|used| format!("crates/{name}: depends on crates/{used}, against the layers\n")),
        );
    }
    Ok(broken)
}
