//! The threads, cores, sockets and nodes of a machine, as scenarios and hardware profiles give them.

use vcpulab_host::TopologyConfig;
use vcpulab_spec::limits::PCPUS_MAX;

use crate::file::raw::RawTopology;
use crate::text::problem::{Problem, Report};
use crate::text::read::At;

/// A topology of `pcpus` pCPUs, or, unless that is `fixed`, of as many as it says.
pub(crate) fn topology(
    raw: &At<RawTopology>,
    pcpus: u32,
    fixed: bool,
    report: &mut Report<'_>,
) -> Option<TopologyConfig> {
    let At { value, place } = raw;
    let (sockets, threads) = (value.sockets(report), value.threads(report));
    let cores = value.cores((pcpus / (sockets * threads)).max(1), report);
    let nodes = value.nodes(sockets, report);
    let numbering = value.numbering(report);
    let (cores, nodes) = (cores?, nodes?);
    if !value.sockets.is_or_none(sockets) || !value.threads.is_or_none(threads) {
        return None;
    }
    let all = sockets * cores * threads;
    let fixed = fixed || value.cores.is_none();
    if all > PCPUS_MAX || fixed && all != pcpus {
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
    Some(TopologyConfig { sockets, cores, threads, nodes, numbering })
}
