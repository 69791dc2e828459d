//! Warnings of things that are allowed in a scenario but probably not meant.

use std::collections::{BTreeMap, BTreeSet};

use vcpulab_host::{Governor, Scope, Span};
use vcpulab_sched::linux::limited_part;
use vcpulab_sched::{Part, host_rules, policies};
use vcpulab_spec::{
    ActionSpec, AppSpec, CONSTANTS, Change, DomainSpec, Drivers, EventSpec, Guest, POOL_0, PhaseSpec,
    Platform, PoolSpec, Service, Spec, ThreadKind,
};

use crate::check::refusals::{HASTY, hasty};
use crate::file::raw::{NamedDomain, RawDomain, RawScenario, raw_pools};
use crate::text::problem::{Place, Problem, Report, did_you_mean};
use crate::text::read::{At, Field};
use crate::text::units::{CpuList, Duration};

pub(crate) fn lint(spec: &Spec, raw: &RawScenario, raw_domains: &[&NamedDomain], report: &mut Report<'_>) {
    // With errors some of it does not match the file; they come first anyway.
    if report.has_errors() {
        return;
    }
    for (domain, (name, raw)) in spec.domains.iter().zip(raw_domains) {
        if domain.apps.is_empty() && !domain.has_back_ends() {
            report.warning(&name.place, Problem::says("nothing runs in this domain: it blocks for ever"));
        }
        let PoolSpec { policy, generation, .. } = &spec.pools[domain.pool];
        if let (Some(At { place, .. }), false) = (&raw.value.affinity.0, generation.hard_affinity)
            && domain.affinity.iter().any(Option::is_some)
        {
            let message = format!("`{}` of {} does not look at hard affinity", policy.name, generation.name);
            report.warning(place, Problem::says(message));
        }
        let soft = host_rules(policy.name, generation.name).is_none_or(|rules| rules.soft_affinity);
        if let (Some(At { place, .. }), false) = (&raw.value.soft_affinity.0, soft) {
            let message = format!("`{}` of {} knows no soft affinity", policy.name, generation.name);
            report.warning(place, Problem::says(message));
        }
        for (app, At { place, .. }) in domain.apps.iter().zip(raw.value.app.get().into_iter().flatten()) {
            doubtful_app(app, place, report);
        }
        useless_nice(domain, raw, report);
        useless_pinning(spec, domain, raw, report);
        idle_threads(domain, raw, report);
        hasty(report, &spec.pools[domain.pool], Scope::Domain, &domain.params, &raw.value.params);
    }
    let raw_host = raw.host.get().map(|host| &host.params);
    let raw_global = raw_host.into_iter().chain(raw_pools(raw).iter().map(|(_, raw)| &raw.value.params));
    for (pool, raw) in spec.pools.iter().zip(raw_global) {
        hasty(report, pool, Scope::Global, &pool.params, raw);
    }
    idle_governor(spec, raw, report);
    free_threads(spec, raw, report);
    idle_driver_vcpus(spec, raw_domains, report);
    pools(spec, raw, report);
    unserved(spec, raw_domains, report);
    one_sided_channels(raw_domains, report);
    let raw_machines = raw.client_machine.get().into_iter().flat_map(|named| &named.0);
    for (machine, (name, _)) in spec.client_machines.ids().zip(raw_machines) {
        if !spec.clients.iter().any(|client| client.machine == Some(machine)) {
            report.warning(&name.place, Problem::says("no client runs on this machine"));
        }
    }
    inverted_shares(spec, raw_domains, report);
    let end = spec.end();
    for (domain, (_, raw)) in spec.domains.iter().zip(raw_domains) {
        if let (true, Some(At { place, .. })) = (domain.start >= end, &raw.value.start.0) {
            let message = format!("it is never there: the run ends at {}", Duration::from(end));
            report.warning(place, Problem::says(message));
        }
    }
    for (action, At { place, .. }) in spec.actions.iter().zip(raw.action.get().into_iter().flatten()) {
        if action.at >= end {
            let message = format!("never happens: the run ends at {}", Duration::from(end));
            report.warning(place, Problem::says(message));
        }
    }
}

/// A governor that has nothing to choose between.
fn idle_governor(spec: &Spec, raw: &RawScenario, report: &mut Report<'_>) {
    let given = raw.host.get().and_then(|host| host.governor.0.as_ref());
    let Some(At { place, .. }) = given.filter(|_| spec.host.governor != Governor::Performance) else {
        return;
    };
    if spec.host.topology.is_none() {
        let problem = Problem::says("this governor changes nothing: the host has no `topology`");
        report.warning(place, problem.hint("without one, its cores are always at their nominal speed"));
    } else if spec.host.constants.min_mhz == 0 {
        report.warning(place, Problem::says("this governor changes nothing: the profile has no `min_mhz`"));
    }
}

/// Nice values of threads with which nothing in their groups competes.
fn useless_nice(domain: &DomainSpec, raw: &At<RawDomain>, report: &mut Report<'_>) {
    let nice = domain.guest.threads().is_some_and(|threads| threads.nice != 0);
    if let (true, Some(At { place, .. })) = (nice, &raw.value.nice.0) {
        let message = "changes nothing: a nice value counts among the threads of one control group, and others are not in it";
        report
            .warning(place, Problem::says(message).hint("`weight` is the share of all its threads together"));
    }
}

/// Limits and affinities of threads that serve a VM, of one that has no such thread.
fn idle_threads(domain: &DomainSpec, raw: &At<RawDomain>, report: &mut Report<'_>) {
    let Guest::Vm(vm) = &domain.guest else { return };
    let kinds = domain.served_by(vm);
    let of_disk = kinds.contains(&Some(ThreadKind::IoThread));
    let has_emulator = kinds.iter().flatten().any(|kind| *kind != ThreadKind::IoThread);
    let RawDomain { emulator_affinity, iothread_affinity, params, .. } = &raw.value;
    let affinities = [(Part::Emulator, emulator_affinity), (Part::IoThread, iothread_affinity)];
    let affinities =
        affinities.into_iter().filter_map(|(part, field)| Some((part, &field.0.as_ref()?.place)));
    let limits = params.0.iter().filter_map(|(name, value)| Some((limited_part(&name.value)?, &value.place)));
    for (part, place) in affinities.chain(limits) {
        let problem = match part {
            Part::Emulator if !has_emulator => {
                Problem::says("changes nothing: no emulator or vhost thread works for this VM")
                    .hint("they do for one with a `nic`, or with a `disk` without an I/O thread")
            }
            Part::IoThread if !of_disk => Problem::says("changes nothing: this VM has no I/O thread")
                .hint("one with a `disk` has, by `iothreads = 1`"),
            _ => continue,
        };
        report.warning(place, problem);
    }
}

/// Threads that are pinned to pCPUs none of which their control group may use.
fn useless_pinning(spec: &Spec, domain: &DomainSpec, raw: &At<RawDomain>, report: &mut Report<'_>) {
    let (Some(kvm), Some(threads)) = (spec.host.platform.kvm(), domain.guest.threads()) else { return };
    let Some(cpuset) = kvm.cpuset(&threads.cgroup) else { return };
    let RawDomain { affinity, emulator_affinity, iothread_affinity, .. } = &raw.value;
    let place = |field: &Field<CpuList>| field.0.as_ref().map(|at| at.place.clone());
    let vcpus = affinity.0.as_ref().map(|at| at.place.clone());
    let serving = match &domain.guest {
        Guest::Vm(vm) => vec![
            (&vm.emulator_affinity, place(emulator_affinity)),
            (&vm.iothread_affinity, place(iothread_affinity)),
        ],
        _ => Vec::new(),
    };
    for (own, place) in domain.affinity.iter().map(|own| (own, vcpus.clone())).chain(serving) {
        if let (Some(own), Some(place)) = (own, place)
            && own.and(&cpuset).is_empty()
        {
            let message = format!(
                "found `{}`, none of which `cpus` of {} leaves: its threads run on {}",
                CpuList::from(own),
                threads.cgroup,
                CpuList::from(&cpuset)
            );
            report.warning(&place, Problem::says(message));
            return;
        }
    }
}

/// Threads of a KVM host whose work costs nothing, though other things cost time.
fn free_threads(spec: &Spec, raw: &RawScenario, report: &mut Report<'_>) {
    let Some(At { place, .. }) = raw.host.get().and_then(|host| host.hypervisor.0.as_ref()) else { return };
    let constants = &spec.host.constants;
    let mut of_kvm = CONSTANTS.iter().filter(|constant| constant.of_kvm());
    let free = of_kvm.all(|constant| constants.get(constant.name) == Some(0));
    if spec.host_threads().is_some() && free && constants.context_switch_ns > 0 {
        let message = format!(
            "the profile `{}` has no costs of KVM: exits, and the threads that serve VMs, take no time",
            spec.host.profile
        );
        let hint = "`generic` has them; or give those that begin with `kvm_` in [host.costs]";
        report.warning(place, Problem::says(message).hint(hint));
    }
}

/// vCPUs of driver domains that nothing is on: no interrupt, no netback or blkback, no task.
fn idle_driver_vcpus(spec: &Spec, raw_domains: &[&NamedDomain], report: &mut Report<'_>) {
    for (driver, (name, raw)) in spec.domains.ids().zip(raw_domains) {
        let domain = &spec.domains[driver];
        // Tasks go to vCPUs that idle; on bare metal a domain is the machine.
        if !domain.has_back_ends()
            || !domain.apps.is_empty()
            || spec.host.platform != Platform::Xen(Drivers::Domains)
        {
            continue;
        }
        let devices = spec.nics.iter().chain(spec.disks.iter().map(|disk| &disk.device));
        let interrupts = devices.filter(|device| device.owner == Some(driver)).map(|device| device.vcpu);
        let nics = spec.domains.iter().filter_map(|domain| domain.nic.as_ref());
        let netbacks = nics.filter(|nic| nic.driver == Some(driver)).map(|nic| nic.driver_vcpu);
        let disks = spec.domains.iter().filter_map(|domain| domain.disk.as_ref());
        let blkbacks = disks.filter(|disk| disk.driver == Some(driver)).map(|disk| disk.driver_vcpu);
        let own = domain.nic.iter().map(|nic| nic.vcpu).chain(domain.disk.iter().map(|disk| disk.vcpu));
        let used: BTreeSet<u32> = interrupts.chain(netbacks).chain(blkbacks).chain(own).collect();
        let idle: Vec<String> =
            (0..domain.vcpus()).filter(|vcpu| !used.contains(vcpu)).map(|vcpu| vcpu.to_string()).collect();
        if idle.is_empty() {
            continue;
        }
        let place = raw.value.vcpus.0.as_ref().map_or(&name.place, |at| &at.place);
        let message = format!("nothing is ever to be done on vCPU {} of this driver domain", idle.join(", "));
        let hint =
            "interrupts, netbacks and blkbacks are on the others: fewer vCPUs, or another `driver_vcpu`";
        report.warning(place, Problem::says(message).hint(hint));
    }
}

fn pools(spec: &Spec, raw: &RawScenario, report: &mut Report<'_>) {
    let releases = |pool: &PoolSpec| {
        policies().iter().filter(|policy| policy.generation(&pool.release).is_some()).count() > 1
    };
    let others = spec.pools.enumerate().skip(1);
    for ((id, pool), (name, _)) in others.zip(raw.pool.get().into_iter().flat_map(|named| &named.0)) {
        let first = &spec.pools[POOL_0];
        let moves = |action: &ActionSpec| matches!(action.change, Change::MovePool(_, to) if to == id);
        if !spec.domains.iter().any(|d| d.pool == id) && !spec.actions.iter().any(moves) {
            report.warning(&name.place, Problem::says("no domain is ever in this pool: its pCPUs idle"));
        }
        if releases(pool) && releases(first) && pool.release != first.release {
            let message = format!(
                "its scheduler is that of {}, the host's is that of {}: no one release has both",
                pool.release, first.release
            );
            report.warning(&name.place, Problem::says(message));
        }
    }
}

/// Event channels of which scripts name one end only.
fn one_sided_channels(raw_domains: &[&NamedDomain], report: &mut Report<'_>) {
    let apps = raw_domains.iter().flat_map(|(_, domain)| domain.value.app.get().into_iter().flatten());
    let phases = apps.flat_map(|app| app.value.phase.get().into_iter().flatten());
    let events: Vec<_> = phases
        .flat_map(|phase| phase.value.event.get().into_iter().flatten())
        .map(|event| &event.value)
        .collect();
    let notified: BTreeMap<&str, &At<String>> = ends(events.iter().map(|event| &event.notify));
    let awaited: BTreeMap<&str, &At<String>> = ends(events.iter().map(|event| &event.r#await));
    for (name, at) in &awaited {
        if !notified.contains_key(name) {
            let problem = Problem::says("nobody notifies this channel: who awaits its events waits for ever");
            let meant = did_you_mean(name, notified.keys().copied());
            report.warning(&at.place, meant.into_iter().fold(problem, Problem::hint));
        }
    }
    for (name, at) in &notified {
        if !awaited.contains_key(name) {
            report.warning(&at.place, Problem::says("nobody awaits the events of this channel"));
        }
    }
}

/// The channels that events name, and where each is named first.
fn ends<'a>(fields: impl Iterator<Item = &'a Field<String>>) -> BTreeMap<&'a str, &'a At<String>> {
    let mut ends = BTreeMap::new();
    for at in fields.filter_map(|field| field.0.as_ref()) {
        ends.entry(at.value.as_str()).or_insert(at);
    }
    ends
}

fn doubtful_app(app: &AppSpec, place: &Place, report: &mut Report<'_>) {
    hasty_app(app, place, report);
    if let (Some(run), Some(period)) = (app.get("run"), app.get("period"))
        && run > period
    {
        let message = format!(
            "needs {} of CPU time in every {}: it can never keep up",
            Duration(Span::from_ns(run)),
            Duration(Span::from_ns(period))
        );
        report.warning(place, Problem::says(message));
    }
}

/// A script whose rounds, or a job whose periods, are so short that simulated time hardly advances.
fn hasty_app(app: &AppSpec, place: &Place, report: &mut Report<'_>) {
    let round = match app {
        AppSpec::Phases { phases, rounds: None, .. } => round_of(phases),
        AppSpec::Phases { .. } => None,
        AppSpec::Kind { .. } => app.get("period").map(Span::from_ns),
    };
    if let Some(round) = round.filter(|round| *round < HASTY) {
        let message =
            format!("begins again every {}: a simulated second has very many events", Duration(round));
        report
            .warning(place, Problem::says(message).hint("longer times, or fewer of them, make runs quicker"));
    }
}

/// The least time that a script needs once through; `None`: it waits for others, or for ticks.
fn round_of(phases: &[PhaseSpec]) -> Option<Span> {
    let of = |event: &EventSpec| match event {
        EventSpec::Run(spans) | EventSpec::Sleep(spans) => spans.iter().max().copied(),
        EventSpec::Runtime(span) | EventSpec::Timer(span) => Some(*span),
        EventSpec::Unlock(_)
        | EventSpec::Resume(_)
        | EventSpec::Signal(_)
        | EventSpec::Notify(_)
        | EventSpec::Done => Some(Span::ZERO),
        EventSpec::Lock(_)
        | EventSpec::Suspend(_)
        | EventSpec::Wait { .. }
        | EventSpec::Barrier(_)
        | EventSpec::Ticks(_)
        | EventSpec::Await(_) => None,
    };
    let once = |phase: &PhaseSpec| {
        let events = phase.events.iter().map(of).sum::<Option<Span>>()?;
        Some(Span::from_ns(events.ns().saturating_mul(phase.rounds.into())))
    };
    phases.iter().map(once).try_fold(Span::ZERO, |all, phase| Some(all.saturating_add(phase?)))
}

fn unserved(spec: &Spec, raw_domains: &[&NamedDomain], report: &mut Report<'_>) {
    let asked = |service: Service| {
        let by_app = |app: &AppSpec| app.asks().any(|asked| asked == service);
        spec.clients.iter().any(|client| client.service == service)
            || spec.domains.iter().flat_map(|domain| &domain.apps).any(by_app)
    };
    for ((id, domain), (name, _)) in spec.domains.enumerate().zip(raw_domains) {
        for (position, app) in domain.apps.iter().enumerate() {
            if app.serves() && !asked(Service { domain: id, app: position }) {
                let message = format!("nobody asks its `{}` for anything", app.kind());
                report.warning(&name.place, Problem::says(message));
            }
        }
    }
}

/// A driver domain with a smaller share than its guests delays all their I/O.
fn inverted_shares(spec: &Spec, raw_domains: &[&NamedDomain], report: &mut Report<'_>) {
    for (domain, (name, _)) in spec.domains.iter().zip(raw_domains) {
        // The threads of a KVM host that serve a VM are in its own group.
        let Guest::XenDomain(_) = domain.guest else { continue };
        let Some(driver) = domain.driver().map(|driver| &spec.domains[driver]) else { continue };
        let Some(weight) = spec.pools[domain.pool].generation.weight().filter(|_| domain.pool == driver.pool)
        else {
            continue;
        };
        let [own, drivers] = [domain, driver].map(|domain| weight.number_in(&domain.params));
        if own > drivers {
            let message = format!(
                "{} {own} is above {drivers}, that of its driver domain `{}`: under load its own I/O waits",
                weight.name, driver.name
            );
            let hint =
                format!("give `{}` at least the {} of the domains it serves", driver.name, weight.name);
            report.warning(&name.place, Problem::says(message).hint(hint));
        }
    }
}
