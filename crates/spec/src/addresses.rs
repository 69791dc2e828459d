//! The names of applications and clients in addresses, and the work that they are.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use vcpulab_host::DomId;

use crate::app::{AppSpec, AppValue, Service};
use crate::client::ClientSpec;
use crate::spec::Spec;

/// An application or a client: a row of the table of applications.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AppName {
    /// Name in addresses and tables: `web.0`; a client has its own name. The name of a domain is that of its only client, or else of
    /// its only application.
    pub name: String,
    /// Other names that addresses may use.
    pub aliases: Vec<String>,
    /// Name of the domain that runs the application, or serves the client.
    pub domain: String,
    /// Position in the domain, from 0; clients come after the applications.
    pub position: u32,
    /// The kind, as in a file.
    pub kind: &'static str,
    /// Name of the client; `None`: an application.
    pub client: Option<String>,
    /// Whether the work is an assumption of an import.
    pub assumed: bool,
}

/// The applications and clients of a scenario, domain by domain.
pub fn app_names(spec: &Spec) -> Vec<AppName> {
    let mut asking: BTreeMap<DomId, Vec<&ClientSpec>> = BTreeMap::new();
    for client in &spec.clients {
        asking.entry(client.service.domain).or_default().push(client);
    }
    let domains: BTreeSet<&str> = spec.stated_domains().iter().map(|domain| domain.name.as_str()).collect();
    let mut names = Vec::new();
    for (id, domain) in spec.domains.enumerate().take(spec.stated_domains().len()) {
        let instances =
            |app: &AppSpec| std::iter::repeat_n((app.kind(), app.assumed()), app.instances() as usize);
        let running: Vec<_> = domain.apps.iter().flat_map(instances).collect();
        let clients = asking.get(&id).map(Vec::as_slice).unwrap_or_default();
        let only_client = clients.len() == 1;
        let only_app = clients.is_empty() && running.len() == 1;
        let apps = running.into_iter().map(|(kind, assumed)| (None, kind, assumed));
        let clients = clients.iter().map(|client| (Some(client.name.as_str()), client.kind(), false));
        for (position, (client, kind, assumed)) in apps.chain(clients).enumerate() {
            let (own, by_position) = (step(&domain.name), format!("{}.{position}", step(&domain.name)));
            let is_alone = if client.is_some() { only_client } else { only_app };
            let of_client = client.filter(|client| !domains.contains(client)).map(step);
            let of_domain = is_alone.then_some(own);
            // The name of a client that is also the name of another domain is not the client's in addresses.
            let is_first = client.is_none_or(|client| client == domain.name);
            let mut all: Vec<String> = match (of_client, is_first) {
                (Some(of_client), _) => {
                    [Some(of_client), of_domain, Some(by_position)].into_iter().flatten().collect()
                }
                (None, true) => [of_domain, Some(by_position)].into_iter().flatten().collect(),
                (None, false) => [Some(by_position), of_domain].into_iter().flatten().collect(),
            };
            let name = all.remove(0);
            all.retain(|alias| *alias != name);
            names.push(AppName {
                name,
                aliases: all,
                domain: domain.name.clone(),
                position: position as u32,
                kind,
                client: client.map(str::to_owned),
                assumed,
            });
        }
    }
    names
}

/// A name as a step of a dotted path.
fn step(name: &str) -> String {
    if name.contains('.') { format!("\"{name}\"") } else { name.to_owned() }
}

/// The work of a domain: its applications, and the clients that it serves. References to other
/// domains and machines are stored by name, so that the work of two scenarios can be compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    apps: Vec<AppSpec>,
    clients: Vec<ClientSpec>,
    names: Vec<Option<String>>,
}

impl Work {
    /// The work of a domain of a scenario.
    pub fn of(spec: &Spec, domain: DomId) -> Self {
        let mut names = Vec::new();
        let mut named = |service: Service| {
            names.push(Some(spec.domains[service.domain].name.clone()));
            Service { domain: DomId(0), ..service }
        };
        let mut apps = spec.domains[domain].apps.clone();
        for app in &mut apps {
            let AppSpec::Kind { values, .. } = app else { continue };
            for value in values {
                if let AppValue::Service(service) = value {
                    *service = named(*service);
                }
            }
        }
        let mut clients: Vec<ClientSpec> =
            spec.clients.iter().filter(|client| client.service.domain == domain).cloned().collect();
        for client in &mut clients {
            names.push(client.machine.take().map(|machine| spec.client_machines[machine].name.clone()));
            client.service.domain = DomId(0);
        }
        Work { apps, clients, names }
    }
}
