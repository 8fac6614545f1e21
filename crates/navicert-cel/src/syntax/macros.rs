//! Macro expansion: calls that are rewritten while parsing, because their arguments bind names.

use super::ast::{Fold, FoldKind, Node, NodeId, Text};
use super::parser::{Parsed, Parser};
use crate::source::Span;

/// The enabled macros.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Macros {
    /// The standard macros.
    pub(crate) standard: bool,
    /// `optMap`, `optFlatMap`
    pub(crate) optional: bool,
    /// Two-variable comprehensions.
    pub(crate) two_variables: bool,
    /// `sortBy`
    pub(crate) sort_by: bool,
    /// `cel.bind`
    pub(crate) bind: bool,
    /// `math.greatest`, `math.least`
    pub(crate) math: bool,
}

/// The result of an expansion.
pub(super) enum Expansion {
    Node(NodeId),
    None,
}

/// The source location of an expansion.
#[derive(Clone, Copy)]
struct Location {
    at: u32,
    span: Span,
}

/// Expands the call if a macro matches its name and number of arguments.
pub(super) fn expand(
    parser: &mut Parser<'_>,
    target: Option<NodeId>,
    function: Text,
    args: &[NodeId],
    at: u32,
    span: Span,
) -> Parsed<Expansion> {
    let enabled = parser.options.macros;
    let location = Location { at, span };
    let name = parser.tree.text(function);
    let Some(target) = target else {
        if name == "has" && enabled.standard && args.len() == 1 {
            return has(parser, args, location);
        }
        return Ok(Expansion::None);
    };
    let kind = match (name, args) {
        ("all", [_, _]) if enabled.standard => Some((FoldKind::All, false)),
        ("exists", [_, _]) if enabled.standard => Some((FoldKind::Exists, false)),
        ("exists_one", [_, _]) if enabled.standard => Some((FoldKind::ExistsOne, false)),
        ("map", [_, _] | [_, _, _]) if enabled.standard => Some((FoldKind::List, false)),
        ("filter", [_, _]) if enabled.standard => return filter(parser, target, args, location),
        ("all", [_, _, _]) if enabled.two_variables => Some((FoldKind::All, true)),
        ("exists", [_, _, _]) if enabled.two_variables => Some((FoldKind::Exists, true)),
        ("exists_one" | "existsOne", [_, _, _]) if enabled.two_variables => Some((FoldKind::ExistsOne, true)),
        ("transformList", [_, _, _] | [_, _, _, _]) if enabled.two_variables => Some((FoldKind::List, true)),
        ("transformMap", [_, _, _] | [_, _, _, _]) if enabled.two_variables => Some((FoldKind::Map, true)),
        ("transformMapEntry", [_, _, _] | [_, _, _, _]) if enabled.two_variables => {
            Some((FoldKind::MapEntry, true))
        }
        ("optMap", [variable, body]) if enabled.optional => {
            return opt_map(parser, target, *variable, *body, false, location);
        }
        ("optFlatMap", [variable, body]) if enabled.optional => {
            return opt_map(parser, target, *variable, *body, true, location);
        }
        ("sortBy", [variable, key]) if enabled.sort_by => {
            return sort_by(parser, target, *variable, *key, location);
        }
        ("bind", [variable, value, body]) if enabled.bind && is_ident(parser, target, "cel") => {
            return bind(parser, *variable, *value, *body, location);
        }
        ("greatest", args) if enabled.math && is_ident(parser, target, "math") => {
            return extreme(parser, "math.@max", "greatest", args, location);
        }
        ("least", args) if enabled.math && is_ident(parser, target, "math") => {
            return extreme(parser, "math.@min", "least", args, location);
        }
        _ => None,
    };
    match kind {
        Some((kind, two)) => comprehension(parser, kind, two, target, args, location),
        None => Ok(Expansion::None),
    }
}

fn is_ident(parser: &Parser<'_>, id: NodeId, name: &str) -> bool {
    matches!(parser.tree.node(id), Node::Ident(text) if parser.tree.text(text) == name)
}

fn has(parser: &mut Parser<'_>, args: &[NodeId], location: Location) -> Parsed<Expansion> {
    if let [argument] = args {
        if let Node::Select { operand, field, test: false } = parser.tree.node(*argument) {
            let node = Node::Select { operand, field, test: true };
            return Ok(Expansion::Node(parser.tree.push(node, location.at, location.span)));
        }
        return Err(parser.error_at(*argument, "invalid argument to has() macro".to_owned()));
    }
    Ok(Expansion::None)
}

/// The name of a comprehension variable. It may have a leading dot, but then no expression refers to it.
fn variable(parser: &Parser<'_>, id: NodeId) -> Parsed<Text> {
    match parser.tree.node(id) {
        Node::Ident(name) if parser.tree.text(name) == "__result__" => {
            Err(parser.error_at(id, "iteration variable overwrites accumulator variable".to_owned()))
        }
        Node::Ident(name) => Ok(name),
        _ => Err(parser.error_at(id, "argument must be a simple name".to_owned())),
    }
}

fn comprehension(
    parser: &mut Parser<'_>,
    kind: FoldKind,
    two: bool,
    range: NodeId,
    args: &[NodeId],
    location: Location,
) -> Parsed<Expansion> {
    let (names, rest) = args.split_at(if two { 2 } else { 1 });
    let Some(first) = names.first() else { return Ok(Expansion::None) };
    let first_name = variable(parser, *first)?;
    let second = match names.get(1) {
        Some(&id) => {
            let name = variable(parser, id)?;
            if parser.tree.text(name) == parser.tree.text(first_name) {
                let message = format!("duplicate variable name: {}", parser.tree.text(name));
                return Err(parser.error_at(id, message));
            }
            Some(name)
        }
        None => None,
    };
    let (filter, body) = match rest {
        [body] => (None, *body),
        [filter, body] => (Some(*filter), *body),
        _ => return Ok(Expansion::None),
    };
    let fold = Fold { kind, range, variable: first_name, second, filter, body };
    Ok(Expansion::Node(push_fold(parser, fold, location)))
}

fn push_fold(parser: &mut Parser<'_>, fold: Fold, location: Location) -> NodeId {
    let index = u32::try_from(parser.tree.folds.len()).unwrap_or(u32::MAX);
    parser.tree.folds.push(fold);
    parser.tree.push(Node::Fold(index), location.at, location.span)
}

fn filter(parser: &mut Parser<'_>, range: NodeId, args: &[NodeId], location: Location) -> Parsed<Expansion> {
    let [name, predicate] = args else { return Ok(Expansion::None) };
    let bound = variable(parser, *name)?;
    let body = parser.tree.push(Node::Ident(bound), location.at, location.span);
    let fold =
        Fold { kind: FoldKind::List, range, variable: bound, second: None, filter: Some(*predicate), body };
    Ok(Expansion::Node(push_fold(parser, fold, location)))
}

fn call(
    parser: &mut Parser<'_>,
    function: &'static str,
    target: Option<NodeId>,
    args: &[NodeId],
    location: Location,
) -> NodeId {
    let args = parser.tree.push_children(args);
    let node = Node::Call { function: Text::Static(function), target, args };
    parser.tree.push(node, location.at, location.span)
}

/// `target.hasValue() ? optional.of(bind(name, target.value(), body)) : optional.none()`
fn opt_map(
    parser: &mut Parser<'_>,
    target: NodeId,
    name: NodeId,
    body: NodeId,
    flat: bool,
    location: Location,
) -> Parsed<Expansion> {
    let Node::Ident(bound) = parser.tree.node(name) else {
        let macro_name = if flat { "optFlatMap" } else { "optMap" };
        let message = format!("{macro_name}() variable name must be a simple identifier");
        return Err(parser.error_at(name, message));
    };
    let present = call(parser, "hasValue", Some(target), &[], location);
    let value = call(parser, "value", Some(target), &[], location);
    let fold = Fold { kind: FoldKind::Bind, range: value, variable: bound, second: None, filter: None, body };
    let mut result = push_fold(parser, fold, location);
    if !flat {
        result = call(parser, "optional.of", None, &[result], location);
    }
    let none = call(parser, "optional.none", None, &[], location);
    Ok(Expansion::Node(call(parser, "_?_:_", None, &[present, result, none], location)))
}

fn bind(
    parser: &mut Parser<'_>,
    name: NodeId,
    value: NodeId,
    body: NodeId,
    location: Location,
) -> Parsed<Expansion> {
    let Node::Ident(bound) = parser.tree.node(name) else {
        return Err(parser.error_at(name, "cel.bind() variable names must be simple identifiers".to_owned()));
    };
    let fold = Fold { kind: FoldKind::Bind, range: value, variable: bound, second: None, filter: None, body };
    Ok(Expansion::Node(push_fold(parser, fold, location)))
}

/// Binds the list to a hidden name, maps it to sort keys and sorts the list by them.
fn sort_by(
    parser: &mut Parser<'_>,
    target: NodeId,
    name: NodeId,
    key: NodeId,
    location: Location,
) -> Parsed<Expansion> {
    const INPUT: Text = Text::Static("@__sortBy_input__");
    let sortable = matches!(
        parser.tree.node(target),
        Node::List { .. } | Node::Select { .. } | Node::Ident(_) | Node::Fold(_) | Node::Call { .. }
    );
    if !sortable {
        let message =
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
        return Err(parser.error_at(target, message.to_owned()));
    }
    let bound = variable(parser, name)?;
    let list = parser.tree.push(Node::Ident(INPUT), location.at, location.span);
    let input = parser.tree.push(Node::Ident(INPUT), location.at, location.span);
    let keys =
        Fold { kind: FoldKind::List, range: input, variable: bound, second: None, filter: None, body: key };
    let keys = push_fold(parser, keys, location);
    let body = call(parser, "@sortByAssociatedKeys", Some(list), &[keys], location);
    let fold =
        Fold { kind: FoldKind::Bind, range: target, variable: INPUT, second: None, filter: None, body };
    Ok(Expansion::Node(push_fold(parser, fold, location)))
}

/// `math.greatest` and `math.least` accept any number of arguments or one list.
fn extreme(
    parser: &mut Parser<'_>,
    function: &'static str,
    name: &str,
    args: &[NodeId],
    location: Location,
) -> Parsed<Expansion> {
    let numeric = |parser: &Parser<'_>, id: NodeId| {
        !matches!(
            parser.tree.node(id),
            Node::Str(_)
                | Node::Bool(_)
                | Node::Bytes(_)
                | Node::Null
                | Node::Struct { .. }
                | Node::Map { .. }
                | Node::List { .. }
        )
    };
    match args {
        [] => {
            let message = format!("math.{name}() requires at least one argument");
            Err(Box::new(super::parser::SyntaxError { at: location.at, span: location.span, message }))
        }
        [only] => {
            if let Node::List { elements, .. } = parser.tree.node(*only) {
                let elements = parser.tree.children(elements).to_vec();
                if elements.is_empty() || elements.iter().any(|&id| !numeric(parser, id)) {
                    let message = format!("math.{name}() invalid single argument value");
                    return Err(parser.error_at(*only, message));
                }
            } else if !numeric(parser, *only) {
                return Err(parser.error_at(*only, format!("math.{name}() invalid single argument value")));
            }
            Ok(Expansion::Node(call(parser, function, None, args, location)))
        }
        _ => {
            if let Some(&bad) = args.iter().find(|&&id| !numeric(parser, id)) {
                let message = format!("math.{name}() simple literal arguments must be numeric");
                return Err(parser.error_at(bad, message));
            }
            if args.len() == 2 {
                return Ok(Expansion::Node(call(parser, function, None, args, location)));
            }
            let elements = parser.tree.push_children(args);
            let list = Node::List { elements, optional: super::ast::Run::default() };
            let list = parser.tree.push(list, location.at, location.span);
            Ok(Expansion::Node(call(parser, function, None, &[list], location)))
        }
    }
}
