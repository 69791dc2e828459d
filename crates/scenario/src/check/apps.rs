//! Applications: the kinds' tables of parameters say what may be in a file.

use vcpulab_guest::Step;
use vcpulab_guest::apps::{AppDefault, AppParam, AppParamKind, KINDS};
use vcpulab_guest::script::Peer;
use vcpulab_host::DomId;
use vcpulab_spec::limits::{APPS_MAX, TASKS_MAX};
use vcpulab_spec::{AppSpec, AppValue, DomainSpec, HostSpec, PHASES, Service, Spec};

use crate::check::devices::front_to;
use crate::check::disks::disk_needed;
use crate::check::fields::Checker;
use crate::check::phases::{needs_tick, phases_app};
use crate::file::raw::{NamedDomain, RawApp};
use crate::text::params::RawParam;
use crate::text::problem::{Place, Problem, did_you_mean};
use crate::text::read::{At, Field};
use crate::text::units::{Duration, Size};
use crate::text::value::choice;

/// The fields that every kind has, besides its parameters.
const COMMON: [&str; 3] = ["kind", "instance", "assumed"];
/// The fields of `phases`.
const OF_PHASES: [&str; 6] = ["loop", "phase", "softirq", "softirq_first", "start_delay", "stretch"];

/// Position of the service of one of these kinds among a domain's applications, if there is just one.
fn only_service(domain: &DomainSpec, kinds: &[&str]) -> Option<usize> {
    let serves = |app: &AppSpec| kinds.contains(&app.kind()) && app.serves();
    let mut found = domain.apps.iter().enumerate().filter(|(_, app)| serves(app));
    let (position, _) = found.next()?;
    found.next().is_none().then_some(position)
}

/// A hint for a domain that should serve, but has an application that sends instead.
pub(crate) fn only_sends(domain: &DomainSpec) -> Option<String> {
    let sends = domain.apps.iter().find(|app| !app.classes().is_empty() && !app.serves())?;
    Some(format!("its `{}` sends; `direction = \"receive\"` makes it a service", sends.kind()))
}

/// The applications of all domains, which may refer to one another.
pub(crate) fn check(checker: &mut Checker<'_, '_>, spec: &mut Spec, raw: &[&NamedDomain], place: &Place) {
    for (domain, (_, raw)) in spec.domains.ids().zip(raw) {
        let apps = raw.value.app.get().into_iter().flatten().take(APPS_MAX);
        if let Some(At { value, place }) = &raw.value.app.0 {
            checker.count(value.len(), 0, APPS_MAX, "applications", place);
        }
        let apps = apps.filter_map(|raw| app(checker, raw, &spec.host)).collect();
        spec.domains[domain].apps = apps;
    }
    for (domain, (_, raw)) in spec.domains.ids().zip(raw) {
        let raw_apps: Vec<_> = raw.value.app.get().into_iter().flatten().take(APPS_MAX).collect();
        // With errors some of them are missing.
        if raw_apps.len() == spec.domains[domain].apps.len() {
            for (position, app) in raw_apps.iter().enumerate() {
                references(checker, spec, domain, position, app);
                let its = &spec.domains[domain].apps[position];
                disk_needed(checker, spec, domain, its, &app.place);
                nic_needed(checker, spec, domain, its, &app.place);
                if raw.value.idle_tick.is_none()
                    && let Some(field) = needs_tick(its)
                {
                    let problem = format!("`{field}` goes with the domain's `idle_tick`, and it has none");
                    checker.report.error(&app.place, Problem::says(problem));
                }
            }
        }
    }
    let tasks = spec.domains.iter().flat_map(|domain| &domain.apps).map(AppSpec::tasks).sum();
    checker.count(tasks, 0, TASKS_MAX, "tasks in all domains together", &place.member("domain"));
}

/// An application without what refers to others.
fn app(
    checker: &mut Checker<'_, '_>,
    At { value: raw, place }: &At<RawApp>,
    host: &HostSpec,
) -> Option<AppSpec> {
    let name = raw.kind.0.as_ref()?;
    let kinds = KINDS.iter().map(|kind| (kind.name, Some(kind))).chain([(PHASES, None)]);
    let kind = choice(&name.value, &kinds.collect::<Vec<_>>(), &name.place, checker.report)?;
    let Some(kind) = kind else {
        strangers(checker, raw, place, &OF_PHASES, &[]);
        return phases_app(checker, raw, place);
    };
    strangers(checker, raw, place, &[], kind.params);
    let values: Vec<Option<AppValue>> =
        kind.params.iter().map(|param| app_param(checker, raw, place, param, host)).collect();
    let most = if kind.classes.is_empty() { APPS_MAX as u32 } else { 1 };
    let instances = raw.instance(most, checker.report);
    let values = values.into_iter().collect::<Option<_>>()?;
    Some(AppSpec::Kind { kind, values, instances, assumed: raw.assumed(checker.report) })
}

/// Fields that this kind does not have.
fn strangers(
    checker: &mut Checker<'_, '_>,
    raw: &RawApp,
    place: &Place,
    fields: &[&'static str],
    params: &'static [AppParam],
) {
    let given = |name: &str, field_is_given: bool| {
        (field_is_given && !fields.contains(&name)).then(|| name.to_owned())
    };
    let own = [
        given("loop", !raw.r#loop.is_none()),
        given("phase", !raw.phase.is_none()),
        given("softirq", !raw.softirq.is_none()),
        given("softirq_first", !raw.softirq_first.is_none()),
        given("start_delay", !raw.start_delay.is_none()),
        given("stretch", !raw.stretch.is_none()),
    ];
    let own = own.into_iter().flatten().map(|name| (name.clone(), place.member(&name)));
    let others = raw.params.0.iter().map(|(name, _)| (name.value.clone(), name.place.clone()));
    for (name, place) in own.chain(others) {
        if params.iter().any(|param| param.name == name) {
            continue;
        }
        checker.report.error_with(&place, || {
            let owners = KINDS.iter().filter(|kind| kind.params.iter().any(|param| param.name == name));
            let owner = owners.map(|kind| kind.name).next();
            let owner = owner.or_else(|| OF_PHASES.contains(&name.as_str()).then_some(PHASES));
            let known = || COMMON.iter().chain(fields).copied().chain(params.iter().map(|param| param.name));
            let hint = did_you_mean(&name, known())
                .or_else(|| owner.map(|kind| format!("`{name}` belongs to kind `{kind}`")))
                .unwrap_or_else(|| format!("known here: {}", known().collect::<Vec<_>>().join(", ")));
            Problem::says("unknown field").found(&name).hint(hint)
        });
    }
}

fn app_param(
    checker: &mut Checker<'_, '_>,
    raw: &RawApp,
    place: &Place,
    param: &AppParam,
    host: &HostSpec,
) -> Option<AppValue> {
    let Some((_, given)) = raw.params.0.iter().find(|(name, _)| name.value == param.name) else {
        return match param.default {
            AppDefault::Value(value) => Some(AppValue::Number(value)),
            AppDefault::Kilocycles(kilocycles) => {
                Some(AppValue::Number(host.constants.cycles(kilocycles * 1000).ns()))
            }
            AppDefault::Profile(name) => host.constants.get(name).map(AppValue::Number),
            AppDefault::Absent => Some(AppValue::Absent),
            AppDefault::Required => {
                checker.report.error(&place.member(param.name), Problem::says("required, but not given"));
                None
            }
        };
    };
    if let (RawParam::Word(_), AppParamKind::Service(_)) = (&given.value, param.kind) {
        // `references` finds the one that is meant, once all applications are known.
        return Some(AppValue::Service(Service { domain: DomId(0), app: 0 }));
    }
    let value = match (&given.value, param.kind) {
        (RawParam::Word(word), AppParamKind::Duration { .. }) => {
            Duration::parse(word).map(|span| span.0.ns())
        }
        (RawParam::Word(word), AppParamKind::Size { .. }) => Size::parse(word).map(|size| size.0),
        (
            RawParam::Int(value),
            AppParamKind::Size { .. } | AppParamKind::Int { .. } | AppParamKind::Percent,
        ) => Some(*value),
        (RawParam::Word(word), AppParamKind::Choice(words)) => {
            words.iter().position(|w| w == word).map(|position| position as i64)
        }
        (RawParam::Flag(flag), AppParamKind::Flag) => Some((*flag).into()),
        _ => None,
    };
    let readable = value.is_some();
    let value = value.filter(|&value| param.kind.allows(value));
    if value.is_none() {
        let allowed = match param.kind {
            AppParamKind::Duration { .. } if !readable => Duration::ALLOWED.to_owned(),
            AppParamKind::Size { .. } if !readable => Size::ALLOWED.to_owned(),
            kind => allowed(kind),
        };
        let hint = match (&given.value, param.kind) {
            (RawParam::Word(word), AppParamKind::Choice(words)) => did_you_mean(word, words.iter().copied()),
            _ => None,
        };
        checker.report.error(&given.place, Problem::not_allowed(allowed).maybe_hint(hint));
    }
    value.map(AppValue::Number)
}

/// Reports an application that sends to the outside from a domain without a network interface.
fn nic_needed(checker: &mut Checker<'_, '_>, spec: &Spec, domain: DomId, app: &AppSpec, place: &Place) {
    let config = app.alone();
    let sends = config.script.steps.iter().any(|step| matches!(step, Step::Connect(Peer::Outside)));
    if sends && !spec.domains[domain].is_on_network() {
        let problem = Problem::says(format!("`{}` needs a network interface in its domain", app.kind()));
        checker.report.error(place, problem.hint(format!("add `nic = {}`", front_to(spec))));
    }
}

/// The services that an application asks.
fn references(
    checker: &mut Checker<'_, '_>,
    spec: &mut Spec,
    domain: DomId,
    position: usize,
    raw: &At<RawApp>,
) {
    let AppSpec::Kind { kind, .. } = &spec.domains[domain].apps[position] else { return };
    for (index, param) in kind.params.iter().enumerate() {
        let AppParamKind::Service(kinds) = param.kind else { continue };
        let given = raw.value.params.0.iter().find(|(name, _)| name.value == param.name);
        let Some((_, At { value: RawParam::Word(word), place })) = given else { continue };
        let field = Field(Some(At { value: word.clone(), place: place.clone() }));
        let Some(of) = checker.domain(&field, &spec.domains) else { continue };
        let Some(app) = only_service(&spec.domains[of], kinds) else {
            let words: Vec<String> = kinds.iter().map(|kind| format!("`{kind}`")).collect();
            let problem = Problem::says(format!("domain `{word}` must run one {}", words.join(" or ")));
            checker.report.error(place, problem.found(word).maybe_hint(only_sends(&spec.domains[of])));
            continue;
        };
        if of != domain && (spec.domains[of].nic.is_none() || spec.domains[domain].nic.is_none()) {
            let problem = Problem::says("both domains need a network interface").found(word);
            checker.report.error(place, problem.hint(format!("add `nic = {}`", front_to(spec))));
        }
        if let AppSpec::Kind { values, .. } = &mut spec.domains[domain].apps[position] {
            values[index] = AppValue::Service(Service { domain: of, app });
        }
    }
}

/// The values allowed, in words, as a file writes them.
fn allowed(kind: AppParamKind) -> String {
    match kind {
        AppParamKind::Duration { min, max } => {
            format!("a time span from {} to {}", Duration(min), Duration(max))
        }
        AppParamKind::Size { min, max } => format!("a size from {} to {}", Size(min), Size(max)),
        AppParamKind::Int { min, max } => format!("an integer from {min} to {max}"),
        AppParamKind::Percent => "an integer from 0 to 100 (%)".to_owned(),
        AppParamKind::Flag => "true or false".to_owned(),
        AppParamKind::Choice(words) => format!("one of {}", words.join(", ")),
        AppParamKind::Service(kinds) => format!("the name of a domain that runs one {}", kinds.join(" or ")),
    }
}
