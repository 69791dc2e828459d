//! Scenarios as the input has them: their text, and the policies that are not built in.

use std::collections::BTreeMap;

use serde::Deserialize;
use vcpulab_scenario::{Outside, Problems, Scenario};

use crate::policy::{Known, Policies};

/// The scenario's name in messages.
const FILE: &str = "scenario.toml";

/// A scenario, and the policies that it may name though they are not built in.
#[derive(Deserialize)]
pub struct Source {
    pub text: String,
    #[serde(default)]
    pub policies: BTreeMap<String, Known>,
}

/// Checks a scenario.
pub fn parsed(text: &str, policies: &Policies) -> Result<Scenario, Problems> {
    let find = |name: &str| policies.find(name);
    Scenario::parse_in(text, FILE, Outside { policies: Some(&find), ..Outside::default() })
}
