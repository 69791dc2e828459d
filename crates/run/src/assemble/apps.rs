//! Applications.

use vcpulab_guest::AppConfig;
use vcpulab_guest::apps::Args;
use vcpulab_spec::{AppSpec, Constants};

use crate::assemble::scripts::{Channels, SyncObjects, script};
use crate::assemble::services::Services;

/// Configuration of an instance of an application.
pub(crate) fn app(
    app: &AppSpec,
    services: &Services,
    objects: &SyncObjects<'_>,
    channels: &Channels<'_>,
    constants: &Constants,
) -> AppConfig {
    match app {
        AppSpec::Phases { phases, stretch, rounds, delay, softirq, .. } => AppConfig {
            delay_ns: *delay,
            softirq: *softirq,
            shares_sync_objects: true,
            ..AppConfig::new(script(phases, *stretch, *rounds, objects, channels))
        },
        AppSpec::Kind { kind, values, .. } => {
            let number = |service| services.number(service);
            let values: Vec<_> = values.iter().map(|value| value.map_service(number)).collect();
            let spread_percent = constants.cost_spread_percent;
            (kind.build)(&Args { kind, values: &values, spread_percent })
        }
    }
}
