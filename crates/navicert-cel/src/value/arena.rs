//! Arena for values built during an evaluation. Checks the limit before allocating and frees everything at once.

use super::ValueRef;
use crate::library::kubernetes::regex::Pattern;
use crate::opaque::Opaque;
use bumpalo::Bump;
use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;

/// Memory for the strings, lists and maps that evaluations build. Results borrow from it; [`Arena::reset`] frees
/// the memory for the next evaluation.
pub struct Arena {
    bump: Bump,
    used: Cell<usize>,
    limit: usize,
    /// Values that own heap memory.
    opaques: OnceCell<typed_arena::Arena<Opaque>>,
    /// Cache of regular expressions whose pattern is not constant.
    patterns: RefCell<Vec<(String, Pattern)>>,
    max_pattern_bytes: usize,
}

/// Maximum number of cached patterns.
const MAX_CACHED_PATTERNS: usize = 8;

impl Arena {
    /// Creates an arena with a limit of 8 MiB.
    pub fn new() -> Self {
        Arena::with_limit(8 << 20)
    }

    /// Creates an arena with a limit of `limit` bytes.
    pub fn with_limit(limit: usize) -> Self {
        Arena {
            bump: Bump::new(),
            used: Cell::new(0),
            limit,
            opaques: OnceCell::new(),
            patterns: RefCell::new(Vec::new()),
            max_pattern_bytes: usize::MAX,
        }
    }

    /// Limits the length of patterns that are not constant.
    #[must_use]
    pub fn with_max_pattern_bytes(mut self, bytes: usize) -> Self {
        self.max_pattern_bytes = bytes;
        self
    }

    /// Maximum length of a pattern that is not constant.
    pub(crate) fn max_pattern_bytes(&self) -> usize {
        self.max_pattern_bytes
    }

    /// Drops all contents.
    pub fn reset(&mut self) {
        self.bump.reset();
        self.used.set(0);
        self.opaques = OnceCell::new();
    }

    /// Bytes allocated since the last reset.
    pub fn used(&self) -> usize {
        self.used.get()
    }

    /// Reserves this many bytes. Returns `None` if they exceed the limit.
    pub(crate) fn reserve(&self, bytes: usize) -> Option<()> {
        let used = self.used.get().checked_add(bytes)?;
        if used > self.limit {
            return None;
        }
        self.used.set(used);
        Some(())
    }

    /// Bytes left until the limit.
    pub(crate) fn remaining(&self) -> usize {
        self.limit.saturating_sub(self.used.get())
    }

    pub(crate) fn text(&self, text: &str) -> Option<&str> {
        self.reserve(text.len())?;
        Some(self.bump.alloc_str(text))
    }

    /// Concatenates two strings.
    pub(crate) fn join(&self, left: &str, right: &str) -> Option<&str> {
        let len = left.len().checked_add(right.len())?;
        self.reserve(len)?;
        let mut text = bumpalo::collections::String::with_capacity_in(len, &self.bump);
        text.push_str(left);
        text.push_str(right);
        Some(text.into_bump_str())
    }

    /// Allocates a string written in parts; `None` as soon as it exceeds the limit.
    pub(crate) fn write(&self, write: impl FnOnce(&mut dyn fmt::Write) -> fmt::Result) -> Option<&str> {
        let mut text = ArenaText { arena: self, text: bumpalo::collections::String::new_in(&self.bump) };
        write(&mut text).ok()?;
        Some(text.text.into_bump_str())
    }

    pub(crate) fn slice<T: Copy>(&self, items: &[T]) -> Option<&[T]> {
        self.reserve(size_of_val(items))?;
        Some(self.bump.alloc_slice_copy(items))
    }

    /// Creates a list builder.
    pub(crate) fn list(&self) -> ListBuilder<'_> {
        ListBuilder { arena: self, items: bumpalo::collections::Vec::new_in(&self.bump) }
    }

    pub(crate) fn alloc<T: NoHeap>(&self, value: T) -> Option<&T> {
        self.reserve(size_of::<T>())?;
        Some(self.bump.alloc(value))
    }

    pub(crate) fn opaque(&self, opaque: Opaque) -> Option<&Opaque> {
        self.reserve(size_of::<Opaque>() + opaque.heap_size())?;
        Some(self.opaques.get_or_init(typed_arena::Arena::new).alloc(opaque))
    }

    /// Compiles a pattern, or returns it from the cache of recently used ones.
    pub(crate) fn pattern<E>(
        &self,
        pattern: &str,
        compile: impl FnOnce(&str) -> Result<Pattern, E>,
    ) -> Result<Pattern, E> {
        let mut patterns = self.patterns.borrow_mut();
        if let Some(at) = patterns.iter().position(|(text, _)| text == pattern)
            && let Some((_, compiled)) = patterns.get(at)
        {
            return Ok(compiled.clone());
        }
        let compiled = compile(pattern)?;
        if patterns.len() >= MAX_CACHED_PATTERNS {
            patterns.remove(0);
        }
        patterns.push((pattern.to_owned(), compiled.clone()));
        Ok(compiled)
    }
}

impl Default for Arena {
    fn default() -> Self {
        Arena::new()
    }
}

impl fmt::Debug for Arena {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Arena").field("used", &self.used.get()).field("limit", &self.limit).finish()
    }
}

/// A string under construction in the arena.
struct ArenaText<'a> {
    arena: &'a Arena,
    text: bumpalo::collections::String<'a>,
}

impl fmt::Write for ArenaText<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let free = self.text.capacity() - self.text.len();
        if part.len() > free {
            let more = part.len().max(self.text.capacity()).max(16);
            self.arena.reserve(more).ok_or(fmt::Error)?;
            self.text.reserve_exact(more);
        }
        self.text.push_str(part);
        Ok(())
    }
}

/// Types that own no heap memory: the arena does not run destructors.
pub(crate) trait NoHeap {}
impl NoHeap for ValueRef<'_> {}
impl NoHeap for super::Pairs<'_> {}
impl NoHeap for super::Object<'_> {}

/// A list under construction.
pub(crate) struct ListBuilder<'a> {
    arena: &'a Arena,
    items: bumpalo::collections::Vec<'a, ValueRef<'a>>,
}

impl<'a> ListBuilder<'a> {
    /// Adds an element; `None` if the arena is full.
    pub(crate) fn push(&mut self, item: ValueRef<'a>) -> Option<()> {
        if self.items.len() == self.items.capacity() {
            let more = self.items.capacity().max(4);
            self.arena.reserve(more.checked_mul(size_of::<ValueRef<'a>>())?)?;
            self.items.reserve_exact(more);
        }
        self.items.push(item);
        Some(())
    }

    /// Reserves memory for this many more elements.
    pub(crate) fn reserve(&mut self, count: usize) -> Option<()> {
        let more = count.saturating_sub(self.items.capacity() - self.items.len());
        self.arena.reserve(more.checked_mul(size_of::<ValueRef<'a>>())?)?;
        self.items.reserve_exact(count);
        Some(())
    }

    /// The finished list.
    pub(crate) fn finish(self) -> super::List<'a> {
        super::List::Refs(self.items.into_bump_slice())
    }

    pub(crate) fn items(&self) -> &[ValueRef<'a>] {
        &self.items
    }
}
