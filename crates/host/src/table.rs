//! Tables kept per id: a vector that only ids of one type index.

use std::fmt;
use std::iter::FromIterator;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// An index into a [`Table`]. Types are made with [`ids!`](crate::ids).
pub trait Id: Copy {
    /// The id of the table's entry number `index`.
    fn from_index(index: usize) -> Self;

    /// The number of the table's entry.
    fn index(self) -> usize;
}

/// A table with a `T` for each id from 0 to its length.
///
/// ```
/// use vcpulab_host::{PcpuId, Table};
/// let mut names: Table<PcpuId, &str> = Table::new();
/// let first = names.push("first");
/// names.push("second");
/// names[PcpuId(1)] = "last";
/// assert_eq!((names[first], names[PcpuId(1)], names.get(PcpuId(2))), ("first", "last", None));
/// assert!(names.ids().eq([PcpuId(0), PcpuId(1)]));
/// ```
pub struct Table<I, T> {
    entries: Vec<T>,
    id: PhantomData<fn(I)>,
}

impl<I: Id, T> Table<I, T> {
    /// The table without entries.
    pub const fn new() -> Self {
        Table { entries: Vec::new(), id: PhantomData }
    }

    /// The table without entries, and room for `capacity` of them.
    pub fn with_capacity(capacity: usize) -> Self {
        Vec::with_capacity(capacity).into()
    }

    /// The table with `entry` for each of `count` ids.
    pub fn filled(count: usize, entry: T) -> Self
    where
        T: Clone,
    {
        vec![entry; count].into()
    }

    /// Adds an entry; the answer is its id.
    pub fn push(&mut self, entry: T) -> I {
        self.entries.push(entry);
        I::from_index(self.entries.len() - 1)
    }

    /// The number of entries.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the table has no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entry of `id`, if there is one.
    #[inline(always)]
    pub fn get(&self, id: I) -> Option<&T> {
        self.entries.get(id.index())
    }

    /// The entry of `id`, if there is one, to change it.
    #[inline(always)]
    pub fn get_mut(&mut self, id: I) -> Option<&mut T> {
        self.entries.get_mut(id.index())
    }

    /// The entry of `id`, with default entries up to it if the table ends before.
    pub fn entry(&mut self, id: I) -> &mut T
    where
        T: Default,
    {
        if self.entries.len() <= id.index() {
            self.entries.resize_with(id.index() + 1, T::default);
        }
        &mut self.entries[id.index()]
    }

    /// Makes the table `count` entries long: the last ones go, or copies of `entry` come.
    pub fn resize(&mut self, count: usize, entry: T)
    where
        T: Clone,
    {
        self.entries.resize(count, entry);
    }

    /// Makes the table `count` entries long: the last ones go, or new ones come.
    pub fn resize_with(&mut self, count: usize, entry: impl FnMut() -> T) {
        self.entries.resize_with(count, entry);
    }

    /// Takes all entries out.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// All ids, ascending.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + use<I, T> {
        (0..self.entries.len()).map(I::from_index)
    }

    /// All entries, ascending by id.
    #[inline(always)]
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.entries.iter()
    }

    /// All entries, ascending by id, to change them.
    #[inline(always)]
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.entries.iter_mut()
    }

    /// All ids with their entries, ascending.
    pub fn enumerate(&self) -> impl DoubleEndedIterator<Item = (I, &T)> + ExactSizeIterator + Clone {
        self.entries.iter().enumerate().map(|(index, entry)| (I::from_index(index), entry))
    }

    /// All ids with their entries, ascending, to change them.
    pub fn enumerate_mut(&mut self) -> impl DoubleEndedIterator<Item = (I, &mut T)> + ExactSizeIterator {
        self.entries.iter_mut().enumerate().map(|(index, entry)| (I::from_index(index), entry))
    }

    /// The entries without their ids.
    pub fn as_slice(&self) -> &[T] {
        &self.entries
    }
}

impl<I: Id, T> Index<I> for Table<I, T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, id: I) -> &T {
        &self.entries[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for Table<I, T> {
    #[inline(always)]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.entries[id.index()]
    }
}

impl<I, T> From<Vec<T>> for Table<I, T> {
    fn from(entries: Vec<T>) -> Self {
        Table { entries, id: PhantomData }
    }
}

impl<I, T> FromIterator<T> for Table<I, T> {
    fn from_iter<E: IntoIterator<Item = T>>(entries: E) -> Self {
        Vec::from_iter(entries).into()
    }
}

impl<'a, I, T> IntoIterator for &'a Table<I, T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.iter()
    }
}

impl<'a, I, T> IntoIterator for &'a mut Table<I, T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.iter_mut()
    }
}

impl<I, T> IntoIterator for Table<I, T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

impl<I, T> Default for Table<I, T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<I, T: Clone> Clone for Table<I, T> {
    fn clone(&self) -> Self {
        self.entries.clone().into()
    }
}

impl<I, T: PartialEq> PartialEq for Table<I, T> {
    fn eq(&self, other: &Self) -> bool {
        self.entries == other.entries
    }
}

impl<I, T: Eq> Eq for Table<I, T> {}

impl<I, T: fmt::Debug> fmt::Debug for Table<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entries.fmt(f)
    }
}
