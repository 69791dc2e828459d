//! The threads, cores, sockets and nodes of the machine, as the system describes them.

use std::fs;
use std::path::Path;

use serde::Serialize;

/// The folder in which Linux describes CPUs and nodes.
pub(crate) const SYSTEM: &str = "/sys/devices/system";

/// The CPUs of a machine.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Layout {
    cpus: Vec<Cpu>,
    pub nodes: Vec<Node>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Cpu {
    number: usize,
    /// The threads of its core, with itself.
    core: Vec<usize>,
    socket: usize,
}

/// A node with CPUs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Node {
    pub number: usize,
    pub cpus: Vec<usize>,
    /// Distance to each node with memory, from the firmware's table (ACPI: SLIT); the distance to the node itself is 10.
    pub distances: Vec<i64>,
}

/// A machine whose sockets, cores and nodes are alike, in the words of a profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Places {
    /// The number of sockets.
    pub sockets: usize,
    /// Cores of each socket.
    pub cores: usize,
    /// Threads of each core.
    pub threads: usize,
    /// The number of nodes.
    pub nodes: usize,
    /// `adjacent` or `spread`: how threads are numbered.
    pub numbering: &'static str,
}

impl Layout {
    /// From the folders `cpu` and `node` there; without CPUs where it is not said which share a core.
    pub fn read(system: &Path) -> Layout {
        let text = |path: String| Some(fs::read_to_string(system.join(path)).ok()?.trim().to_owned());
        let all = |path: &str| text(path.to_owned()).and_then(|text| list(&text)).unwrap_or_default();
        let cpu = |number: usize| {
            let of = |name: &str| text(format!("cpu/cpu{number}/topology/{name}"));
            let core = list(&of("thread_siblings_list")?)?;
            Some(Cpu { number, core, socket: of("physical_package_id")?.parse().ok()? })
        };
        let node = |number: usize| {
            let of = |name: &str| text(format!("node/node{number}/{name}"));
            let distances =
                of("distance")?.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
            Some(Node { number, cpus: list(&of("cpulist")?)?, distances })
        };
        let cpus: Option<Vec<Cpu>> = all("cpu/online").into_iter().map(cpu).collect();
        let mut nodes: Vec<Node> = all("node/online").into_iter().filter_map(node).collect();
        nodes.retain(|node| !node.cpus.is_empty());
        Layout { cpus: cpus.unwrap_or_default(), nodes }
    }

    /// Whether the system says which CPUs share a core.
    pub fn is_known(&self) -> bool {
        !self.cpus.is_empty()
    }

    /// Two threads of one core among these CPUs.
    pub fn siblings(&self, among: &[usize]) -> Option<[usize; 2]> {
        self.cpus.iter().find_map(|cpu| {
            let mut threads = cpu.core.iter().copied().filter(|thread| among.contains(thread));
            Some([threads.next()?, threads.next()?])
        })
    }

    /// Whether a core has several threads.
    pub fn has_threads(&self) -> bool {
        self.cpus.iter().any(|cpu| cpu.core.len() > 1)
    }

    /// Sockets, cores, threads and nodes as a profile gives them; `None` if they are not all alike, or numbered in
    /// another order.
    pub fn places(&self) -> Option<Places> {
        let count = self.cpus.len();
        let threads = self.cpus.first()?.core.len();
        let total = count / threads;
        let nodes = self.nodes.len().max(1);
        let mut sockets: Vec<usize> = self.cpus.iter().map(|cpu| cpu.socket).collect();
        sockets.sort_unstable();
        sockets.dedup();
        if !total.is_multiple_of(sockets.len()) || total * threads != count {
            return None;
        }
        let node_of = |cpu: usize| self.nodes.iter().position(|node| node.cpus.contains(&cpu)).unwrap_or(0);
        let fits = |core_of: &dyn Fn(usize) -> usize| {
            self.cpus.iter().enumerate().all(|(p, cpu)| {
                let mates: Vec<usize> = (0..count).filter(|&other| core_of(other) == core_of(p)).collect();
                cpu.number == p
                    && cpu.core == mates
                    && sockets[core_of(p) * sockets.len() / total] == cpu.socket
                    && core_of(p) * nodes / total == node_of(p)
            })
        };
        let numbering = match () {
            () if fits(&|p| p / threads) => "adjacent",
            () if fits(&|p| p % total) => "spread",
            () => return None,
        };
        Some(Places { sockets: sockets.len(), cores: total / sockets.len(), threads, nodes, numbering })
    }
}

/// The numbers in a list such as `0-3,8`; `None` if it is none.
pub(crate) fn list(text: &str) -> Option<Vec<usize>> {
    let mut numbers = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if last < first || last - first > 1 << 16 {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A tree of files in a folder of its own, gone with it.
    pub(crate) struct Tree(pub PathBuf);

    impl Tree {
        pub fn new(name: &str, files: &[(String, String)]) -> Tree {
            let folder = std::env::temp_dir().join(format!("vcpulab-probe-{name}-{}", std::process::id()));
            for (path, text) in files {
                let path = folder.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, format!("{text}\n")).unwrap();
            }
            Tree(folder)
        }

        /// CPUs by socket and core, and nodes by CPUs and distances.
        pub fn of(name: &str, cpus: &[(usize, &str)], nodes: &[(&str, &str)]) -> Tree {
            let mut files = vec![
                ("cpu/online".to_owned(), format!("0-{}", cpus.len() - 1)),
                ("node/online".to_owned(), format!("0-{}", nodes.len() - 1)),
            ];
            for (number, (socket, core)) in cpus.iter().enumerate() {
                let of = format!("cpu/cpu{number}/topology");
                files.push((format!("{of}/thread_siblings_list"), (*core).to_owned()));
                files.push((format!("{of}/physical_package_id"), socket.to_string()));
            }
            for (number, (cpus, distances)) in nodes.iter().enumerate() {
                files.push((format!("node/node{number}/cpulist"), (*cpus).to_owned()));
                files.push((format!("node/node{number}/distance"), (*distances).to_owned()));
            }
            Tree::new(name, &files)
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            drop(fs::remove_dir_all(&self.0));
        }
    }

    #[test]
    fn two_sockets_with_threads_are_read() {
        let cpus = [(0, "0,4"), (0, "1,5"), (1, "2,6"), (1, "3,7")];
        let cpus: Vec<_> = cpus.iter().chain(&cpus).copied().collect();
        let tree = Tree::of("two-sockets", &cpus, &[("0-1,4-5", "10 21"), ("2-3,6-7", "21 10")]);
        let layout = Layout::read(&tree.0);
        let places = Places { sockets: 2, cores: 2, threads: 2, nodes: 2, numbering: "spread" };
        assert_eq!(layout.places(), Some(places));
        assert_eq!(layout.nodes[1], Node { number: 1, cpus: vec![2, 3, 6, 7], distances: vec![21, 10] });
        assert!(layout.has_threads());
        assert_eq!(layout.siblings(&[0, 1, 5, 6]), Some([1, 5]), "only those that we may run on");
        assert_eq!(layout.siblings(&[0, 1, 2]), None);
    }

    #[test]
    fn threads_beside_each_other_and_a_socket_of_two_nodes() {
        let cpus = [(0, "0-1"), (0, "0-1"), (0, "2-3"), (0, "2-3")];
        let tree = Tree::of("adjacent", &cpus, &[("0-1", "10 12"), ("2-3", "12 10")]);
        let places = Places { sockets: 1, cores: 2, threads: 2, nodes: 2, numbering: "adjacent" };
        assert_eq!(Layout::read(&tree.0).places(), Some(places));
    }

    #[test]
    fn cores_of_different_kinds_and_mixed_numbers_are_no_topology() {
        let uneven = Tree::of("uneven", &[(0, "0-1"), (0, "0-1"), (0, "2")], &[("0-2", "10")]);
        assert_eq!(Layout::read(&uneven.0).places(), None);
        assert!(Layout::read(&uneven.0).has_threads());
        let mixed = [(0, "0"), (1, "1"), (0, "2"), (1, "3")];
        let mixed = Tree::of("mixed", &mixed, &[("0,2", "10 21"), ("1,3", "21 10")]);
        assert_eq!(Layout::read(&mixed.0).places(), None);
    }

    #[test]
    fn nothing_is_known_where_nothing_is_said() {
        let layout = Layout::read(Path::new("/nowhere"));
        assert!(!layout.is_known() && layout.places().is_none() && layout.nodes.is_empty());
        let memory_only = [("0", "10 30"), ("", "30 10")];
        let tree = Tree::of("memory-only", &[(0, "0")], &memory_only);
        assert_eq!(Layout::read(&tree.0).nodes.len(), 1, "a node of memory alone has no CPU to measure from");
    }

    #[test]
    fn lists_of_numbers() {
        assert_eq!(["0", "1-3", "0-1,4,6-7"].map(|text| list(text).unwrap().len()), [1, 3, 5]);
        assert_eq!(["", "x", "3-1", "0-9999999999"].map(list), [None, None, None, None]);
    }
}
