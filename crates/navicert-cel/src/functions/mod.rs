//! The libraries as tables: for every overload its identifier, signature and code. The code here unwraps values
//! and leaves the work to [`crate::library`], which knows nothing of values.

pub(crate) mod authorization;
pub(crate) mod encoders;
pub(crate) mod kubernetes;
pub(crate) mod lists;
pub(crate) mod math;
pub(crate) mod messages;
pub(crate) mod operators;
pub(crate) mod optional;
pub(crate) mod regex;
pub(crate) mod sets;
pub(crate) mod standard;
pub(crate) mod strings;
mod time;

pub(crate) use crate::check::declaration::{Call, Declaration};

use crate::fault::{Cause, Limit};
use crate::value::ValueRef;
use std::fmt;

/// What a function gives.
pub(crate) type Given<'a> = Result<ValueRef<'a>, Cause<'a>>;

/// The arena is full.
pub(crate) const FULL: Cause<'static> = Cause::Limit(Limit::Memory);

/// The guard let something through that the function cannot take.
pub(crate) const MISFIT: Cause<'static> = Cause::NoSuchOverload("");

impl<'a> Call<'a> {
    /// A new text.
    pub(crate) fn text(&self, text: &str) -> Given<'a> {
        self.arena.text(text).map(ValueRef::Str).ok_or(FULL)
    }

    /// A new text, written piece by piece; more than the arena holds is refused before it is written.
    pub(crate) fn write(&self, write: impl FnOnce(&mut dyn fmt::Write) -> fmt::Result) -> Given<'a> {
        self.arena.write(write).map(ValueRef::Str).ok_or(FULL)
    }

    /// An error in words.
    pub(crate) fn error(&self, message: impl fmt::Display) -> Cause<'a> {
        self.arena.write(|out| write!(out, "{message}")).map_or(FULL, Cause::Message)
    }

    /// An optional with a value.
    pub(crate) fn some(&self, val: ValueRef<'a>) -> Given<'a> {
        self.arena.keep(val).map(|kept| ValueRef::Optional(Some(kept))).ok_or(FULL)
    }

    /// A list.
    pub(crate) fn list(&self, items: impl IntoIterator<Item = ValueRef<'a>>) -> Given<'a> {
        let mut list = self.arena.list();
        for item in items {
            list.push(item).ok_or(FULL)?;
        }
        Ok(ValueRef::List(list.finish()))
    }
}
