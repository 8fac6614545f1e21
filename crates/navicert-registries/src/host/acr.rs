//! Hosts of Azure Container Registry: a registry name, or a regional replica of it, under a suffix of an Azure cloud.

use super::Host;

/// The domain suffixes of registries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RegistrySuffixes(Vec<String>);

/// Suffixes of Azure's public and sovereign clouds.
// I197
const KNOWN_SUFFIXES: [&str; 4] = ["azurecr.io", "azurecr.cn", "azurecr.de", "azurecr.us"];

impl Default for RegistrySuffixes {
    fn default() -> Self {
        RegistrySuffixes(KNOWN_SUFFIXES.map(str::to_owned).to_vec())
    }
}

impl RegistrySuffixes {
    /// Adds the suffix of a custom cloud. Ignores a suffix that is not a host name with a dot: it would match too much.
    #[must_use]
    pub(crate) fn with_suffix(mut self, suffix: &str) -> Self {
        let suffix = suffix.trim_start_matches('.').to_ascii_lowercase();
        if super::is_name(&suffix) && !self.0.contains(&suffix) {
            self.0.push(suffix);
        }
        self
    }

    /// The suffixes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// An Azure Container Registry host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AcrHost {
    /// The login server.
    pub login_server: String,
    /// Its domain suffix.
    pub suffix: String,
}

impl AcrHost {
    /// Matches an Azure registry host: `name.azurecr.io` or `name.region.geo.azurecr.io`.
    // I197, I198
    pub(crate) fn from_host(host: &Host, suffixes: &RegistrySuffixes) -> Option<Self> {
        let under = |suffix: &&str| {
            let labels: Vec<&str> = host.strip_domain_suffix(suffix)?.split('.').collect();
            matches!(labels.as_slice(), [_name] | [_name, _, "geo"]).then_some(())
        };
        let suffix = suffixes.iter().find(|suffix| under(suffix).is_some())?;
        Some(AcrHost { login_server: host.name().to_owned(), suffix: suffix.to_owned() })
    }

    /// Whether a challenge of this registry may name this token server: the registry itself, or a host under the same
    /// suffix.
    // I215
    pub(crate) fn allows_realm(&self, realm_host: &str) -> bool {
        realm_host == self.login_server
            || Host::from_image(realm_host).is_ok_and(|host| host.strip_domain_suffix(&self.suffix).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login_server(image: &str) -> Option<String> {
        let suffixes = RegistrySuffixes::default().with_suffix(".azurecr.stack.example").with_suffix("local");
        Some(AcrHost::from_host(&Host::from_image(image).ok()?, &suffixes)?.login_server)
    }

    #[test]
    fn matches_one_label_under_an_azure_suffix() {
        // I197, I198
        for image in [
            "foo.azurecr.io/x",
            "foo-bar.azurecr.io",
            "foo.azurecr.cn/x",
            "foo.azurecr.de",
            "foo.azurecr.us",
            "FOO.azurecr.io/x",
            "foo.eastus.geo.azurecr.io/x",
            "foo.azurecr.stack.example/x",
            "foo.azurecr.io:443/x",
        ] {
            assert!(login_server(image).is_some(), "{image}");
        }
        for image in [
            "azurecr.io/x",
            "foo.azurecr.io.evil.example/x",
            "host.example/azurecr.io/x",
            "a.b.azurecr.io/x",
            "fooazurecr.io/x",
            "foo.azurecr.io./x",
            "foo.azurecr.local/x",
            "foo.local/x",
            "foo.azurecr.com/x",
            "foo@x.azurecr.io/x",
            "a.b.c.geo.azurecr.io/x",
        ] {
            assert_eq!(login_server(image), None, "{image}");
        }
    }

    #[test]
    fn allows_realms_under_the_same_suffix_only() {
        // I215
        let host = Host::from_image("foo.azurecr.io/x").unwrap();
        let registry = AcrHost::from_host(&host, &RegistrySuffixes::default()).unwrap();
        for (realm, allowed) in [
            ("foo.azurecr.io", true),
            ("bar.azurecr.io", true),
            ("foo.azurecr.cn", false),
            ("azurecr.io", false),
            ("foo.azurecr.io.evil.example", false),
            ("evil.example", false),
            ("127.0.0.1", false),
            ("", false),
        ] {
            assert_eq!(registry.allows_realm(realm), allowed, "{realm}");
        }
    }
}
