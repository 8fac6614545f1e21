//! Function tables of the libraries: identifier, signature and implementation of every overload. The
//! implementations here unwrap values and call [`crate::library`], which does not depend on the value types.

pub(crate) mod authorization;
pub(crate) mod encoders;
mod json_values;
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

use crate::error::{InvalidArgument, Limit};
use crate::fault::Cause;
use crate::value::ValueRef;
use std::fmt;

/// The result of a function call.
pub(crate) type FunctionResult<'a> = Result<ValueRef<'a>, Cause<'a>>;

/// The error for an exhausted arena.
pub(crate) const ARENA_FULL: Cause<'static> = Cause::Limit(Limit::Memory);

/// The error for arguments that pass the run-time type check but that the function does not support.
pub(crate) const NO_SUCH_OVERLOAD: Cause<'static> = Cause::NoSuchOverload("");

impl<'a> Call<'a> {
    /// Allocates a string.
    pub(crate) fn text(&self, text: &str) -> FunctionResult<'a> {
        self.arena.text(text).map(ValueRef::Str).ok_or(ARENA_FULL)
    }

    /// Allocates a string written in parts; fails before it exceeds the arena's limit.
    pub(crate) fn write(&self, write: impl FnOnce(&mut dyn fmt::Write) -> fmt::Result) -> FunctionResult<'a> {
        self.arena.write(write).map(ValueRef::Str).ok_or(ARENA_FULL)
    }

    /// The function rejects the content of an argument. The message may quote it.
    pub(crate) fn invalid(&self, argument: InvalidArgument, message: impl fmt::Display) -> Cause<'a> {
        let message = self.arena.write(|out| write!(out, "{message}"));
        message.map_or(ARENA_FULL, |message| Cause::InvalidArgument(argument, message))
    }

    /// Allocates an optional with a value.
    pub(crate) fn some(&self, val: ValueRef<'a>) -> FunctionResult<'a> {
        self.arena.alloc(val).map(|kept| ValueRef::Optional(Some(kept))).ok_or(ARENA_FULL)
    }

    /// Allocates a list.
    pub(crate) fn list(&self, items: impl IntoIterator<Item = ValueRef<'a>>) -> FunctionResult<'a> {
        let mut list = self.arena.list();
        for item in items {
            list.push(item).ok_or(ARENA_FULL)?;
        }
        Ok(ValueRef::List(list.finish()))
    }
}
