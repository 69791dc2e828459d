//! `generate` writes the generated files; `check` fails if one of them is stale; `circles` fails if modules import each other in a
//! circle or a crate depends on one that its layer may not use; `comments` fails if a doc comment opens with a pronoun.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line speaks")]

use std::process::ExitCode;

use vcpulab_dev::{comments, generate, layout, root, stale};

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("generate") => match generate(&root()) {
            Ok(written) => {
                written.iter().for_each(|path| println!("{path}"));
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("cannot write the generated files: {error}");
                ExitCode::FAILURE
            }
        },
        Some("check") => {
            let stale = stale(&root());
            stale.iter().for_each(|path| eprintln!("{path} is stale"));
            if stale.is_empty() {
                return ExitCode::SUCCESS;
            }
            eprintln!("\nhint: run `cargo run -p vcpulab-dev -- generate` and commit the result");
            ExitCode::FAILURE
        }
        Some("circles") => {
            let except: Vec<String> =
                std::env::args().skip(2).filter(|argument| argument != "--except").collect();
            match layout::broken(&root(), &except) {
                Ok(broken) => {
                    broken.iter().for_each(|broken| eprint!("{broken}"));
                    if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
                }
                Err(error) => {
                    eprintln!("cannot read the source: {error}");
                    ExitCode::FAILURE
                }
            }
        }
        Some("comments") => match comments::pronoun_comments(&root()) {
            Ok(comments) => {
                comments.iter().for_each(|comment| eprint!("{comment}"));
                if comments.is_empty() {
                    return ExitCode::SUCCESS;
                }
                eprintln!("\nhint: let the first word of each comment say what the documented thing is");
                ExitCode::FAILURE
            }
            Err(error) => {
                eprintln!("cannot read the source: {error}");
                ExitCode::FAILURE
            }
        },
        _ => {
            eprintln!("usage: vcpulab-dev generate | check | circles [--except CRATE...] | comments");
            ExitCode::from(2)
        }
    }
}
