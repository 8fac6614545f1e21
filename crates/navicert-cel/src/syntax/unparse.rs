//! Formats a tree as text that parses to the same tree. Macro calls are written unexpanded.

use super::ast::{Node, NodeId, Tree};
use std::fmt::Write as _;

/// Formats the expression with the fewest parentheses.
pub fn unparse(tree: &Tree) -> String {
    let mut writer = Writer { tree, out: String::new() };
    writer.write(tree.root(), 0);
    writer.out
}

struct Writer<'t> {
    tree: &'t Tree,
    out: String,
}

/// The precedence and symbol of an operator. An operand of lower precedence than required is parenthesized.
fn precedence(function: &str, args: usize) -> Option<(u8, &'static str)> {
    Some(match (function, args) {
        ("_?_:_", 3) => (1, "?"),
        ("_||_", _) => (2, "||"),
        ("_&&_", _) => (3, "&&"),
        ("_<_", 2) => (4, "<"),
        ("_<=_", 2) => (4, "<="),
        ("_>_", 2) => (4, ">"),
        ("_>=_", 2) => (4, ">="),
        ("_==_", 2) => (4, "=="),
        ("_!=_", 2) => (4, "!="),
        ("@in", 2) => (4, "in"),
        ("_+_", 2) => (5, "+"),
        ("_-_", 2) => (5, "-"),
        ("_*_", 2) => (6, "*"),
        ("_/_", 2) => (6, "/"),
        ("_%_", 2) => (6, "%"),
        ("!_", 1) => (7, "!"),
        ("-_", 1) => (7, "-"),
        _ => return None,
    })
}

/// The precedence required of a receiver, which is followed by a dot or a bracket.
const MEMBER: u8 = 8;

impl Writer<'_> {
    fn write(&mut self, id: NodeId, min_precedence: u8) {
        let tree = self.tree;
        if let Some(call) = tree.macro_calls.iter().find(|call| call.node == id) {
            self.call(tree.text(call.function), call.target, tree.children(call.args));
            return;
        }
        match tree.node(id) {
            Node::Null => self.out.push_str("null"),
            Node::Bool(value) => self.literal(&value),
            Node::Int(value) => self.literal(&value),
            Node::Uint(value) => {
                let _ = write!(self.out, "{value}u");
            }
            Node::Double(value) => self.double(value),
            Node::Str(text) => self.string(tree.text(text)),
            Node::Bytes(index) => self.bytes(tree.bytes(index)),
            Node::Ident(name) => self.out.push_str(tree.text(name)),
            Node::Select { operand, field, test } => {
                if test {
                    self.out.push_str("has(");
                }
                self.write(operand, MEMBER);
                self.out.push('.');
                self.field(tree.text(field));
                if test {
                    self.out.push(')');
                }
            }
            Node::Call { function, target, args } => {
                let (name, args) = (tree.text(function), tree.children(args));
                if target.is_none() && self.operator(name, args, min_precedence) {
                    return;
                }
                self.call(name, target, args);
            }
            Node::List { elements, optional } => {
                self.out.push('[');
                let flags = tree.flags(optional);
                for (index, &element) in tree.children(elements).iter().enumerate() {
                    self.separate(index, flags.get(index).copied().unwrap_or(false));
                    self.write(element, 0);
                }
                self.out.push(']');
            }
            Node::Map { entries, optional } => {
                self.out.push('{');
                let flags = tree.flags(optional);
                for (index, pair) in tree.children(entries).chunks_exact(2).enumerate() {
                    let &[key, value] = pair else { continue };
                    self.separate(index, flags.get(index).copied().unwrap_or(false));
                    self.write(key, 0);
                    self.out.push_str(": ");
                    self.write(value, 0);
                }
                self.out.push('}');
            }
            Node::Struct { name, fields } => {
                self.out.push_str(tree.text(name));
                self.out.push('{');
                for (index, field) in tree.fields(fields).iter().enumerate() {
                    self.separate(index, field.optional);
                    self.field(tree.text(field.name));
                    self.out.push_str(": ");
                    self.write(field.value, 0);
                }
                self.out.push('}');
            }
            // Every fold is the expansion of a macro, whose call was written above.
            Node::Fold(_) => {}
        }
    }

    fn separate(&mut self, index: usize, optional: bool) {
        if index > 0 {
            self.out.push_str(", ");
        }
        if optional {
            self.out.push('?');
        }
    }

    fn literal(&mut self, value: &dyn std::fmt::Display) {
        let _ = write!(self.out, "{value}");
    }

    fn double(&mut self, value: f64) {
        let start = self.out.len();
        let _ = write!(self.out, "{value:?}");
        // `1e300` is a double literal; `1` would be an int.
        let written = self.out.get(start..).unwrap_or("");
        if !written.contains(['.', 'e']) {
            self.out.push_str(".0");
        }
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for symbol in text.chars() {
            match symbol {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                symbol if symbol < ' ' => {
                    let _ = write!(self.out, "\\x{:02x}", u32::from(symbol));
                }
                symbol => self.out.push(symbol),
            }
        }
        self.out.push('"');
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.out.push_str("b\"");
        for &byte in bytes {
            match byte {
                b'"' | b'\\' => {
                    self.out.push('\\');
                    self.out.push(char::from(byte));
                }
                b' '..=b'~' => self.out.push(char::from(byte)),
                byte => {
                    let _ = write!(self.out, "\\x{byte:02x}");
                }
            }
        }
        self.out.push('"');
    }

    /// A field name, in back-ticks if it is not an identifier.
    fn field(&mut self, name: &str) {
        let first = name.bytes().next().unwrap_or(b'0');
        let plain = !first.is_ascii_digit()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && !matches!(name, "in" | "true" | "false" | "null");
        if plain {
            self.out.push_str(name);
        } else {
            let _ = write!(self.out, "`{name}`");
        }
    }

    fn operator(&mut self, name: &str, args: &[NodeId], min_precedence: u8) -> bool {
        match (name, args) {
            ("_[_]" | "_[?_]", &[operand, index]) => {
                self.write(operand, MEMBER);
                self.out.push_str(if name == "_[_]" { "[" } else { "[?" });
                self.write(index, 0);
                self.out.push(']');
                return true;
            }
            ("_?._", &[operand, key]) => {
                self.write(operand, MEMBER);
                self.out.push_str(".?");
                if let Node::Str(field) = self.tree.node(key) {
                    self.field(self.tree.text(field));
                }
                return true;
            }
            _ => {}
        }
        let Some((level, symbol)) = precedence(name, args.len()) else { return false };
        let parenthesized = level < min_precedence;
        if parenthesized {
            self.out.push('(');
        }
        match args {
            [operand] => {
                self.out.push_str(symbol);
                let start = self.out.len();
                self.write(*operand, MEMBER);
                // A minus sign would become part of a number, and cancel another minus sign.
                let first = self.out.get(start..).and_then(|text| text.bytes().next());
                if symbol == "-" && matches!(first, Some(b'-' | b'.' | b'0'..=b'9')) {
                    self.out.insert(start, '(');
                    self.out.push(')');
                }
            }
            [condition, yes, no] if name == "_?_:_" => {
                self.write(*condition, 2);
                self.out.push_str(" ? ");
                self.write(*yes, 2);
                self.out.push_str(" : ");
                self.write(*no, 1);
            }
            terms => {
                for (index, &term) in terms.iter().enumerate() {
                    if index > 0 {
                        let _ = write!(self.out, " {symbol} ");
                    }
                    // Arithmetic and relations are left-associative; logical operators are n-ary.
                    let same = index == 0 && level > 3;
                    self.write(term, if same { level } else { level + 1 });
                }
            }
        }
        if parenthesized {
            self.out.push(')');
        }
        true
    }

    fn call(&mut self, name: &str, target: Option<NodeId>, args: &[NodeId]) {
        if let Some(target) = target {
            self.write(target, MEMBER);
            self.out.push('.');
        }
        self.out.push_str(name);
        self.out.push('(');
        for (index, &argument) in args.iter().enumerate() {
            self.separate(index, false);
            self.write(argument, 0);
        }
        self.out.push(')');
    }
}
