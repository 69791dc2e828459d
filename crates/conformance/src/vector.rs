//! The host file of a vector. Any bytes lead to a valid [`Vector`] or a clear [`VectorError`].

use serde::Deserialize;
use serde_json::Value;
use vcpulab_host::program::{Program, Step};
use vcpulab_host::{
    Action, CpuMask, Creation, DomId, DomainConfig, Granularity, HostConfig, Numbering, PCPUS_MAX,
    ParamValue, Params, PcpuId, PoolId, Scope, Span, Time, TimedAction, TimetableEntry, TopologyConfig,
    VcpuConfig, VcpuId,
};
use vcpulab_sched::{ParamKind, ParamSpec};

/// Largest host file, bytes.
pub const FILE_MAX: usize = 16 << 20;
/// Most vCPUs of a host.
pub const VCPUS_MAX: usize = 65_536;
/// Most operations in one program.
pub const STEPS_MAX: usize = 100_000;
/// Most actions.
pub const ACTIONS_MAX: usize = 100_000;
/// Longest run, ns (an hour).
pub const DURATION_MAX: i64 = 3_600_000_000_000;

/// The reason why a vector cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{field}: {message}")]
pub struct VectorError {
    /// The field, as a path such as `domains[0].vcpus[1].program`.
    pub field: String,
    /// The problem: the value found and the values allowed.
    pub message: String,
}

fn error<T>(field: impl Into<String>, message: impl Into<String>) -> Result<T, VectorError> {
    Err(VectorError { field: field.into(), message: message.into() })
}

/// Parameters of the hypervisor that only some of its schedulers look at.
const OF_THE_HYPERVISOR: [&str; 2] = [SCHED_GRAN, "smt_power_savings"];

/// The parameter that the host itself uses.
const SCHED_GRAN: &str = "sched_gran";

/// A scripted host, ready to run.
#[derive(Clone, Debug)]
pub struct Vector {
    /// The vector's name.
    pub name: String,
    /// The policy.
    pub scheduler: String,
    /// The policy's generation.
    pub generation: String,
    /// The reason why it cannot be run here: this policy or generation is not implemented.
    pub skipped: Option<String>,
    /// The policy's global parameters.
    pub global: Params,
    /// The host, in exact mode.
    pub config: HostConfig,
    /// The programs of the vCPUs, in order of creation.
    pub programs: Vec<Program>,
    /// End of the run, ns.
    pub duration: Time,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawVector {
    #[serde(default)]
    name: String,
    scheduler: String,
    generation: String,
    #[serde(default)]
    params: RawParams,
    pcpus: u32,
    #[serde(default)]
    topology: Option<RawTopology>,
    #[serde(default)]
    creation: RawCreation,
    duration_ns: i64,
    #[serde(default)]
    domains: Vec<RawDomain>,
    #[serde(default)]
    actions: Vec<RawAction>,
    /// Free text.
    #[serde(default, rename = "comment")]
    _comment: Option<Value>,
}

type RawParams = serde_json::Map<String, Value>;

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTopology {
    sockets: u32,
    cores: u32,
    threads: u32,
    nodes: u32,
    #[serde(default)]
    numbering: RawNumbering,
}

#[derive(Clone, Copy, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
enum RawNumbering {
    #[default]
    Adjacent,
    Spread,
}

#[derive(Clone, Copy, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
enum RawCreation {
    #[default]
    Contract,
    Release,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawGranularity {
    Cpu,
    Core,
    Socket,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDomain {
    id: i64,
    #[serde(default)]
    params: RawParams,
    #[serde(default)]
    vcpus: Vec<RawVcpu>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawVcpu {
    #[serde(default)]
    start_ns: i64,
    #[serde(default)]
    affinity: Option<Vec<u32>>,
    #[serde(default)]
    soft_affinity: Option<Vec<u32>>,
    program: Vec<Vec<Value>>,
    #[serde(default)]
    repeat: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAction {
    at_ns: i64,
    op: String,
    #[serde(default)]
    domain: Option<i64>,
    #[serde(default)]
    vcpu: Option<u32>,
    #[serde(default)]
    affinity: Option<Vec<u32>>,
    #[serde(default)]
    soft_affinity: Option<Vec<u32>>,
    #[serde(default)]
    params: RawParams,
}

/// Reads a host file.
///
/// # Errors
/// [`VectorError`] names the field, the value found and the values allowed.
pub fn read_vector(bytes: &[u8]) -> Result<Vector, VectorError> {
    if bytes.len() > FILE_MAX {
        return error("file", format!("is {} bytes long; at most {FILE_MAX} are allowed", bytes.len()));
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let raw: RawVector = serde_path_to_error::deserialize(&mut json).map_err(|failure| {
        let field = failure.path().to_string();
        VectorError { field, message: failure.into_inner().to_string() }
    })?;
    json.end().map_err(|failure| VectorError { field: "file".into(), message: failure.to_string() })?;
    raw.check()
}

impl RawVector {
    fn check(self) -> Result<Vector, VectorError> {
        in_range("pcpus", i64::from(self.pcpus), 1, i64::from(PCPUS_MAX))?;
        in_range("duration_ns", self.duration_ns, 0, DURATION_MAX)?;
        at_most("actions", self.actions.len(), ACTIONS_MAX)?;
        at_most("vCPUs", self.domains.iter().map(|d| d.vcpus.len()).sum(), VCPUS_MAX)?;
        at_most("domains", self.domains.len(), VCPUS_MAX)?;
        let generation = vcpulab_sched::find(&self.scheduler).and_then(|p| p.generation(&self.generation));
        let Some(generation) = generation else {
            let skipped = format!("{} {} is not implemented", self.scheduler, self.generation);
            return Ok(self.skip(skipped));
        };
        let interface =
            Interface { specs: generation.params, scheduler: &self.scheduler, generation: &self.generation };
        let global = params("params", &self.params, interface, Scope::Global)?;
        let mut programs = Vec::new();
        let (mut first_vcpus, mut domains) = (Vec::new(), Vec::new());
        for i in 0..self.domains.len() {
            first_vcpus.push(VcpuId(self.pcpus + programs.len() as u32));
            domains.push(self.domain(i, interface, &mut programs)?);
        }
        let action = |i| self.action(i, interface, &first_vcpus);
        let actions = (0..self.actions.len()).map(action).collect::<Result<_, _>>()?;
        let granularity = match self.params.get(SCHED_GRAN).map(RawGranularity::deserialize) {
            None | Some(Ok(RawGranularity::Cpu)) => Granularity::Cpu,
            Some(Ok(RawGranularity::Core)) => Granularity::Core,
            Some(Ok(RawGranularity::Socket)) => Granularity::Socket,
            Some(Err(failure)) => return error(format!("params.{SCHED_GRAN}"), failure.to_string()),
        };
        let topology = self.topology.map(|raw| raw.check(self.pcpus)).transpose()?;
        let creation = match self.creation {
            RawCreation::Contract => Creation::Contract,
            RawCreation::Release => Creation::Release,
        };
        let config = HostConfig {
            pcpus: self.pcpus,
            topology,
            creation,
            granularity,
            domains,
            actions,
            ..HostConfig::default()
        };
        Ok(Vector {
            name: self.name,
            scheduler: self.scheduler,
            generation: self.generation,
            skipped: None,
            global,
            config,
            programs,
            duration: Time::from_ns(self.duration_ns),
        })
    }

    /// Checks a domain, and adds the programs of its vCPUs.
    fn domain(
        &self,
        i: usize,
        interface: Interface<'_>,
        programs: &mut Vec<Program>,
    ) -> Result<DomainConfig, VectorError> {
        let (domain, at) = (&self.domains[i], format!("domains[{i}]"));
        if self.domains[..i].iter().any(|other| other.id == domain.id) {
            return error(format!("{at}.id"), format!("found `{}`, which another domain has", domain.id));
        }
        in_range(&format!("{at}.id"), domain.id, 1, i64::from(i32::MAX))?;
        let mut vcpus = Vec::new();
        for (j, vcpu) in domain.vcpus.iter().enumerate() {
            let at = format!("{at}.vcpus[{j}]");
            programs.push(program(&format!("{at}.program"), vcpu)?);
            in_range(&format!("{at}.start_ns"), vcpu.start_ns, 0, i64::MAX)?;
            let affinity = vcpu.affinity.as_ref().map(|list| mask(&format!("{at}.affinity"), list));
            let affinity = affinity.transpose()?;
            let on_host = affinity.map(|mask| mask.and(&CpuMask::first_n(self.pcpus)));
            if on_host.is_some_and(|mask| mask.is_empty()) {
                return error(format!("{at}.affinity"), "contains no pCPU of the host");
            }
            let soft = vcpu.soft_affinity.as_ref().map(|list| mask(&format!("{at}.soft_affinity"), list));
            let start = Some(Span::from_ns(vcpu.start_ns));
            vcpus.push(VcpuConfig {
                start,
                affinity,
                soft_affinity: soft.transpose()?,
                ..VcpuConfig::default()
            });
        }
        let params = params(&format!("{at}.params"), &domain.params, interface, Scope::Domain)?;
        Ok(DomainConfig { number: domain.id, params, vcpus, ..DomainConfig::default() })
    }

    /// Checks an action. `first_vcpus` are those of the domains.
    fn action(
        &self,
        i: usize,
        interface: Interface<'_>,
        first_vcpus: &[VcpuId],
    ) -> Result<TimedAction, VectorError> {
        let (action, at) = (&self.actions[i], format!("actions[{i}]"));
        in_range(&format!("{at}.at_ns"), action.at_ns, 0, i64::MAX)?;
        let found = self.domains.iter().position(|d| Some(d.id) == action.domain);
        let domain = || match found {
            Some(i) => Ok(DomId(i as u32)),
            None => {
                error(format!("{at}.domain"), format!("found `{:?}`; no domain has this id", action.domain))
            }
        };
        let params = |scope| params(&format!("{at}.params"), &action.params, interface, scope);
        let kind = match action.op.as_str() {
            "adjust" => Action::Adjust(domain()?, params(Scope::Domain)?),
            "adjust_global" => Action::AdjustGlobal(PoolId(0), params(Scope::Global)?),
            "pause" => Action::Pause(domain()?),
            "unpause" => Action::Unpause(domain()?),
            "affinity" | "soft_affinity" => {
                let d = domain()?;
                let count = self.domains[d.index()].vcpus.len() as u32;
                let Some(vcpu) = action.vcpu.filter(|&vcpu| vcpu < count) else {
                    let found = format!("found `{:?}`; the domain has {count} vCPUs", action.vcpu);
                    return error(format!("{at}.vcpu"), found);
                };
                let v = VcpuId(first_vcpus[d.index()].0 + vcpu);
                let given = |key: &str, list: &Option<Vec<u32>>| {
                    mask(&format!("{at}.{key}"), list.as_deref().unwrap_or_default())
                };
                let hard = given("affinity", &action.affinity)?;
                let soft = given("soft_affinity", &action.soft_affinity)?;
                match (action.op.as_str(), &action.soft_affinity) {
                    ("soft_affinity", _) => Action::SoftAffinity(v, soft),
                    (_, None) => Action::Affinity(v, hard),
                    (_, Some(_)) => Action::BothAffinities(v, hard, soft),
                }
            }
            other => {
                let allowed = "adjust, adjust_global, pause, unpause, affinity, soft_affinity";
                return error(format!("{at}.op"), format!("found `{other}`; allowed: {allowed}"));
            }
        };
        Ok(TimedAction { at: Time::from_ns(action.at_ns), action: kind })
    }

    fn skip(self, skipped: String) -> Vector {
        Vector {
            name: self.name,
            scheduler: self.scheduler,
            generation: self.generation,
            skipped: Some(skipped),
            global: Params::new(),
            config: HostConfig::default(),
            programs: Vec::new(),
            duration: Time::from_ns(self.duration_ns),
        }
    }
}

impl RawTopology {
    fn check(self, pcpus: u32) -> Result<TopologyConfig, VectorError> {
        let RawTopology { sockets, cores, threads, nodes, numbering } = self;
        for (name, count) in [("sockets", sockets), ("cores", cores), ("threads", threads), ("nodes", nodes)]
        {
            in_range(&format!("topology.{name}"), i64::from(count), 1, i64::from(PCPUS_MAX))?;
        }
        let numbering = match numbering {
            RawNumbering::Adjacent => Numbering::Adjacent,
            RawNumbering::Spread => Numbering::Spread,
        };
        let topology = TopologyConfig { sockets, cores, threads, nodes, numbering };
        if topology.pcpus() != pcpus {
            let found =
                format!("found {} pCPUs; allowed: as many as `pcpus` says, {pcpus}", topology.pcpus());
            return error("topology", found);
        }
        Ok(topology)
    }
}

fn in_range(field: &str, found: i64, least: i64, most: i64) -> Result<(), VectorError> {
    if (least..=most).contains(&found) {
        return Ok(());
    }
    error(field, format!("found `{found}`; allowed: {least} to {most}"))
}

fn at_most(field: &str, found: usize, most: usize) -> Result<(), VectorError> {
    if found <= most {
        Ok(())
    } else {
        error(field, format!("there are {found}; at most {most} are allowed"))
    }
}

fn mask(field: &str, list: &[u32]) -> Result<CpuMask, VectorError> {
    let mut mask = CpuMask::EMPTY;
    for &p in list {
        in_range(field, i64::from(p), 0, i64::from(PCPUS_MAX) - 1)?;
        mask.insert(PcpuId(p));
    }
    Ok(mask)
}

fn program(field: &str, vcpu: &RawVcpu) -> Result<Program, VectorError> {
    at_most(field, vcpu.program.len(), STEPS_MAX)?;
    let step = |(i, op): (usize, &Vec<Value>)| {
        let span = || -> Result<Span, VectorError> {
            match op.get(1).and_then(Value::as_i64) {
                Some(ns) if ns >= 0 && op.len() == 2 => Ok(Span::from_ns(ns)),
                _ => error(format!("{field}[{i}]"), "needs a time in ns, an integer that is not negative"),
            }
        };
        match op.first().and_then(Value::as_str) {
            Some("run") => Ok(Step::Run(span()?)),
            Some("block") => Ok(Step::Block(span()?)),
            Some("hog") if op.len() == 1 => Ok(Step::Hog),
            Some("yield") if op.len() == 1 => Ok(Step::Yield),
            _ => error(format!("{field}[{i}]"), r#"allowed: ["run", ns], ["block", ns], ["yield"], ["hog"]"#),
        }
    };
    let steps = vcpu.program.iter().enumerate().map(step).collect::<Result<_, _>>()?;
    Ok(Program { steps, repeat: vcpu.repeat })
}

/// The parameters of a scheduler, and how wide each is in the interface of its release.
#[derive(Clone, Copy)]
struct Interface<'v> {
    specs: &'static [ParamSpec],
    scheduler: &'v str,
    generation: &'v str,
}

/// Reads parameters. Values out of range are let through: vectors test that the scheduler refuses them itself.
fn params(
    field: &str,
    raw: &RawParams,
    interface: Interface<'_>,
    scope: Scope,
) -> Result<Params, VectorError> {
    let Interface { specs, scheduler, generation } = interface;
    let mut params = Params::new();
    for (name, value) in raw {
        let Some(spec) = specs.iter().find(|spec| spec.name == name && spec.scope == scope) else {
            if scope == Scope::Global && OF_THE_HYPERVISOR.contains(&name.as_str()) {
                continue;
            }
            let known: Vec<&str> =
                specs.iter().filter(|spec| spec.scope == scope).map(|spec| spec.name).collect();
            return error(
                format!("{field}.{name}"),
                format!("unknown parameter; allowed: {}", known.join(", ")),
            );
        };
        let width = vcpulab_sched::width(scheduler, generation, name);
        let number = integer(value);
        if let (Some(number), None) = (number, number.and_then(|number| width.fit(number))) {
            let bits = width.bits();
            return error(
                format!("{field}.{name}"),
                format!(
                    "found `{number}`; allowed: an integer of {bits} bits, as in the interface of the release"
                ),
            );
        }
        let read = match (spec.kind, value) {
            (ParamKind::Choice(words), Value::String(word)) => {
                words.iter().position(|w| w == word).map(|i| ParamValue::Int(i as i64))
            }
            (ParamKind::Timetable(_), Value::Array(entries)) => timetable(entries).map(ParamValue::Timetable),
            (ParamKind::Int { .. } | ParamKind::Flag, _) => {
                number.and_then(|number| width.fit(number)).map(ParamValue::Int)
            }
            _ => None,
        };
        match read {
            Some(read) => params.set(name, read),
            None => {
                return error(
                    format!("{field}.{name}"),
                    format!("found `{value}`; allowed: {}", spec.kind.allowed()),
                );
            }
        }
    }
    Ok(params)
}

/// A number without a fraction, of 64 bits with or without a sign, or a flag.
fn integer(value: &Value) -> Option<i128> {
    let signed = value.as_i64().map(i128::from);
    signed.or(value.as_u64().map(i128::from)).or(value.as_bool().map(i128::from))
}

fn timetable(entries: &[Value]) -> Option<Vec<TimetableEntry>> {
    let number = |entry: &Value, key: &str| entry.get(key).and_then(Value::as_i64);
    let read = |entry: &Value| {
        let (domain, vcpu) = (number(entry, "domain")?, number(entry, "vcpu")?);
        Some(TimetableEntry { domain, vcpu, runtime: Span::from_ns(number(entry, "runtime_ns")?) })
    };
    entries.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOOD: &str = r#"{"name": "n", "scheduler": "credit", "generation": "xen4.17", "pcpus": 2, "duration_ns": 1000,
        "domains": [{"id": 1, "params": {"weight": 256}, "vcpus": [{"start_ns": 0, "affinity": [0],
        "program": [["run", 3], ["block", 7]], "repeat": true}]}],
        "actions": [{"at_ns": 5, "op": "adjust", "domain": 1, "params": {"weight": 512}}]}"#;

    fn problem(from: &str, to: &str) -> String {
        assert!(GOOD.contains(from));
        read_vector(GOOD.replacen(from, to, 1).as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn reads_a_good_one() {
        let vector = read_vector(GOOD.as_bytes()).unwrap();
        assert_eq!(vector.config.pcpus, 2);
        assert_eq!(vector.programs[0].steps, [Step::Run(Span::from_ns(3)), Step::Block(Span::from_ns(7))]);
        assert_eq!(vector.config.actions.len(), 1);
    }

    #[test]
    fn names_what_is_wrong_and_what_is_allowed() {
        assert_eq!(problem("\"pcpus\": 2", "\"pcpus\": 0"), "pcpus: found `0`; allowed: 1 to 512");
        assert_eq!(
            problem("\"affinity\": [0]", "\"affinity\": [2]"),
            "domains[0].vcpus[0].affinity: contains no pCPU of the host"
        );
        assert!(
            problem("{\"weight\": 256}", "{\"wieght\": 1}")
                .starts_with("domains[0].params.wieght: unknown parameter; allowed: weight, cap")
        );
        assert!(
            problem("[\"run\", 3]", "[\"run\", -3]")
                .starts_with("domains[0].vcpus[0].program[0]: needs a time")
        );
        assert!(problem("\"start_ns\"", "\"strat_ns\"").contains("strat_ns"));
        assert!(
            problem("\"op\": \"adjust\"", "\"op\": \"stop\"").contains("found `stop`; allowed: adjust, ")
        );
        assert!(problem("\"domain\": 1", "\"domain\": 9").contains("no domain has this id"));
    }

    #[test]
    fn an_unknown_policy_is_skipped_and_says_so() {
        let vector = read_vector(GOOD.replace("credit", "credit9").as_bytes()).unwrap();
        assert_eq!(vector.skipped.unwrap(), "credit9 xen4.17 is not implemented");
    }

    proptest! {
        #[test]
        fn any_bytes_give_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read_vector(&bytes);
        }

        #[test]
        fn any_change_to_a_good_one_gives_an_answer(at in 0..GOOD.len(), byte in any::<u8>()) {
            let mut bytes = GOOD.as_bytes().to_vec();
            bytes[at] = byte;
            let _ = read_vector(&bytes);
        }
    }
}
