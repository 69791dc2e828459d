//! Tools of the repository: files generated from the code, and checks of the source's layout.
//!
//! `cargo run -p vcpulab-dev -- generate` writes the schema of scenario files and the reference pages; `-- check` says which
//! are stale. `-- circles` looks for circles of modules and for dependencies against the crates' layers ([`layout`]), `-- comments`
//! for doc comments that open with a pronoun ([`comments`]).

mod applications;
pub mod circles;
pub mod comments;
pub mod layers;
pub mod layout;
mod markdown;
#[cfg(test)]
mod policy_names;
mod results;
mod scenario;
mod schedulers;
pub mod source;

use std::io;
use std::path::{Path, PathBuf};

/// A generated file: its path from the root of the repository, and its text.
pub struct Generated {
    /// Path from the root of the repository.
    pub path: &'static str,
    /// Content of the file.
    pub text: String,
}

/// All generated files.
pub fn generated() -> Vec<Generated> {
    let schema = serde_json::to_string_pretty(&vcpulab_scenario::schema()).expect("a schema is plain data");
    vec![
        Generated { path: "schema/scenario.schema.json", text: schema + "\n" },
        Generated { path: "docs/reference/scenario.md", text: scenario::page() },
        Generated { path: "docs/reference/applications.md", text: applications::page() },
        Generated { path: "docs/reference/schedulers.md", text: schedulers::page() },
        Generated { path: "docs/reference/results.md", text: results::page() },
    ]
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Writes all files that are not up to date, and gives their paths.
///
/// # Errors
/// When a file cannot be written.
pub fn generate(root: &Path) -> io::Result<Vec<&'static str>> {
    let mut written = Vec::new();
    for Generated { path, text } in generated().into_iter().filter(|file| is_stale(root, file)) {
        let target = root.join(path);
        std::fs::create_dir_all(target.parent().expect("a file is in a folder"))?;
        std::fs::write(target, text)?;
        written.push(path);
    }
    Ok(written)
}

/// The files that are not up to date.
pub fn stale(root: &Path) -> Vec<&'static str> {
    generated().into_iter().filter(|file| is_stale(root, file)).map(|file| file.path).collect()
}

fn is_stale(root: &Path, file: &Generated) -> bool {
    std::fs::read_to_string(root.join(file.path)).ok().as_deref() != Some(file.text.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn committed_files_are_up_to_date() {
        assert_eq!(stale(&root()), [""; 0], "run `cargo run -p vcpulab-dev -- generate`");
    }

    #[test]
    fn no_crate_has_a_circle_of_modules_or_leaves_its_layer() {
        assert_eq!(layout::broken(&root(), &[]).unwrap(), [""; 0]);
    }

    #[test]
    fn no_doc_comment_opens_with_a_pronoun() {
        assert_eq!(comments::pronoun_comments(&root()).unwrap(), []);
    }
}
