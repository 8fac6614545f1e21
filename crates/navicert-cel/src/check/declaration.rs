//! Function declarations: a name with overloads; each overload has a signature, an implementation and a cost rule.

use super::types::{self, Type, TypeId, Types};
use crate::cost::Rule;
use crate::fault::Cause;
use crate::language::LanguageFacts;
use crate::value::{Arena, ValueRef};
use std::collections::HashMap;

/// The context that a function implementation receives besides its arguments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) arena: &'a Arena,
    /// Follow the newest standard libraries instead of the versions in Kubernetes.
    pub(crate) standard: bool,
    /// What versions of the language differ in.
    pub(crate) facts: &'static LanguageFacts,
}

/// The implementation of an overload. Its arguments have been checked against the signature.
pub(crate) type Body = for<'a> fn(&Call<'a>, &[ValueRef<'a>]) -> Result<ValueRef<'a>, Cause<'a>>;

/// One row of a library table: overload identifier, signature such as `(string).charAt(int): string`,
/// implementation.
pub(crate) type Declaration = (&'static str, &'static str, Body);

/// An overload: one signature of a function.
#[derive(Debug, Clone)]
pub(crate) struct Overload {
    pub(crate) member: bool,
    pub(crate) parameters: Box<[TypeId]>,
    pub(crate) result: TypeId,
    /// Number of type parameters, each of which becomes a type variable in a check.
    pub(crate) variables: u8,
    pub(crate) guards: Box<[Guard]>,
    pub(crate) body: Option<Body>,
    pub(crate) rule: Rule,
}

/// A function with its overloads in declaration order.
#[derive(Debug, Clone)]
pub(crate) struct Function {
    pub(crate) name: Box<str>,
    pub(crate) overloads: Vec<Overload>,
}

/// The type of value that a parameter accepts at run time.
#[derive(Debug, Clone)]
pub(crate) enum Guard {
    Anything,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Str,
    Bytes,
    Duration,
    Timestamp,
    Type,
    Optional,
    List(Box<Guard>),
    Map(Box<(Guard, Guard)>),
    Named(Box<str>),
}

impl Guard {
    fn from_type(types: &Types, id: TypeId) -> Self {
        match types.node(id) {
            Type::Dyn | Type::Any | Type::Error | Type::Param(_) | Type::Variable(_) | Type::Wrapper(_) => {
                Guard::Anything
            }
            Type::Null => Guard::Null,
            Type::Bool => Guard::Bool,
            Type::Int => Guard::Int,
            Type::Uint => Guard::Uint,
            Type::Double => Guard::Double,
            Type::String => Guard::Str,
            Type::Bytes => Guard::Bytes,
            Type::Duration => Guard::Duration,
            Type::Timestamp => Guard::Timestamp,
            Type::Type(_) => Guard::Type,
            Type::List(element) => Guard::List(Box::new(Guard::from_type(types, element))),
            Type::Map(key, value) => {
                Guard::Map(Box::new((Guard::from_type(types, key), Guard::from_type(types, value))))
            }
            Type::Opaque(types::OPTIONAL, ..) => Guard::Optional,
            Type::Opaque(name, ..) | Type::Object(name) => Guard::Named(types.name(name).into()),
        }
    }

    /// Whether the parameter accepts the value. For a collection only the first element is checked.
    pub(crate) fn accepts(&self, val: &ValueRef<'_>) -> bool {
        match (self, val) {
            (Guard::Anything, _)
            | (Guard::Null, ValueRef::Null)
            | (Guard::Bool, ValueRef::Bool(_))
            | (Guard::Int, ValueRef::Int(_))
            | (Guard::Uint, ValueRef::Uint(_))
            | (Guard::Double, ValueRef::Double(_))
            | (Guard::Str, ValueRef::Str(_))
            | (Guard::Bytes, ValueRef::Bytes(_))
            | (Guard::Duration, ValueRef::Duration(_))
            | (Guard::Timestamp, ValueRef::Timestamp(_))
            | (Guard::Type, ValueRef::Type(_))
            | (Guard::Optional, ValueRef::Optional(_)) => true,
            (Guard::List(element), ValueRef::List(list)) => {
                list.get(0).is_none_or(|first| element.accepts(&first))
            }
            (Guard::Map(parts), ValueRef::Map(map)) => match map.iter().next() {
                None => true,
                Some((key, value)) => parts.0.accepts(&key) && parts.1.accepts(&value),
            },
            (Guard::Named(name), val) => val.type_name() == &**name,
            _ => false,
        }
    }
}

/// The functions of an environment, indexed by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Functions {
    functions: Vec<Function>,
    index: HashMap<Box<str>, u32>,
}

impl Functions {
    pub(crate) fn find(&self, name: &str) -> Option<u32> {
        self.index.get(name).copied()
    }

    pub(crate) fn get(&self, id: u32) -> Option<&Function> {
        self.functions.get(id as usize)
    }

    pub(crate) fn overload(&self, function: u32, overload: u32) -> Option<&Overload> {
        self.get(function)?.overloads.get(overload as usize)
    }

    /// Declares an overload. Returns `None` if the signature is invalid.
    pub(crate) fn declare(
        &mut self,
        types: &mut Types,
        facts: &LanguageFacts,
        (id, signature, body): (&str, &str, Option<Body>),
    ) -> Option<()> {
        let (name, member, parameters, result) = split_signature(signature)?;
        let parameters: Box<[TypeId]> =
            parameters.iter().map(|parameter| types.parse(parameter)).collect::<Option<_>>()?;
        let result = types.parse(result)?;
        let variables =
            parameters.iter().chain([&result]).map(|&id| highest_parameter(types, id)).max().unwrap_or(0);
        let mut guards: Box<[Guard]> = parameters.iter().map(|&id| Guard::from_type(types, id)).collect();
        // These functions check their arguments themselves.
        if name == "size" {
            guards.fill(Guard::Anything);
        }
        if matches!(name, "sort" | "@sortByAssociatedKeys" | "flatten") {
            for guard in &mut guards {
                if let Guard::List(element) = guard {
                    **element = Guard::Anything;
                }
            }
        }
        let rule = Rule::for_overload(name, id, facts);
        let overload = Overload { member, parameters, result, variables, guards, body, rule };
        let next = u32::try_from(self.functions.len()).ok()?;
        let at = *self.index.entry(name.into()).or_insert(next);
        if at == next {
            self.functions.push(Function { name: name.into(), overloads: Vec::new() });
        }
        self.functions.get_mut(at as usize)?.overloads.push(overload);
        Some(())
    }
}

/// One more than the highest type parameter in a type, or zero without type parameters.
fn highest_parameter(types: &Types, id: TypeId) -> u8 {
    match types.node(id) {
        Type::Param(parameter) => parameter + 1,
        Type::List(part) | Type::Type(part) | Type::Wrapper(part) => highest_parameter(types, part),
        Type::Map(key, value) => highest_parameter(types, key).max(highest_parameter(types, value)),
        Type::Opaque(_, parts, count) => parts
            .iter()
            .take(usize::from(count))
            .map(|&part| highest_parameter(types, part))
            .max()
            .unwrap_or(0),
        _ => 0,
    }
}

/// Splits a signature into name, member flag, parameter types (receiver first) and result type.
fn split_signature(signature: &str) -> Option<(&str, bool, Vec<&str>, &str)> {
    let mut parameters = Vec::new();
    let (member, rest) = match signature.strip_prefix('(') {
        Some(rest) => {
            let close = closing_parenthesis(rest)?;
            parameters.push(rest.get(..close)?);
            (true, rest.get(close + 1..)?.strip_prefix('.')?)
        }
        None => (false, signature),
    };
    let open = rest.find('(')?;
    let name = rest.get(..open)?;
    let rest = rest.get(open + 1..)?;
    let close = closing_parenthesis(rest)?;
    let mut list = rest.get(..close)?;
    while !list.trim().is_empty() {
        let end = top_level_comma(list).unwrap_or(list.len());
        parameters.push(list.get(..end)?);
        list = list.get(end + 1..).unwrap_or("");
    }
    let result = rest.get(close + 1..)?.strip_prefix(':')?.trim();
    Some((name, member, parameters, result))
}

/// Offset of the closing parenthesis that matches an opening one just before `text`.
fn closing_parenthesis(text: &str) -> Option<usize> {
    let mut depth = 1;
    text.bytes().position(|byte| {
        depth += i32::from(byte == b'(') - i32::from(byte == b')');
        depth == 0
    })
}

/// Offset of the first comma outside parentheses.
fn top_level_comma(text: &str) -> Option<usize> {
    let mut depth = 0;
    text.bytes().position(|byte| {
        depth += i32::from(byte == b'(') - i32::from(byte == b')');
        depth == 0 && byte == b','
    })
}
