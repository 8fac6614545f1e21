//! Parser for AWS shared files: sections and `key = value`; nested blocks are skipped.

use std::collections::BTreeMap;

use navicert_types::Secret;

/// Settings of a profile; any of them may be a secret key.
#[derive(Debug, Default)]
pub(super) struct Section(BTreeMap<String, Secret<String>>);

impl Section {
    /// Value of a setting, if not empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|value| value.expose().as_str()).filter(|value| !value.is_empty())
    }
}

/// The profiles of both files.
#[derive(Debug, Default)]
pub(super) struct Profiles(BTreeMap<String, Section>);

impl Profiles {
    /// The profile with this name.
    pub(super) fn section(&self, name: &str) -> Option<&Section> {
        self.0.get(name)
    }

    /// Adds a file; its settings override those already present. A profile is `[profile x]` (or `[default]`) in the
    /// configuration file and `[x]` in the credentials file.
    pub(super) fn add(&mut self, text: &str, is_config: bool) {
        let mut current: Option<String> = None;
        for line in text.lines() {
            let trimmed = line.trim();
            if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
                continue;
            }
            if let Some(header) = trimmed.strip_prefix('[') {
                let header = header.split(']').next().unwrap_or_default().trim();
                current = profile_name(header, is_config);
                if let Some(name) = &current {
                    self.0.entry(name.clone()).or_default();
                }
                continue;
            }
            // Indented lines belong to a block such as `s3 =`.
            if line.starts_with([' ', '\t']) {
                continue;
            }
            if let (Some(name), Some((key, value))) = (&current, trimmed.split_once('=')) {
                let value =
                    value.split(" #").next().and_then(|value| value.split(" ;").next()).unwrap_or_default();
                let section = self.0.entry(name.clone()).or_default();
                section.0.insert(key.trim().to_ascii_lowercase(), Secret::new(value.trim().to_owned()));
            }
        }
    }
}

fn profile_name(header: &str, is_config: bool) -> Option<String> {
    let plain = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
    match header.split_once(char::is_whitespace) {
        Some(("profile", name)) if is_config => Some(plain(name)),
        None if !is_config || header == "default" => Some(plain(header)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_both_files_and_credentials_file_wins() {
        let mut profiles = Profiles::default();
        let config = "# c\n[default]\nregion = us-west-2 # here\ns3 =\n  aws_secret_access_key = nested\n[profile \"a b\"]\nROLE_ARN=arn:x\n[services x]\nrole_arn=no\n[plain]\nrole_arn=no";
        profiles.add(config, true);
        profiles.add(
            "[default]\nregion = eu-west-1\naws_secret_access_key = a=b#c\nempty =\n[other]\nbroken line\n",
            false,
        );
        let default = profiles.section("default").unwrap();
        assert_eq!(default.get("region"), Some("eu-west-1"));
        assert_eq!(default.get("aws_secret_access_key"), Some("a=b#c"));
        assert_eq!(default.get("empty"), None);
        assert_eq!(profiles.section("a b").unwrap().get("role_arn"), Some("arn:x"));
        assert!(profiles.section("plain").is_none() && profiles.section("x").is_none());
        assert!(profiles.section("other").is_some());
        assert!(!format!("{profiles:?}").contains("a=b#c"));
    }
}
