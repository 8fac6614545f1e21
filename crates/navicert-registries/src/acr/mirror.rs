//! Registries of one's own that stand in for others: `--registry-mirror=mcr.microsoft.com:mine.azurecr.io`.
// I199

/// Which host stands in for which.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mirrors(Vec<(String, String)>);

impl Mirrors {
    /// Reads `source:mirror` pairs, separated by commas; also those that are none, for a warning.
    pub fn parse(text: &str) -> (Self, Vec<String>) {
        let (mut mirrors, mut refused) = (Vec::new(), Vec::new());
        let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        for entry in text.split(',').filter(|entry| !entry.is_empty()) {
            match entry.split(':').collect::<Vec<_>>().as_slice() {
                [source, mirror] if !source.is_empty() && !mirror.is_empty() => {
                    mirrors.push(((*source).to_owned(), (*mirror).to_owned()));
                }
                _ => refused.push(entry.to_owned()),
            }
        }
        // The longest source first: with overlapping ones the choice is not chance.
        mirrors.sort_by_key(|(source, _)| std::cmp::Reverse(source.len()));
        (Mirrors(mirrors), refused)
    }

    /// The image under its mirror's name, and the source it stands in for. A source ends where a name ends: at a slash
    /// or at the end.
    pub fn apply(&self, image: &str) -> (String, Option<String>) {
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
    fn a_source_ends_where_a_name_ends_and_the_longest_wins() {
        // I199
        let (mirrors, refused) =
            Mirrors::parse("mcr.example : a.azurecr.io, mcr.example/team:b.azurecr.io/x,host:5000:c,bad,:d");
        assert_eq!(refused, ["host:5000:c", "bad", ":d"]);
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
