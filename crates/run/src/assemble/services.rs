//! The numbers of services in the machine.

use vcpulab_guest::{AppId, ServiceId};
use vcpulab_host::Table;
use vcpulab_io::GuestId;
use vcpulab_spec::{Service, Spec};

/// All services of a scenario, in the order of their numbers.
pub(crate) struct Services(Vec<Service>);

impl Services {
    pub fn of(spec: &Spec) -> Self {
        let apps = spec.domains.enumerate().flat_map(|(domain, spec)| {
            spec.apps.iter().enumerate().map(move |(app, spec)| (Service { domain, app }, spec))
        });
        Services(apps.filter(|(_, app)| app.serves()).map(|(service, _)| service).collect())
    }

    pub fn number(&self, service: Service) -> ServiceId {
        let number = self.0.iter().position(|&known| known == service);
        ServiceId(number.expect("a checked scenario refers to services") as u32)
    }

    /// The domain of each service, and its position among the domain's applications as the engine counts them: every
    /// instance is one of its own.
    pub fn positions(&self, spec: &Spec) -> Table<ServiceId, (GuestId, AppId)> {
        let position = |service: &Service| {
            let before = &spec.domains[service.domain].apps[..service.app];
            (GuestId::from(service.domain), AppId(before.iter().map(|app| app.instances()).sum()))
        };
        self.0.iter().map(position).collect()
    }
}
