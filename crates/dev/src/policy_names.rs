//! The check that a policy's name is in `sched` only: other crates ask for properties of the policy or its generation.

use std::io;
use std::path::Path;

use vcpulab_sched::policies;

use crate::comments::sources;

/// The crates that may name policies: `conformance` and `bench` replay and time particular ones.
const MAY: [&str; 4] = ["sched", "conformance", "bench", "dev"];

/// The names of policies in the code of all other crates, each as `file:line: name`. Tests may name policies.
///
/// # Errors
/// When a file or a folder cannot be read.
fn policy_names(root: &Path) -> io::Result<Vec<String>> {
    let may = |file: &str| {
        let tests = file.ends_with("tests.rs") || file.contains("/tests/");
        tests || MAY.iter().any(|name| file.starts_with(&format!("crates/{name}/")))
    };
    let checked = sources(root)?.into_iter().filter(|(file, _)| !may(file));
    Ok(checked.flat_map(|(file, text)| names_in(&file, &text)).collect())
}

/// The names of policies in the text of a file, up to its tests, which are the last module.
fn names_in(file: &str, text: &str) -> Vec<String> {
    let code = (1..).zip(text.lines()).take_while(|(_, line)| line.trim() != "#[cfg(test)]");
    let code = code.filter(|(_, line)| !line.trim_start().starts_with("//"));
    let names = |(number, line): (usize, &str)| {
        let named = policies().iter().filter(|policy| line.contains(&format!("\"{}\"", policy.name)));
        named.map(|policy| format!("{file}:{number}: {}", policy.name)).collect::<Vec<_>>()
    };
    code.flat_map(names).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root;

    #[test]
    fn policies_are_named_in_sched_only() {
        let names = policy_names(&root()).unwrap();
        assert!(
            names.is_empty(),
            "make it a property of the policy or its generation in `sched`: {names:#?}"
        );
    }

    #[test]
    fn a_name_in_code_is_reported_with_its_place() {
        let text =
            "// \"credit\" is\nlet a = name == \"credit\";\n#[cfg(test)]\nmod tests { f(\"null\"); }\n";
        assert_eq!(names_in("a.rs", text), ["a.rs:2: credit"]);
    }
}
