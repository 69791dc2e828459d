//! Costs read back as they were written.

use vcpulab_spec::CONSTANTS;

use crate::{Scenario, profiles};

/// Every constant of every profile, set to its least value and to its own default.
#[test]
fn every_cost_reads_back() {
    for profile in profiles() {
        for kvm in [false, true] {
            let constants = CONSTANTS.iter().filter(|constant| kvm || !constant.of_kvm());
            for constant in constants {
                for value in [Some(constant.min), constant.default].into_iter().flatten() {
                    let host = if kvm {
                        "hypervisor = \"kvm\"\nscheduler = \"linux-cfs\""
                    } else {
                        "scheduler = \"credit\""
                    };
                    let (name, cost) = (&profile.name, constant.name);
                    let text = format!(
                        "[host]\n{host}\nprofile = \"{name}\"\ncosts.{cost} = {value}\n[domain.a]\napp = [{{ kind = \"hog\" }}]\n"
                    );
                    // Some do not go with the others.
                    let Ok(scenario) = Scenario::parse(&text, "f") else { continue };
                    let again = Scenario::parse(&scenario.to_toml(), "again");
                    let again = again.unwrap_or_else(|problems| panic!("{text}{problems}"));
                    assert_eq!(again.host.constants.get(cost), Some(value), "{text}");
                    assert_eq!(again, scenario, "{text}");
                }
            }
        }
    }
}

/// A constant of a profile that the document leaves out has its default.
#[test]
fn documents_have_every_cost_that_is_not_its_default() {
    for profile in profiles() {
        let text = format!(
            "host.profile = \"{}\"\nhost.scheduler = \"credit\"\n[domain.a]\napp = [{{ kind = \"hog\" }}]\n",
            profile.name
        );
        let scenario = Scenario::parse(&text, "f").unwrap_or_else(|problems| panic!("{text}{problems}"));
        let written = scenario.to_toml();
        for constant in CONSTANTS {
            let value = scenario.host.constants.get(constant.name);
            if value.is_some() && value != constant.default {
                assert!(written.contains(constant.name), "{}: {}", profile.name, constant.name);
            }
        }
    }
}
