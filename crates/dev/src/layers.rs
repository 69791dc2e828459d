//! The crates' layers: which crate may depend on which.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The crates of the engine and those that each may use; the compiler keeps them from using others by way of these. Crates
/// that serve development and the Python front may use all.
const LAYERS: [(&str, &[&str]); 14] = [
    ("histogram", &[]),
    ("host", &[]),
    ("parallel", &[]),
    ("recording", &["histogram"]),
    ("probe", &[]),
    ("judge", &[]),
    ("sched", &["host"]),
    ("guest", &["histogram", "host"]),
    ("measure", &["histogram", "host"]),
    ("conformance", &["host", "parallel", "sched", "recording"]),
    ("io", &["host", "guest"]),
    ("spec", &["host", "sched", "guest", "io"]),
    ("scenario", &["host", "sched", "guest", "io", "spec"]),
    ("run", &["host", "parallel", "judge", "sched", "guest", "io", "measure", "spec"]),
];

/// A crate of the workspace, as `cargo metadata` describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crate {
    /// The name of the package without `vcpulab-`.
    pub name: String,
    /// The folder of the manifest.
    pub folder: PathBuf,
    /// The names of the workspace's crates that the crate depends on. Those that only its tests or its build need do not count.
    pub uses: Vec<String>,
}

/// The crates of the workspace in that folder, by name.
///
/// # Errors
/// When `cargo metadata` fails.
pub fn workspace(root: &Path) -> io::Result<Vec<Crate>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root)
        .output()?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr)));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let mut crates: Vec<Crate> =
        metadata["packages"].as_array().into_iter().flatten().filter_map(described).collect();
    crates.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(crates)
}

/// The crate that a package in the metadata describes, if it is one of ours.
fn described(package: &Value) -> Option<Crate> {
    let ours = |value: &Value| Some(value["name"].as_str()?.strip_prefix("vcpulab-")?.to_owned());
    let dependencies = package["dependencies"].as_array()?;
    Some(Crate {
        name: ours(package)?,
        folder: Path::new(package["manifest_path"].as_str()?).parent()?.to_owned(),
        uses: dependencies.iter().filter(|used| used["kind"].is_null()).filter_map(ours).collect(),
    })
}

/// The crates that the crate uses, although its layer may not.
pub fn forbidden(krate: &Crate) -> Vec<&str> {
    let Some((_, allowed)) = LAYERS.iter().find(|(layer, _)| *layer == krate.name) else { return Vec::new() };
    krate.uses.iter().map(String::as_str).filter(|used| !allowed.contains(used)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_that_reaches_beside_or_above_itself_is_found() {
        let package = serde_json::json!({
            "name": "vcpulab-io",
            "manifest_path": "/somewhere/io/Cargo.toml",
            "dependencies": [
                { "name": "rand", "kind": null },
                { "name": "vcpulab-host", "kind": null },
                { "name": "vcpulab-measure", "kind": null, "target": "cfg(unix)" },
                { "name": "vcpulab-sched", "kind": "dev" },
            ],
        });
        let io = described(&package).unwrap();
        assert_eq!(io.folder, Path::new("/somewhere/io"));
        let forbidden_as = |name: &str| forbidden(&Crate { name: name.to_owned(), ..io.clone() }).join(" ");
        assert_eq!(forbidden_as("io"), "measure");
        assert_eq!(forbidden_as("host"), "host measure");
        assert_eq!(forbidden_as("run"), "");
        assert_eq!(forbidden_as("python"), "");
    }

    #[test]
    fn no_layer_uses_a_later_one() {
        for (at, (name, uses)) in LAYERS.iter().enumerate() {
            assert!(uses.iter().all(|used| LAYERS[..at].iter().any(|(below, _)| below == used)), "{name}");
        }
    }
}
