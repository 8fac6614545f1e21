//! Primary expressions: literals, names, lists, maps and messages.

use super::super::ast::{Field, Node, NodeId, Run, Text};
use super::super::lexer::{Kind, Token};
use super::super::literal::{self, Unescaped};
use super::{Parsed, Parser, Part, RESERVED, SyntaxError};
use crate::source::Span;

impl Parser<'_> {
    pub(super) fn primary(&mut self) -> Parsed<Part> {
        let token = self.token();
        let leaf = |id| Part { id, depth: 0 };
        match token.kind {
            Kind::Char(b'(') => {
                self.take();
                let inner = self.expr()?;
                let end = self.expect(b')')?.span.end;
                // The span of a parenthesized expression includes the parentheses, so that the caret of a method
                // call precedes them.
                if let Some(span) = self.tree.spans.get_mut(inner.id.index()) {
                    *span = Span { start: token.span.start, end };
                }
                Ok(inner)
            }
            Kind::Char(b'[') => self.list(),
            Kind::Char(b'{') => self.map(),
            Kind::Char(b'.') if self.peek_at(1) == Kind::Ident => self.name(),
            Kind::Ident => self.name(),
            Kind::Char(b'-') => {
                self.take();
                let number = self.take();
                let span = Span { start: token.span.start, end: number.span.end };
                self.number(number, true, span).map(leaf)
            }
            Kind::Int | Kind::Uint | Kind::Float => {
                self.take();
                self.number(token, false, token.span).map(leaf)
            }
            Kind::Str | Kind::Bytes => {
                self.take();
                self.string(token).map(leaf)
            }
            Kind::True | Kind::False => {
                self.take();
                let node = Node::Bool(token.kind == Kind::True);
                self.node(node, token.span.start, token.span).map(leaf)
            }
            Kind::Null => {
                self.take();
                self.node(Node::Null, token.span.start, token.span).map(leaf)
            }
            _ => Err(self.unexpected("expecting an expression")),
        }
    }

    fn number(&mut self, token: Token, negative: bool, span: Span) -> Parsed<NodeId> {
        let text = self.tree.source.slice(token.span);
        let (node, what) = match token.kind {
            Kind::Uint => (literal::uint_value(text).map(Node::Uint), "uint"),
            Kind::Float => (literal::double_value(text, negative).map(Node::Double), "double"),
            _ => (literal::int_value(text, negative).map(Node::Int), "int"),
        };
        match node {
            Some(node) => self.node(node, span.start, span),
            None => Err(Box::new(SyntaxError {
                at: span.start,
                span,
                message: format!("invalid {what} literal"),
            })),
        }
    }

    fn string(&mut self, token: Token) -> Parsed<NodeId> {
        let text = self.tree.source.slice(token.span);
        let bad = || {
            let message = "unable to unescape string".to_owned();
            Box::new(SyntaxError { at: token.span.start, span: token.span, message })
        };
        let node = if token.kind == Kind::Bytes {
            let bytes = literal::bytes_value(text).ok_or_else(bad)?;
            let index = u32::try_from(self.tree.bytes.len()).unwrap_or(u32::MAX);
            self.tree.bytes.push(bytes.into());
            Node::Bytes(index)
        } else {
            match literal::string_value(text).ok_or_else(bad)? {
                Unescaped::Same(body) => {
                    // The body is preceded by prefix and opening quotes, and followed by the same quotes.
                    let quotes = if text.len() - body.len() >= 6 { 3 } else { 1 };
                    let end = token.span.end - quotes;
                    let len = u32::try_from(body.len()).unwrap_or(0);
                    Node::Str(Text::Span(Span { start: end - len, end }))
                }
                Unescaped::New(value) => {
                    let text = self.tree.push_text(&value);
                    Node::Str(text)
                }
            }
        };
        self.node(node, token.span.start, token.span)
    }

    /// An identifier, a call of a global function, or a message literal.
    fn name(&mut self) -> Parsed<Part> {
        let first = self.token();
        let dotted = self.eat(b'.');
        let name = self.take();
        if self.is_message_literal() {
            return self.message(first.span.start);
        }
        let text = self.tree.source.slice(name.span);
        let reserved = RESERVED.contains(&text);
        if reserved {
            let message = format!("reserved identifier: {text}");
            return Err(Box::new(SyntaxError { at: first.span.start, span: name.span, message }));
        }
        let spelled = if dotted {
            let text = format!(".{text}");
            self.tree.push_text(&text)
        } else {
            Text::Span(name.span)
        };
        if self.peek() == Kind::Char(b'(') {
            let open = self.take().span.start;
            let (base, depth) = self.arguments()?;
            let end = self.expect(b')')?.span.end;
            let span = Span { start: first.span.start, end };
            let id = self.finish_call(None, spelled, base, open, span)?;
            return Ok(Part { id, depth });
        }
        let span = Span { start: first.span.start, end: name.span.end };
        let id = self.node(Node::Ident(spelled), name.span.start, span)?;
        Ok(Part { id, depth: 0 })
    }

    /// Whether `.name.name{` follows the current identifier.
    fn is_message_literal(&self) -> bool {
        let mut ahead = 0;
        while self.peek_at(ahead) == Kind::Char(b'.') && self.peek_at(ahead + 1) == Kind::Ident {
            ahead += 2;
        }
        self.peek_at(ahead) == Kind::Char(b'{')
    }

    fn message(&mut self, start: u32) -> Parsed<Part> {
        while self.peek() != Kind::Char(b'{') {
            self.take();
        }
        let open = self.take();
        // White space and comments may separate the parts of the name.
        let written = self.tree.source.slice(Span { start, end: open.span.start });
        let compact: String = written.split_whitespace().collect();
        let name = self.tree.push_text(&compact);
        let mut fields = Vec::new();
        let mut depth = 0;
        while self.peek() != Kind::Char(b'}') {
            let optional = self.eat(b'?');
            let token = self.take();
            let field = match token.kind {
                Kind::Ident => Text::Span(token.span),
                Kind::Quoted => {
                    self.check_quoted_field()?;
                    Text::Span(Span { start: token.span.start + 1, end: token.span.end - 1 })
                }
                _ => {
                    self.next -= 1;
                    return Err(self.unexpected("expecting IDENTIFIER"));
                }
            };
            let at = self.expect(b':')?.span.start;
            let value = self.expr()?;
            depth = depth.max(value.depth);
            fields.push(Field { name: field, value: value.id, optional, at });
            if !self.eat(b',') {
                break;
            }
        }
        let end = self.expect(b'}')?.span.end;
        let run = Run {
            start: u32::try_from(self.tree.fields.len()).unwrap_or(u32::MAX),
            len: u32::try_from(fields.len()).unwrap_or(u32::MAX),
        };
        self.tree.fields.extend(fields);
        let id = self.node(Node::Struct { name, fields: run }, open.span.start, Span { start, end })?;
        Ok(Part { id, depth })
    }

    fn list(&mut self) -> Parsed<Part> {
        let open = self.take();
        let base = self.stack.len();
        let mut optional = Vec::new();
        let mut depth = 0;
        while self.peek() != Kind::Char(b']') {
            if self.stack.len() == base && self.eat(b',') {
                break;
            }
            optional.push(self.optional_mark()?);
            let element = self.expr()?;
            depth = depth.max(element.depth);
            self.stack.push(element.id);
            if !self.eat(b',') {
                break;
            }
        }
        let end = self.expect(b']')?.span.end;
        let elements = self.pop_children(base);
        let optional = self.tree.push_flags(&optional);
        let span = Span { start: open.span.start, end };
        let id = self.node(Node::List { elements, optional }, open.span.start, span)?;
        Ok(Part { id, depth })
    }

    fn optional_mark(&mut self) -> Parsed<bool> {
        let optional = self.eat(b'?');
        if optional && !self.options.optional_syntax {
            return Err(self.limit("unsupported syntax '?'".to_owned()));
        }
        Ok(optional)
    }

    fn map(&mut self) -> Parsed<Part> {
        let open = self.take();
        let base = self.stack.len();
        let mut optional = Vec::new();
        let mut depth = 0;
        while self.peek() != Kind::Char(b'}') {
            if self.stack.len() == base && self.eat(b',') {
                break;
            }
            optional.push(self.optional_mark()?);
            let key = self.expr()?;
            self.expect(b':')?;
            let value = self.expr()?;
            depth = depth.max(key.depth).max(value.depth);
            self.stack.push(key.id);
            self.stack.push(value.id);
            if !self.eat(b',') {
                break;
            }
        }
        let end = self.expect(b'}')?.span.end;
        let entries = self.pop_children(base);
        let optional = self.tree.push_flags(&optional);
        let span = Span { start: open.span.start, end };
        let id = self.node(Node::Map { entries, optional }, open.span.start, span)?;
        Ok(Part { id, depth })
    }
}
