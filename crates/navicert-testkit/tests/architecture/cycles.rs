//! Cycles between the top-level modules of a crate: those of `cycles.toml`, and no other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::crates::packages;
use super::source::Sources;
use super::workspace;

type Uses = BTreeMap<String, BTreeMap<String, String>>;
type Cycle = BTreeSet<String>;

const LIST: &str = "crates/navicert-testkit/tests/architecture/cycles.toml";

/// The largest sets of modules of which each uses each other, directly or through others.
fn cycles(uses: &Uses) -> BTreeSet<Cycle> {
    let reachable: BTreeMap<&String, BTreeSet<&String>> =
        uses.keys().map(|module| (module, reachable_from(module, uses))).collect();
    let reaches = |from: &String, to: &String| reachable.get(from).is_some_and(|set| set.contains(to));
    let cycle_of = |module: &String| -> Cycle {
        uses.keys().filter(|other| reaches(module, other) && reaches(other, module)).cloned().collect()
    };
    uses.keys().map(cycle_of).filter(|cycle| cycle.len() > 1).collect()
}

fn reachable_from<'u>(module: &String, uses: &'u Uses) -> BTreeSet<&'u String> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&String> = uses.get(module).into_iter().flat_map(BTreeMap::keys).collect();
    while let Some(module) = next.pop() {
        if reached.insert(module) {
            next.extend(uses.get(module).into_iter().flat_map(BTreeMap::keys));
        }
    }
    reached
}

/// The list: root files, and below each the modules of a cycle with the reason for it.
fn listed() -> BTreeMap<String, BTreeSet<Cycle>> {
    let text = super::page(LIST);
    let mut listed: BTreeMap<String, BTreeSet<Cycle>> = BTreeMap::new();
    let mut root = None;
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix("[\"").and_then(|line| line.strip_suffix("\"]")) {
            root = Some(name.to_owned());
            continue;
        }
        let (modules, reason) = line.split_once(" = ").unwrap_or_else(|| panic!("{LIST}: {line}"));
        assert!(reason.trim_matches('"').len() > 20, "{LIST}: a cycle needs a reason: {line}");
        let cycle = modules.trim_matches('"').split(", ").map(ToOwned::to_owned).collect();
        listed.entry(root.clone().unwrap()).or_default().insert(cycle);
    }
    listed
}

/// What each module of a cycle uses of it, so that a reader sees what to break.
fn explain(cycle: &Cycle, uses: &Uses) -> String {
    let edges = cycle.iter().flat_map(|from| uses.get(from).into_iter().flatten());
    let inside = edges.filter(|(to, _)| cycle.contains(*to));
    inside.map(|(_, example)| format!("\n    {example}")).collect()
}

#[test]
fn modules_form_no_cycle_that_is_not_listed() {
    let mut listed = listed();
    let mut problems = Vec::new();
    for root in packages().values().flat_map(|package| &package.roots) {
        let name = root.strip_prefix(workspace()).unwrap().display().to_string();
        let allowed = listed.remove(&name).unwrap_or_default();
        let uses = Sources::read(root).uses();
        let found = cycles(&uses);
        for cycle in found.difference(&allowed) {
            problems.push(format!("{name}: new cycle {cycle:?}:{}", explain(cycle, &uses)));
        }
        for cycle in allowed.difference(&found) {
            problems.push(format!("{name}: {LIST} lists {cycle:?}, which is no cycle any more"));
        }
    }
    problems.extend(listed.keys().map(|root| format!("{LIST} lists {root}, which does not exist")));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// The two rules of ARCHITECTURE.md about the modules of `navicert-authn`.
#[test]
fn model_uses_nothing_and_mapping_does_not_use_the_authenticator() {
    let sources = Sources::read(&workspace().join("crates/navicert-authn/src/lib.rs"));
    let uses = sources.uses();
    let used = |module: &str| -> Vec<&String> {
        assert!(sources.modules.contains(module), "{module}");
        uses.get(module).into_iter().flat_map(BTreeMap::keys).collect()
    };
    assert_eq!(used("model"), Vec::<&String>::new());
    let mapping = used("mapping");
    assert!(mapping.iter().any(|module| *module == "model"), "{mapping:?}");
    for module in ["authenticator", "explain", "reloadable"] {
        assert!(
            sources.modules.contains(module) && !mapping.iter().any(|used| *used == module),
            "{mapping:?}"
        );
    }
}

/// Every way to name a module is seen.
#[test]
fn cycle_through_any_kind_of_path_is_found() {
    for path in [
        "use crate::b::Thing;",
        "use crate::{b::{self, Thing}};",
        "use super::b as other;",
        "use super::*; fn f() { crate::b::f(); }",
        "fn f() -> super::b::Thing { todo!() }",
        "fn f() { println!(\"{}\", crate::b::NAME); }",
        "mod inner { use super::super::b::Thing; }",
        "use crate::Exported;",
        "use crate::c; fn f() { c::f(); }",
    ] {
        let found = cycles_of(path);
        let expected = if path.contains("crate::c") { "a, b, c" } else { "a, b" };
        assert_eq!(found, [expected], "{path}");
    }
    for path in
        ["#[cfg(test)] mod tests { use crate::b::Thing; }", "// use crate::b;\nuse std::fmt;", "mod b;"]
    {
        let found = cycles_of(path);
        assert_eq!(found, Vec::<String>::new(), "{path}");
    }
}

/// The cycles of a crate whose module `b` uses `a`, and whose `a` holds this text.
fn cycles_of(text: &str) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("lib.rs", "mod a; mod b; mod c; pub use b::Exported;");
    write("a.rs", text);
    write("a/b.rs", "");
    write("b.rs", "use super::a::f;");
    write("c.rs", "pub(crate) use super::b::f;");
    let uses = Sources::read(&Path::new(dir.path()).join("lib.rs")).uses();
    cycles(&uses).into_iter().map(|cycle| cycle.into_iter().collect::<Vec<_>>().join(", ")).collect()
}
