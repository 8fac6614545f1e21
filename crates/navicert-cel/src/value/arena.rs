//! Arena for values built during an evaluation: counts bytes before allocating, and frees everything at once.

use super::ValueRef;
use crate::library::kubernetes::regex::Pattern;
use crate::opaque::Opaque;
use bumpalo::Bump;
use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;

/// Memory for the new strings, lists and maps of evaluations. Results borrow from it; [`Arena::reset`] gives
/// the memory back for the next evaluation.
pub struct Arena {
    bump: Bump,
    used: Cell<usize>,
    limit: usize,
    /// Values whose parts own memory of their own.
    opaques: OnceCell<typed_arena::Arena<Opaque>>,
    /// Regular expressions whose text is only known while evaluating.
    patterns: RefCell<Vec<(String, Pattern)>>,
    longest_pattern: usize,
}

/// Kept compiled patterns.
const PATTERNS: usize = 8;

impl Arena {
    /// An arena that holds at most 8 MiB.
    pub fn new() -> Self {
        Arena::with_limit(8 << 20)
    }

    /// An arena that refuses to hold more than `limit` bytes.
    pub fn with_limit(limit: usize) -> Self {
        Arena {
            bump: Bump::new(),
            used: Cell::new(0),
            limit,
            opaques: OnceCell::new(),
            patterns: RefCell::new(Vec::new()),
            longest_pattern: usize::MAX,
        }
    }

    /// Refuses patterns of more bytes whose text is only known while evaluating.
    #[must_use]
    pub fn with_longest_pattern(mut self, bytes: usize) -> Self {
        self.longest_pattern = bytes;
        self
    }

    /// How long a pattern may be whose text is only known while evaluating.
    pub(crate) fn longest_pattern(&self) -> usize {
        self.longest_pattern
    }

    /// Forgets all contents.
    pub fn reset(&mut self) {
        self.bump.reset();
        self.used.set(0);
        self.opaques = OnceCell::new();
    }

    /// Bytes handed out since the last reset.
    pub fn used(&self) -> usize {
        self.used.get()
    }

    /// Whether so many more bytes fit; they count as used from now on.
    pub(crate) fn reserve(&self, bytes: usize) -> Option<()> {
        let used = self.used.get().checked_add(bytes)?;
        if used > self.limit {
            return None;
        }
        self.used.set(used);
        Some(())
    }

    /// Room left.
    pub(crate) fn room(&self) -> usize {
        self.limit.saturating_sub(self.used.get())
    }

    pub(crate) fn text(&self, text: &str) -> Option<&str> {
        self.reserve(text.len())?;
        Some(self.bump.alloc_str(text))
    }

    /// Two texts joined.
    pub(crate) fn join(&self, left: &str, right: &str) -> Option<&str> {
        let len = left.len().checked_add(right.len())?;
        self.reserve(len)?;
        let mut text = bumpalo::collections::String::with_capacity_in(len, &self.bump);
        text.push_str(left);
        text.push_str(right);
        Some(text.into_bump_str())
    }

    /// Text written piece by piece; `None` as soon as it does not fit.
    pub(crate) fn write(&self, write: impl FnOnce(&mut dyn fmt::Write) -> fmt::Result) -> Option<&str> {
        let mut text = ArenaText { arena: self, text: bumpalo::collections::String::new_in(&self.bump) };
        write(&mut text).ok()?;
        Some(text.text.into_bump_str())
    }

    pub(crate) fn slice<T: Copy>(&self, items: &[T]) -> Option<&[T]> {
        self.reserve(size_of_val(items))?;
        Some(self.bump.alloc_slice_copy(items))
    }

    /// A list that grows: room is reserved as it does.
    pub(crate) fn list(&self) -> Growing<'_> {
        Growing { arena: self, items: bumpalo::collections::Vec::new_in(&self.bump) }
    }

    pub(crate) fn keep<T: Copyable>(&self, value: T) -> Option<&T> {
        self.reserve(size_of::<T>())?;
        Some(self.bump.alloc(value))
    }

    pub(crate) fn opaque(&self, opaque: Opaque) -> Option<&Opaque> {
        self.reserve(size_of::<Opaque>() + opaque.heap_size())?;
        Some(self.opaques.get_or_init(typed_arena::Arena::new).alloc(opaque))
    }

    /// A compiled pattern, from the few last used ones if possible.
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
        if patterns.len() >= PATTERNS {
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

/// A text that grows in the arena.
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

/// Things without memory of their own, so that nothing is lost when the arena forgets them.
pub(crate) trait Copyable {}
impl Copyable for ValueRef<'_> {}
impl Copyable for super::Pairs<'_> {}
impl Copyable for super::Object<'_> {}

/// A list under construction.
pub(crate) struct Growing<'a> {
    arena: &'a Arena,
    items: bumpalo::collections::Vec<'a, ValueRef<'a>>,
}

impl<'a> Growing<'a> {
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

    /// Makes room for so many elements at once.
    pub(crate) fn reserve(&mut self, count: usize) -> Option<()> {
        let more = count.saturating_sub(self.items.capacity() - self.items.len());
        self.arena.reserve(more.checked_mul(size_of::<ValueRef<'a>>())?)?;
        self.items.reserve_exact(count);
        Some(())
    }

    /// The finished list.
    pub(crate) fn finish(self) -> super::List<'a> {
        super::List::Vals(self.items.into_bump_slice())
    }

    pub(crate) fn items(&self) -> &[ValueRef<'a>] {
        &self.items
    }
}
