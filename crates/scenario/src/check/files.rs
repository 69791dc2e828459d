//! Files that a server answers with and that need not fit into its domain's memory.

use vcpulab_spec::limits::SERVED_FILES_MAX;
use vcpulab_spec::{Service, Spec};

use crate::check::fields::Checker;
use crate::file::raw::NamedDomain;
use crate::text::problem::Problem;
use crate::text::units::Size;

/// The memory for files: a domain's memory is divided once, and must suffice for the system.
pub(crate) fn check(checker: &mut Checker<'_, '_>, spec: &Spec, raw_domains: &[&NamedDomain]) {
    for ((id, domain), (_, raw)) in spec.domains.enumerate().zip(raw_domains) {
        let places = raw.value.app.get().into_iter().flatten().map(|app| &app.place);
        let mut before = false;
        for ((position, app), place) in domain.apps.iter().enumerate().zip(places) {
            let Some(files) = app.alone().files else { continue };
            if std::mem::replace(&mut before, true) {
                let problem = Problem::says("another application of this domain has its memory for files");
                checker.report.error(place, problem.hint("only one of them can have `files_per_size`"));
            }
            let [memory, system] = [domain.memory_bytes, files.system_bytes].map(|bytes| Size(bytes as i64));
            if memory.0 < system.0 {
                let message =
                    format!("`system_memory` of {system} does not fit into the domain's memory of {memory}");
                let problem = Problem::says(message);
                checker.report.error(place, problem.hint("give the domain more `memory`"));
            }
            let count =
                spec.reply_sizes(Service { domain: id, app: position }).len() * files.per_size as usize;
            if count > SERVED_FILES_MAX {
                let problem = Problem::not_allowed(format!("at most {SERVED_FILES_MAX} files in all"));
                checker.report.error(&place.member("files_per_size"), problem.found(count));
            }
        }
    }
}
