//! A scenario as the rest of the project knows it.

use std::ops::Deref;
use vcpulab_spec::Spec;
use vcpulab_spec::limits::REPLICATIONS_MAX;

use crate::check::check;
use crate::file::copies::written_out;
use crate::file::raw::RawScenario;
use crate::outside::Outside;
use crate::text::problem::{Place, Problem, Problems, text_of};
use crate::text::read::{Read, document};

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
    /// Whether both scenarios say the same. (Warnings, which refer to places in a file, do not count.)
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
        Scenario::parse_in(text, file, Outside::default())
    }

    /// Reads and checks a scenario file like [`parse`](Scenario::parse); the scenario may name files and policies
    /// outside the program.
    ///
    /// # Errors
    /// Everything that is wrong with it and with what it names.
    pub fn parse_in(text: &str, file: &str, outside: Outside<'_>) -> Result<Scenario, Problems> {
        let (node, mut reader) = document(text, file)?;
        let node = written_out(node, &mut reader.report);
        let place = Place { span: Some(0..0), field: String::new() };
        let raw = RawScenario::read(&node, &mut reader).unwrap_or_default();
        let Some(spec) = check(&raw, &place, outside, &mut reader.report) else {
            return Err(reader.report.into_problems());
        };
        let warnings = reader.report.finish()?;
        Ok(Scenario { spec, warnings })
    }

    /// Reads and checks bytes, which may not even be text, like [`parse_in`](Scenario::parse_in).
    ///
    /// # Errors
    /// Everything that is wrong with it and with what it names.
    pub fn parse_bytes(bytes: &[u8], file: &str, outside: Outside<'_>) -> Result<Scenario, Problems> {
        Scenario::parse_in(text_of(bytes, file)?, file, outside)
    }

    /// Things that are allowed in it but probably not meant.
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }

    /// The scenario with another seed or number of replications.
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

    /// The text of a scenario file that spells out every default, and parses to the same scenario. Scheduler parameters
    /// that were left out stay out (a policy may tell the two apart) and appear as comments with their defaults.
    pub fn to_toml(&self) -> String {
        crate::write::to_toml(&self.spec)
    }

    /// The scenario as JSON on a single line, to tell scenarios apart: a third of the work of [`to_toml`](Scenario::to_toml).
    pub fn to_json(&self) -> String {
        crate::write::to_json(&self.spec)
    }
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
