//! Applications.

use vcpulab_guest::AppConfig;
use vcpulab_guest::apps::Args;
use vcpulab_spec::{AppSpec, Constants};

use crate::build::scripts::{Channels, Meetings, script};
use crate::build::services::Services;

/// One instance of an application.
pub(crate) fn app(
    app: &AppSpec,
    services: &Services,
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
            let number = |service| services.number(service) as i64;
            let values: Vec<i64> = values.iter().map(|value| value.as_int(number)).collect();
            let spread_percent = constants.cost_spread_percent;
            (kind.build)(&Args { kind, values: &values, spread_percent })
        }
    }
}
