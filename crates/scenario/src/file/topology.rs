//! The threads, cores, sockets and nodes of a machine, as scenarios and hardware profiles give them.

use vcpulab_host::{Numbering, TopologyConfig};
use vcpulab_spec::limits::PCPUS_MAX;

use crate::file::raw::RawTopology;
use crate::file::words::NUMBERINGS;
use crate::text::problem::{Problem, Report, did_you_mean};
use crate::text::read::{At, Field};

/// A topology of `pcpus` pCPUs, or, unless that is `fixed`, of as many as it says.
pub(crate) fn topology(
    raw: &At<RawTopology>,
    pcpus: i64,
    fixed: bool,
    report: &mut Report<'_>,
) -> Option<TopologyConfig> {
    let At { value, place } = raw;
    let sockets = count(&value.sockets, report);
    let threads = count(&value.threads, report);
    let cores = count(&value.cores, report);
    let nodes = count(&value.nodes, report);
    let numbering = numbering(&value.numbering, report);
    let (sockets, threads) = (sockets?.unwrap_or(1), threads?.unwrap_or(1));
    let cores = cores?.unwrap_or((pcpus / (sockets * threads)).max(1));
    let nodes = nodes?.unwrap_or(sockets);
    let all = sockets * cores * threads;
    let fixed = fixed || value.cores.is_none();
    if all > PCPUS_MAX.into() || fixed && all != pcpus {
        let allowed = match fixed {
            true => format!("sockets × cores × threads = {pcpus}, the number of pCPUs"),
            false => format!("sockets × cores × threads of at most {PCPUS_MAX}"),
        };
        let found = format!("{sockets} × {cores} × {threads} = {all}");
        report.error(place, Problem::not_allowed(allowed).found(found));
        return None;
    }
    if nodes % sockets != 0 && sockets % nodes != 0 || nodes > sockets * cores {
        let allowed = format!(
            "a divisor or a multiple of the number of sockets, {sockets}, and at most one for each core"
        );
        report.error(&value.nodes.0.as_ref()?.place, Problem::not_allowed(allowed));
        return None;
    }
    let numbering = numbering?;
    let [sockets, cores, threads, nodes] = [sockets, cores, threads, nodes].map(|count| count as u32);
    Some(TopologyConfig { sockets, cores, threads, nodes, numbering })
}

/// `None`: it is wrong. The outer one; the inner one says that it is not given.
fn count(field: &Field<i64>, report: &mut Report<'_>) -> Option<Option<i64>> {
    let Some(At { value, place }) = &field.0 else { return Some(None) };
    if (1..=PCPUS_MAX.into()).contains(value) {
        return Some(Some(*value));
    }
    report.error(place, Problem::not_allowed(format!("an integer from 1 to {PCPUS_MAX}")));
    None
}

fn numbering(field: &Field<String>, report: &mut Report<'_>) -> Option<Numbering> {
    let Some(At { value, place }) = &field.0 else { return Some(NUMBERINGS[0].1) };
    let found = NUMBERINGS.iter().find(|(word, _)| word == value);
    if found.is_none() {
        let words = NUMBERINGS.map(|(word, _)| word);
        let problem = Problem::not_allowed(format!("one of {}", words.join(", ")));
        report.error(place, problem.maybe_hint(did_you_mean(value, words)));
    }
    found.map(|(_, numbering)| *numbering)
}
