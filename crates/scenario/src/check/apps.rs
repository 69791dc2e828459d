//! Applications in a scenario: from the kinds' tables of parameters to checked values, back to what a file says, and on to
//! what the engine runs.

use vcpulab_guest::apps::{AppParam, Args, Default as AppDefault, KINDS, ParamKind, find};
use vcpulab_guest::{AppConfig, Script};

use crate::check::Checker;
use crate::limits::APPS_MAX;
use crate::phases::{Channels, Meetings, raw_phase, script};
use crate::problem::{Place, Problem, did_you_mean};
use crate::profile::Constants;
use crate::raw::RawApp;
use crate::read::{At, Field, RawParam, RawParams};
use crate::spec::{AppSpec, DomainSpec, HostSpec, Spec};
use crate::units::{Duration, Size};

/// The kind whose script stands in the scenario itself.
pub(crate) const PHASES: &str = "phases";

/// The fields that every kind has, besides its parameters.
const COMMON: [&str; 2] = ["kind", "instance"];
/// The fields of `phases`.
const OF_PHASES: [&str; 3] = ["loop", "phase", "start_delay"];

/// The names of all kinds.
pub(crate) fn kind_names() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|kind| kind.name).chain([PHASES])
}

/// Where the service of one of these kinds stands among a domain's applications, if there is just one.
fn only_service(domain: &DomainSpec, kinds: &[&str]) -> Option<usize> {
    let serves = |app: &AppSpec| kinds.contains(&app.kind()) && app.serves();
    let mut found = domain.apps.iter().enumerate().filter(|(_, app)| serves(app));
    let (position, _) = found.next()?;
    found.next().is_none().then_some(position)
}

impl AppSpec {
    /// Its kind, in the scenario's word.
    pub fn kind(&self) -> &'static str {
        match self {
            AppSpec::Kind { kind, .. } => kind.name,
            AppSpec::Phases { .. } => PHASES,
        }
    }

    /// How many of them there are.
    pub fn instances(&self) -> u32 {
        match self {
            AppSpec::Kind { instances, .. } | AppSpec::Phases { instances, .. } => *instances,
        }
    }

    /// The value of a parameter, if its kind has it.
    pub fn get(&self, name: &str) -> Option<i64> {
        let AppSpec::Kind { kind, values, .. } = self else { return None };
        kind.params.iter().position(|param| param.name == name).map(|position| values[position])
    }

    /// It as the engine takes it, as far as that depends on nothing else.
    pub(crate) fn alone(&self) -> AppConfig {
        match self {
            AppSpec::Kind { kind, values, .. } => (kind.build)(&Args { kind, values, spread_percent: 0 }),
            AppSpec::Phases { .. } => AppConfig::new(Script::default()),
        }
    }

    /// Does it answer requests? (Some kinds do so or not as their parameters say.)
    pub fn serves(&self) -> bool {
        matches!(self, AppSpec::Kind { kind, .. } if !kind.classes.is_empty())
            && self.alone().service.is_some()
    }

    /// How many tasks it comes to.
    fn tasks(&self) -> usize {
        self.alone().tasks as usize * self.instances() as usize
    }
}

/// What to do about a domain that should serve, but has an application that was told to send instead.
pub(crate) fn only_sends(domain: &DomainSpec) -> Option<String> {
    let sends = domain.apps.iter().find(|app| !classes(app).is_empty() && !app.serves())?;
    Some(format!("its `{}` sends; `direction = \"receive\"` makes it a service", sends.kind()))
}

// ---- checking ----

impl Checker<'_, '_> {
    /// The applications of all domains, which may refer to one another.
    pub(crate) fn all_apps(&mut self, spec: &mut Spec, raw: &[&crate::check::NamedDomain]) {
        let count = spec.domains.len();
        for (index, (_, raw)) in raw.iter().enumerate().take(count) {
            let apps = raw.value.app.get().into_iter().flatten().take(APPS_MAX);
            if let Some(At { value, place }) = &raw.value.app.0 {
                self.count(value.len(), 0, APPS_MAX, "applications", place);
            }
            let apps = apps.filter_map(|app| self.app(app, &spec.host)).collect();
            spec.domains[index].apps = apps;
        }
        for (index, (_, raw)) in raw.iter().enumerate().take(count) {
            let raw_apps: Vec<_> = raw.value.app.get().into_iter().flatten().take(APPS_MAX).collect();
            // With errors some of them are missing.
            if raw_apps.len() == spec.domains[index].apps.len() {
                for (position, app) in raw_apps.iter().enumerate() {
                    self.references(spec, index, position, app);
                    self.disk_needed(spec, index, &spec.domains[index].apps[position], &app.place);
                }
            }
        }
    }

    /// How many tasks all applications come to.
    pub(crate) fn tasks(spec: &Spec) -> usize {
        spec.domains.iter().flat_map(|domain| &domain.apps).map(AppSpec::tasks).sum()
    }

    /// An application without what refers to others.
    fn app(&mut self, At { value: raw, place }: &At<RawApp>, host: &HostSpec) -> Option<AppSpec> {
        let name = raw.kind.0.as_ref()?;
        if name.value == PHASES {
            self.strangers(raw, place, &OF_PHASES, &[]);
            return self.phases_app(raw, place);
        }
        let Some(kind) = find(&name.value) else {
            let words: Vec<&str> = kind_names().collect();
            let problem = Problem::not_allowed(format!("one of {}", words.join(", ")));
            self.report.error(&name.place, problem.maybe_hint(did_you_mean(&name.value, words)));
            return None;
        };
        self.strangers(raw, place, &[], kind.params);
        let values: Vec<Option<i64>> =
            kind.params.iter().map(|param| self.app_param(raw, place, param, host)).collect();
        let most = if kind.classes.is_empty() { APPS_MAX as i64 } else { 1 };
        let instances = self.int(&raw.instance, 1, 1..=most)? as u32;
        Some(AppSpec::Kind { kind, values: values.into_iter().collect::<Option<_>>()?, instances })
    }

    /// Fields that this kind does not have.
    fn strangers(
        &mut self,
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
            given("start_delay", !raw.start_delay.is_none()),
        ];
        let own = own.into_iter().flatten().map(|name| (name.clone(), place.member(&name)));
        let others = raw.params.0.iter().map(|(name, _)| (name.value.clone(), name.place.clone()));
        for (name, place) in own.chain(others) {
            if params.iter().any(|param| param.name == name) {
                continue;
            }
            self.report.error_with(&place, || {
                let owners = KINDS.iter().filter(|kind| kind.params.iter().any(|param| param.name == name));
                let owner = owners.map(|kind| kind.name).next();
                let owner = owner.or_else(|| OF_PHASES.contains(&name.as_str()).then_some(PHASES));
                let known =
                    || COMMON.iter().chain(fields).copied().chain(params.iter().map(|param| param.name));
                let hint = did_you_mean(&name, known())
                    .or_else(|| owner.map(|kind| format!("`{name}` belongs to kind `{kind}`")))
                    .unwrap_or_else(|| format!("known here: {}", known().collect::<Vec<_>>().join(", ")));
                Problem::says("unknown field").found(&name).hint(hint)
            });
        }
    }

    fn app_param(&mut self, raw: &RawApp, place: &Place, param: &AppParam, host: &HostSpec) -> Option<i64> {
        let Some((_, given)) = raw.params.0.iter().find(|(name, _)| name.value == param.name) else {
            return match param.default {
                AppDefault::Value(value) => Some(value),
                AppDefault::Kilocycles(kilocycles) => Some(host.constants.cycles_ns(kilocycles * 1000)),
                AppDefault::Profile(name) => host.constants.get(name),
                AppDefault::Absent => Some(-1),
                AppDefault::Required => {
                    self.report.error(&place.member(param.name), Problem::says("required, but not given"));
                    None
                }
            };
        };
        let value = match (&given.value, param.kind) {
            (RawParam::Word(word), ParamKind::Duration { .. }) => Duration::parse(word).map(|span| span.0),
            (RawParam::Word(word), ParamKind::Size { .. }) => Size::parse(word).map(|size| size.0),
            (RawParam::Int(value), ParamKind::Size { .. } | ParamKind::Count { .. } | ParamKind::Percent) => {
                Some(*value)
            }
            (RawParam::Word(word), ParamKind::Choice(words)) => {
                words.iter().position(|w| w == word).map(|position| position as i64)
            }
            (RawParam::Flag(flag), ParamKind::Flag) => Some((*flag).into()),
            // Which one is said later.
            (RawParam::Word(_), ParamKind::Service(_)) => Some(0),
            _ => None,
        };
        let fits = |value: &i64| match param.kind {
            ParamKind::Duration { min, max }
            | ParamKind::Size { min, max }
            | ParamKind::Count { min, max } => (min..=max).contains(value),
            ParamKind::Percent => (0..=100).contains(value),
            ParamKind::Choice(_) | ParamKind::Flag | ParamKind::Service(_) => true,
        };
        let readable = value.is_some();
        let value = value.filter(fits);
        if value.is_none() {
            let allowed = match param.kind {
                ParamKind::Duration { .. } if !readable => Duration::ALLOWED.to_owned(),
                ParamKind::Size { .. } if !readable => Size::ALLOWED.to_owned(),
                _ => allowed(param),
            };
            let hint = match (&given.value, param.kind) {
                (RawParam::Word(word), ParamKind::Choice(words)) => did_you_mean(word, words.iter().copied()),
                _ => None,
            };
            self.report.error(&given.place, Problem::not_allowed(allowed).maybe_hint(hint));
        }
        value
    }

    /// The services that an application asks.
    fn references(&mut self, spec: &mut Spec, domain: usize, position: usize, raw: &At<RawApp>) {
        let AppSpec::Kind { kind, .. } = &spec.domains[domain].apps[position] else { return };
        for (index, param) in kind.params.iter().enumerate() {
            let ParamKind::Service(kinds) = param.kind else { continue };
            let given = raw.value.params.0.iter().find(|(name, _)| name.value == param.name);
            let Some((_, At { value: RawParam::Word(word), place })) = given else { continue };
            let field = Field(Some(At { value: word.clone(), place: place.clone() }));
            let Some(of) = self.domain(&field, &spec.domains) else { continue };
            let Some(app) = only_service(&spec.domains[of], kinds) else {
                let words: Vec<String> = kinds.iter().map(|kind| format!("`{kind}`")).collect();
                let problem = Problem::says(format!("domain `{word}` must run one {}", words.join(" or ")));
                self.report.error(place, problem.found(word).maybe_hint(only_sends(&spec.domains[of])));
                continue;
            };
            if of != domain && (spec.domains[of].nic.is_none() || spec.domains[domain].nic.is_none()) {
                let problem = Problem::says("both domains need a network interface").found(word);
                self.report.error(place, problem.hint("add `nic = { driver_domain = \"dom0\" }`"));
            }
            if let AppSpec::Kind { values, .. } = &mut spec.domains[domain].apps[position] {
                values[index] = service_value(of, app);
            }
        }
    }
}

/// What a parameter may be, in words.
pub(crate) fn allowed(param: &AppParam) -> String {
    match param.kind {
        ParamKind::Duration { min, max } => {
            format!("a time span from {} to {}", Duration(min), Duration(max))
        }
        ParamKind::Size { min, max } => format!("a size from {} to {}", Size(min), Size(max)),
        ParamKind::Count { min, max } => format!("an integer from {min} to {max}"),
        ParamKind::Percent => "an integer from 0 to 100 (%)".to_owned(),
        ParamKind::Choice(words) => format!("one of {}", words.join(", ")),
        ParamKind::Flag => "true or false".to_owned(),
        ParamKind::Service(kinds) => format!("the name of a domain that runs one {}", kinds.join(" or ")),
    }
}

/// A service as a parameter's value: the domain and the application's position in it.
fn service_value(domain: usize, app: usize) -> i64 {
    (domain * (APPS_MAX + 1) + app) as i64
}

/// The domain and the position of the application that a parameter's value means.
pub(crate) fn service_of(value: i64) -> (usize, usize) {
    let value = value as usize;
    (value / (APPS_MAX + 1), value % (APPS_MAX + 1))
}

/// The services that an application asks.
pub(crate) fn asks(app: &AppSpec) -> impl Iterator<Item = (usize, usize)> + '_ {
    let (params, values): (&[AppParam], &[i64]) = match app {
        AppSpec::Kind { kind, values, .. } => (kind.params, values),
        AppSpec::Phases { .. } => (&[], &[]),
    };
    let asked = params.iter().zip(values);
    asked
        .filter(|(param, value)| matches!(param.kind, ParamKind::Service(_)) && **value >= 0)
        .map(|(_, &value)| service_of(value))
}

// ---- writing ----

/// A checked application as a file would say it.
pub(crate) fn raw_app(app: &AppSpec, spec: &Spec) -> RawApp {
    let mut raw = RawApp {
        kind: app.kind().to_owned().into(),
        instance: i64::from(app.instances()).into(),
        ..RawApp::default()
    };
    match app {
        AppSpec::Phases { phases, rounds, delay_ns, .. } => {
            raw.start_delay = Duration(*delay_ns).into();
            raw.r#loop = rounds.map_or(-1, i64::from).into();
            raw.phase = phases.iter().map(|phase| raw_phase(phase).into()).collect::<Vec<_>>().into();
        }
        AppSpec::Kind { kind, values, .. } => {
            let params = kind.params.iter().zip(values).filter_map(|(param, &value)| {
                let value = match param.kind {
                    _ if value == -1 && param.default == AppDefault::Absent => return None,
                    ParamKind::Duration { .. } => RawParam::Word(Duration(value).to_string()),
                    ParamKind::Size { .. } => RawParam::Word(Size(value).to_string()),
                    ParamKind::Count { .. } | ParamKind::Percent => RawParam::Int(value),
                    ParamKind::Choice(words) => RawParam::Word(words[value as usize].to_owned()),
                    ParamKind::Flag => RawParam::Flag(value != 0),
                    ParamKind::Service(_) => RawParam::Word(spec.domains[service_of(value).0].name.clone()),
                };
                Some((param.name.to_owned().into(), value.into()))
            });
            raw.params = RawParams(params.collect());
        }
    }
    raw
}

// ---- running ----

/// One instance of an application as the engine takes it. `service` says the number of a service that it asks.
pub(crate) fn config(
    app: &AppSpec,
    service: &dyn Fn(i64) -> i64,
    meetings: &Meetings<'_>,
    channels: &Channels<'_>,
    constants: &Constants,
) -> AppConfig {
    match app {
        AppSpec::Phases { phases, rounds, delay_ns, .. } => AppConfig {
            delay: *delay_ns,
            meets_others: true,
            ..AppConfig::new(script(phases, *rounds, meetings, channels))
        },
        AppSpec::Kind { kind, values, .. } => {
            let resolved = |(param, &value): (&AppParam, &i64)| match param.kind {
                ParamKind::Service(_) if value >= 0 => service(value),
                _ => value,
            };
            let values: Vec<i64> = kind.params.iter().zip(values).map(resolved).collect();
            let spread_percent = constants.cost_spread_percent;
            (kind.build)(&Args { kind, values: &values, spread_percent })
        }
    }
}

/// The classes of requests that an application answers.
pub(crate) fn classes(app: &AppSpec) -> &'static [vcpulab_guest::apps::RequestClass] {
    match app {
        AppSpec::Kind { kind, .. } => kind.classes,
        AppSpec::Phases { .. } => &[],
    }
}
