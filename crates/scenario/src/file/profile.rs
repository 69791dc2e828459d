//! Hardware profiles in files: the built-in ones, and those of users.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::OnceLock;

use vcpulab_spec::limits::PCPUS_MAX;
use vcpulab_spec::{CONSTANTS, Constants, Platform, Profile, SourceKind, Sourced};

use crate::file::raw::RawTopology;
use crate::file::topology::topology;
use crate::text::limits::FILE_BYTES_MAX;
use crate::text::problem::{Place, Problem, Problems, Report, did_you_mean, text_of, whole_file};
use crate::text::read::{At, Field, Named, Read, document};
use crate::text::record::record;
use crate::text::value::Scalar as _;

record! {
    /// A hardware profile.
    struct RawProfile {
        /// Description of the machine.
        doc: String,
        /// Number of pCPUs.
        pcpus: RawSourced,
        /// Threads, cores, sockets and nodes, from the same source. Default: each pCPU is a core of its own, on one node.
        topology: RawTopology,
        /// All constants.
        constants: Named<RawSourced>,
    }
    required [doc, pcpus, constants]
}

record! {
    /// A value, and where it is from.
    struct RawSourced {
        value: i64,
        kind: SourceKind,
        source: String,
    }
    required [value, kind, source]
}

/// The profiles' data files, by name. The first is the default.
const FILES: [(&str, &str); 8] = [
    ("generic", include_str!("../../profiles/generic.toml")),
    ("epyc-9355p", include_str!("../../profiles/epyc-9355p.toml")),
    ("xeon-gold-6240", include_str!("../../profiles/xeon-gold-6240.toml")),
    ("lp200r", include_str!("../../profiles/lp200r.toml")),
    ("dl360", include_str!("../../profiles/dl360.toml")),
    ("q9550", include_str!("../../profiles/q9550.toml")),
    ("i3-370m", include_str!("../../profiles/i3-370m.toml")),
    ("exact", include_str!("../../profiles/exact.toml")),
];

/// Built-in profiles that have been read, in the order of `FILES`.
static READ: [OnceLock<Profile>; FILES.len()] = [const { OnceLock::new() }; FILES.len()];

fn built_in(index: usize) -> &'static Profile {
    let (name, text) = FILES[index];
    READ[index].get_or_init(|| parse_profile(text, name).unwrap_or_else(|problems| panic!("{problems}")))
}

/// All built-in profiles; the first is the default.
pub fn profiles() -> impl Iterator<Item = &'static Profile> {
    (0..FILES.len()).map(built_in)
}

/// The names of the built-in profiles.
pub(crate) fn profile_names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

/// The built-in profile that is meant where none is named.
pub(crate) fn default_profile() -> &'static Profile {
    built_in(0)
}

/// The built-in profile of that name.
pub fn find_profile(name: &str) -> Option<&'static Profile> {
    profile_names().position(|known| known == name).map(built_in)
}

/// The constants of a host with this profile, but for those that its scenario gives itself.
pub(crate) fn constants_of(profile: &Profile, platform: &Platform) -> Constants {
    let mut constants = profile.values();
    for constant in CONSTANTS.iter().filter(|constant| !platform.has(constant)) {
        constants.set(constant.name, constant.default.unwrap_or_default());
    }
    constants
}

/// Reads and checks a profile of that name.
///
/// # Errors
/// Everything that is wrong with it.
pub fn parse_profile(text: &str, name: &str) -> Result<Profile, Problems> {
    let (node, mut reader) = document(text, name)?;
    let raw = RawProfile::read(&node, &mut reader).unwrap_or_default();
    let place = Place { span: Some(0..0), field: String::new() };
    let none = Named::default();
    let constants = &raw.constants.get().unwrap_or(&none).0;
    let report = &mut reader.report;
    // What is given wrongly has been reported as that.
    let given = |name| node.get_ref().get("constants")?.get_ref().get(name);
    let required = CONSTANTS.iter().filter(|constant| constant.default.is_none());
    for constant in required.filter(|constant| given(constant.name).is_none()) {
        let missing = Problem::says("required, but not given").hint(constant.doc);
        report.error(&place.member("constants").member(constant.name), missing);
    }
    let pcpus = raw.pcpus.get().and_then(|at| sourced(at, 1, PCPUS_MAX.into(), report));
    let pcpus = pcpus.unwrap_or(Sourced { value: 1, kind: SourceKind::Assumed, source: String::new() });
    let topology = raw.topology.0.as_ref().and_then(|raw| topology(raw, pcpus.value as u32, true, report));
    let mut profile = Profile {
        name: name.to_owned(),
        doc: raw.doc.get().cloned().unwrap_or_default(),
        pcpus,
        topology,
        constants: Default::default(),
    };
    for (name, At { value, .. }) in constants {
        match CONSTANTS.iter().find(|constant| constant.name == name.value) {
            None => unknown_constant(name, report),
            Some(constant) => {
                let sourced = sourced(value, constant.min, constant.max, report);
                profile.constants.extend(sourced.map(|sourced| (constant.name.to_owned(), sourced)));
            }
        }
    }
    if !report.has_errors() {
        caches_fit(&profile.values(), &place.member("constants"), report);
        clocks_fit(&profile.values(), &place.member("constants"), report);
    }
    reader.report.finish()?;
    Ok(profile)
}

/// Reads a profile from a file of its own.
///
/// # Errors
/// It cannot be read, or everything that is wrong with it.
pub fn read_profile(path: &Path) -> Result<Profile, Problems> {
    let name = path.to_string_lossy();
    let cannot = |why: String| whole_file(&name, format!("cannot be read: {why}"));
    let unread = |error: std::io::Error| cannot(error.kind().to_string());
    // Whatever never ends, a pipe or a device, is not even opened.
    if !std::fs::metadata(path).map_err(unread)?.is_file() {
        return Err(cannot("not a file".into()));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unread)?;
    file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(unread)?;
    parse_profile(text_of(&bytes, &name)?, &name)
}

fn sourced(raw: &RawSourced, min: i64, max: i64, report: &mut Report<'_>) -> Option<Sourced> {
    let RawSourced { value: Field(Some(value)), kind: Field(Some(kind)), source: Field(Some(source)) } = raw
    else {
        return None;
    };
    if !(min..=max).contains(&value.value) {
        let allowed = format!("an integer from {min} to {max}");
        report.error(&value.place, Problem::not_allowed(allowed));
    }
    let kind = SourceKind::checked(&kind.value, &kind.place, report)?;
    Some(Sourced { value: value.value, kind, source: source.value.clone() })
}

/// There is no constant of that name.
pub(crate) fn unknown_constant(name: &At<String>, report: &mut Report<'_>) {
    report.error_with(&name.place, || {
        let names = || CONSTANTS.iter().map(|constant| constant.name);
        let hint = did_you_mean(&name.value, names())
            .unwrap_or_else(|| format!("known here: {}", names().collect::<Vec<_>>().join(", ")));
        Problem::says("unknown constant").found(&name.value).hint(hint)
    });
}

/// The levels of the caches must be in order.
pub(crate) fn caches_fit(constants: &Constants, place: &Place, report: &mut Report<'_>) {
    let Constants { l2_bytes, l3_bytes, l2_miss_ps, l3_miss_ps, .. } = *constants;
    if l3_bytes != 0 && l3_bytes < l2_bytes {
        let allowed = format!("0 or at least `l2_bytes`, {l2_bytes}");
        report.error(&place.member("l3_bytes"), Problem::not_allowed(allowed).found(format!("`{l3_bytes}`")));
    }
    if l3_miss_ps < l2_miss_ps {
        let allowed = format!("at least `l2_miss_ps`, {l2_miss_ps}");
        report.error(
            &place.member("l3_miss_ps"),
            Problem::not_allowed(allowed).found(format!("`{l3_miss_ps}`")),
        );
    }
}

/// Clock rates must be in order.
pub(crate) fn clocks_fit(constants: &Constants, place: &Place, report: &mut Report<'_>) {
    let Constants { cpu_mhz, turbo_one_core_mhz, turbo_all_cores_mhz, min_mhz, .. } = *constants;
    let highest = if turbo_one_core_mhz == 0 { cpu_mhz } else { turbo_one_core_mhz };
    let others = [("turbo_all_cores_mhz", turbo_all_cores_mhz), ("min_mhz", min_mhz)];
    for (name, mhz) in others.into_iter().filter(|&(_, mhz)| mhz > highest) {
        let allowed = format!("at most the highest clock rate of a core, {highest}");
        report.error(&place.member(name), Problem::not_allowed(allowed).found(format!("`{mhz}`")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Outside, Scenario};

    const GENERIC: &str = include_str!("../../profiles/generic.toml");

    /// The number of constants that a profile must give.
    fn required() -> usize {
        CONSTANTS.iter().filter(|constant| constant.default.is_none()).count()
    }

    /// The problems of the built-in profile `generic` with this replaced in it.
    fn problems(from: &str, to: &str) -> String {
        assert!(GENERIC.contains(from), "{from}");
        parse_profile(&GENERIC.replacen(from, to, 1), "p.toml").unwrap_err().to_string()
    }

    #[test]
    fn everything_wrong_with_a_profile_is_explained() {
        let text = include_str!("../../bad/profiles/all.toml");
        let problems = parse_profile(text, "all.toml").unwrap_err();
        let (missing, others): (Vec<_>, Vec<_>) =
            problems.into_iter().partition(|problem| problem.line == Some(1));
        assert_eq!(missing.len(), required() - 4, "each that is not given at all");
        assert_eq!(missing[0].message, "required, but not given");
        insta::assert_snapshot!(others.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
    }

    #[test]
    fn levels_of_cache_out_of_order_are_refused() {
        let wrong = problems("l3_bytes = { value = 33554432", "l3_bytes = { value = 1000");
        assert!(wrong.contains("found `1000`; allowed: 0 or at least `l2_bytes`, 1048576"), "{wrong}");
        let wrong = problems("l3_miss_ps = { value = 100000", "l3_miss_ps = { value = 1");
        assert!(wrong.contains("allowed: at least `l2_miss_ps`, 20000"), "{wrong}");
    }

    #[test]
    fn clock_rates_out_of_order_are_refused() {
        let wrong = problems(
            "[constants]",
            "[constants]\nturbo_one_core_mhz = { value = 4000, kind = \"assumed\", source = \"assumption\" }\nmin_mhz = { value = 5000, kind = \"assumed\", source = \"assumption\" }",
        );
        assert!(
            wrong.contains("min_mhz")
                && wrong.contains("found `5000`; allowed: at most the highest clock rate of a core, 4000"),
            "{wrong}"
        );
    }

    /// A scenario with one domain on a host of that profile.
    fn scenario(profile: &str, folder: Option<&Path>) -> Result<Scenario, Problems> {
        let text = format!(
            "[host]\nscheduler = \"credit\"\nprofile = {profile}\n[domain.a]\napp = [{{ kind = \"hog\" }}]\n"
        );
        let outside = Outside { folder, ..Outside::default() };
        Scenario::parse_in(&text, "s.toml", outside)
    }

    #[test]
    fn a_scenario_may_name_a_file_and_is_written_without_it() {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/profiles"));
        let from_file =
            scenario("\"dl360.toml\"", Some(folder)).unwrap_or_else(|problems| panic!("{problems}"));
        let built_in = scenario("\"dl360\"", None).unwrap();
        assert_eq!(from_file.host.constants, built_in.host.constants);
        assert_eq!((from_file.host.pcpus, from_file.host.profile.as_str()), (4, "custom"));
        assert_eq!(Scenario::parse(&from_file.to_toml(), "again"), Ok(from_file));
    }

    #[test]
    fn files_that_cannot_be_used_are_named() {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/bad"));
        let wrong = |profile: &str, folder| scenario(profile, folder).unwrap_err().to_string();
        let missing = wrong("\"nowhere.toml\"", Some(folder));
        assert!(missing.ends_with("nowhere.toml: cannot be read: entity not found"), "{missing}");
        let bad = wrong("\"profiles/all.toml\"", Some(folder));
        assert!(bad.contains("profiles/all.toml:5:37: constants.decision_ns.kind"), "{bad}");
        let without = wrong("\"dl360.toml\"", None);
        assert!(
            without
                .contains("s.toml:3:11: host.profile: a profile file can be named by a scenario file only"),
            "{without}"
        );
        assert!(read_profile(folder).unwrap_err().to_string().ends_with("cannot be read: not a file"));
    }

    #[test]
    fn a_custom_host_must_say_everything_itself() {
        let wrong = scenario("\"custom\"", None).unwrap_err().to_string();
        assert!(wrong.contains("host.pcpus: required with the profile `custom`, but not given"), "{wrong}");
        assert_eq!(wrong.lines().count(), 1 + required());
    }

    #[test]
    fn every_profile_is_right_and_says_of_every_constant_how_it_is_known() {
        for profile in profiles() {
            for (name, Sourced { kind, source, .. }) in &profile.constants {
                assert!(source.len() > 10, "{}.{name} needs a source", profile.name);
                let assumed = source.starts_with("assumption");
                assert_eq!(assumed, *kind == SourceKind::Assumed, "{}.{name}: {source}", profile.name);
            }
        }
        assert!(SourceKind::ALL.iter().all(|(word, kind)| kind.word() == *word));
    }

    #[test]
    fn in_exact_mode_nothing_costs_time() {
        let exact = find_profile("exact").unwrap();
        for (name, sourced) in exact.constants.iter().filter(|(name, _)| is_cost(name)) {
            assert_eq!(sourced.value, 0, "{name}");
        }
    }

    fn is_cost(name: &str) -> bool {
        name != "task_slice_ns" && ["_ns", "_ps"].iter().any(|unit| name.ends_with(unit))
    }
}
