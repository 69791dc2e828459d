//! Files that a server answers with and that need not fit into its domain's memory: their sizes, and the memory for
//! them.

use vcpulab_guest::script::FilesConfig;
use vcpulab_host::DomId;
use vcpulab_io::FileSetConfig;
use vcpulab_spec::{AppSpec, Service, Spec};

/// The files that an application of a domain serves, if they need not all be in memory.
pub(crate) fn served(domain: DomId, spec: &Spec) -> Option<FileSetConfig> {
    let files = |app: &AppSpec| app.alone().files.map(|files| *files);
    let apps = &spec.domains[domain].apps;
    let (position, FilesConfig { per_size, process_bytes, system_bytes }) =
        apps.iter().enumerate().find_map(|(position, app)| Some((position, files(app)?)))?;
    let memory_bytes = spec.domains[domain].memory_bytes.saturating_sub(system_bytes);
    Some(FileSetConfig {
        sizes: spec.reply_sizes(Service { domain, app: position }),
        per_size,
        memory_bytes,
        process_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use vcpulab_scenario::Scenario;

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
        let files = served(DomId(1), &web).unwrap();
        assert_eq!((files.memory_bytes, files.process_bytes), (232 << 20, 1 << 20));
        assert_eq!((files.sizes.len(), files.per_size), (36, 61));
        assert!(files.sizes.is_sorted() && files.sizes[35] == (900 << 10, 1111), "1 % in nine sizes");
        assert_eq!(Scenario::parse(&web.to_toml(), "again").as_ref(), Ok(&web));
        let without = scenario("", "kind = \"web-server\"", "mix = \"specweb99\"").unwrap();
        assert_eq!(served(DomId(1), &without), None);
    }

    #[test]
    fn sizes_are_those_of_all_clients() {
        let client = "file_size = \"10KB\"\n[client.d]\nkind = \"open-loop\"\nserver = \"a\"\nrate = 1\n\
                      mix = [{ file_size = \"1KB\", weight = 3 }, { file_size = \"10KB\" }]";
        let web = scenario(DISK, WEB, client).unwrap();
        assert_eq!(served(DomId(1), &web).unwrap().sizes, [(1000, 750_000), (10_000, 1_250_000)]);
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
