//! The machine as the system describes it.

use std::fs;
use std::path::Path;

use crate::layout::list;

/// The caches that one CPU uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Topology {
    pub l2_bytes: usize,
    /// 0: there is none.
    pub l3_bytes: usize,
    /// CPUs that share the L3; 0: there is none.
    pub l3_cpus: usize,
    pub line_bytes: usize,
}

impl Topology {
    /// The caches of a CPU of this machine; `None` if the system does not list them (only Linux does).
    pub fn of(cpu: usize) -> Option<Topology> {
        Topology::read(Path::new(&format!("/sys/devices/system/cpu/cpu{cpu}/cache")))
    }

    /// From the folders `index0`, `index1`, ..., one for each cache.
    fn read(folder: &Path) -> Option<Topology> {
        let mut found = Topology::default();
        for index in 0..8 {
            let of = |name: &str| {
                let text = fs::read_to_string(folder.join(format!("index{index}")).join(name)).ok()?;
                Some(text.trim().to_owned())
            };
            let Some(level) = of("level") else { break };
            let bytes = of("size")?.strip_suffix('K')?.parse::<usize>().ok()? << 10;
            if level == "2" {
                found.l2_bytes = bytes;
                found.line_bytes = of("coherency_line_size")?.parse().ok()?;
            } else if level == "3" {
                found.l3_bytes = bytes;
                found.l3_cpus = list(&of("shared_cpu_list")?)?.len();
            }
        }
        (found.l2_bytes > 0).then_some(found)
    }

    pub fn last_level_bytes(&self) -> usize {
        self.l2_bytes.max(self.l3_bytes)
    }
}

/// The processor's name for itself.
pub(crate) fn machine() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    model.map_or_else(
        || format!("a processor of kind {}", std::env::consts::ARCH),
        |(_, name)| name.to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::tests::Tree;

    #[test]
    fn caches_are_read_as_the_system_lists_them() {
        let caches = [("1", "48K", "0"), ("1", "32K", "0"), ("2", "1024K", "0"), ("3", "32768K", "0-3,8")];
        let mut files = Vec::new();
        for (index, (level, size, cpus)) in caches.into_iter().enumerate() {
            for (name, text) in
                [("level", level), ("size", size), ("shared_cpu_list", cpus), ("coherency_line_size", "64")]
            {
                files.push((format!("index{index}/{name}"), text.to_owned()));
            }
        }
        let tree = Tree::new("caches", &files);
        let read = Topology::read(&tree.0);
        let expected = Topology { l2_bytes: 1 << 20, l3_bytes: 32 << 20, l3_cpus: 5, line_bytes: 64 };
        assert_eq!(read, Some(expected));
        assert_eq!(Topology::read(&tree.0.join("index0")), None);
    }
}
