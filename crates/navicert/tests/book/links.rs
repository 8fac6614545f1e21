//! The table of contents and the links of every page.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use super::markdown::{Fence, anchors, fences, indented, links};
use super::{pages, read, workspace};

/// A page whose commands another test runs and compares.
const RUN_ELSEWHERE: &str = "docs/demo.md";
/// `make test-quickstarts` types every command of these pages.
const QUICK_STARTS: &str = "docs/quickstart/";
/// Languages of fences that readers type.
const COMMANDS: [&str; 4] = ["sh", "bash", "shell", "console"];
/// Generated from the program's own help.
const GENERATED: &str = "docs/reference/";

/// The page of the Helm chart, which the book has besides docs/ and examples/.
const CHART: &str = "charts/navicert/README.md";

#[test]
fn every_page_is_in_the_table_of_contents_once() {
    let listed = links(&read("docs/SUMMARY.md"));
    let unique: BTreeSet<&String> = listed.iter().collect();
    assert_eq!(unique.len(), listed.len(), "docs/SUMMARY.md lists a page twice");
    let listed: BTreeSet<String> = listed.iter().map(|target| normal("docs", target)).collect();
    for page in pages() {
        assert!(listed.contains(&page), "docs/SUMMARY.md does not list {page}");
    }
    for page in listed {
        assert!(workspace().join(&page).is_file(), "docs/SUMMARY.md lists {page}, which does not exist");
    }
}

#[test]
fn every_relative_link_and_anchor_leads_somewhere() {
    let root = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "STYLE.md", "CHANGELOG.md"];
    let mut all = pages();
    all.extend(root.map(str::to_owned));
    all.extend(["authentication", "deploy", "token"].map(|folder| format!("examples/{folder}/README.md")));
    all.push(CHART.to_owned());
    let (mut checked, mut broken) = (0, Vec::new());
    for page in &all {
        let text = read(page);
        let folder = Path::new(page).parent().unwrap().to_string_lossy().into_owned();
        for target in links(&text).into_iter().filter(|target| !target.contains("://")) {
            checked += 1;
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let file = if file.is_empty() { page.clone() } else { normal(&folder, file) };
            if !workspace().join(&file).exists() {
                broken.push(format!("{page} links to {target}: no such file"));
            } else if !anchor.is_empty() && !anchors(&read(&file)).iter().any(|known| known == anchor) {
                broken.push(format!("{page} links to {target}: no such heading"));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(checked > 150, "only {checked} links were checked");
}

/// Pages link to each other within the book, to examples/ and to the chart's page: what else is outside of docs/ is not in the book.
#[test]
fn pages_link_to_nothing_that_the_book_leaves_out() {
    for page in pages() {
        let folder = Path::new(&page).parent().unwrap().to_string_lossy().into_owned();
        for target in links(&read(&page)).iter().filter(|target| !target.contains("://")) {
            let file = normal(&folder, target.split('#').next().unwrap());
            let inside = file.starts_with("docs") || file.starts_with("examples/") || file == CHART;
            assert!(inside, "{page} links to {target}, which is not in the book");
        }
    }
}

/// Every command in the guides is run by a test, or the fence says why not: `tested=PATH` names the test or the script,
/// `skip="REASON"` the reason. What is printed after `$ ` without being a `console` fence needs the same.
#[test]
fn every_command_is_run_by_a_test_or_says_why_not() {
    let run: Vec<&str> = super::quick_starts::pages_that_run().collect();
    let mut commands = 0;
    for page in pages().into_iter().filter(|page| !page.starts_with(GENERATED)) {
        let text = read(&page);
        for fence in fences(&text) {
            let is_typed = |line: &String| {
                line.starts_with("$ ") || fence.language().is_empty() && line.starts_with("navicert ")
            };
            let typed = fence.text.iter().any(is_typed);
            let is_file = fence.attribute("file").is_some();
            if is_file || !(typed || COMMANDS.contains(&fence.language())) {
                continue;
            }
            commands += 1;
            let is_console = fence.language() == "console";
            let is_run = page == RUN_ELSEWHERE && is_console
                || page.starts_with(QUICK_STARTS) && COMMANDS.contains(&fence.language())
                || is_console && run.contains(&page.as_str());
            let place = format!("{page}:{}", fence.line);
            assert!(is_run || is_accounted_for(&fence), "{place}: no test runs it, and it says no reason");
            if let Some(test) = fence.attribute("tested") {
                assert!(names_command(&workspace().join(test), &fence), "{place}: {test} does not run it");
            }
        }
        let unfenced = indented(&text);
        let unfenced = unfenced.iter().find(|line| line.contains("navicert ") || line.contains("$ "));
        assert_eq!(unfenced, None, "{page}: put the command into a fence");
    }
    assert!(commands > 60, "only {commands} fences with commands were found");
}

fn is_accounted_for(fence: &Fence) -> bool {
    fence.attribute("tested").is_some() || fence.attribute("skip").is_some_and(|reason| reason.len() > 10)
}

/// Whether the test exists and speaks of the verb, or of the program that is not navicert.
fn names_command(test: &Path, fence: &Fence) -> bool {
    let line = fence.text.iter().find(|line| !line.is_empty()).unwrap().trim_start_matches("$ ");
    let mut words = line.split(' ').filter(|word| *word != "&&" && *word != "sudo");
    let program = words.next().unwrap();
    let word = match program {
        "navicert" | "make" | "cd" => words.next().unwrap(),
        "ln" => words.next_back().unwrap(),
        program => program,
    };
    let word = word.rsplit('/').next().unwrap();
    let sources = if test.is_dir() {
        std::fs::read_dir(test)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_file())
            .collect()
    } else {
        vec![test.to_owned()]
    };
    sources.iter().any(|path| std::fs::read_to_string(path).is_ok_and(|source| source.contains(word)))
}

/// A link of a page as a path from the root, without `..`.
fn normal(folder: &str, target: &str) -> String {
    let mut path = PathBuf::new();
    for part in Path::new(folder).join(target).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    path.to_string_lossy().into_owned()
}
