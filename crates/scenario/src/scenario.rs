//! A scenario as the rest of the project knows it.

use std::ops::Deref;

use toml::de::{DeTable, DeValue};

use crate::check::check;
use crate::limits::{FILE_BYTES_MAX, REPLICATIONS_MAX};
use crate::problem::{Place, Problem, Problems, Report};
use crate::raw::RawScenario;
use crate::read::{Read, Reader};
use crate::spec::Spec;

/// A checked scenario: one that can run. What it says is read through [`Spec`].
#[derive(Clone, Debug)]
pub struct Scenario {
    spec: Spec,
    warnings: Vec<Problem>,
}

impl Deref for Scenario {
    type Target = Spec;

    fn deref(&self) -> &Spec {
        &self.spec
    }
}

impl PartialEq for Scenario {
    /// Do both say the same? (Warnings, which speak of places in a file, do not matter.)
    fn eq(&self, other: &Self) -> bool {
        self.spec == other.spec
    }
}

impl Scenario {
    /// Reads and checks a scenario file. `file` is its name for messages.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(text: &str, file: &str) -> Result<Scenario, Problems> {
        if text.len() > FILE_BYTES_MAX {
            let message = format!("the file has {} bytes; allowed: at most {FILE_BYTES_MAX}", text.len());
            return Err(whole_file(file, message));
        }
        let mut report = Report::new(file, text);
        let (document, syntax_errors) = DeTable::parse_recoverable(text);
        if !syntax_errors.is_empty() {
            // What the rest of such a file means is anyone's guess: nothing more is said about it.
            for error in syntax_errors {
                let place = Place { span: error.span(), field: String::new() };
                report.error(&place, Problem::says(format!("not valid TOML: {}", error.message())));
            }
            return Err(report.finish().expect_err("there are syntax errors"));
        }
        let place = Place { span: Some(0..0), field: String::new() };
        let mut reader = Reader::new(report);
        let node = toml::Spanned::new(0..0, DeValue::Table(document.into_inner()));
        let raw = RawScenario::read(&node, &mut reader).unwrap_or_default();
        let spec = check(&raw, &place, &mut reader.report);
        let warnings = reader.report.finish()?;
        Ok(Scenario { spec, warnings })
    }

    /// As [`parse`](Scenario::parse), for bytes that may not even be text.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse_bytes(bytes: &[u8], file: &str) -> Result<Scenario, Problems> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Scenario::parse(text, file),
            Err(error) => {
                let message = format!("not a text file: byte {} is not valid UTF-8", error.valid_up_to());
                Err(whole_file(file, message))
            }
        }
    }

    /// What is allowed in it but probably not meant.
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }

    /// The same scenario with another seed or number of replications.
    ///
    /// # Errors
    /// When they are out of range.
    pub fn with_run(&self, seed: Option<u64>, replications: Option<u32>) -> Result<Scenario, Problems> {
        let mut scenario = self.clone();
        if let Some(seed) = seed {
            require("seed", seed, i64::MAX as u64, seed <= i64::MAX as u64)?;
            scenario.spec.seed = seed;
        }
        if let Some(replications) = replications {
            let fits = (1..=REPLICATIONS_MAX).contains(&replications);
            require("run.replications", replications, REPLICATIONS_MAX, fits)?;
            scenario.spec.replications = replications;
        }
        Ok(scenario)
    }

    /// As a scenario file that spells out every default, and parses to the same scenario. Scheduler parameters that
    /// were left out stay so (a policy may tell the two apart) and appear as comments with their defaults.
    pub fn to_toml(&self) -> String {
        crate::write::to_toml(&self.spec)
    }
}

fn whole_file(file: &str, message: String) -> Problems {
    Problem { file: file.into(), ..Problem::says(message) }.into()
}

fn require<T: std::fmt::Display>(field: &str, value: T, most: T, fits: bool) -> Result<(), Problems> {
    if fits {
        return Ok(());
    }
    let least = if field == "seed" { 0 } else { 1 };
    let allowed = format!("an integer from {least} to {most}");
    Err(Problem {
        file: "<argument>".into(),
        field: Some(field.into()),
        message: format!("found `{value}`; allowed: {allowed}"),
        found: Some(value.to_string()),
        allowed: Some(allowed),
        ..Problem::default()
    }
    .into())
}

/// A commented scenario to start from.
pub fn starter() -> &'static str {
    include_str!("starter.toml")
}
