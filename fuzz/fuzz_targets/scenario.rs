//! Any bytes as a scenario file: refused with messages, or read; then what is written reads back as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vcpulab_scenario::{Outside, Scenario};

fuzz_target!(|bytes: &[u8]| {
    match Scenario::parse_bytes(bytes, "fuzz.toml", Outside::default()) {
        Ok(scenario) => {
            let written = scenario.to_toml();
            let again = Scenario::parse(&written, "again.toml");
            assert_eq!(again.as_ref(), Ok(&scenario), "{written}");
        }
        Err(problems) => assert!(!problems.to_string().is_empty()),
    }
});
