//! Assignability with type variables, and overload resolution.

use super::types::{Type, TypeId, Workspace};

fn is_dyn(node: Type) -> bool {
    matches!(node, Type::Dyn | Type::Any)
}

fn is_dyn_or_error(node: Type) -> bool {
    matches!(node, Type::Dyn | Type::Any | Type::Error)
}

impl Workspace<'_> {
    /// Whether a value of type `right` can be assigned to type `left`. Bindings of type variables are kept only on
    /// success.
    pub(crate) fn assignable(&mut self, left: TypeId, right: TypeId) -> bool {
        let checkpoint = self.checkpoint();
        let fits = self.unify(left, right);
        if !fits {
            self.undo_to(checkpoint);
        }
        fits
    }

    /// Whether each argument type can be assigned to its parameter type.
    pub(crate) fn assignable_all(&mut self, left: &[TypeId], right: &[TypeId]) -> bool {
        let checkpoint = self.checkpoint();
        let fits = left.len() == right.len()
            && left.iter().zip(right).all(|(&left, &right)| self.unify(left, right));
        if !fits {
            self.undo_to(checkpoint);
        }
        fits
    }

    fn unify(&mut self, left: TypeId, right: TypeId) -> bool {
        let (left_node, right_node) = (self.node(left), self.node(right));
        if let Type::Variable(variable) = right_node {
            let (valid, bound) = self.try_bind(left, variable, right);
            if valid {
                return true;
            }
            if bound {
                return false;
            }
        }
        if let Type::Variable(variable) = left_node {
            return self.try_bind(right, variable, left).0;
        }
        if is_dyn_or_error(left_node) || is_dyn_or_error(right_node) {
            return true;
        }
        if left_node == Type::Null {
            return accepts_null(right_node);
        }
        if right_node == Type::Null {
            return accepts_null(left_node);
        }
        match (left_node, right_node) {
            (Type::List(left), Type::List(right)) => self.unify(left, right),
            (Type::Map(left_key, left_value), Type::Map(right_key, right_value)) => {
                self.unify(left_key, right_key) && self.unify(left_value, right_value)
            }
            (Type::Type(_), Type::Type(_)) => true,
            (
                Type::Opaque(left_name, left_parts, left_count),
                Type::Opaque(right_name, right_parts, right_count),
            ) => {
                left_name == right_name
                    && left_count == right_count
                    && left_parts
                        .iter()
                        .zip(right_parts.iter())
                        .take(usize::from(left_count))
                        .all(|(&left, &right)| self.unify(left, right))
            }
            (Type::Wrapper(left), _) => self.unify(left, right),
            (_, Type::Wrapper(right)) => self.unify(left, right),
            _ => left == right,
        }
    }

    /// Binds the variable to the type if that is consistent. Returns whether it succeeded and whether the variable
    /// was bound before.
    fn try_bind(&mut self, other: TypeId, variable: u32, id: TypeId) -> (bool, bool) {
        if other == id {
            return (true, true);
        }
        if let Some(bound) = self.bound(variable) {
            if bound == other {
                return (true, true);
            }
            if self.unify(other, bound) {
                let general = self.most_general(other, bound);
                if self.passes_occurs_check(id, general) {
                    self.bind(variable, general);
                }
                return (true, true);
            }
            return (false, true);
        }
        if self.passes_occurs_check(id, other) {
            self.bind(variable, other);
            return (true, false);
        }
        (false, false)
    }

    /// The occurs check: whether a variable does not occur in a type, so that binding it creates no infinite type.
    fn passes_occurs_check(&self, id: TypeId, within: TypeId) -> bool {
        if id == within {
            return false;
        }
        match self.node(within) {
            Type::Variable(other) => {
                self.bound(other).is_none_or(|bound| self.passes_occurs_check(id, bound))
            }
            Type::List(element) => self.passes_occurs_check(id, element),
            Type::Map(key, value) => self.passes_occurs_check(id, key) && self.passes_occurs_check(id, value),
            Type::Type(of) => self.passes_occurs_check(id, of),
            Type::Opaque(_, parts, count) => {
                parts.iter().take(usize::from(count)).all(|&part| self.passes_occurs_check(id, part))
            }
            _ => true,
        }
    }

    pub(crate) fn most_general(&self, left: TypeId, right: TypeId) -> TypeId {
        if self.less_specific(left, right) { left } else { right }
    }

    /// Whether the left type is equal to or more general than the right one.
    fn less_specific(&self, left: TypeId, right: TypeId) -> bool {
        let (left_node, right_node) = (self.node(left), self.node(right));
        if is_dyn(left_node) || matches!(left_node, Type::Variable(_)) {
            return true;
        }
        if is_dyn(right_node) || matches!(right_node, Type::Variable(_)) {
            return false;
        }
        match (left_node, right_node) {
            (Type::List(left), Type::List(right)) => self.less_specific(left, right),
            (Type::Map(left_key, left_value), Type::Map(right_key, right_value)) => {
                self.less_specific(left_key, right_key) && self.less_specific(left_value, right_value)
            }
            (Type::Type(_), Type::Type(_)) => true,
            (
                Type::Opaque(left_name, left_parts, left_count),
                Type::Opaque(right_name, right_parts, right_count),
            ) => {
                left_name == right_name
                    && left_count == right_count
                    && left_parts
                        .iter()
                        .zip(right_parts.iter())
                        .take(usize::from(left_count))
                        .all(|(&left, &right)| self.less_specific(left, right))
            }
            _ => left == right,
        }
    }
}

/// Types that accept `null`.
fn accepts_null(node: Type) -> bool {
    matches!(
        node,
        Type::Null
            | Type::Opaque(..)
            | Type::Object(_)
            | Type::Any
            | Type::Duration
            | Type::Timestamp
            | Type::Wrapper(_)
    )
}
