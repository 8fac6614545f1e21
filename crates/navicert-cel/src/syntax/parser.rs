//! Precedence-climbing parser. Limits depth, nodes and code points while parsing. Depth is counted as in cel-go's
//! parser, so that both reject the same expressions.

use super::ast::{Node, NodeId, Text, Tree};
use super::lexer::{self, Kind, Token};
use super::macros::{self, Expansion, Macros};
use crate::diagnostic::{CompileError, Diagnostic, Stage};
use crate::source::{Source, Span};

mod primary;

/// Parser options.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ParseOptions {
    pub(crate) max_code_points: usize,
    pub(crate) max_depth: u32,
    pub(crate) max_nodes: usize,
    pub(crate) optional_syntax: bool,
    /// Field names may be written in backquotes.
    pub(crate) quoted_fields: bool,
    pub(crate) macros: Macros,
}

/// Parses an expression and expands macros.
pub(crate) fn parse(text: &str, options: &ParseOptions) -> Result<Tree, CompileError> {
    let source = Source::new(text);
    if text.len() > options.max_code_points {
        let size = text.chars().count();
        if size > options.max_code_points {
            let limit = options.max_code_points;
            let message = format!("expression code point size exceeds limit: size: {size}, limit {limit}");
            return Err(compile_error(&source, 0, Span::default(), message));
        }
    }
    let tokens = lexer::tokens(text).map_err(|error| {
        let end = error.at + u32::try_from(error.text.len()).unwrap_or(0);
        let message = format!("Syntax error: token recognition error at: '{}'", error.text);
        compile_error(&source, error.at, Span { start: error.at, end }, message)
    })?;
    let mut tree = Tree::new(source);
    let guess = tokens.len() / 2 + 8;
    tree.nodes.reserve(guess);
    tree.at.reserve(guess);
    tree.spans.reserve(guess);
    let mut parser = Parser { tree, tokens, next: 0, options, depth: Depth::default(), stack: Vec::new() };
    match parser.start() {
        Ok(root) => {
            parser.tree.root = root;
            Ok(parser.tree)
        }
        Err(error) => Err(compile_error(&parser.tree.source, error.at, error.span, error.message)),
    }
}

fn compile_error(source: &Source, at: u32, span: Span, message: String) -> CompileError {
    CompileError { stage: Stage::Parse, diagnostics: vec![Diagnostic::new(source, at, span, message)] }
}

/// A syntax error.
pub(super) struct SyntaxError {
    pub(super) at: u32,
    pub(super) span: Span,
    pub(super) message: String,
}

pub(super) type Parsed<T> = Result<T, Box<SyntaxError>>;

/// Nesting of each recursive rule, counted as in cel-go's grammar. A chain of operators, selections or indexes does not nest;
/// it counts for the depth of [`Part`].
#[derive(Default, Clone, Copy)]
struct Depth {
    expr: u32,
    relation: u32,
    calc: u32,
    member: u32,
}

/// A node with the depth to which cel-go's visitor recurses below it.
#[derive(Clone, Copy)]
struct Part {
    id: NodeId,
    depth: u32,
}

pub(super) struct Parser<'o> {
    pub(super) tree: Tree,
    tokens: Vec<Token>,
    next: usize,
    pub(super) options: &'o ParseOptions,
    depth: Depth,
    /// Scratch stack for argument lists.
    stack: Vec<NodeId>,
}

/// Words that are reserved for other languages and not allowed as identifiers.
pub(crate) const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

impl Parser<'_> {
    fn start(&mut self) -> Parsed<NodeId> {
        let part = self.expr()?;
        if self.peek() != Kind::End {
            return Err(self.unexpected("expecting <EOF>"));
        }
        self.check_visit_depth(part.depth)?;
        Ok(part.id)
    }

    fn token(&self) -> Token {
        let end = u32::try_from(self.tree.source.text().len()).unwrap_or(u32::MAX);
        let none = Token { kind: Kind::End, span: Span { start: end, end } };
        self.tokens.get(self.next).copied().unwrap_or(none)
    }

    fn peek(&self) -> Kind {
        self.tokens.get(self.next).map_or(Kind::End, |token| token.kind)
    }

    fn peek_at(&self, ahead: usize) -> Kind {
        self.tokens.get(self.next + ahead).map_or(Kind::End, |token| token.kind)
    }

    fn take(&mut self) -> Token {
        let token = self.token();
        self.next += 1;
        token
    }

    fn eat(&mut self, wanted: u8) -> bool {
        let found = self.peek() == Kind::Char(wanted);
        if found {
            self.next += 1;
        }
        found
    }

    fn expect(&mut self, wanted: u8) -> Parsed<Token> {
        if self.peek() == Kind::Char(wanted) {
            return Ok(self.take());
        }
        Err(self.unexpected(&format!("expecting '{}'", char::from(wanted))))
    }

    fn unexpected(&self, expecting: &str) -> Box<SyntaxError> {
        let token = self.token();
        let found = match token.kind {
            Kind::End => "<EOF>",
            _ => self.tree.source.slice(token.span),
        };
        let message = format!("Syntax error: mismatched input '{found}' {expecting}");
        Box::new(SyntaxError { at: token.span.start, span: token.span, message })
    }

    pub(super) fn error_at(&self, id: NodeId, message: String) -> Box<SyntaxError> {
        Box::new(SyntaxError { at: self.tree.at(id), span: self.tree.span(id), message })
    }

    fn limit(&self, message: String) -> Box<SyntaxError> {
        Box::new(SyntaxError { at: self.token().span.start, span: self.token().span, message })
    }

    fn check_rule_depth(&self, depth: u32) -> Parsed<()> {
        if depth > self.options.max_depth {
            let limit = self.options.max_depth;
            return Err(self.limit(format!("expression recursion limit exceeded: {limit}")));
        }
        Ok(())
    }

    fn check_visit_depth(&self, depth: u32) -> Parsed<()> {
        if depth > self.options.max_depth {
            return Err(self.limit("max recursion depth exceeded".to_owned()));
        }
        Ok(())
    }

    fn node(&mut self, node: Node, at: u32, span: Span) -> Parsed<NodeId> {
        if self.tree.nodes.len() >= self.options.max_nodes {
            let limit = self.options.max_nodes;
            return Err(self.limit(format!("expression node limit exceeded: {limit}")));
        }
        Ok(self.tree.push(node, at, span))
    }

    fn join(&self, from: NodeId, to: NodeId) -> Span {
        Span { start: self.tree.span(from).start, end: self.tree.span(to).end }
    }

    /// `a ? b : c`
    fn expr(&mut self) -> Parsed<Part> {
        self.depth.expr += 1;
        self.check_rule_depth(self.depth.expr)?;
        let condition = self.or()?;
        if self.peek() != Kind::Char(b'?') {
            self.depth.expr -= 1;
            return Ok(condition);
        }
        let at = self.take().span.start;
        let yes = self.or()?;
        self.expect(b':')?;
        let no = self.expr()?;
        self.depth.expr -= 1;
        let span = self.join(condition.id, no.id);
        let depth = condition.depth.max(yes.depth).max(no.depth) + 1;
        let id = self.call("_?_:_", &[condition.id, yes.id, no.id], at, span)?;
        Ok(Part { id, depth })
    }

    fn call(&mut self, function: &'static str, args: &[NodeId], at: u32, span: Span) -> Parsed<NodeId> {
        let args = self.tree.push_children(args);
        self.node(Node::Call { function: Text::Static(function), target: None, args }, at, span)
    }

    fn or(&mut self) -> Parsed<Part> {
        let first = self.and()?;
        if self.peek() != Kind::Or {
            return Ok(first);
        }
        self.logic(first, Kind::Or, "_||_")
    }

    fn and(&mut self) -> Parsed<Part> {
        let first = self.relation()?;
        if self.peek() != Kind::And {
            return Ok(first);
        }
        self.logic(first, Kind::And, "_&&_")
    }

    /// Parses the rest of a chain of one logical operator into one n-ary node.
    fn logic(&mut self, first: Part, operator: Kind, function: &'static str) -> Parsed<Part> {
        let base = self.stack.len();
        self.stack.push(first.id);
        let mut depth = first.depth;
        let at = self.token().span.start;
        let mut last = first.id;
        while self.peek() == operator {
            self.next += 1;
            let term = if operator == Kind::Or { self.and()? } else { self.relation()? };
            depth = depth.max(term.depth);
            last = term.id;
            self.stack.push(term.id);
        }
        let span = self.join(first.id, last);
        let args = self.pop_children(base);
        let id = self.node(Node::Call { function: Text::Static(function), target: None, args }, at, span)?;
        Ok(Part { id, depth })
    }

    fn pop_children(&mut self, base: usize) -> super::ast::Run {
        let ids = self.stack.split_off(base.min(self.stack.len()));
        self.tree.push_children(&ids)
    }

    fn relation(&mut self) -> Parsed<Part> {
        let before = self.depth.relation;
        self.depth.relation += 1;
        self.check_rule_depth(self.depth.relation)?;
        let mut left = self.calc(1)?;
        loop {
            let function = match self.peek() {
                Kind::Less => "_<_",
                Kind::LessEqual => "_<=_",
                Kind::GreaterEqual => "_>=_",
                Kind::Greater => "_>_",
                Kind::Equal => "_==_",
                Kind::NotEqual => "_!=_",
                Kind::In => "@in",
                _ => break,
            };
            let at = self.take().span.start;
            self.depth.relation += 1;
            self.check_rule_depth(self.depth.relation)?;
            let right = self.calc(1)?;
            self.depth.relation -= 1;
            left = self.binary(function, left, right, at)?;
        }
        self.depth.relation = before;
        Ok(left)
    }

    fn binary(&mut self, function: &'static str, left: Part, right: Part, at: u32) -> Parsed<Part> {
        let span = self.join(left.id, right.id);
        let depth = left.depth.max(right.depth) + 1;
        self.check_visit_depth(depth)?;
        let id = self.call(function, &[left.id, right.id], at, span)?;
        Ok(Part { id, depth })
    }

    /// Addition (level 1) and multiplication (level 2).
    fn calc(&mut self, level: u8) -> Parsed<Part> {
        let before = self.depth.calc;
        self.depth.calc += 1;
        self.check_rule_depth(self.depth.calc)?;
        let mut left = self.unary()?;
        loop {
            let (function, binds) = match self.peek() {
                Kind::Char(b'*') => ("_*_", 2),
                Kind::Char(b'/') => ("_/_", 2),
                Kind::Char(b'%') => ("_%_", 2),
                Kind::Char(b'+') => ("_+_", 1),
                Kind::Char(b'-') => ("_-_", 1),
                _ => break,
            };
            if binds < level {
                break;
            }
            let at = self.take().span.start;
            let right = self.calc(binds + 1)?;
            left = self.binary(function, left, right, at)?;
        }
        self.depth.calc = before;
        Ok(left)
    }

    /// A sequence of `!` or `-` collapses to one or none; a single minus sign before a number is part of the
    /// literal.
    fn unary(&mut self) -> Parsed<Part> {
        let operator = match self.peek() {
            Kind::Char(b'!') => b'!',
            Kind::Char(b'-') if !matches!(self.peek_at(1), Kind::Int | Kind::Float) => b'-',
            _ => return self.member(),
        };
        let first = self.token().span.start;
        let mut count = 0;
        while self.peek() == Kind::Char(operator) {
            count += 1;
            self.next += 1;
        }
        let operand = self.member()?;
        if count % 2 == 0 {
            return Ok(operand);
        }
        let function = if operator == b'!' { "!_" } else { "-_" };
        let span = Span { start: first, end: self.tree.span(operand.id).end };
        let id = self.call(function, &[operand.id], first, span)?;
        Ok(Part { id, depth: operand.depth })
    }

    fn member(&mut self) -> Parsed<Part> {
        let before = self.depth.member;
        self.depth.member += 1;
        self.check_rule_depth(self.depth.member)?;
        let mut left = self.primary()?;
        loop {
            left = match self.peek() {
                Kind::Char(b'.') => self.select(left)?,
                Kind::Char(b'[') => self.index(left)?,
                _ => break,
            };
            self.check_visit_depth(left.depth)?;
        }
        self.depth.member = before;
        Ok(left)
    }

    /// Rejects a field name in backquotes if the language has none.
    fn check_quoted_field(&self) -> Parsed<()> {
        if self.options.quoted_fields {
            return Ok(());
        }
        Err(self.limit("unsupported syntax: '`'".to_owned()))
    }

    /// `.field`, `.?field` or `.method(…)`
    fn select(&mut self, operand: Part) -> Parsed<Part> {
        let dot = self.take().span.start;
        let start = self.tree.span(operand.id).start;
        let optional = self.peek() == Kind::Char(b'?');
        if optional {
            self.take();
            if !self.options.optional_syntax {
                return Err(self.limit("unsupported syntax '.?'".to_owned()));
            }
        }
        let name = self.take();
        let (field, name_span) = match name.kind {
            Kind::Ident => (Text::Span(name.span), name.span),
            Kind::Quoted => {
                self.check_quoted_field()?;
                let inner = Span { start: name.span.start + 1, end: name.span.end - 1 };
                (Text::Span(inner), name.span)
            }
            _ => {
                self.next -= 1;
                return Err(self.unexpected("expecting IDENTIFIER"));
            }
        };
        if !optional && name.kind == Kind::Ident && self.peek() == Kind::Char(b'(') {
            let open = self.take().span.start;
            let (base, depth) = self.arguments()?;
            let end = self.expect(b')')?.span.end;
            let span = Span { start, end };
            let depth = operand.depth.max(depth) + 1;
            let id = self.finish_call(Some(operand.id), field, base, open, span)?;
            return Ok(Part { id, depth });
        }
        let span = Span { start, end: name_span.end };
        let id = if optional {
            let key = self.node(Node::Str(field), name_span.start, name_span)?;
            self.call("_?._", &[operand.id, key], dot, span)?
        } else {
            self.node(Node::Select { operand: operand.id, field, test: false }, dot, span)?
        };
        Ok(Part { id, depth: operand.depth + 1 })
    }

    fn index(&mut self, operand: Part) -> Parsed<Part> {
        let at = self.take().span.start;
        let optional = self.eat(b'?');
        if optional && !self.options.optional_syntax {
            return Err(self.limit("unsupported syntax '[?'".to_owned()));
        }
        let index = self.expr()?;
        let end = self.expect(b']')?.span.end;
        let span = Span { start: self.tree.span(operand.id).start, end };
        let function = if optional { "_[?_]" } else { "_[_]" };
        let id = self.call(function, &[operand.id, index.id], at, span)?;
        Ok(Part { id, depth: operand.depth.max(index.depth) + 1 })
    }

    /// Parses arguments up to the closing parenthesis. They are on the scratch stack, from the returned height on.
    fn arguments(&mut self) -> Parsed<(usize, u32)> {
        let base = self.stack.len();
        let mut depth = 0;
        if self.peek() == Kind::Char(b')') {
            return Ok((base, depth));
        }
        loop {
            let part = self.expr()?;
            depth = depth.max(part.depth);
            self.stack.push(part.id);
            if !self.eat(b',') {
                return Ok((base, depth));
            }
        }
    }

    /// A call, or the expansion of the macro with that name.
    fn finish_call(
        &mut self,
        target: Option<NodeId>,
        function: Text,
        base: usize,
        at: u32,
        span: Span,
    ) -> Parsed<NodeId> {
        let args = self.stack.split_off(base.min(self.stack.len()));
        match macros::expand(self, target, function, &args, at, span)? {
            Expansion::Node(id) => {
                let args = self.tree.push_children(&args);
                let call = super::ast::MacroCall { node: id, function, target, args };
                self.tree.macro_calls.push(call);
                if self.tree.nodes.len() > self.options.max_nodes {
                    let limit = self.options.max_nodes;
                    return Err(self.limit(format!("expression node limit exceeded: {limit}")));
                }
                Ok(id)
            }
            Expansion::None => {
                let args = self.tree.push_children(&args);
                self.node(Node::Call { function, target, args }, at, span)
            }
        }
    }
}
