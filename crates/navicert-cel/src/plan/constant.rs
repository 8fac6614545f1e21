//! Constant folding: evaluates conversions of constants at compile time; a failing one is a compile error.

use super::{Planned, Planner, StepId};
use crate::syntax::ast::NodeId;
use std::sync::Arc;

const CONVERSIONS: [&str; 10] =
    ["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"];

impl Planner<'_> {
    /// Evaluates the conversion of a constant.
    pub(super) fn fold_conversion(
        &mut self,
        node: NodeId,
        name: &str,
        function: u32,
        overload: Option<u32>,
        steps: &[StepId],
    ) -> Planned<Option<StepId>> {
        let &[argument] = steps else { return Ok(None) };
        if !CONVERSIONS.contains(&name) {
            return Ok(None);
        }
        let Some(value) = self.value_of(argument) else { return Ok(None) };
        let scope = Arc::clone(&self.plan.scope);
        let Some(declared) = scope.functions.get(function) else { return Ok(None) };
        let val = value.as_val();
        let fits = |overload: &&crate::check::declaration::Overload| match &*overload.guards {
            [guard] => !overload.member && guard.accepts(&val),
            _ => false,
        };
        let chosen = match overload.and_then(|index| declared.overloads.get(index as usize)) {
            Some(only) => Some(only).filter(fits),
            None => declared.overloads.iter().find(fits),
        };
        let result = match chosen {
            Some(overload) => self.run(overload, &[val]),
            None => Err(format!("no such overload: {name}")),
        };
        match result {
            Ok(value) => Ok(Some(self.constant(value, node))),
            // The conformance suite expects a failing conversion to fail at evaluation.
            Err(_) if scope.is_standard() => Ok(None),
            Err(message) => Err(self.error_at(node, message)),
        }
    }
}
