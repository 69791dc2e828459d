//! Files that a server answers with and that need not fit into its domain's memory: which there are, and how much of that
//! memory is theirs.

use std::collections::BTreeMap;

use vcpulab_guest::script::FilesConfig;
use vcpulab_io::FileSetConfig;

use crate::check::{Checker, NamedDomain};
use crate::limits::SERVED_FILES_MAX;
use crate::problem::Problem;
use crate::spec::{AppSpec, Spec};
use crate::units::Size;

/// Requests of a client, to say how often each size is among them.
const REQUESTS: u64 = 1_000_000;

impl Checker<'_, '_> {
    /// A domain's memory is divided once, and must do for what is always there.
    pub(crate) fn served_files(&mut self, spec: &Spec, raw_domains: &[&NamedDomain]) {
        for (index, (_, raw)) in raw_domains.iter().enumerate().take(spec.domains.len()) {
            let domain = &spec.domains[index];
            let places = raw.value.app.get().into_iter().flatten().map(|app| &app.place);
            let mut before = false;
            for ((position, app), place) in domain.apps.iter().enumerate().zip(places) {
                let Some(files) = app.alone().files else { continue };
                if std::mem::replace(&mut before, true) {
                    let problem =
                        Problem::says("another application of this domain has its memory for files");
                    self.report.error(place, problem.hint("only one of them can have `files_per_size`"));
                }
                let [memory, system] =
                    [domain.memory_bytes, files.system_bytes].map(|bytes| Size(bytes as i64));
                if memory.0 < system.0 {
                    let message = format!(
                        "`system_memory` of {system} does not fit into the domain's memory of {memory}"
                    );
                    let problem = Problem::says(message);
                    self.report.error(place, problem.hint("give the domain more `memory`"));
                }
                let count = sizes(spec, (index, position)).len() * files.per_size as usize;
                if count > SERVED_FILES_MAX {
                    let problem = Problem::not_allowed(format!("at most {SERVED_FILES_MAX} files in all"));
                    self.report.error(&place.member("files_per_size"), problem.found(count));
                }
            }
        }
    }
}

/// The sizes that clients ask a service for, ascending, and how often each is among so many requests of each client.
fn sizes(spec: &Spec, service: (usize, usize)) -> Vec<(u32, u64)> {
    let mut sizes = BTreeMap::new();
    for client in spec.clients.iter().filter(|client| client.service == service) {
        let all: u64 = client.mix.iter().map(|ask| u64::from(ask.weight)).sum();
        for ask in &client.mix {
            *sizes.entry(ask.reply_bytes).or_insert(0) += REQUESTS * u64::from(ask.weight) / all.max(1);
        }
    }
    sizes.into_iter().collect()
}

/// The files that an application of a domain serves, if they need not all be in memory.
pub(crate) fn served(domain: usize, spec: &Spec) -> Option<FileSetConfig> {
    let files = |app: &AppSpec| app.alone().files;
    let apps = &spec.domains[domain].apps;
    let (position, FilesConfig { per_size, process_bytes, system_bytes }) =
        apps.iter().enumerate().find_map(|(position, app)| Some((position, files(app)?)))?;
    let memory_bytes = spec.domains[domain].memory_bytes.saturating_sub(system_bytes);
    Some(FileSetConfig { sizes: sizes(spec, (domain, position)), per_size, memory_bytes, process_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;

    const WEB: &str = "kind = \"web-server\", files_per_size = 61";

    fn scenario(domain: &str, app: &str, client: &str) -> Result<Scenario, String> {
        let text = format!(
            "[host]\nprofile = \"generic\"\nscheduler = \"credit\"\n[domain.dom0]\ndriver_domain = true\n\
             [domain.a]\nnic.driver_domain = \"dom0\"\n{domain}\napp = [{{ {app} }}]\n\
             [client.c]\nkind = \"open-loop\"\nserver = \"a\"\nrate = 1\n{client}\n"
        );
        Scenario::parse(&text, "f").map_err(|problems| problems.to_string())
    }

    const DISK: &str = "disk.driver_domain = \"dom0\"";

    #[test]
    fn a_domains_memory_is_its_systems_then_its_files_and_processes() {
        let domain = format!("{DISK}\nmemory = \"256MiB\"");
        let web = scenario(&domain, WEB, "mix = \"specweb99\"").unwrap();
        let files = served(1, &web).unwrap();
        assert_eq!((files.memory_bytes, files.process_bytes), (232 << 20, 1 << 20));
        assert_eq!((files.sizes.len(), files.per_size), (36, 61));
        assert!(files.sizes.is_sorted() && files.sizes[35] == (900 << 10, 1111), "1 % in nine sizes");
        assert_eq!(Scenario::parse(&web.to_toml(), "again").as_ref(), Ok(&web));
        let without = scenario("", "kind = \"web-server\"", "mix = \"specweb99\"").unwrap();
        assert_eq!(served(1, &without), None);
    }

    #[test]
    fn sizes_are_those_of_all_clients() {
        let client = "file_size = \"10KB\"\n[client.d]\nkind = \"open-loop\"\nserver = \"a\"\nrate = 1\n\
                      mix = [{ file_size = \"1KB\", weight = 3 }, { file_size = \"10KB\" }]";
        let web = scenario(DISK, WEB, client).unwrap();
        assert_eq!(served(1, &web).unwrap().sizes, [(1000, 750_000), (10_000, 1_250_000)]);
    }

    #[test]
    fn what_cannot_be_is_said() {
        let says = |domain: &str, app: &str, client: &str, message: &str| {
            let wrong = scenario(domain, app, client).unwrap_err();
            assert!(wrong.contains(message), "{wrong}");
        };
        says("", WEB, "", "`web-server` needs a disk in its domain");
        let little = format!("{DISK}\nmemory = \"16MiB\"");
        says(&little, WEB, "", "`system_memory` of 24MiB does not fit into the domain's memory of 16MiB");
        let twice = format!("{WEB} }}, {{ {WEB}");
        says(DISK, &twice, "", "only one of them can have `files_per_size`");
        let many = WEB.replace("61", "10001");
        says(DISK, &many, "", "an integer from 0 to 10000");
        let negative = format!("{WEB}, process_memory = \"-1MiB\"");
        says(DISK, &negative, "", "process_memory");
        let asks: Vec<String> = (1..=200).map(|size| format!("{{ file_size = \"{size}KB\" }}")).collect();
        let client = format!("mix = [{}]", asks.join(", "));
        says(DISK, &WEB.replace("61", "10000"), &client, "allowed: at most 1048576 files in all");
    }
}
