//! The numbers of services in the machine.

use vcpulab_spec::{Service, Spec};

/// All services of a scenario, in the order of their numbers.
pub(crate) struct Services(Vec<Service>);

impl Services {
    pub fn of(spec: &Spec) -> Self {
        let apps = spec.domains.iter().enumerate().flat_map(|(domain, spec)| {
            spec.apps.iter().enumerate().map(move |(app, spec)| (Service { domain, app }, spec))
        });
        Services(apps.filter(|(_, app)| app.serves()).map(|(service, _)| service).collect())
    }

    pub fn number(&self, service: Service) -> usize {
        self.0.iter().position(|&known| known == service).expect("a checked scenario refers to services")
    }

    /// The domain of each service, and its position among the domain's applications as the engine counts them: every
    /// instance is one of its own.
    pub fn positions(&self, spec: &Spec) -> Vec<(usize, usize)> {
        let position = |service: &Service| {
            let before = &spec.domains[service.domain].apps[..service.app];
            (service.domain, before.iter().map(|app| app.instances() as usize).sum())
        };
        self.0.iter().map(position).collect()
    }
}
