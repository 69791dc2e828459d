//! Doubly linked lists whose links live in tables: insertion and removal anywhere cost the same, and nothing is
//! allocated once the tables have their size. An element (a small number) is in at most one list of a `Links` table.

const NONE: u32 = u32::MAX;

/// The ends of one list.
#[derive(Clone, Copy, Debug)]
pub struct List {
    head: u32,
    tail: u32,
}

impl Default for List {
    fn default() -> Self {
        List { head: NONE, tail: NONE }
    }
}

#[derive(Clone, Copy, Debug)]
struct Link {
    next: u32,
    prev: u32,
    listed: bool,
}

/// The links of all elements that may be in lists.
#[derive(Clone, Debug, Default)]
pub struct Links(Vec<Link>);

fn some(element: u32) -> Option<u32> {
    (element != NONE).then_some(element)
}

impl List {
    /// The first element.
    #[inline(always)]
    pub fn first(&self) -> Option<u32> {
        some(self.head)
    }
}

impl Links {
    /// Makes room for elements 0 to `count` − 1.
    pub fn grow(&mut self, count: usize) {
        if self.0.len() < count {
            self.0.resize(count, Link { next: NONE, prev: NONE, listed: false });
        }
    }

    /// Is the element in a list?
    #[inline(always)]
    pub fn listed(&self, element: u32) -> bool {
        self.0[element as usize].listed
    }

    /// The element after this one.
    #[inline(always)]
    pub fn next(&self, element: u32) -> Option<u32> {
        some(self.0[element as usize].next)
    }

    /// The elements of a list from head to tail.
    pub fn iter(&self, list: &List) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(list.first(), |&element| self.next(element))
    }

    /// Puts an element before another one of the list, or at the tail (`None`).
    #[inline]
    pub fn insert_before(&mut self, list: &mut List, element: u32, before: Option<u32>) {
        debug_assert!(!self.listed(element), "an element is in one list at most");
        let next = before.unwrap_or(NONE);
        let prev = if next == NONE { list.tail } else { self.0[next as usize].prev };
        self.0[element as usize] = Link { next, prev, listed: true };
        match some(prev) {
            Some(prev) => self.0[prev as usize].next = element,
            None => list.head = element,
        }
        match some(next) {
            Some(next) => self.0[next as usize].prev = element,
            None => list.tail = element,
        }
    }

    /// Puts an element at the head.
    #[inline]
    pub fn push_front(&mut self, list: &mut List, element: u32) {
        self.insert_before(list, element, list.first());
    }

    /// Puts an element at the tail.
    #[inline]
    pub fn push_back(&mut self, list: &mut List, element: u32) {
        self.insert_before(list, element, None);
    }

    /// Takes an element off its list.
    #[inline]
    pub fn remove(&mut self, list: &mut List, element: u32) {
        let link = self.0[element as usize];
        debug_assert!(link.listed, "only an element of the list can be removed");
        match some(link.prev) {
            Some(prev) => self.0[prev as usize].next = link.next,
            None => list.head = link.next,
        }
        match some(link.next) {
            Some(next) => self.0[next as usize].prev = link.prev,
            None => list.tail = link.prev,
        }
        self.0[element as usize].listed = false;
    }
}
