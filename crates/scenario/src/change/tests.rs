//! Changes of whole scenarios.

use proptest::prelude::*;
use serde_json::json;
use vcpulab_host::Scope;
use vcpulab_sched::{Declaration, DeclaredParam, declare};

use super::*;
use crate::scenario::starter;
use crate::tests::right::right;

const TEXT: &str = "\
seed = 7 # any

[host]
scheduler = \"credit\"
generation = \"xen4.4.1\"
pcpus = 4
tslice_ms = 20 # short

[pool.rt]
pcpus = \"3\"
scheduler = \"credit2\"

[domain.dom0]
driver_domain = true

[domain.web]
weight = 512
cap = 50
idle_tick = \"4ms\"
idle_tick_cpu = \"20us\"
idle_tick_at = \"1ms\"
nic = { driver_domain = \"dom0\" }
app = [{ kind = \"web-server\" }]

[domain.batch]
count = 3
weight = 256 # usual
app = [{ kind = \"hog\" }]

[domain.slow]
pool = \"rt\"
weight = 100
app = [{ kind = \"hog\" }]

[client.people]
kind = \"open-loop\"
server = \"web\"
rate = 10
";

fn steps(address: &str) -> Vec<String> {
    address.split('.').map(str::to_owned).collect()
}

fn edits_of(edits: &[(&str, Json)]) -> Vec<Edit> {
    edits.iter().map(|(address, value)| (steps(address), value.clone())).collect()
}

fn changed(edits: &[(&str, Json)], new_names: NewNames) -> Result<Changed, ChangeError> {
    change(TEXT, &edits_of(edits), new_names, "f", Outside::default())
}

fn done(edits: &[(&str, Json)]) -> Edited {
    changed(edits, NewNames::Refused).unwrap_or_else(|error| panic!("{error}")).edited
}

/// The paths that are set, and those that are left out.
fn paths(edits: &[(&str, Json)]) -> (Vec<String>, Vec<String>) {
    let edited = done(edits);
    let set = edited.set.iter().map(|field| field.path.join(".")).collect();
    (set, edited.left_out.iter().map(|path| path.join(".")).collect())
}

fn refused(edits: &[(&str, Json)]) -> String {
    changed(edits, NewNames::Refused).expect_err("it is refused").to_string()
}

#[test]
fn addresses_mean_full_paths() {
    let meaning = |address: &str| {
        let paths = addressed(TEXT, &steps(address)).unwrap_or_else(|error| panic!("{error}"));
        paths.iter().map(|path| path.join(".")).collect::<Vec<_>>()
    };
    assert_eq!(meaning("web.weight"), ["domain.web.weight"]);
    assert_eq!(meaning("domain.web.weight"), ["domain.web.weight"]);
    assert_eq!(meaning("host.scheduler"), ["host.scheduler"]);
    assert_eq!(meaning("seed"), ["seed"]);
    assert_eq!(meaning("people.rate"), ["client.people.rate"]);
    assert_eq!(meaning("web.rate"), ["client.people.rate"], "of its client");
    assert_eq!(meaning("rt.pcpus"), ["pool.rt.pcpus"]);
    assert_eq!(meaning("*w*.weight"), ["domain.web.weight", "domain.slow.weight"]);
    assert_eq!(meaning("we[a-b].rate"), ["client.people.rate"]);
    let copies = ["domain.batch1.weight", "domain.batch2.weight", "domain.batch3.weight"];
    assert_eq!(meaning("batch.weight"), copies);
    assert_eq!(meaning("domain.batch.weight"), copies);
    assert_eq!(meaning("batch2.weight"), ["domain.batch2.weight"]);
    assert_eq!(meaning("batch.count"), ["domain.batch.count"]);
    assert_eq!(meaning("pool.new.pcpus"), ["pool.new.pcpus"], "a new pool");
}

#[test]
fn addresses_that_mean_nothing_list_what_there_is() {
    let error = |address: &str| match addressed(TEXT, &steps(address)) {
        Err(ChangeError::Address { error, .. }) => error,
        other => panic!("{other:?}"),
    };
    let unknown = error("wbe.weight");
    assert_eq!((unknown.reason.as_str(), unknown.unknown.as_deref()), ("there is no `wbe`", Some("wbe")));
    assert_eq!(unknown.choices[..3], ["dom0", "web", "batch1"]);
    assert!(unknown.choices.ends_with(&["host".into(), "cgroup".into(), "action".into()]));
    let unknown = error("client.wbe.rate");
    assert_eq!(unknown.to_string(), "there is no client `wbe`; allowed: people");
    assert_eq!(error("*x*.weight").reason, "nothing matches `*x*`");
    assert_eq!(error("pool.tr.pcpus").reason, "there is no pool `tr`", "rather than a new pool");
    assert_eq!(error("").reason, "there is no ``");
    let two = format!("{TEXT}[client.more]\nkind = \"open-loop\"\nserver = \"web\"\nrate = 5\n");
    let Err(ChangeError::Address { error, .. }) = addressed(&two, &steps("web.rate")) else { panic!() };
    assert_eq!(error.to_string(), "`web` has several clients; allowed: people, more");
    let both = TEXT.replace("people", "web");
    let Err(ChangeError::Address { error, .. }) = addressed(&both, &steps("web.x")) else { panic!() };
    assert_eq!(error.to_string(), "could mean several paths; allowed: domain.web.x, client.web.x");
}

#[test]
fn a_later_edit_sets_again_what_a_pattern_set_and_nothing_else() {
    let edited = done(&[("*.weight", json!(5)), ("web.weight", json!(6))]);
    let weight = |name: &str| {
        let field = edited.set.iter().find(|field| field.path[1] == name).unwrap();
        (field.value.clone(), field.edit)
    };
    assert_eq!((weight("dom0"), weight("web")), ((json!(5), 0), (json!(6), 1)));
    let twice = [("*.weight", json!(5)), ("web.weight", json!(6)), ("domain.web.weight", json!(7))];
    assert_eq!(refused(&twice), "`domain.web.weight` is set twice");
}

#[test]
fn a_field_that_is_not_in_the_text_has_its_default() {
    assert_eq!(done(&[("dom0.weight", json!(null))]).text, TEXT);
    assert!(!done(&[("web.cap", json!(null))]).text.contains("cap = 50"));
}

#[test]
fn names_that_are_new_are_added_by_full_paths_only() {
    let hog = json!({ "app": [{ "kind": "hog" }] });
    assert_eq!(
        refused(&[("domain.new", hog.clone())]),
        "there is no domain `new`; allowed: dom0, web, batch1, batch2, batch3, slow"
    );
    let changed = changed(&[("domain.new", hog)], NewNames::Added).unwrap();
    assert_eq!(changed.scenario.domains.iter().last().unwrap().name, "new");
}

#[test]
fn pcpus_are_text_although_they_look_like_numbers() {
    assert!(done(&[("web.affinity", json!(0))]).text.contains("affinity = \"0\""));
    let edited = done(&[("dom0.soft_affinity", json!([1])), ("host.pcpus", json!(5))]);
    assert!(edited.text.contains("soft_affinity = [\"1\"]") && edited.text.contains("pcpus = 5"));
}

#[test]
fn another_scheduler_leaves_out_what_it_does_not_have() {
    let rtds = json!("rtds");
    assert_eq!(
        paths(&[("host.scheduler", rtds.clone())]).1,
        [
            "domain.web.idle_tick_at",
            "host.generation",
            "host.tslice_ms",
            "domain.web.weight",
            "domain.web.cap",
            "domain.batch1.weight",
            "domain.batch2.weight",
            "domain.batch3.weight"
        ]
    );
    let text = done(&[("host.scheduler", rtds.clone())]).text;
    assert!(text.contains("count = 3\napp"), "{text}");
    let (_, left_out) = paths(&[("host.scheduler", rtds.clone()), ("web.idle_tick_at", json!("2ms"))]);
    assert!(!left_out.contains(&"domain.web.idle_tick_at".to_owned()), "it is set");
    // The release has Credit2, which has weights and caps.
    let (_, left_out) = paths(&[("host.scheduler", json!("credit2"))]);
    assert_eq!(left_out, ["domain.web.idle_tick_at", "host.tslice_ms", "domain.web.cap"]);
    assert_eq!(paths(&[("host.scheduler", json!("credit"))]).1, Vec::<String>::new());
    assert_eq!(paths(&[("rt.scheduler", rtds)]).1, ["domain.slow.weight"]);
}

#[test]
fn a_domain_in_another_pool_loses_what_the_scheduler_there_does_not_have() {
    let sedf = TEXT.replace("\"credit2\"", "\"rtds\"").replace("weight = 100", "period_us = 9000");
    let moved = |domain: &str, pool: Json| {
        let edits = edits_of(&[(&format!("{domain}.pool"), pool)]);
        let changed = change(&sedf, &edits, NewNames::Refused, "f", Outside::default());
        changed.unwrap_or_else(|error| panic!("{error}")).edited.left_out
    };
    assert_eq!(moved("web", json!("rt")), [steps("domain.web.weight"), steps("domain.web.cap")]);
    assert_eq!(moved("slow", json!(null)), [steps("domain.slow.period_us")]);
    assert_eq!(moved("slow", json!("Pool-0")), [steps("domain.slow.period_us")]);
}

#[test]
fn a_policy_from_outside_keeps_the_parameters_that_it_declares() {
    let declared_with = |names: &[&str]| {
        let param = |name: &&str| DeclaredParam {
            name: (*name).to_owned(),
            scope: Scope::Domain,
            unit: String::new(),
            min: 1,
            max: 65_535,
            default: 256,
            doc: "A number.".into(),
        };
        let params = names.iter().map(param).collect();
        declare(Declaration { name: names.join("-"), doc: "Ours.".into(), generation: "1".into(), params })
    };
    let ours = [declared_with(&["weight"]), declared_with(&["tickets"])];
    let find = |name: &str| match ours.iter().find(|policy| policy.name == name) {
        Some(policy) => crate::FoundPolicy::Found(policy),
        None => crate::FoundPolicy::Unknown(Vec::new()),
    };
    let outside = Outside { policies: Some(&find), ..Outside::default() };
    let under = |text: &str, name: &str, more: &[(&str, Json)]| {
        let edits = edits_of(&[&[("host.scheduler", json!(name))], more].concat());
        change(text, &edits, NewNames::Refused, "f", outside).unwrap_or_else(|error| panic!("{error}")).edited
    };
    let first = under(TEXT, "weight", &[]);
    let left_out: Vec<_> = first.left_out.iter().map(|path| path.join(".")).collect();
    assert_eq!(left_out, ["domain.web.idle_tick_at", "host.generation", "host.tslice_ms", "domain.web.cap"]);
    let tickets = under(TEXT, "tickets", &[("web.tickets", json!(9))]);
    assert!(under(&tickets.text, "credit", &[]).left_out.contains(&steps("domain.web.tickets")));
}

#[test]
fn problems_are_those_of_an_edit() {
    let edits = [("host.pcpus", json!(5)), ("batch.weight", json!(-1)), ("web.app.0.kind", json!("x"))];
    let Err(ChangeError::Scenario { problems, edits }) = changed(&edits, NewNames::Refused) else { panic!() };
    let fields: Vec<_> = problems.iter().map(|problem| problem.field.clone().unwrap()).collect();
    assert_eq!(fields, ["domain.web.app[0].kind", "domain.batch.weight", "client.people.server"]);
    assert_eq!(edits, [Some(2), Some(1), None]);
}

#[test]
fn edits_that_a_text_cannot_take_are_explained() {
    assert_eq!(refused(&[("seed.a", json!(1))]), "`seed.a`: there are no fields in `7`");
    assert!(refused(&[("batch2.weight", json!(null))]).contains("says it for all its copies"));
    assert_eq!(
        refused(&[("web.app.7.kind", json!("hog"))]),
        "`domain.web.app.7.kind`: found `7`; allowed: an item from 0 to 0"
    );
    let error = change("a = ", &[], NewNames::Refused, "f", Outside::default()).unwrap_err();
    assert!(error.to_string().starts_with("not valid TOML: "), "{error}");
}

proptest! {
    #[test]
    fn a_change_is_the_parse_of_its_text(text in right(), weight in 1..60_000_i64, seed in any::<u32>()) {
        let edits = edits_of(&[("dom0.weight", json!(weight)), ("seed", json!(seed)), ("host.scheduler", json!("rtds"))]);
        let changed = change(&text, &edits[..2], NewNames::Refused, "f", Outside::default()).unwrap();
        prop_assert_eq!(&changed.scenario, &Scenario::parse(&changed.edited.text, "f").unwrap());
        prop_assert_eq!(changed.scenario.seed, u64::from(seed));
        let full = [(steps("domain.dom0.weight"), json!(weight)), (steps("seed"), json!(seed))];
        prop_assert_eq!(&changed.edited.text, &edit(&text, &full).unwrap());
        let same = change(&text, &[], NewNames::Refused, "f", Outside::default()).unwrap();
        prop_assert_eq!(&same.edited.text, &text);
        prop_assert_eq!(&same.scenario, &Scenario::parse(&text, "f").unwrap());
    }

    #[test]
    fn no_scheduler_is_in_the_way_of_another(number in 0..vcpulab_sched::policies().len()) {
        let name = vcpulab_sched::policies()[number].name;
        let edits = edits_of(&[("host.scheduler", json!(name))]);
        if let Err(ChangeError::Scenario { problems, .. }) =
            change(starter(), &edits, NewNames::Refused, "f", Outside::default())
        {
            for problem in problems.iter() {
                prop_assert!(!problem.message.contains("is a parameter of"), "{}", problem);
            }
        }
    }
}

#[test]
fn an_action_is_counted_as_in_the_text_though_it_is_one_for_each_copy() {
    let text = "[host]\nprofile = \"exact\"\nscheduler = \"credit\"\n[domain.web]\napp = [{ kind = \"hog\" }]\n\
                [domain.batch]\ncount = 3\napp = [{ kind = \"hog\" }]\n\
                [[action]]\nat = \"1s\"\npause = \"batch\"\n\
                [[action]]\nat = \"2s\"\nadjust = \"web\"\nweight = 300\ncap = 50\n";
    let steps = |path: &str| path.split('.').map(str::to_owned).collect::<Vec<_>>();
    let edits = [(steps("action.1.cap"), Json::Null), (steps("web.cap"), Json::Null)];
    let edited = edit_settings(text, &edits, NewNames::Refused, Outside::default()).unwrap();
    assert!(!edited.text.contains("cap"), "{}", edited.text);
    assert_eq!((edited.set.len(), &edited.absent[..]), (1, &[1][..]));
}

#[test]
fn an_edit_that_a_later_edit_overrides_removes_a_field_all_the_same() {
    let text = "[host]\nprofile = \"exact\"\nscheduler = \"credit\"\n[domain.batch]\ncount = 2\napp = [{ kind = \"hog\" }]\n\
                [domain.batch1]\ncap = 10\n";
    let edits = [
        (vec!["batch*".to_owned(), "cap".to_owned()], Json::Null),
        (vec!["batch1".to_owned(), "cap".to_owned()], json!(50)),
    ];
    let edited = edit_settings(text, &edits, NewNames::Refused, Outside::default()).unwrap();
    assert!(edited.text.contains("cap = 50"), "{}", edited.text);
    assert!(edited.absent.is_empty());
}
