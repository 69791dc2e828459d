//! The crates' layers: which crate may depend on which.

use std::path::Path;
use std::{fs, io};

/// The crates of the engine and those that each may use; the compiler keeps them from using others by way of these. Crates
/// that serve development and the Python front may use all.
const LAYERS: [(&str, &[&str]); 13] = [
    ("histogram", &[]),
    ("host", &[]),
    ("recording", &[]),
    ("probe", &[]),
    ("judge", &[]),
    ("sched", &["host"]),
    ("guest", &["histogram", "host"]),
    ("measure", &["histogram", "host"]),
    ("conformance", &["host", "sched", "recording"]),
    ("io", &["host", "guest"]),
    ("spec", &["host", "sched", "guest", "io"]),
    ("scenario", &["host", "sched", "guest", "io", "spec"]),
    ("run", &["host", "sched", "guest", "io", "measure", "spec"]),
];

/// The crates that the crate of that name depends on and may not. Those that only its tests need do not count.
///
/// # Errors
/// When its manifest cannot be read.
pub fn forbidden(crates: &Path, name: &str) -> io::Result<Vec<String>> {
    let manifest = fs::read_to_string(crates.join(name).join("Cargo.toml"))?;
    Ok(forbidden_in(&manifest, name))
}

fn forbidden_in(manifest: &str, name: &str) -> Vec<String> {
    let Some((_, allowed)) = LAYERS.iter().find(|(layer, _)| *layer == name) else { return Vec::new() };
    let used = dependencies(manifest).into_iter();
    used.filter(|used| !allowed.contains(&used.as_str())).collect()
}

/// The crates of this workspace among the dependencies in a manifest.
fn dependencies(manifest: &str) -> Vec<String> {
    let (mut inside, mut found) = (false, Vec::new());
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            inside =
                line == "[dependencies]" || line.starts_with("[target.") && line.ends_with(".dependencies]");
        } else if let Some(rest) = line.strip_prefix("vcpulab-").filter(|_| inside) {
            let end = rest.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(rest.len());
            found.push(rest[..end].to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "[package]\nname = \"vcpulab-io\"\n[dependencies]\nrand = \"1\"\nvcpulab-host.workspace = true\n\
        [target.'cfg(unix)'.dependencies]\nvcpulab-measure = { path = \"../measure\" }\n\
        [dev-dependencies]\nvcpulab-sched.workspace = true\n";

    #[test]
    fn a_crate_that_reaches_beside_or_above_itself_is_found() {
        assert_eq!(forbidden_in(MANIFEST, "io"), ["measure"]);
        assert_eq!(forbidden_in(MANIFEST, "host"), ["host", "measure"]);
        assert_eq!(forbidden_in(MANIFEST, "run"), [""; 0]);
        assert_eq!(forbidden_in(MANIFEST, "python"), [""; 0]);
    }

    #[test]
    fn no_layer_uses_a_later_one() {
        for (at, (name, uses)) in LAYERS.iter().enumerate() {
            assert!(uses.iter().all(|used| LAYERS[..at].iter().any(|(below, _)| below == used)), "{name}");
        }
    }
}
