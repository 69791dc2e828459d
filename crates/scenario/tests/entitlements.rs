//! Tests of what the weights of a scenario promise.

use vcpulab_scenario::Scenario;
use vcpulab_spec::entitlements;

fn of(host: &str, domains: &str) -> Vec<Option<f64>> {
    let text = format!("[host]\nscheduler = \"credit\"\nprofile = \"exact\"\n{host}\n{domains}");
    entitlements(&Scenario::parse(&text, "f").unwrap_or_else(|problems| panic!("{problems}")))
}

#[test]
fn weights_decide_up_to_what_a_domain_can_use() {
    assert_eq!(of("", "[domain.a]\nweight = 512"), [Some(1.0)]);
    assert_eq!(
        of("pcpus = 3", "[domain.a]\nvcpus = 4\nweight = 512\n[domain.b]\nvcpus = 4"),
        [Some(2.0), Some(1.0)]
    );
    // One vCPU uses no more than one pCPU; a cap holds too; the others share the rest.
    let three = "[domain.a]\nweight = 60000\n[domain.b]\nvcpus = 4\ncap = 50\n[domain.c]\nvcpus = 4";
    assert_eq!(of("pcpus = 4", three), [Some(1.0), Some(0.5), Some(2.5)]);
}

#[test]
fn each_pool_is_shared_by_the_domains_in_it() {
    let pool = "pcpus = 3\n[pool.rest]\npcpus = \"1-2\"\nscheduler = \"credit2\"";
    let domains = "[domain.a]\n[domain.b]\nweight = 768\n[domain.c]\npool = \"rest\"\nvcpus = 2";
    assert_eq!(of(pool, domains), [Some(0.25), Some(0.75), Some(2.0)]);
}

#[test]
fn nothing_is_said_where_weights_do_not_decide() {
    assert_eq!(of("pcpus = 2", "[domain.a]\naffinity = \"0\""), [None]);
    assert_eq!(of("", "[domain.a]\n[[action]]\nat = \"1s\"\nop = \"pause\"\ndomain = \"a\""), [None]);
}
