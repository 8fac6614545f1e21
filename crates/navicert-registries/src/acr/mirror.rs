//! Registry mirrors: `--registry-mirror=mcr.microsoft.com:mine.azurecr.io`.
// I199

/// Pairs of source and mirror, longest source first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mirrors(Vec<(String, String)>);

impl Mirrors {
    /// Parses comma-separated `source:mirror` pairs; also returns the invalid entries, for a warning.
    pub(crate) fn parse(text: &str) -> (Self, Vec<String>) {
        let (mut mirrors, mut invalid) = (Vec::new(), Vec::new());
        let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        for entry in text.split(',').filter(|entry| !entry.is_empty()) {
            match entry.split(':').collect::<Vec<_>>().as_slice() {
                [source, mirror] if !source.is_empty() && !mirror.is_empty() => {
                    mirrors.push(((*source).to_owned(), (*mirror).to_owned()));
                }
                _ => invalid.push(entry.to_owned()),
            }
        }
        // Longest source first, so that overlapping sources are deterministic.
        mirrors.sort_by_key(|(source, _)| std::cmp::Reverse(source.len()));
        (Mirrors(mirrors), invalid)
    }

    /// Replaces a source by its mirror; also returns the replaced source. A source matches whole path segments only.
    pub(crate) fn apply(&self, image: &str) -> (String, Option<String>) {
        for (source, mirror) in &self.0 {
            if let Some(rest) = image.strip_prefix(source.as_str())
                && (rest.is_empty() || rest.starts_with('/'))
            {
                return (format!("{mirror}{rest}"), Some(source.clone()));
            }
        }
        (image.to_owned(), None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_whole_segments_and_longest_source_wins() {
        // I199
        let (mirrors, invalid) =
            Mirrors::parse("mcr.example : a.azurecr.io, mcr.example/team:b.azurecr.io/x,host:5000:c,bad,:d");
        assert_eq!(invalid, ["host:5000:c", "bad", ":d"]);
        for (image, applied, source) in [
            ("mcr.example/x", "a.azurecr.io/x", Some("mcr.example")),
            ("mcr.example", "a.azurecr.io", Some("mcr.example")),
            ("mcr.example/team/y", "b.azurecr.io/x/y", Some("mcr.example/team")),
            ("mcr.example/teamwork/y", "a.azurecr.io/teamwork/y", Some("mcr.example")),
            ("mcr.example.evil.example/x", "mcr.example.evil.example/x", None),
            ("mcr.example@evil.example/x", "mcr.example@evil.example/x", None),
        ] {
            assert_eq!(mirrors.apply(image), (applied.to_owned(), source.map(str::to_owned)), "{image}");
        }
    }
}
