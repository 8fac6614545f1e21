//! Which types go where: assignability with type variables, and the choice among a function's overloads.

use super::types::{Type, TypeId, Workspace};

fn is_dyn(node: Type) -> bool {
    matches!(node, Type::Dyn | Type::Any)
}

fn is_dyn_or_error(node: Type) -> bool {
    matches!(node, Type::Dyn | Type::Any | Type::Error)
}

impl Workspace<'_> {
    /// Whether a value of one type may stand where the other is wanted. Bindings of variables are kept only on
    /// success.
    pub(crate) fn assignable(&mut self, left: TypeId, right: TypeId) -> bool {
        let checkpoint = self.checkpoint();
        let fits = self.unify(left, right);
        if !fits {
            self.undo_to(checkpoint);
        }
        fits
    }

    /// The same for argument lists.
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

    /// Lets the variable stand for the type if that is consistent; also whether it stood for something before.
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
                if self.not_within(id, general) {
                    self.bind(variable, general);
                }
                return (true, true);
            }
            return (false, true);
        }
        if self.not_within(id, other) {
            self.bind(variable, other);
            return (true, false);
        }
        (false, false)
    }

    /// Whether a variable does not occur in a type, so that binding it makes no endless type.
    fn not_within(&self, id: TypeId, within: TypeId) -> bool {
        if id == within {
            return false;
        }
        match self.node(within) {
            Type::Variable(other) => self.bound(other).is_none_or(|bound| self.not_within(id, bound)),
            Type::List(element) => self.not_within(id, element),
            Type::Map(key, value) => self.not_within(id, key) && self.not_within(id, value),
            Type::Type(of) => self.not_within(id, of),
            Type::Opaque(_, parts, count) => {
                parts.iter().take(usize::from(count)).all(|&part| self.not_within(id, part))
            }
            _ => true,
        }
    }

    pub(crate) fn most_general(&self, left: TypeId, right: TypeId) -> TypeId {
        if self.less_specific(left, right) { left } else { right }
    }

    /// Whether the left type says no more than the right one.
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

/// Types that `null` may stand for.
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
