//! An index over many patterns that finds those matching an image without testing each.
//!
//! Hosts without globs are found in a hash map, hosts with globs in a tree of labels from right to left, and paths by
//! hashing their prefixes. The cost grows with the length of the image and the number of *distinct lengths* of globs and
//! paths, not with the number of patterns. The result equals [`ImagePattern::matches`] for each pattern; a property test
//! checks this.

use std::collections::HashMap;

use crate::location::Location;
use crate::pattern::{Glob, ImagePattern, Label};

/// Patterns with more labels than this are compared one by one, which bounds the depth of the tree.
const MAX_TREE_DEPTH: usize = 32;

/// An index over numbered patterns.
#[derive(Debug, Default)]
pub(crate) struct PatternIndex {
    without_port: Hosts,
    ports: HashMap<Box<[u8]>, Hosts>,
    /// Patterns that the tree does not support: character classes and very deep hosts.
    // I77
    unindexed: Vec<(ImagePattern, u32)>,
}

impl PatternIndex {
    /// Builds an index.
    pub(crate) fn new(patterns: impl IntoIterator<Item = (ImagePattern, u32)>) -> Self {
        let mut index = PatternIndex::default();
        for (pattern, number) in patterns {
            index.insert(pattern, number);
        }
        index
    }

    /// The numbers of the matching patterns, ascending and without duplicates.
    pub(crate) fn matching(&self, image: &Location<'_>) -> Vec<u32> {
        let mut found = Vec::new();
        let hosts =
            if image.port().is_empty() { Some(&self.without_port) } else { self.ports.get(image.port()) };
        if let Some(hosts) = hosts {
            hosts.collect(image, &mut found);
        }
        found.extend(
            self.unindexed.iter().filter(|(pattern, _)| pattern.matches(image)).map(|(_, number)| *number),
        );
        if found.len() > 1 {
            found.sort_unstable();
            found.dedup();
        }
        found
    }

    fn insert(&mut self, pattern: ImagePattern, number: u32) {
        let is_class = |label: &Label| matches!(label, Label::Class(_));
        if pattern.labels().len() > MAX_TREE_DEPTH || pattern.labels().iter().any(is_class) {
            self.unindexed.push((pattern, number));
            return;
        }
        let hosts = if pattern.port().is_empty() {
            &mut self.without_port
        } else {
            self.ports.entry(pattern.port().into()).or_default()
        };
        hosts.paths_for(&pattern).get_or_insert(pattern.path()).push(number);
    }
}

/// The patterns of one port.
#[derive(Debug, Default)]
struct Hosts {
    exact: HashMap<Box<[u8]>, Paths>,
    globs: Option<Node>,
}

/// The pattern numbers of a host, by required path prefix.
type Paths = ByLength<Vec<u32>>;

impl Hosts {
    fn collect(&self, image: &Location<'_>, found: &mut Vec<u32>) {
        if let Some(paths) = self.exact.get(image.host()) {
            collect_paths(paths, image, found);
        }
        if let Some(globs) = &self.globs {
            globs.collect(image.labels(), image, found);
        }
    }

    fn paths_for(&mut self, pattern: &ImagePattern) -> &mut Paths {
        let exact = |label: &Label| match label {
            Label::Exact(text) => Some(text.clone()),
            Label::Glob(_) | Label::Class(_) => None,
        };
        match pattern.labels().iter().map(exact).collect::<Option<Vec<_>>>() {
            Some(labels) => self.exact.entry(labels.join(&b'.').into()).or_default(),
            None => pattern
                .labels()
                .iter()
                .rev()
                .fold(self.globs.get_or_insert_default(), Node::child)
                .paths_mut(),
        }
    }
}

fn collect_paths(paths: &Paths, image: &Location<'_>, found: &mut Vec<u32>) {
    paths.for_each_prefix(image.path(), &mut |numbers, _| found.extend_from_slice(numbers));
}

/// A label of a host with a glob, and its child labels to the left.
#[derive(Debug, Default)]
struct Node {
    exact: HashMap<Box<[u8]>, Node>,
    globs: ByLength<ByLength<Vec<(Glob, Node)>>>,
    paths: Paths,
}

impl Node {
    fn collect<'l>(
        &self,
        mut labels: impl DoubleEndedIterator<Item = &'l [u8]> + Clone,
        image: &Location<'_>,
        found: &mut Vec<u32>,
    ) {
        let Some(label) = labels.next_back() else { return collect_paths(&self.paths, image, found) };
        if let Some(node) = self.exact.get(label) {
            node.collect(labels.clone(), image, found);
        }
        self.globs.for_each_prefix(label, &mut |endings, rest| {
            endings.for_each_suffix(rest, &mut |globs, between| {
                for (_, node) in globs.iter().filter(|(glob, _)| glob.middles_match(between)) {
                    node.collect(labels.clone(), image, found);
                }
            });
        });
    }

    fn child<'n>(self: &'n mut Node, label: &Label) -> &'n mut Node {
        match label {
            Label::Exact(text) | Label::Class(text) => self.exact.entry(text.clone()).or_default(),
            Label::Glob(glob) => {
                let same = self.globs.get_or_insert(&glob.prefix).get_or_insert(&glob.suffix);
                let at = same.iter().position(|(known, _)| known == glob).unwrap_or(same.len());
                if at == same.len() {
                    same.push((glob.clone(), Node::default()));
                }
                match same.get_mut(at) {
                    Some((_, node)) => node,
                    // Not reached: `at` was found or inserted above.
                    None => self.exact.entry(Box::default()).or_default(),
                }
            }
        }
    }

    fn paths_mut(&mut self) -> &mut Paths {
        &mut self.paths
    }
}

/// Values by prefix or suffix, with one table per length.
#[derive(Debug)]
struct ByLength<T> {
    empty: Option<T>,
    longer: Vec<(usize, Table<T>)>,
}

/// Values by texts of one length.
type Table<T> = HashMap<Box<[u8]>, T>;

impl<T> Default for ByLength<T> {
    fn default() -> Self {
        ByLength { empty: None, longer: Vec::new() }
    }
}

impl<T: Default> ByLength<T> {
    fn get_or_insert(&mut self, text: &[u8]) -> &mut T {
        if text.is_empty() {
            return self.empty.get_or_insert_default();
        }
        let at = self.longer.partition_point(|(length, _)| *length < text.len());
        if self.longer.get(at).is_none_or(|(length, _)| *length != text.len()) {
            self.longer.insert(at, (text.len(), HashMap::new()));
        }
        match self.longer.get_mut(at) {
            Some((_, table)) => table.entry(text.into()).or_default(),
            // Not reached: the table was just inserted.
            None => self.empty.get_or_insert_default(),
        }
    }

    /// Calls `each` for every value whose key is a prefix of `text`, with the rest of `text`.
    fn for_each_prefix<'t>(&self, text: &'t [u8], each: &mut dyn FnMut(&T, &'t [u8])) {
        if let Some(value) = &self.empty {
            each(value, text);
        }
        for (length, table) in &self.longer {
            let Some((beginning, rest)) = text.split_at_checked(*length) else { return };
            if let Some(value) = table.get(beginning) {
                each(value, rest);
            }
        }
    }

    /// Calls `each` for every value whose key is a suffix of `text`, with the rest of `text`.
    fn for_each_suffix<'t>(&self, text: &'t [u8], each: &mut dyn FnMut(&T, &'t [u8])) {
        if let Some(value) = &self.empty {
            each(value, text);
        }
        for (length, table) in &self.longer {
            let Some((rest, ending)) =
                text.len().checked_sub(*length).and_then(|at| text.split_at_checked(at))
            else {
                return;
            };
            if let Some(value) = table.get(ending) {
                each(value, rest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::profile::Profile;

    fn indexed_and_sequential(
        patterns: &[String],
        image: &str,
        profile: Profile,
    ) -> Option<(Vec<u32>, Vec<u32>)> {
        let patterns: Vec<ImagePattern> =
            patterns.iter().filter_map(|text| ImagePattern::parse(text, profile).ok()).collect();
        let image = Location::parse(image.as_bytes()).ok()?;
        let numbered = patterns.iter().cloned().zip(0..);
        let one_by_one =
            numbered.clone().filter(|(pattern, _)| pattern.matches(&image)).map(|(_, n)| n).collect();
        Some((PatternIndex::new(numbered).matching(&image), one_by_one))
    }

    proptest! {
        #[test]
        fn index_agrees_with_matcher(
            patterns in proptest::collection::vec("([ab*]{0,3}\\.){0,3}[ab*]{0,4}(:5|:)?(/[ab]{0,2}){0,2}", 0..12),
            image in "([ab]{0,3}\\.){0,3}[ab]{0,4}(:5|:)?(/[ab]{0,2}){0,3}",
            hardened in any::<bool>(),
        ) {
            let profile = if hardened { Profile::Hardened } else { Profile::Kube };
            if let Some((indexed, one_by_one)) = indexed_and_sequential(&patterns, &image, profile) {
                prop_assert_eq!(indexed, one_by_one);
            }
        }
    }

    #[test]
    fn finds_unindexed_patterns() {
        // I77, and a host with far more labels than any real name.
        let deep = vec!["a"; 100_000].join(".");
        let patterns = ["[::1]".to_owned(), "1".to_owned(), deep.clone(), "*".to_owned()];
        let matching = |image: &str, profile| indexed_and_sequential(&patterns, image, profile).unwrap();
        for (image, profile, expected) in [
            ("1/x", Profile::Kube, vec![0, 1, 3]),
            ("[::1]/x", Profile::Kube, vec![3]),
            ("[::1]/x", Profile::Hardened, vec![0, 3]),
            (&*deep, Profile::Kube, vec![2]),
        ] {
            assert_eq!(matching(image, profile), (expected.clone(), expected), "{profile:?}");
        }
    }
}
