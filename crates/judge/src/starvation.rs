//! Starving domains: domains that want to run and get almost no CPU time, in a run or since a change.
//!
//! Running and runnable time is summed over all replications. A limit by a domain's own cap, budget or weight is no starvation within
//! a run; compared with another run it is, if the loss is large enough.

use std::collections::BTreeMap;

use crate::names::{ends, rows};
use crate::numbers::number;
use crate::sum::sum;

/// A vCPU starves only if it waits for at least this fraction of its time on the host.
const WAITING: f64 = 0.9;
/// A waiting vCPU starves if it runs for less than this fraction of the CPU time that it is entitled to; see [`Run::starved`].
const SHARE_FRACTION_MAX: f64 = 0.1;
/// A domain that newly waits for [`WAITING`] of the time starves if it keeps at most this fraction of its former CPU time.
const KEPT_WHILE_WAITING_MAX: f64 = 0.5;
/// A domain starves if it keeps at most this fraction of its former CPU time and waits, or at most this fraction of the former
/// throughput of its application with the same work.
const KEPT_FRACTION_MAX: f64 = 0.1;
/// A domain starves by its loss of CPU time ([`KEPT_FRACTION_MAX`]) only if it had more than this fraction of a pCPU before.
const FORMER_CPU_MIN: f64 = 0.005;
/// A domain starves by its loss of CPU time ([`KEPT_FRACTION_MAX`]) only if it now waits for more than this fraction of the time; a
/// domain with less work does not wait.
const WAITS_NOW: f64 = 0.3;
/// A loss of throughput counts as starvation only if at least this number of units of work were completed before, over all replications.
const COMPLETED: u64 = 10;
/// A domain or vCPU is judged only if it was on the host for at least this fraction of the time.
const PRESENT: f64 = 0.1;

/// A set of pCPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pcpus(Vec<u64>);

impl Pcpus {
    fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// The fraction of the set that is in another set.
    fn overlap(&self, other: &Pcpus) -> f64 {
        let common: u32 = self.0.iter().zip(&other.0).map(|(a, b)| (a & b).count_ones()).sum();
        f64::from(common) / f64::from(self.len())
    }
}

impl FromIterator<u32> for Pcpus {
    fn from_iter<T: IntoIterator<Item = u32>>(pcpus: T) -> Self {
        let mut words = Vec::new();
        for pcpu in pcpus {
            let word = pcpu as usize / 64;
            if words.len() <= word {
                words.resize(word + 1, 0);
            }
            words[word] |= 1 << (pcpu % 64);
        }
        Pcpus(words)
    }
}

/// A domain, with what its scenario lets its vCPUs have.
#[derive(Clone, Debug, PartialEq)]
pub struct Domain {
    /// Name of the domain.
    pub name: String,
    /// The pCPUs that each vCPU may run on.
    pub reach: Vec<Pcpus>,
    /// Most CPU time of all its vCPUs together, by weights, caps and quotas, in pCPUs; infinite: no limit.
    pub cpu_limit: f64,
    /// Most CPU time of a vCPU, by reservations, in pCPUs; infinite: no limit.
    pub vcpu_limit: f64,
}

/// A thread of a KVM host that serves a VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Name of the VM.
    pub serves: String,
    /// The kind of the thread, as in results.
    pub kind: &'static str,
}

/// The domain whose vCPUs are the threads of a KVM host that serve VMs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostThreads {
    /// Name of the domain.
    pub domain: String,
    /// The threads, by vCPU.
    pub threads: Vec<Thread>,
}

/// The times of a vCPU in a replication, ns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vcpu {
    /// Name of the domain.
    pub domain: String,
    /// Number of the vCPU in the domain.
    pub number: u32,
    /// Time in all runstates.
    pub elapsed: i64,
    /// Time running.
    pub running: i64,
    /// Time runnable but waiting.
    pub runnable: i64,
    /// Time that it was not on the host.
    pub offline: i64,
}

/// The work that an application or a client did in a replication.
#[derive(Clone, Debug, PartialEq)]
pub struct App {
    /// Name in addresses.
    pub name: String,
    /// Name of the domain that runs the application, or serves the client.
    pub domain: String,
    /// Units of work that it completed, per second.
    pub throughput: f64,
    /// Units of work that it completed.
    pub completed: u64,
}

/// A run, with all that starvation depends on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// The domains; one of a KVM host's own threads, too.
    pub domains: Vec<Domain>,
    /// The threads of a KVM host that serve VMs; `None`: there are none.
    pub threads: Option<HostThreads>,
    /// The vCPUs in each replication.
    pub vcpus: Vec<Vcpu>,
    /// The applications and clients in each replication.
    pub apps: Vec<App>,
}

/// A domain that starves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Starved {
    /// Name of the domain.
    pub domain: String,
    /// The reason, such as `never ran`.
    pub reason: String,
}

impl Run {
    /// The domains that starve, each with the reason.
    ///
    /// A domain starves if one of its vCPUs does. The vCPU is runnable for at least [`WAITING`] of its time on the host, and runs
    /// never or for less than [`SHARE_FRACTION_MAX`] of an equal share. Its equal share is the CPU time it would have if all vCPUs on
    /// its pCPUs got the same fraction of their demand. It is at most the entitlement by weights, caps and budgets.
    pub fn starved(&self) -> Vec<Starved> {
        let domains: BTreeMap<&str, &Domain> =
            self.domains.iter().map(|domain| (domain.name.as_str(), domain)).collect();
        let vcpus: Vec<(VcpuTimes<'_>, &Domain, &Pcpus)> = self
            .vcpu_times()
            .into_iter()
            .filter_map(|times| {
                let domain = *domains.get(times.domain)?;
                let reach = domain.reach.get(times.number as usize)?;
                Some((times, domain, reach))
            })
            .collect();
        let mut active: BTreeMap<&str, usize> = BTreeMap::new();
        // Most vCPUs share their set of pCPUs with many other vCPUs.
        let mut wants: BTreeMap<&Pcpus, Vec<f64>> = BTreeMap::new();
        for (times, _, reach) in &vcpus {
            *active.entry(times.domain).or_default() += usize::from(times.wants() > 0.0);
            wants.entry(reach).or_default().push(times.wants());
        }
        let wants: BTreeMap<&Pcpus, f64> =
            wants.into_iter().map(|(pcpus, wanting)| (pcpus, sum(wanting))).collect();
        let wanted: BTreeMap<&Pcpus, f64> = wants
            .keys()
            .map(|pcpus| (*pcpus, sum(wants.iter().map(|(reach, wanting)| wanting * reach.overlap(pcpus)))))
            .collect();
        let mut starving: Vec<(&str, Vec<&VcpuTimes<'_>>)> = Vec::new();
        for (times, domain, reach) in &vcpus {
            if times.waits() < WAITING || times.present() < PRESENT {
                continue;
            }
            let count = active[times.domain].max(1) as f64;
            let equal = times.wants() * (f64::from(reach.len()) / wanted[reach]).min(1.0);
            let entitled = equal.min((domain.cpu_limit / count).min(domain.vcpu_limit));
            if times.running == 0 || times.runs() < SHARE_FRACTION_MAX * entitled {
                match starving.iter_mut().find(|(name, _)| *name == times.domain) {
                    Some((_, all_times)) => all_times.push(times),
                    None => starving.push((times.domain, vec![times])),
                }
            }
        }
        let mut reasons = Reasons::default();
        if let Some(HostThreads { domain: host, threads }) = &self.threads {
            // Starving threads are reported at the domains that they serve.
            for (_, all_times) in starving.extract_if(.., |(name, _)| name == host) {
                for times in all_times {
                    let Thread { serves, kind } = &threads[times.number as usize];
                    reasons.set(serves, times.reason_of_thread(kind));
                }
            }
        }
        for (domain, all_times) in starving {
            reasons.set(domain, reason(&all_times, active[domain]));
        }
        reasons.0
    }

    /// The vCPUs in the order of their first rows.
    fn vcpu_times(&self) -> Vec<VcpuTimes<'_>> {
        let mut places = BTreeMap::new();
        let mut all_times: Vec<VcpuTimes<'_>> = Vec::new();
        for vcpu in &self.vcpus {
            let (domain, number) = (vcpu.domain.as_str(), vcpu.number);
            let place = *places.entry((domain, number)).or_insert(all_times.len());
            if place == all_times.len() {
                all_times.push(VcpuTimes {
                    domain,
                    number,
                    elapsed: 0,
                    running: 0,
                    runnable: 0,
                    offline: 0,
                    vcpus: 1,
                });
            }
            all_times[place].elapsed += vcpu.elapsed;
            all_times[place].add(vcpu.running, vcpu.runnable, vcpu.offline);
        }
        all_times
    }

    /// The sums of each domain over its vCPUs that want to run; the rest have nothing to wait for.
    fn by_domain<'a>(&'a self) -> Vec<VcpuTimes<'a>> {
        let mut places = BTreeMap::new();
        let mut groups: Vec<Vec<VcpuTimes<'_>>> = Vec::new();
        for times in self.vcpu_times() {
            let place = *places.entry(times.domain).or_insert(groups.len());
            if place == groups.len() {
                groups.push(Vec::new());
            }
            groups[place].push(times);
        }
        let total = |group: Vec<VcpuTimes<'a>>| {
            let is_active = group.iter().any(|times| times.wants() > 0.0);
            let mut active = group.into_iter().filter(|times| !is_active || times.wants() > 0.0);
            let first = active.next()?;
            // The elapsed time is that of one vCPU.
            Some(active.fold(first, |mut total, times| {
                total.vcpus += 1;
                total.add(times.running, times.runnable, times.offline);
                total
            }))
        };
        groups.into_iter().filter_map(total).collect()
    }

    /// The applications in the order of their first rows: mean throughput, and all that they completed.
    fn completed_work(&self) -> Vec<(&App, f64, u64)> {
        let mut places = BTreeMap::new();
        let mut done: Vec<(&App, Vec<f64>, u64)> = Vec::new();
        for app in &self.apps {
            let place = *places.entry(app.name.as_str()).or_insert(done.len());
            if place == done.len() {
                done.push((app, Vec::new(), 0));
            }
            done[place].1.push(app.throughput);
            done[place].2 += app.completed;
        }
        done.into_iter()
            .map(|(app, rates, completed)| (app, rates.iter().sum::<f64>() / rates.len() as f64, completed))
            .collect()
    }
}

/// The domains that starve in two runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Starving {
    /// Domains that starve in the second run only.
    pub newly: Vec<Starved>,
    /// Domains that starve in both runs, with the reason in the second.
    pub still: Vec<Starved>,
    /// Domains that starve in the first run only.
    pub no_longer: Vec<Starved>,
}

impl Starving {
    /// The domains that starve in two runs. `has_same_work` tells whether an application, by its name in addresses, is in both runs and
    /// has the same work to do: throughput that falls with the work is not lost.
    ///
    /// Four kinds of domains starve newly: those that [`Run::starved`] lists; those that newly wait for [`WAITING`] of the time and lose
    /// half of their CPU time; those that lose nine tenths of it, and wait; and those with an application that loses nine tenths of its
    /// throughput with the same work.
    pub fn between(before: &Run, after: &Run, has_same_work: impl Fn(&str) -> bool) -> Self {
        let (old, new) = (before.starved(), after.starved());
        let is_in = |list: &[Starved], domain: &str| list.iter().any(|starved| starved.domain == domain);
        let (still, newly): (Vec<_>, Vec<_>) =
            new.iter().cloned().partition(|starved| is_in(&old, &starved.domain));
        let no_longer = old.iter().filter(|starved| !is_in(&new, &starved.domain)).cloned().collect();
        let mut reasons = Reasons(newly);
        let after_times = after.by_domain();
        let now: BTreeMap<&str, &VcpuTimes<'_>> =
            after_times.iter().map(|times| (times.domain, times)).collect();
        for was in before.by_domain() {
            // Starving threads are visible at the domains that they serve.
            let is_host = before.threads.as_ref().is_some_and(|threads| threads.domain == was.domain);
            let has_reason = is_host || is_in(&old, was.domain) || is_in(&reasons.0, was.domain);
            if let (Some(now), false) = (now.get(was.domain), has_reason)
                && let Some(reason) = was.lost(now)
            {
                reasons.set(was.domain, reason);
            }
        }
        let done = after.completed_work();
        let done: BTreeMap<&str, f64> =
            done.iter().map(|(app, rate, _)| (app.name.as_str(), *rate)).collect();
        for (App { name, domain, .. }, was, completed) in before.completed_work() {
            let now = done.get(name.as_str()).copied().unwrap_or_default();
            let lost = completed >= COMPLETED && now <= KEPT_FRACTION_MAX * was;
            if lost && has_same_work(name) && !is_in(&old, domain) && !is_in(&reasons.0, domain) {
                reasons.set(domain, format!("{name}.throughput {} → {} 1/s", number(was), number(now)));
            }
        }
        Starving { newly: reasons.0, still, no_longer }
    }

    /// The starving domains in words, the worst first.
    pub fn lines(&self) -> Vec<String> {
        let sides = [
            ("newly starved", &self.newly),
            ("starved as before", &self.still),
            ("no longer starved", &self.no_longer),
        ];
        sides
            .iter()
            .filter(|(_, starved)| !starved.is_empty())
            .map(|(label, starved)| line(label, starved))
            .collect()
    }
}

/// Starving domains with their reasons; numbered domains are shown with the first one's reason.
///
/// ```
/// use vcpulab_judge::starvation::{Starved, line};
/// let starved = [1, 2, 3].map(|n| Starved { domain: format!("batch{n}"), reason: format!("ran for {n} %") });
/// assert_eq!(line("starved", &starved[..1]), "starved: batch1 (ran for 1 %)");
/// assert_eq!(line("starved", &starved), "starved: batch1 to batch3 (ran for 1 %, others alike)");
/// ```
pub fn line(label: &str, starved: &[Starved]) -> String {
    let reasons: BTreeMap<&str, &str> =
        starved.iter().map(|starved| (starved.domain.as_str(), starved.reason.as_str())).collect();
    let text = |row: Vec<&str>| {
        let first = reasons[row[0]];
        let alike = if row.iter().all(|domain| reasons[domain] == first) { "" } else { ", others alike" };
        format!("{} ({first}{alike})", ends(&row))
    };
    let texts: Vec<String> =
        rows(starved.iter().map(|starved| starved.domain.as_str())).into_iter().map(text).collect();
    format!("{label}: {}", texts.join(", "))
}

/// Starving domains, each once, in the order in which they are found.
#[derive(Default)]
struct Reasons(Vec<Starved>);

impl Reasons {
    fn set(&mut self, domain: &str, reason: String) {
        match self.0.iter_mut().find(|starved| starved.domain == domain) {
            Some(starved) => starved.reason = reason,
            None => self.0.push(Starved { domain: domain.to_owned(), reason }),
        }
    }
}

/// The times of a vCPU, or of several vCPUs of a domain, over all replications, ns.
#[derive(Clone, Debug)]
struct VcpuTimes<'a> {
    domain: &'a str,
    number: u32,
    elapsed: i64,
    running: i64,
    runnable: i64,
    offline: i64,
    vcpus: i64,
}

impl VcpuTimes<'_> {
    fn add(&mut self, running: i64, runnable: i64, offline: i64) {
        self.running += running;
        self.runnable += runnable;
        self.offline += offline;
    }

    /// The CPU time, in pCPUs.
    fn runs(&self) -> f64 {
        self.running as f64 / self.elapsed as f64
    }

    /// The CPU time without any waiting, in pCPUs.
    fn wants(&self) -> f64 {
        (self.running + self.runnable) as f64 / self.elapsed as f64
    }

    /// The fraction of the time on the host.
    fn present(&self) -> f64 {
        1.0 - self.offline as f64 / (self.elapsed * self.vcpus) as f64
    }

    /// The runnable fraction of the time on the host, over all vCPUs.
    fn waits(&self) -> f64 {
        let present = self.elapsed * self.vcpus - self.offline;
        if present > 0 { self.runnable as f64 / present as f64 } else { 0.0 }
    }

    /// The reason why a domain starves, if this vCPU is a thread of the host that serves the domain.
    fn reason_of_thread(&self, kind: &str) -> String {
        let runs = match self.running {
            0 => "never ran".to_owned(),
            _ => format!("ran for {} % of a pCPU", percent(self.runs())),
        };
        format!("its {kind} thread {runs}, and waited for {} % of the time", percent(self.waits()))
    }

    /// The reason why a domain with these former times starves now; `None`: it does not starve.
    fn lost(&self, now: &VcpuTimes<'_>) -> Option<String> {
        if now.present() < PRESENT || self.running == 0 {
            return None;
        }
        let comes_to_wait = self.waits() < WAITING
            && WAITING <= now.waits()
            && now.runs() <= KEPT_WHILE_WAITING_MAX * self.runs();
        let loses = self.runs() > FORMER_CPU_MIN
            && now.runs() <= KEPT_FRACTION_MAX * self.runs()
            && now.waits() > WAITS_NOW;
        (comes_to_wait || loses).then(|| {
            let [was, runs, waits] = [self.runs(), now.runs(), now.waits()].map(percent);
            format!("ran for {was} % of a pCPU before, now {runs} %, and waits for {waits} % of the time")
        })
    }
}

/// The reason why a domain with starving vCPUs starves, of which `active` want to run.
fn reason(starving: &[&VcpuTimes<'_>], active: usize) -> String {
    let numbers = starving.iter().map(|times| times.number.to_string()).collect::<Vec<_>>().join(", ");
    let subject = if starving.len() == active { String::new() } else { format!("vCPU {numbers} ") };
    if starving.iter().all(|times| times.running == 0) {
        return format!("{subject}never ran");
    }
    let runs = sum(starving.iter().map(|times| times.runs()));
    let waits = sum(starving.iter().map(|times| times.waits())) / starving.len() as f64;
    format!("{subject}ran for {} % of a pCPU, and waited for {} % of the time", percent(runs), percent(waits))
}

fn percent(fraction: f64) -> String {
    number(100.0 * fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A domain: its name, its pCPUs, and the running and runnable time of each of its vCPUs, in percent.
    type DomainTimes<'a> = (&'a str, &'a [u32], &'a [(i64, i64)]);

    /// A run of a second with these domains.
    fn run(domains: &[DomainTimes<'_>]) -> Run {
        let mut run = Run::default();
        for &(name, pcpus, times) in domains {
            let reach = vec![pcpus.iter().copied().collect(); times.len()];
            let unlimited = f64::INFINITY;
            run.domains.push(Domain {
                name: name.to_owned(),
                reach,
                cpu_limit: unlimited,
                vcpu_limit: unlimited,
            });
            run.vcpus.extend(times.iter().enumerate().map(|(number, (running, runnable))| Vcpu {
                domain: name.to_owned(),
                number: number as u32,
                elapsed: 100,
                running: *running,
                runnable: *runnable,
                offline: 0,
            }));
        }
        run
    }

    fn told(starved: &[Starved]) -> Vec<String> {
        starved.iter().map(|Starved { domain, reason }| format!("{domain}: {reason}")).collect()
    }

    #[test]
    fn a_vcpu_that_has_much_less_than_its_equals_starves() {
        let unequal =
            run(&[("a", &[0, 1], &[(96, 4), (95, 5)]), ("b", &[1], &[(4, 96)]), ("c", &[2], &[(0, 100)])]);
        let starved = ["b: ran for 4.00 % of a pCPU, and waited for 96.0 % of the time", "c: never ran"];
        assert_eq!(told(&unequal.starved()), starved);
        let mut weighted = unequal.clone();
        weighted.domains[1].cpu_limit = 0.1;
        assert_eq!(told(&weighted.starved()), ["c: never ran"], "it is entitled to no more");
        let crowd: Vec<(i64, i64)> = vec![(2, 98); 50];
        assert_eq!(run(&[("crowd", &[0], &crowd)]).starved(), []);
        let three_vcpus = run(&[("a", &[0], &[(99, 1), (0, 99), (0, 0)])]);
        assert_eq!(told(&three_vcpus.starved()), ["a: vCPU 1 never ran"]);
    }

    #[test]
    fn a_thread_of_the_host_starves_the_machine_that_it_serves() {
        let mut kvm = run(&[("web", &[0], &[(50, 0)]), ("host", &[0], &[(50, 0), (0, 95)])]);
        let thread = |kind| Thread { serves: "web".to_owned(), kind };
        let threads = vec![thread("vhost"), thread("emulator")];
        kvm.threads = Some(HostThreads { domain: "host".to_owned(), threads });
        assert_eq!(
            told(&kvm.starved()),
            ["web: its emulator thread never ran, and waited for 95.0 % of the time"]
        );
    }

    #[test]
    fn what_a_domain_lost_counts_since_a_change() {
        let before = run(&[("a", &[0], &[(50, 50)]), ("b", &[0], &[(50, 50)])]);
        let mut after = run(&[("a", &[0], &[(97, 3)]), ("b", &[0], &[(3, 40)])]);
        let lost = "b: ran for 50.0 % of a pCPU before, now 3.00 %, and waits for 40.0 % of the time";
        let since = |after: &Run| Starving::between(&before, after, |_| true);
        assert_eq!(told(&since(&after).newly), [lost]);
        after.vcpus[1].runnable = 30;
        assert_eq!(since(&after), Starving::default(), "it has less to do");
        let never = run(&[("a", &[0], &[(100, 0)]), ("b", &[0], &[(0, 100)])]);
        assert_eq!(since(&never).lines(), ["newly starved: b (never ran)"]);
        let again = |before: &Run, after: &Run| Starving::between(before, after, |_| true).lines();
        assert_eq!(again(&never, &never), ["starved as before: b (never ran)"]);
        assert_eq!(again(&never, &before), ["no longer starved: b (never ran)"]);
    }

    #[test]
    fn throughput_that_falls_with_the_work_is_not_lost() {
        let done = |throughput, completed| {
            let app = App { name: "users".to_owned(), domain: "web".to_owned(), throughput, completed };
            Run { apps: vec![app.clone(), app], ..Run::default() }
        };
        let newly = |before: &Run, after: &Run, same| told(&Starving::between(before, after, |_| same).newly);
        let reason = ["web: users.throughput 100 → 10.0 1/s"];
        assert_eq!(newly(&done(100.0, 5), &done(10.0, 1), true), reason);
        assert_eq!(newly(&done(100.0, 5), &done(10.0, 1), false), [""; 0]);
        assert_eq!(newly(&done(100.0, 4), &done(10.0, 1), true), [""; 0], "too little to tell");
        assert_eq!(newly(&done(100.0, 5), &done(11.0, 1), true), [""; 0]);
    }
}
