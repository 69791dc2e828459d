//! Doubly linked lists whose links live in tables: insertion and removal anywhere cost the same, and nothing is
//! allocated once the tables have their size. An element is an id, and in at most one list of a `Links` table.

use std::marker::PhantomData;

use vcpulab_host::Id;

const NONE: u32 = u32::MAX;

/// The ends of one list.
#[derive(Clone, Copy, Debug)]
pub struct List<I> {
    head: u32,
    tail: u32,
    id: PhantomData<I>,
}

impl<I> Default for List<I> {
    fn default() -> Self {
        List { head: NONE, tail: NONE, id: PhantomData }
    }
}

#[derive(Clone, Copy, Debug)]
struct Link {
    next: u32,
    prev: u32,
    listed: bool,
}

/// The links of all elements that may be in lists.
#[derive(Clone, Debug)]
pub struct Links<I> {
    links: Vec<Link>,
    id: PhantomData<I>,
}

impl<I> Default for Links<I> {
    fn default() -> Self {
        Links { links: Vec::new(), id: PhantomData }
    }
}

#[inline(always)]
fn some(element: u32) -> Option<u32> {
    (element != NONE).then_some(element)
}

#[inline(always)]
fn id<I: Id>(element: u32) -> Option<I> {
    some(element).map(|element| I::from_index(element as usize))
}

impl<I: Id> List<I> {
    /// The first element.
    #[inline(always)]
    pub fn first(&self) -> Option<I> {
        id(self.head)
    }
}

impl<I: Id> Links<I> {
    /// Makes room for `element` and all below.
    pub fn grow(&mut self, element: I) {
        if self.links.len() <= element.index() {
            self.links.resize(element.index() + 1, Link { next: NONE, prev: NONE, listed: false });
        }
    }

    /// Whether the element is in a list.
    #[inline(always)]
    pub fn listed(&self, element: I) -> bool {
        self.links[element.index()].listed
    }

    /// The element after this one.
    #[inline(always)]
    pub fn next(&self, element: I) -> Option<I> {
        id(self.links[element.index()].next)
    }

    /// The elements of a list from head to tail.
    pub fn iter(&self, list: &List<I>) -> impl Iterator<Item = I> + '_ {
        std::iter::successors(list.first(), |&element| self.next(element))
    }

    /// Puts an element before another one of the list, or at the tail (`None`).
    #[inline]
    pub fn insert_before(&mut self, list: &mut List<I>, element: I, before: Option<I>) {
        debug_assert!(!self.listed(element), "an element is in one list at most");
        let element = element.index() as u32;
        let next = before.map_or(NONE, |before| before.index() as u32);
        let prev = if next == NONE { list.tail } else { self.links[next as usize].prev };
        self.links[element as usize] = Link { next, prev, listed: true };
        match some(prev) {
            Some(prev) => self.links[prev as usize].next = element,
            None => list.head = element,
        }
        match some(next) {
            Some(next) => self.links[next as usize].prev = element,
            None => list.tail = element,
        }
    }

    /// Puts an element at the head.
    #[inline]
    pub fn push_front(&mut self, list: &mut List<I>, element: I) {
        self.insert_before(list, element, list.first());
    }

    /// Puts an element at the tail.
    #[inline]
    pub fn push_back(&mut self, list: &mut List<I>, element: I) {
        self.insert_before(list, element, None);
    }

    /// Takes an element off its list.
    #[inline]
    pub fn remove(&mut self, list: &mut List<I>, element: I) {
        let link = self.links[element.index()];
        debug_assert!(link.listed, "only an element of the list can be removed");
        match some(link.prev) {
            Some(prev) => self.links[prev as usize].next = link.next,
            None => list.head = link.next,
        }
        match some(link.next) {
            Some(next) => self.links[next as usize].prev = link.prev,
            None => list.tail = link.prev,
        }
        self.links[element.index()].listed = false;
    }
}
