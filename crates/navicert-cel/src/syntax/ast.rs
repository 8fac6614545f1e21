//! The syntax tree: a flat table of nodes addressed by index, so that building, copying and dropping do not
//! recurse.

use crate::source::{Source, Span};

/// Index of a node in its [`Tree`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A string in a tree: part of the source, a built-in name, or a string that contained escapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Text {
    /// Part of the source text.
    Span(Span),
    /// A name defined by the language.
    Static(&'static str),
    /// An entry of the tree's string table.
    Owned(u32),
}

/// A range of entries in one of the tree's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Run {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

/// One node of the tree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Node {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// An `int` literal.
    Int(i64),
    /// A `uint` literal.
    Uint(u64),
    /// A `double` literal.
    Double(f64),
    /// A string literal, unescaped.
    Str(Text),
    /// A bytes literal: an entry of the tree's table of byte strings.
    Bytes(u32),
    /// An identifier, possibly with a leading dot.
    Ident(Text),
    /// `operand.field`, or `has(operand.field)` when `test` is set.
    Select {
        /// The operand.
        operand: NodeId,
        /// The field's name without back-ticks.
        field: Text,
        /// Presence test only.
        test: bool,
    },
    /// An operator or function; operators have names such as `_+_`.
    Call {
        /// The function's name.
        function: Text,
        /// The receiver of `target.function(…)`.
        target: Option<NodeId>,
        /// The arguments.
        args: Run,
    },
    /// `[a, ?b]`
    List {
        /// The elements.
        elements: Run,
        /// Which elements are optional, written with `?`: entries of the flag table, empty if none.
        optional: Run,
    },
    /// `{k: v, ?k: v}`: keys and values alternate.
    Map {
        /// Keys and values, alternating.
        entries: Run,
        /// Which entries are optional, written with `?`; empty if none.
        optional: Run,
    },
    /// `name{field: value}`
    Struct {
        /// The type's name as written.
        name: Text,
        /// An entry of the tree's table of field lists.
        fields: Run,
    },
    /// The expansion of a comprehension macro: an entry of the tree's table of folds.
    Fold(u32),
}

/// A field initializer of [`Node::Struct`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Field {
    /// Name of the field.
    pub name: Text,
    /// Its value.
    pub value: NodeId,
    /// Whether the field is optional, written with `?`.
    pub optional: bool,
    /// Byte offset of its colon.
    pub at: u32,
}

/// The result of a comprehension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoldKind {
    /// `all`
    All,
    /// `exists`
    Exists,
    /// `exists_one`
    ExistsOne,
    /// `map`, `filter` and `transformList`: a list of results.
    List,
    /// `transformMap`: the first variable is the key.
    Map,
    /// `transformMapEntry`: each result is a map, and all are merged.
    MapEntry,
    /// A local binding: `cel.bind`, `optMap`, `optFlatMap`.
    Bind,
}

/// A comprehension: loop over `range`, or bind a name when the kind is [`FoldKind::Bind`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fold {
    /// The kind of result.
    pub kind: FoldKind,
    /// The collection, or the bound value.
    pub range: NodeId,
    /// First variable.
    pub variable: Text,
    /// Second variable of the two-variable forms.
    pub second: Option<Text>,
    /// Filter of `map`, `filter` and the transforms.
    pub filter: Option<NodeId>,
    /// Predicate, result expression or body.
    pub body: NodeId,
}

/// A macro call before expansion, kept for unparsing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MacroCall {
    pub(crate) node: NodeId,
    pub(crate) function: Text,
    pub(crate) target: Option<NodeId>,
    pub(crate) args: Run,
}

/// A parsed expression.
#[derive(Debug, Clone)]
pub struct Tree {
    pub(crate) source: Source,
    pub(crate) nodes: Vec<Node>,
    /// The offset of the caret in errors about each node: the operator, the dot, the parenthesis.
    pub(crate) at: Vec<u32>,
    pub(crate) spans: Vec<Span>,
    pub(crate) children: Vec<NodeId>,
    pub(crate) flags: Vec<bool>,
    pub(crate) fields: Vec<Field>,
    pub(crate) folds: Vec<Fold>,
    pub(crate) texts: Vec<Box<str>>,
    pub(crate) bytes: Vec<Box<[u8]>>,
    pub(crate) macro_calls: Vec<MacroCall>,
    pub(crate) root: NodeId,
}

impl Tree {
    pub(crate) fn new(source: Source) -> Self {
        Tree {
            source,
            nodes: Vec::new(),
            at: Vec::new(),
            spans: Vec::new(),
            children: Vec::new(),
            flags: Vec::new(),
            fields: Vec::new(),
            folds: Vec::new(),
            texts: Vec::new(),
            bytes: Vec::new(),
            macro_calls: Vec::new(),
            root: NodeId(0),
        }
    }

    /// The root node.
    pub fn root(&self) -> NodeId {
        self.root
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether the tree has no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The source text.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// All nodes, children before parents. A node that macro expansion replaced has no parent.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, Node)> {
        (0..).map(NodeId).zip(self.nodes.iter().copied())
    }

    /// The node with this index; `null` if it is out of range.
    pub fn node(&self, id: NodeId) -> Node {
        self.nodes.get(id.index()).copied().unwrap_or(Node::Null)
    }

    /// The source range of a node.
    pub fn span(&self, id: NodeId) -> Span {
        self.spans.get(id.index()).copied().unwrap_or_default()
    }

    /// The offset of the caret in errors about the node.
    pub fn at(&self, id: NodeId) -> u32 {
        self.at.get(id.index()).copied().unwrap_or_default()
    }

    /// The content of a string.
    pub fn text(&self, text: Text) -> &str {
        match text {
            Text::Span(span) => self.source.slice(span),
            Text::Static(name) => name,
            Text::Owned(index) => self.texts.get(index as usize).map_or("", |text| text),
        }
    }

    /// The name of a called function or operator, without a leading dot.
    pub fn function_name(&self, function: Text) -> &str {
        let name = self.text(function);
        name.strip_prefix('.').unwrap_or(name)
    }

    /// The nodes of a range.
    pub fn children(&self, run: Run) -> &[NodeId] {
        self.children.get(run.start as usize..(run.start + run.len) as usize).unwrap_or(&[])
    }

    /// The flags of a range.
    pub fn flags(&self, run: Run) -> &[bool] {
        self.flags.get(run.start as usize..(run.start + run.len) as usize).unwrap_or(&[])
    }

    /// Calls a function with each child of a node.
    pub(crate) fn each_child(&self, node: Node, mut visit: impl FnMut(NodeId)) {
        match node {
            Node::Select { operand, .. } => visit(operand),
            Node::Call { target, args, .. } => {
                target.into_iter().for_each(&mut visit);
                self.children(args).iter().copied().for_each(visit);
            }
            Node::List { elements: run, .. } | Node::Map { entries: run, .. } => {
                self.children(run).iter().copied().for_each(visit);
            }
            Node::Struct { fields, .. } => {
                self.fields(fields).iter().map(|field| field.value).for_each(visit);
            }
            Node::Fold(index) => {
                if let Some(fold) = self.fold(index) {
                    [fold.range, fold.body].into_iter().chain(fold.filter).for_each(visit);
                }
            }
            _ => {}
        }
    }

    /// The field initializers of a range.
    pub fn fields(&self, run: Run) -> &[Field] {
        self.fields.get(run.start as usize..(run.start + run.len) as usize).unwrap_or(&[])
    }

    /// The fold with this index.
    pub fn fold(&self, index: u32) -> Option<&Fold> {
        self.folds.get(index as usize)
    }

    /// The bytes of a bytes literal.
    pub fn bytes(&self, index: u32) -> &[u8] {
        self.bytes.get(index as usize).map_or(&[], |bytes| bytes)
    }

    pub(crate) fn push(&mut self, node: Node, at: u32, span: Span) -> NodeId {
        let id = NodeId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        self.nodes.push(node);
        self.at.push(at);
        self.spans.push(span);
        id
    }

    pub(crate) fn push_children(&mut self, ids: &[NodeId]) -> Run {
        let start = u32::try_from(self.children.len()).unwrap_or(u32::MAX);
        self.children.extend_from_slice(ids);
        Run { start, len: u32::try_from(ids.len()).unwrap_or(u32::MAX) }
    }

    pub(crate) fn push_flags(&mut self, flags: &[bool]) -> Run {
        if !flags.contains(&true) {
            return Run::default();
        }
        let start = u32::try_from(self.flags.len()).unwrap_or(u32::MAX);
        self.flags.extend_from_slice(flags);
        Run { start, len: u32::try_from(flags.len()).unwrap_or(u32::MAX) }
    }

    pub(crate) fn push_text(&mut self, text: &str) -> Text {
        let index = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        self.texts.push(text.into());
        Text::Owned(index)
    }

    /// `a.b.c` as one qualified name, if the node is a chain of selections from an identifier.
    pub(crate) fn qualified_name(&self, id: NodeId) -> Option<String> {
        match self.node(id) {
            Node::Ident(name) => Some(self.text(name).to_owned()),
            Node::Select { operand, field, test: false } => {
                let mut name = self.qualified_name(operand)?;
                name.push('.');
                name.push_str(self.text(field));
                Some(name)
            }
            _ => None,
        }
    }
}
