//! Interned types: every distinct type is stored once, so comparing types is comparing identifiers. An environment
//! owns a table; each check appends its own types.

use std::collections::HashMap;
use std::fmt::Write as _;

/// Identifier of an interned type. The highest bit marks a free type variable of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TypeId(pub(crate) u32);

const VARIABLE: u32 = 1 << 31;

/// A type; component types are referenced by identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Type {
    Dyn,
    Any,
    Error,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
    List(TypeId),
    Map(TypeId, TypeId),
    #[expect(clippy::enum_variant_names, reason = "it is what the language calls it")]
    Type(TypeId),
    /// A type parameter of a declaration.
    Param(u8),
    /// A free type variable of a check.
    Variable(u32),
    /// A message type, by the identifier of its name.
    Object(u32),
    /// An abstract type with a name and up to three type parameters.
    Opaque(u32, [TypeId; 3], u8),
    /// A nullable primitive: one of the protobuf wrapper types.
    Wrapper(TypeId),
}

pub(crate) const DYN: TypeId = TypeId(0);
pub(crate) const ANY: TypeId = TypeId(1);
pub(crate) const ERROR: TypeId = TypeId(2);
pub(crate) const NULL: TypeId = TypeId(3);
pub(crate) const BOOL: TypeId = TypeId(4);
pub(crate) const INT: TypeId = TypeId(5);
pub(crate) const UINT: TypeId = TypeId(6);
pub(crate) const DOUBLE: TypeId = TypeId(7);
pub(crate) const STRING: TypeId = TypeId(8);
pub(crate) const BYTES: TypeId = TypeId(9);
pub(crate) const DURATION: TypeId = TypeId(10);
pub(crate) const TIMESTAMP: TypeId = TypeId(11);

/// Identifier of the name `optional_type`.
pub(crate) const OPTIONAL: u32 = 0;

/// The type table of an environment.
#[derive(Debug, Clone)]
pub(crate) struct Types {
    nodes: Vec<Type>,
    index: HashMap<Type, TypeId>,
    names: Vec<Box<str>>,
}

impl Types {
    pub(crate) fn new() -> Self {
        let mut types =
            Types { nodes: Vec::new(), index: HashMap::new(), names: vec!["optional_type".into()] };
        for basic in [
            Type::Dyn,
            Type::Any,
            Type::Error,
            Type::Null,
            Type::Bool,
            Type::Int,
            Type::Uint,
            Type::Double,
            Type::String,
            Type::Bytes,
            Type::Duration,
            Type::Timestamp,
        ] {
            types.intern(basic);
        }
        types
    }

    pub(crate) fn intern(&mut self, node: Type) -> TypeId {
        if let Some(&found) = self.index.get(&node) {
            return found;
        }
        let id = TypeId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        self.nodes.push(node);
        self.index.insert(node, id);
        id
    }

    pub(crate) fn name_id(&mut self, name: &str) -> u32 {
        let found = self.names.iter().position(|known| &**known == name).unwrap_or_else(|| {
            self.names.push(name.into());
            self.names.len() - 1
        });
        u32::try_from(found).unwrap_or(u32::MAX)
    }

    pub(crate) fn name(&self, id: u32) -> &str {
        self.names.get(id as usize).map_or("", |name| name)
    }

    pub(crate) fn object(&mut self, name: &str) -> TypeId {
        let name = self.name_id(name);
        self.intern(Type::Object(name))
    }

    pub(crate) fn node(&self, id: TypeId) -> Type {
        self.nodes.get(id.0 as usize).copied().unwrap_or(Type::Dyn)
    }

    /// Parses a type as written in declarations: `map(string, list(A))`. A single capital letter is a type
    /// parameter.
    pub(crate) fn parse(&mut self, text: &str) -> Option<TypeId> {
        let mut rest = text.trim();
        let found = self.parse_part(&mut rest)?;
        rest.trim().is_empty().then_some(found)
    }

    fn parse_part(&mut self, rest: &mut &str) -> Option<TypeId> {
        let trimmed = rest.trim_start();
        let end = trimmed.find(['(', ')', ',']).unwrap_or(trimmed.len());
        let (name, after) = trimmed.split_at_checked(end)?;
        let name = name.trim();
        *rest = after;
        let mut parameters = Vec::new();
        if let Some(mut inner) = rest.strip_prefix('(') {
            loop {
                parameters.push(self.parse_part(&mut inner)?);
                inner = inner.trim_start();
                if let Some(more) = inner.strip_prefix(',') {
                    inner = more;
                    continue;
                }
                *rest = inner.strip_prefix(')')?;
                break;
            }
        }
        self.named(name, &parameters)
    }

    fn named(&mut self, name: &str, parameters: &[TypeId]) -> Option<TypeId> {
        let simple = match name {
            "dyn" => Some(DYN),
            "any" | "google.protobuf.Any" => Some(ANY),
            "error" => Some(ERROR),
            "null" | "null_type" => Some(NULL),
            "bool" => Some(BOOL),
            "int" => Some(INT),
            "uint" => Some(UINT),
            "double" => Some(DOUBLE),
            "string" => Some(STRING),
            "bytes" => Some(BYTES),
            "duration" | "google.protobuf.Duration" => Some(DURATION),
            "timestamp" | "google.protobuf.Timestamp" => Some(TIMESTAMP),
            _ => None,
        };
        if simple.is_some() {
            return simple;
        }
        let node = match (name, parameters) {
            ("list", [element]) => Type::List(*element),
            ("map", [key, value]) => Type::Map(*key, *value),
            ("type", [of]) => Type::Type(*of),
            ("type", []) => Type::Type(ERROR),
            ("wrapper", [of]) => Type::Wrapper(*of),
            (letter, []) if parameter(letter).is_some() => Type::Param(parameter(letter)?),
            (name, parameters) if parameters.len() <= 3 => {
                let id = self.name_id(name);
                let mut kept = [DYN; 3];
                for (slot, parameter) in kept.iter_mut().zip(parameters) {
                    *slot = *parameter;
                }
                if parameters.is_empty() && self.index.contains_key(&Type::Object(id)) {
                    Type::Object(id)
                } else {
                    Type::Opaque(id, kept, u8::try_from(parameters.len()).ok()?)
                }
            }
            _ => return None,
        };
        Some(self.intern(node))
    }
}

/// `A` or `~A` is type parameter 0.
fn parameter(name: &str) -> Option<u8> {
    let letter = name.strip_prefix('~').unwrap_or(name);
    match letter.as_bytes() {
        [letter @ b'A'..=b'Z'] => Some(letter - b'A'),
        _ => None,
    }
}

/// The types of one check: those of the environment, those added by the check, and the bindings of its type
/// variables.
#[derive(Debug)]
pub(crate) struct Workspace<'e> {
    base: &'e Types,
    local: Vec<Type>,
    /// The binding of each type variable.
    bound: Vec<Option<TypeId>>,
    /// Earlier values of `bound`, for undoing a failed candidate.
    trail: Vec<(u32, Option<TypeId>)>,
}

impl<'e> Workspace<'e> {
    pub(crate) fn new(base: &'e Types) -> Self {
        Workspace { base, local: Vec::new(), bound: Vec::new(), trail: Vec::new() }
    }

    pub(crate) fn node(&self, id: TypeId) -> Type {
        if id.0 & VARIABLE != 0 {
            return Type::Variable(id.0 & !VARIABLE);
        }
        let own = (id.0 as usize).checked_sub(self.base.nodes.len());
        match own {
            Some(index) => self.local.get(index).copied().unwrap_or(Type::Dyn),
            None => self.base.node(id),
        }
    }

    pub(crate) fn intern(&mut self, node: Type) -> TypeId {
        if let Some(&found) = self.base.index.get(&node) {
            return found;
        }
        let known = self.local.iter().position(|other| *other == node).unwrap_or_else(|| {
            self.local.push(node);
            self.local.len() - 1
        });
        TypeId(u32::try_from(self.base.nodes.len() + known).unwrap_or(0))
    }

    pub(crate) fn variable(&mut self) -> TypeId {
        let id = u32::try_from(self.bound.len()).unwrap_or(0);
        self.bound.push(None);
        TypeId(VARIABLE | id)
    }

    /// Adds a type variable for each type parameter of a declaration and returns the number of the first.
    pub(crate) fn variables(&mut self, count: u8) -> u32 {
        let first = u32::try_from(self.bound.len()).unwrap_or(0);
        self.bound.extend(std::iter::repeat_n(None, usize::from(count)));
        first
    }

    pub(crate) fn checkpoint(&self) -> usize {
        self.trail.len()
    }

    pub(crate) fn undo_to(&mut self, checkpoint: usize) {
        while self.trail.len() > checkpoint {
            if let Some((variable, before)) = self.trail.pop()
                && let Some(slot) = self.bound.get_mut(variable as usize)
            {
                *slot = before;
            }
        }
    }

    pub(crate) fn bound(&self, variable: u32) -> Option<TypeId> {
        self.bound.get(variable as usize).copied().flatten()
    }

    pub(crate) fn bind(&mut self, variable: u32, to: TypeId) {
        if let Some(slot) = self.bound.get_mut(variable as usize) {
            self.trail.push((variable, *slot));
            *slot = Some(to);
        }
    }

    /// Rebuilds a type; `part` may replace type variables and parameters.
    fn rebuild(&mut self, id: TypeId, part: &mut dyn FnMut(&mut Self, Type) -> Option<TypeId>) -> TypeId {
        let node = self.node(id);
        match node {
            Type::Param(_) | Type::Variable(_) => part(self, node).unwrap_or(id),
            Type::List(element) => {
                let new = self.rebuild(element, part);
                if new == element { id } else { self.intern(Type::List(new)) }
            }
            Type::Map(key, value) => {
                let (new_key, new_value) = (self.rebuild(key, part), self.rebuild(value, part));
                if (new_key, new_value) == (key, value) {
                    id
                } else {
                    self.intern(Type::Map(new_key, new_value))
                }
            }
            Type::Type(of) => {
                let new = self.rebuild(of, part);
                if new == of { id } else { self.intern(Type::Type(new)) }
            }
            Type::Opaque(name, parameters, count) if count > 0 => {
                let mut new = parameters;
                for slot in new.iter_mut().take(usize::from(count)) {
                    *slot = self.rebuild(*slot, part);
                }
                if new == parameters { id } else { self.intern(Type::Opaque(name, new, count)) }
            }
            _ => id,
        }
    }

    /// Replaces the type parameters of a declared type by the type variables from `first` on.
    pub(crate) fn instantiate(&mut self, id: TypeId, first: u32) -> TypeId {
        self.rebuild(id, &mut |_, node| match node {
            Type::Param(parameter) => Some(TypeId(VARIABLE | (first + u32::from(parameter)))),
            _ => None,
        })
    }

    /// Replaces type variables by their bindings; with `free_to_dyn`, unbound ones become `dyn`.
    pub(crate) fn substitute(&mut self, id: TypeId, free_to_dyn: bool) -> TypeId {
        self.rebuild(id, &mut |types, node| match node {
            Type::Variable(variable) => match types.bound(variable) {
                Some(bound) => Some(types.substitute(bound, free_to_dyn)),
                None => free_to_dyn.then_some(DYN),
            },
            _ => None,
        })
    }

    pub(crate) fn list(&mut self, element: TypeId) -> TypeId {
        self.intern(Type::List(element))
    }

    pub(crate) fn map(&mut self, key: TypeId, value: TypeId) -> TypeId {
        self.intern(Type::Map(key, value))
    }

    pub(crate) fn optional(&mut self, of: TypeId) -> TypeId {
        self.intern(Type::Opaque(OPTIONAL, [of, DYN, DYN], 1))
    }

    /// The element type of an optional type.
    pub(crate) fn unwrap_optional(&self, id: TypeId) -> Option<TypeId> {
        match self.node(id) {
            Type::Opaque(OPTIONAL, [of, ..], 1) => Some(of),
            _ => None,
        }
    }

    /// Formats the type for messages.
    pub(crate) fn describe(&self, id: TypeId) -> String {
        let mut out = String::new();
        self.describe_to(&mut out, id);
        out
    }

    fn describe_to(&self, out: &mut String, id: TypeId) {
        match self.node(id) {
            Type::Dyn => out.push_str("dyn"),
            Type::Any => out.push_str("any"),
            Type::Error => out.push_str("!error!"),
            Type::Null => out.push_str("null"),
            Type::Bool => out.push_str("bool"),
            Type::Int => out.push_str("int"),
            Type::Uint => out.push_str("uint"),
            Type::Double => out.push_str("double"),
            Type::String => out.push_str("string"),
            Type::Bytes => out.push_str("bytes"),
            Type::Duration => out.push_str("duration"),
            Type::Timestamp => out.push_str("timestamp"),
            Type::List(element) => self.describe_parts(out, "list", &[element]),
            Type::Map(key, value) => self.describe_parts(out, "map", &[key, value]),
            // The type of types has no type parameter.
            Type::Type(ERROR) => out.push_str("type"),
            Type::Type(of) => self.describe_parts(out, "type", &[of]),
            Type::Wrapper(of) => self.describe_parts(out, "wrapper", &[of]),
            Type::Param(parameter) => out.push(char::from(b'A' + parameter)),
            Type::Variable(variable) => {
                let _ = write!(out, "_var{variable}");
            }
            Type::Object(name) => out.push_str(self.base.name(name)),
            Type::Opaque(name, parameters, count) => {
                let parameters = parameters.get(..usize::from(count)).unwrap_or(&[]);
                self.describe_parts(out, self.base.name(name), parameters);
            }
        }
    }

    fn describe_parts(&self, out: &mut String, name: &str, parts: &[TypeId]) {
        out.push_str(name);
        for (index, part) in parts.iter().enumerate() {
            out.push_str(if index == 0 { "(" } else { ", " });
            self.describe_to(out, *part);
        }
        if !parts.is_empty() {
            out.push(')');
        }
    }
}
