//! The type checker: assigns a type to every node and overloads to every call.

use super::environment::Scope;
use super::types::{self, BOOL, DYN, ERROR, INT, Type, TypeId, Workspace};
use crate::diagnostic::{Diagnostic, in_order};
use crate::functions::messages::NULL_VALUE;
use crate::syntax::ast::{Node, NodeId, Run, Text, Tree};

mod aggregate;

/// The declaration that a name or call resolved to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reference {
    /// No reference: literals, selections, logical operators.
    None,
    /// A declared variable.
    Variable(u32),
    /// A comprehension variable, numbered from the outermost.
    Local(u32),
    /// The name of a type.
    TypeName(Box<str>),
    /// The constant `google.protobuf.NullValue.NULL_VALUE`.
    NullValue,
    /// A function; `overload` is set only if exactly one overload applies.
    Function {
        function: u32,
        overload: Option<u32>,
        /// The receiver is part of the qualified function name.
        qualified: bool,
    },
}

/// A checked tree.
#[derive(Debug)]
pub(crate) struct Checked<'e> {
    pub(crate) types: Workspace<'e>,
    pub(crate) node_types: Vec<TypeId>,
    pub(crate) references: Vec<Reference>,
}

/// Type-checks the tree and collects all errors, not only the first one.
pub(crate) fn check<'e>(scope: &'e Scope, tree: &Tree) -> Result<Checked<'e>, Vec<Diagnostic>> {
    let mut checker = Checker {
        scope,
        tree,
        types: Workspace::new(&scope.types),
        node_types: vec![None; tree.len()],
        references: vec![Reference::None; tree.len()],
        locals: Vec::new(),
        problems: Vec::new(),
    };
    checker.check(tree.root());
    let mut node_types = Vec::with_capacity(tree.len());
    for id in std::mem::take(&mut checker.node_types) {
        node_types.push(checker.types.substitute(id.unwrap_or(DYN), true));
    }
    let mut checked = Checked { types: checker.types, node_types, references: checker.references };
    if checker.problems.is_empty() {
        super::validate::validate(scope, tree, &mut checked, &mut checker.problems);
    }
    if checker.problems.is_empty() { Ok(checked) } else { Err(in_order(checker.problems)) }
}

impl Checked<'_> {
    pub(crate) fn type_of(&self, id: NodeId) -> TypeId {
        self.node_types.get(id.index()).copied().unwrap_or(DYN)
    }

    pub(crate) fn reference(&self, id: NodeId) -> &Reference {
        self.references.get(id.index()).unwrap_or(&Reference::None)
    }
}

struct Checker<'e, 't> {
    scope: &'e Scope,
    tree: &'t Tree,
    types: Workspace<'e>,
    node_types: Vec<Option<TypeId>>,
    references: Vec<Reference>,
    /// Comprehension variables in scope, innermost last.
    locals: Vec<(&'t str, TypeId)>,
    problems: Vec<Diagnostic>,
}

impl<'t> Checker<'_, 't> {
    fn report(&mut self, id: NodeId, message: String) {
        let (at, span) = (self.tree.at(id), self.tree.span(id));
        self.problems.push(Diagnostic::new(self.tree.source(), at, span, message));
    }

    fn mismatch(&mut self, id: NodeId, expected: TypeId, found: TypeId) {
        let found = self.types.substitute(found, false);
        let (expected, found) = (self.types.describe(expected), self.types.describe(found));
        self.report(id, format!("expected type '{expected}' but found '{found}'"));
    }

    fn undeclared(&mut self, id: NodeId, name: &str) {
        let container = &self.scope.container;
        self.report(id, format!("undeclared reference to '{name}' (in container '{container}')"));
    }

    fn set_type(&mut self, id: NodeId, found: TypeId) -> TypeId {
        if let Some(slot) = self.node_types.get_mut(id.index()) {
            *slot = Some(found);
        }
        found
    }

    fn set_reference(&mut self, id: NodeId, reference: Reference) {
        if let Some(slot) = self.references.get_mut(id.index()) {
            *slot = reference;
        }
    }

    fn check(&mut self, id: NodeId) -> TypeId {
        // Macro expansion may share a node; its type is computed once.
        if let Some(known) = self.node_types.get(id.index()).copied().flatten() {
            return known;
        }
        let found = match self.tree.node(id) {
            Node::Null => types::NULL,
            Node::Bool(_) => BOOL,
            Node::Int(_) => INT,
            Node::Uint(_) => types::UINT,
            Node::Double(_) => types::DOUBLE,
            Node::Str(_) => types::STRING,
            Node::Bytes(_) => types::BYTES,
            Node::Ident(name) => self.ident(id, self.tree.text(name)),
            Node::Select { operand, field, test } => self.select(id, operand, field, test),
            Node::Call { function, target, args } => self.call(id, function, target, args),
            Node::List { elements, optional } => self.list(elements, optional),
            Node::Map { entries, optional } => self.map(entries, optional),
            Node::Struct { name, fields } => self.message(id, name, fields),
            Node::Fold(index) => match self.tree.fold(index) {
                Some(fold) => self.fold(fold),
                None => ERROR,
            },
        };
        self.set_type(id, found)
    }

    /// Finds a comprehension variable. A name with a leading dot is always global.
    fn local(&self, name: &str) -> Option<(u32, TypeId)> {
        if name.starts_with('.') {
            return None;
        }
        let at = self.locals.iter().rposition(|local| local.0 == name)?;
        Some((u32::try_from(at).ok()?, self.locals.get(at)?.1))
    }

    /// Resolves a global name: a variable or a type.
    fn global(&mut self, id: NodeId, name: &str) -> Option<TypeId> {
        for candidate in self.scope.candidates(name) {
            if let Some((slot, declared)) = self.scope.variable(&candidate) {
                self.set_reference(id, Reference::Variable(slot));
                return Some(declared);
            }
            if let Some(&declared) = self.scope.type_names.get(&*candidate) {
                self.set_reference(id, Reference::TypeName(candidate.into()));
                return Some(declared);
            }
            if &*candidate == NULL_VALUE {
                self.set_reference(id, Reference::NullValue);
                return Some(INT);
            }
        }
        None
    }

    fn ident(&mut self, id: NodeId, name: &str) -> TypeId {
        if let Some((slot, declared)) = self.local(name) {
            self.set_reference(id, Reference::Local(slot));
            return declared;
        }
        if let Some(found) = self.global(id, name) {
            return found;
        }
        self.undeclared(id, name);
        ERROR
    }

    /// The name at the root of a chain of selections.
    fn chain_root(&self, mut id: NodeId) -> Option<&'t str> {
        loop {
            match self.tree.node(id) {
                Node::Select { operand, test: false, .. } => id = operand,
                Node::Ident(name) => return Some(self.tree.text(name)),
                _ => return None,
            }
        }
    }

    fn select(&mut self, id: NodeId, operand: NodeId, field: Text, test: bool) -> TypeId {
        if !test
            && let Some(root) = self.chain_root(operand)
            && (self.local(root).is_none() || !self.scope.facts.variables_hide_names)
            && let Some(name) = self.tree.qualified_name(id)
            && let Some(found) = self.global(id, &name)
        {
            return found;
        }
        let found = self.select_field(id, operand, self.tree.text(field), false);
        if test { BOOL } else { found }
    }

    fn select_field(&mut self, id: NodeId, operand: NodeId, field: &str, optional: bool) -> TypeId {
        let whole = self.check(operand);
        let whole = self.types.substitute(whole, false);
        let (target, chained) = match self.types.unwrap_optional(whole) {
            Some(inner) => (inner, true),
            None => (whole, false),
        };
        let found = match self.types.node(target) {
            Type::Map(_, value) => value,
            Type::Object(name) => self.field_type(id, name, field),
            Type::Variable(_) => {
                self.types.assignable(DYN, target);
                DYN
            }
            Type::Dyn | Type::Any | Type::Error => DYN,
            _ => {
                let described = self.types.describe(target);
                self.report(id, format!("type '{described}' does not support field selection"));
                DYN
            }
        };
        let found = self.types.substitute(found, false);
        if optional || chained { self.types.optional(found) } else { found }
    }

    fn field_type(&mut self, id: NodeId, name: u32, field: &str) -> TypeId {
        let type_name = self.scope.types.name(name);
        let declared = self.scope.objects.get(type_name);
        let found = declared.and_then(|object| object.fields.iter().find(|known| &*known.0 == field));
        match found {
            Some((_, declared)) => *declared,
            None => {
                self.report(id, format!("undefined field '{field}'"));
                ERROR
            }
        }
    }

    fn call(&mut self, id: NodeId, function: Text, target: Option<NodeId>, args: Run) -> TypeId {
        let name = self.tree.text(function);
        let args = self.tree.children(args);
        match (name, args) {
            ("_?._", [operand, key]) => {
                if let Node::Str(field) = self.tree.node(*key) {
                    self.set_type(*key, types::STRING);
                    return self.select_field(id, *operand, self.tree.text(field), true);
                }
                return ERROR;
            }
            ("_&&_" | "_||_", args) if target.is_none() => return self.logic(args),
            _ => {}
        }
        for &argument in args {
            self.check(argument);
        }
        let Some(target) = target else {
            let Some(found) = self.find_function(name) else {
                self.undeclared(id, name);
                return ERROR;
            };
            return self.resolve(id, found, None, args, false);
        };
        if let Some(prefix) = self.tree.qualified_name(target)
            && let Some(found) = self.find_function(&format!("{prefix}.{name}"))
        {
            return self.resolve(id, found, None, args, true);
        }
        self.check(target);
        match self.find_function(name) {
            Some(found) => self.resolve(id, found, Some(target), args, false),
            None => {
                self.undeclared(id, name);
                ERROR
            }
        }
    }

    fn find_function(&self, name: &str) -> Option<u32> {
        if self.scope.container.is_empty() && !name.starts_with('.') {
            return self.scope.functions.find(name);
        }
        self.scope.candidates(name).iter().find_map(|candidate| self.scope.functions.find(candidate))
    }

    fn logic(&mut self, args: &[NodeId]) -> TypeId {
        let mut result = BOOL;
        for &argument in args {
            let found = self.check(argument);
            if !self.types.assignable(found, BOOL) {
                self.mismatch(argument, BOOL, found);
                result = ERROR;
            }
        }
        result
    }

    fn resolve(
        &mut self,
        id: NodeId,
        function: u32,
        target: Option<NodeId>,
        args: &[NodeId],
        qualified: bool,
    ) -> TypeId {
        let mut given: Vec<TypeId> = Vec::with_capacity(args.len() + 1);
        for &argument in target.iter().chain(args) {
            given.push(self.node_types.get(argument.index()).copied().flatten().unwrap_or(ERROR));
        }
        let scope = self.scope;
        let Some(declared) = scope.functions.get(function) else { return ERROR };
        let mut result: Option<TypeId> = None;
        let mut chosen = None;
        let mut several = false;
        let mut expected = Vec::with_capacity(given.len());
        for (index, overload) in declared.overloads.iter().enumerate() {
            if overload.member != target.is_some() || overload.parameters.len() != given.len() {
                continue;
            }
            let first = self.types.variables(overload.variables);
            expected.clear();
            for &parameter in &overload.parameters {
                let parameter =
                    if overload.variables > 0 { self.types.instantiate(parameter, first) } else { parameter };
                expected.push(parameter);
            }
            if !self.types.assignable_all(&given, &expected) {
                continue;
            }
            several = chosen.is_some();
            chosen = chosen.or(u32::try_from(index).ok());
            let found = self.types.instantiate(overload.result, first);
            let found = self.types.substitute(found, false);
            result = match result {
                None => Some(found),
                Some(before) if matches!(self.types.node(before), Type::Dyn | Type::Any) => Some(before),
                Some(before) if before == found => Some(before),
                Some(_) => Some(DYN),
            };
        }
        let Some(result) = result else {
            let described = self.describe_call(&given, target.is_some());
            let name = &declared.name;
            self.report(id, format!("found no matching overload for '{name}' applied to '{described}'"));
            return ERROR;
        };
        let overload = if several { None } else { chosen };
        self.set_reference(id, Reference::Function { function, overload, qualified });
        result
    }

    fn describe_call(&mut self, given: &[TypeId], member: bool) -> String {
        let mut described: Vec<String> = Vec::new();
        for &id in given {
            let id = self.types.substitute(id, true);
            described.push(self.types.describe(id));
        }
        match described.split_first() {
            Some((receiver, rest)) if member => format!("{receiver}.({})", rest.join(", ")),
            _ => format!("({})", described.join(", ")),
        }
    }
}
