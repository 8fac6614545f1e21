//! Reads the sources of a crate: its modules, and every path that its code names. Code for tests does not count.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ImplItem, Item, ItemMod, ItemUse, Meta, UseTree};

/// The modules of one library or binary, below its root file.
pub(crate) struct Sources {
    /// Top-level modules that a file or block declares.
    pub(crate) modules: BTreeSet<String>,
    /// Top-level modules by the names that the root file re-exports from them.
    exported: HashMap<String, String>,
    /// Every path that is named, with the module that names it.
    named: Vec<(Vec<String>, Vec<String>)>,
}

impl Sources {
    pub(crate) fn read(root: &Path) -> Self {
        let mut reader = Reader::default();
        reader.read_file(root, root.parent().unwrap(), &[]);
        let modules: BTreeSet<String> =
            reader.modules.iter().filter_map(|module| module.first().cloned()).collect();
        let exported =
            reader.root_imports.into_iter().filter(|(_, module)| modules.contains(module)).collect();
        Sources { modules, exported, named: reader.named }
    }

    /// For each top-level module those that it uses, with one path that does.
    pub(crate) fn uses(&self) -> BTreeMap<String, BTreeMap<String, String>> {
        let mut uses: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        for (module, path) in &self.named {
            let (Some(from), Some("crate"), Some(first)) =
                (module.first(), path.first().map(String::as_str), path.get(1))
            else {
                continue;
            };
            let to = if self.modules.contains(first) { Some(first) } else { self.exported.get(first) };
            if let Some(to) = to.filter(|to| *to != from) {
                let example = format!("{} names {}", module.join("::"), path.join("::"));
                uses.entry(from.clone()).or_default().entry(to.clone()).or_insert(example);
            }
        }
        uses
    }

    /// Paths of other crates that start with one of these.
    pub(crate) fn naming(&self, prefixes: &[&str]) -> Vec<String> {
        let starts = |path: &str, prefix: &str| {
            path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
        };
        self.named
            .iter()
            .map(|(module, path)| (module, path.join("::")))
            .filter(|(_, path)| prefixes.iter().any(|prefix| starts(path, prefix)))
            .map(|(module, path)| format!("crate::{} names {path}", module.join("::")))
            .collect()
    }
}

#[derive(Default)]
struct Reader {
    modules: Vec<Vec<String>>,
    root_imports: HashMap<String, String>,
    named: Vec<(Vec<String>, Vec<String>)>,
    /// The module that is being read, the directory of its children, and what its imports name.
    module: Vec<String>,
    children: PathBuf,
    file: PathBuf,
    imports: HashMap<String, Vec<String>>,
    patterns: Patterns,
}

impl Reader {
    fn read_file(&mut self, file: &Path, children: &Path, module: &[String]) {
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        self.within(file, children, module, |reader| reader.read_items(&parsed.items));
    }

    /// Imports come first: a path may use a name that is imported below it.
    fn read_items(&mut self, items: &[Item]) {
        for item in items {
            if let Item::Use(item) = item
                && !is_for_tests(&item.attrs)
            {
                self.read_use(&item.tree, &mut Vec::new());
            }
        }
        items.iter().for_each(|item| self.visit_item(item));
    }

    fn within(&mut self, file: &Path, children: &Path, module: &[String], read: impl FnOnce(&mut Self)) {
        let outer = (
            std::mem::replace(&mut self.file, file.to_owned()),
            std::mem::replace(&mut self.children, children.to_owned()),
            std::mem::replace(&mut self.module, module.to_vec()),
            std::mem::take(&mut self.imports),
        );
        read(self);
        (self.file, self.children, self.module, self.imports) = outer;
    }

    fn read_use(&mut self, tree: &UseTree, prefix: &mut Vec<String>) {
        match tree {
            UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.read_use(&path.tree, prefix);
                prefix.pop();
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.read_use(tree, prefix)),
            UseTree::Glob(_) => drop(self.name(prefix)),
            UseTree::Name(name) => self.import(prefix, &name.ident.to_string(), None),
            UseTree::Rename(name) => {
                self.import(prefix, &name.ident.to_string(), Some(name.rename.to_string()));
            }
        }
    }

    fn import(&mut self, prefix: &[String], name: &str, rename: Option<String>) {
        let mut path = prefix.to_vec();
        if name != "self" {
            path.push(name.to_owned());
        }
        let local = rename.or_else(|| path.last().cloned()).unwrap_or_default();
        let resolved = self.name(&path);
        if self.module.is_empty() {
            let first = resolved.iter().find(|segment| *segment != "crate");
            self.root_imports.extend(first.map(|first| (local.clone(), first.clone())));
        }
        self.imports.insert(local, resolved);
    }

    /// Records a path and returns it as seen from the root: `crate::…`, or a path of another crate.
    fn name(&mut self, path: &[String]) -> Vec<String> {
        let resolved = self.resolve(path);
        self.named.push((self.module.clone(), resolved.clone()));
        resolved
    }

    fn resolve(&self, path: &[String]) -> Vec<String> {
        let supers = path.iter().take_while(|segment| *segment == "super").count();
        let (base, rest) = match path.first().map(String::as_str) {
            Some("self") => (self.module.as_slice(), &path[1..]),
            Some("super") => (&self.module[..self.module.len().saturating_sub(supers)], &path[supers..]),
            Some(first) => match self.imports.get(first) {
                Some(imported) => return [imported, &path[1..]].concat(),
                None => return path.to_vec(),
            },
            None => return Vec::new(),
        };
        [&["crate".to_owned()], base, rest].concat()
    }

    /// Paths in the arguments of macros, which are tokens only.
    fn read_tokens(&mut self, tokens: &str) {
        for path in self.patterns.path.clone().find_iter(&self.patterns.literal.replace_all(tokens, "")) {
            let segments: Vec<String> =
                path.as_str().split("::").map(|segment| segment.trim().to_owned()).collect();
            self.name(&segments);
        }
    }
}

struct Patterns {
    literal: Regex,
    path: Regex,
}

impl Default for Patterns {
    fn default() -> Self {
        Patterns {
            literal: Regex::new(r#""(?:[^"\\]|\\.)*""#).unwrap(),
            path: Regex::new(r"[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)+").unwrap(),
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let attributes = match item {
            ImplItem::Fn(item) => item.attrs.as_slice(),
            _ => &[],
        };
        if !is_for_tests(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    /// Those of a module are read before its items; those inside of a function when it is.
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.read_use(&item.tree, &mut Vec::new());
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        let name = item.ident.to_string();
        let module = [self.module.as_slice(), std::slice::from_ref(&name)].concat();
        self.modules.push(module.clone());
        let children = self.children.join(&name);
        if let Some((_, items)) = &item.content {
            let file = self.file.clone();
            self.within(&file, &children, &module, |reader| reader.read_items(items));
            return;
        }
        let file = match path_attribute(&item.attrs) {
            Some(path) => self.file.with_file_name(path),
            None => {
                let candidates = [self.children.join(format!("{name}.rs")), children.join("mod.rs")];
                let found = candidates.iter().find(|file| file.is_file());
                found.unwrap_or_else(|| panic!("no file of {}", module.join("::"))).clone()
            }
        };
        self.read_file(&file, &children, &module);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.name(&segments);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.read_tokens(&item.tokens.to_string());
        visit::visit_macro(self, item);
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// `cfg(test)`, also with conditions, and `cfg(any(test, feature = "test-util"))`.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).any(|attribute| {
        let Meta::List(list) = &attribute.meta else { return false };
        let condition = list.tokens.to_string();
        condition.split(|c: char| !c.is_alphanumeric()).any(|word| word == "test")
            && !condition.contains("not")
    })
}

fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find(|attribute| attribute.path().is_ident("path")).and_then(|attribute| {
        let Meta::NameValue(pair) = &attribute.meta else { return None };
        let Expr::Lit(literal) = &pair.value else { return None };
        match &literal.lit {
            syn::Lit::Str(text) => Some(text.value()),
            _ => None,
        }
    })
}
