//! The sampling profiler.

use vcpulab_host::Span;
use vcpulab_io::ProfilerConfig;
use vcpulab_spec::Spec;

/// The profiler of a scenario.
pub(crate) fn profiler(spec: &Spec) -> Option<ProfilerConfig> {
    let constants = &spec.host.constants;
    spec.profiler_cycles.map(|cycles| ProfilerConfig {
        pcpus: spec.host.pcpus,
        period_ns: constants.cycles(cycles).max(Span::from_ns(1)),
        sample_ns: Span::from_ns(constants.sample_ns),
    })
}
