//! Type checking of aggregate literals (lists, maps, messages) and of comprehensions.

use super::Checker;
use crate::check::checker::Reference;
use crate::check::types::{self, BOOL, DYN, ERROR, INT, Type, TypeId};
use crate::syntax::ast::{Fold, FoldKind, NodeId, Run, Text};

impl Checker<'_, '_> {
    /// Joins the element type found so far with the type of the next element.
    fn join(&mut self, id: NodeId, before: Option<TypeId>, found: TypeId) -> TypeId {
        let Some(before) = before else { return found };
        if self.types.assignable(before, found) {
            if self.scope.is_standard() && found == types::NULL {
                return before;
            }
            return self.types.most_general(before, found);
        }
        if !self.scope.homogeneous {
            return DYN;
        }
        self.mismatch(id, before, found);
        ERROR
    }

    /// The type inside an optional element, written with `?`.
    fn optional_element(&mut self, id: NodeId, found: TypeId) -> TypeId {
        let found = self.types.substitute(found, false);
        if let Some(inner) = self.types.unwrap_optional(found) {
            return inner;
        }
        if !matches!(self.types.node(found), Type::Dyn | Type::Any) {
            let expected = self.types.optional(found);
            self.mismatch(id, expected, found);
        }
        found
    }

    pub(super) fn list(&mut self, elements: Run, optional: Run) -> TypeId {
        let tree = self.tree;
        let flags = tree.flags(optional);
        let mut common = None;
        for (index, &element) in tree.children(elements).iter().enumerate() {
            let mut found = self.check(element);
            if flags.get(index).copied().unwrap_or(false) {
                found = self.optional_element(element, found);
            }
            common = Some(self.join(element, common, found));
        }
        let element = match common {
            Some(element) => element,
            None => self.types.variable(),
        };
        self.types.list(element)
    }

    pub(super) fn map(&mut self, entries: Run, optional: Run) -> TypeId {
        let tree = self.tree;
        let flags = tree.flags(optional);
        let (mut keys, mut values) = (None, None);
        for (index, pair) in tree.children(entries).chunks_exact(2).enumerate() {
            let &[key, value] = pair else { continue };
            let found = self.check(key);
            keys = Some(self.join(key, keys, found));
            let mut found = self.check(value);
            if flags.get(index).copied().unwrap_or(false) {
                found = self.optional_element(value, found);
            }
            values = Some(self.join(value, values, found));
        }
        let (key, value) = match (keys, values) {
            (Some(key), Some(value)) => (key, value),
            _ => (self.types.variable(), self.types.variable()),
        };
        self.types.map(key, value)
    }

    pub(super) fn message(&mut self, id: NodeId, name: Text, fields: Run) -> TypeId {
        let written = self.tree.text(name);
        let scope = self.scope;
        let found = scope
            .candidates(written)
            .into_iter()
            .find(|candidate| scope.type_names.contains_key(&**candidate));
        let Some(found) = found else {
            self.undeclared(id, written);
            return ERROR;
        };
        let Some(object) = scope.objects.get(&*found) else {
            self.report(id, format!("'{found}' is not a message type"));
            return ERROR;
        };
        self.set_reference(id, Reference::TypeName(found.into()));
        let tree = self.tree;
        for field in tree.fields(fields) {
            let mut given = self.check(field.value);
            if field.optional {
                given = self.optional_element(field.value, given);
            }
            let name = tree.text(field.name);
            match object.fields.iter().find(|known| &*known.0 == name) {
                None => self.report(id, format!("undefined field '{name}'")),
                Some(&(_, declared)) => {
                    if !self.types.assignable(declared, given) {
                        let (expected, given) = (self.types.describe(declared), self.types.describe(given));
                        self.report(
                            id,
                            format!(
                                "expected type of field '{name}' is '{expected}' but provided type is '{given}'"
                            ),
                        );
                    }
                }
            }
        }
        object.id
    }

    /// The types of the iteration variables of a comprehension over a range.
    fn loop_variables(&mut self, fold: &Fold) -> (TypeId, TypeId) {
        let range = self.check(fold.range);
        let range = self.types.substitute(range, false);
        let two = fold.second.is_some();
        match self.types.node(range) {
            Type::List(element) if two => (INT, element),
            Type::List(element) => (element, DYN),
            Type::Map(key, value) => (key, value),
            Type::Any if self.scope.lenient_any => (DYN, DYN),
            Type::Dyn | Type::Error | Type::Variable(_) => {
                self.types.assignable(DYN, range);
                (DYN, DYN)
            }
            _ => {
                let described = self.types.describe(range);
                self.report(
                    fold.range,
                    format!(
                        "expression of type '{described}' cannot be range of a comprehension (must be list, map, or dynamic)"
                    ),
                );
                (ERROR, ERROR)
            }
        }
    }

    pub(super) fn fold(&mut self, fold: &Fold) -> TypeId {
        let depth = self.locals.len();
        let tree = self.tree;
        if fold.kind == FoldKind::Bind {
            let bound = self.check(fold.range);
            self.check_dotted_binding(fold, bound);
            self.locals.push((tree.text(fold.variable), bound));
            let found = self.check(fold.body);
            self.locals.truncate(depth);
            return self.types.substitute(found, false);
        }
        let (first, second) = self.loop_variables(fold);
        self.locals.push((tree.text(fold.variable), first));
        if let Some(name) = fold.second {
            self.locals.push((tree.text(name), second));
        }
        let filter = fold.filter.map(|filter| self.check(filter));
        let body = self.check(fold.body);
        let found = self.fold_result(fold, first, filter, body);
        self.locals.truncate(depth);
        self.types.substitute(found, false)
    }

    /// A binding refers to its own name. With a leading dot that is a global name, of which the type must fit.
    fn check_dotted_binding(&mut self, fold: &Fold, bound: TypeId) {
        let name = self.tree.text(fold.variable);
        if !name.starts_with('.') {
            return;
        }
        match self.scope.global_type(name) {
            Some(found) if self.types.assignable(bound, found) => {}
            Some(found) => self.mismatch(fold.body, bound, found),
            None => self.undeclared(fold.body, name),
        }
    }

    /// The result type of a comprehension. Reports the same errors as checking its expansion into operators would.
    fn fold_result(&mut self, fold: &Fold, first: TypeId, filter: Option<TypeId>, body: TypeId) -> TypeId {
        let found = match fold.kind {
            FoldKind::All | FoldKind::Exists => {
                if !self.types.assignable(body, BOOL) {
                    self.mismatch(fold.body, BOOL, body);
                }
                return BOOL;
            }
            FoldKind::ExistsOne => {
                self.check_condition(fold.body, body, INT);
                return BOOL;
            }
            FoldKind::List => self.types.list(body),
            FoldKind::Map => self.types.map(first, body),
            FoldKind::MapEntry => {
                let (key, value) = (self.types.variable(), self.types.variable());
                let expected = self.types.map(key, value);
                if !self.types.assignable(body, expected) {
                    let described = self.describe_call(&[expected, body], false);
                    self.report(
                        fold.body,
                        format!("found no matching overload for 'cel.@mapInsert' applied to '{described}'"),
                    );
                    return ERROR;
                }
                expected
            }
            FoldKind::Bind => body,
        };
        if let (Some(id), Some(condition)) = (fold.filter, filter) {
            self.check_condition(id, condition, found);
        }
        found
    }

    fn check_condition(&mut self, id: NodeId, condition: TypeId, branch: TypeId) {
        if !self.types.assignable(condition, BOOL) {
            let described = self.describe_call(&[condition, branch, branch], false);
            self.report(id, format!("found no matching overload for '_?_:_' applied to '{described}'"));
        }
    }
}
