//! The `NavicertConfiguration`, a file beside the `AuthenticationConfiguration`: hardening rules, and issuer settings that
//! the upstream schema has no field for. Kubernetes' own files are never extended.

use std::io;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use navicert_types::decode::{Decode, DecodeMode, Decoder};
use navicert_types::diagnostic::DiagnosticKind;
use navicert_types::tree::{Node, Syntax};
pub use navicert_types::versioned::NAVICERT_API_VERSION as API_VERSION;
use navicert_types::versioned::{Kind, Versions};
use navicert_types::{Diagnostics, FieldPath, error_chain};

use super::compile::{CompiledConfig, Egress};
use super::load::load_excluding_issuers;
use crate::jwt::{JwsAlgorithm, JwsAlgorithmSet};
use crate::profile::{AuthnProfile, Hardening, KubeVersion};

/// The kind.
const KIND: &str = "NavicertConfiguration";

static CONFIGURATION: Versions<NavicertConfiguration> = Versions {
    syntax: Syntax::JsonOrYaml,
    mode: DecodeMode::Strict,
    default_api_version: None,
    default_kind: None,
    kinds: &[Kind { api_version: API_VERSION, kind: KIND, decode: NavicertConfiguration::decode }],
};

/// A `NavicertConfiguration` file.
#[derive(Clone, Debug, Default)]
pub struct NavicertConfiguration {
    /// The base profile; `None`: that of the command line, or hardened.
    pub profile: Option<BaseProfile>,
    /// The Kubernetes version to follow; `None`: that of the command line, or the newest stable one.
    pub kube_version: Option<KubeVersion>,
    /// Hardening rules switched on or off.
    pub rules: Vec<(Hardening, bool)>,
    /// Which issuers have to be ready before a changed configuration is applied.
    // H24
    pub reload_health: ReloadHealth,
    /// Path of the revocation list.
    pub revocation_list: Option<PathBuf>,
    /// Issuers that no authenticator may have: those of the cluster's service accounts.
    // S22, S26
    pub disallowed_issuers: Vec<String>,
    /// Path for a copy of the last good configuration, used at startup if the current one is invalid.
    // S192
    pub last_good_copy: Option<PathBuf>,
    /// Name of this instance in metrics; `None`: the host name.
    // S196
    pub instance: Option<String>,
    /// Egress routes that issuers can select: a proxy URL, or `direct`.
    // S154
    pub egress: Vec<(Egress, String)>,
    /// Settings per issuer.
    pub issuers: Vec<IssuerSettings>,
    /// Server settings, decoded by the servers.
    pub servers: Option<Node>,
}

/// The base profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseProfile {
    /// `kube`
    Kube,
    /// `hardened`
    Hardened,
}

/// Which issuers have to be ready before a changed configuration is applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReloadHealth {
    /// Every issuer.
    All,
    /// New or changed issuers.
    #[default]
    Changed,
    /// No issuer.
    None,
}

/// Settings of one issuer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IssuerSettings {
    /// The exact `issuer.url` of an authenticator.
    pub url: String,
    /// The allowed signature algorithms; `None`: all nine.
    // H25, S312
    pub allowed_algorithms: Option<JwsAlgorithmSet>,
    /// Usernames and groups may start with `system:`, except for the group `system:masters`.
    // H17
    pub allow_system_prefix: bool,
    /// Groups may contain `system:masters`.
    // H17
    pub allow_system_masters: bool,
    /// Path of a file with the issuer's keys, used instead of fetching them.
    // S171
    pub jwks_file: Option<PathBuf>,
    /// Path of a file with the certificate authorities of the issuer's endpoints, in place of `certificateAuthority`.
    pub certificate_authority_file: Option<PathBuf>,
    /// Other issuers that may sign distributed claims for it.
    // H23
    pub distributed_claim_issuers: Vec<String>,
    /// Expressions may use distributed claims, which are fetched on first use.
    // S181
    pub lazy_distributed_claims: bool,
}

/// A `NavicertConfiguration` that does not match the `AuthenticationConfiguration`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct NavicertConfigError {
    /// The field.
    pub path: FieldPath,
    /// What is wrong with it.
    pub message: String,
    /// The kind of the mismatch.
    pub kind: NavicertConfigErrorKind,
}

/// How a `NavicertConfiguration` does not match the `AuthenticationConfiguration`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NavicertConfigErrorKind {
    /// Settings for an issuer that no authenticator has.
    UnknownIssuer,
    /// Both files have the certificate authority of an issuer.
    AuthorityTwice,
    /// No way is configured for an egress that an authenticator selects.
    MissingEgress,
}

impl IssuerSettings {
    /// The setting that has no effect under a profile, and why.
    pub(crate) fn ignored_under(&self, profile: &AuthnProfile) -> Option<String> {
        let is_ignored = self.allowed_algorithms.is_some() && !profile.has(Hardening::AlgorithmAllowlist);
        is_ignored.then(|| {
            format!(
                "`allowedAlgorithms` of issuer `{}` has no effect: without rule H25, which profile `kube` switches off, all nine \
                 algorithms are allowed",
                self.url
            )
        })
    }
}

impl NavicertConfiguration {
    /// Parses a file from JSON or YAML, strictly.
    ///
    /// ```
    /// use navicert_authn::config::NavicertConfiguration;
    ///
    /// let text = b"apiVersion: navicert/v1alpha1\nkind: NavicertConfiguration\nrules: {H77: on}\n";
    /// let wrong = NavicertConfiguration::parse(text).unwrap_err();
    /// assert_eq!(wrong.to_string(), "rules.H77: unknown hardening rule, expected H1 to H25 (line 3, column 9)");
    /// ```
    ///
    /// # Errors
    /// Every problem, in the order of the text.
    pub fn parse(text: &[u8]) -> Result<Self, Diagnostics> {
        CONFIGURATION.decode(text)
    }

    /// Resolves relative paths against the folder of the file.
    #[must_use]
    pub fn resolve_paths(mut self, dir: &Path) -> Self {
        let files = self
            .issuers
            .iter_mut()
            .flat_map(|issuer| [&mut issuer.jwks_file, &mut issuer.certificate_authority_file])
            .flatten();
        for path in files.chain(self.revocation_list.as_mut()).chain(self.last_good_copy.as_mut()) {
            *path = dir.join(&*path);
        }
        self
    }

    /// The effective profile: `named` and `version` (from the command line), else the file's, else hardened and the newest stable
    /// version; then with each rule that the file switches.
    pub fn profile(&self, named: Option<BaseProfile>, version: Option<KubeVersion>) -> AuthnProfile {
        let base = match named.or(self.profile) {
            Some(BaseProfile::Kube) => AuthnProfile::KUBE,
            Some(BaseProfile::Hardened) | None => AuthnProfile::HARDENED,
        };
        let base = base.with_version(version.or(self.kube_version).unwrap_or_default());
        self.rules.iter().fold(base, |profile, (rule, on)| profile.with(*rule, *on))
    }

    /// Adds each issuer's settings to its authenticator, if there is one.
    pub(crate) fn apply_known(&self, compiled: &mut CompiledConfig) {
        for settings in &self.issuers {
            let mut authenticators = compiled.authenticators.iter_mut();
            if let Some(authenticator) = authenticators.find(|one| one.issuer.url == settings.url) {
                authenticator.settings = settings.clone();
            }
        }
    }

    /// Settings that have no effect under a profile, one clause each.
    pub fn ignored_settings(&self, profile: &AuthnProfile) -> Vec<String> {
        self.issuers.iter().filter_map(|issuer| issuer.ignored_under(profile)).collect()
    }

    /// Adds each issuer's settings to its authenticator.
    ///
    /// # Errors
    /// Settings for an issuer that no authenticator has: they would have no effect.
    pub fn apply(&self, compiled: &mut CompiledConfig) -> Result<(), Vec<NavicertConfigError>> {
        self.apply_known(compiled);
        let mut wrong = Vec::new();
        for (index, settings) in self.issuers.iter().enumerate() {
            let path = FieldPath::root().field("issuers").index(index);
            let authenticator = compiled.authenticators.iter().find(|one| one.issuer.url == settings.url);
            let Some(authenticator) = authenticator else {
                wrong.push(NavicertConfigError {
                    path: path.field("url"),
                    message: "no authenticator is configured for this issuer".to_owned(),
                    kind: NavicertConfigErrorKind::UnknownIssuer,
                });
                continue;
            };
            let has_own = !authenticator.issuer.certificate_authority.is_empty();
            if settings.certificate_authority_file.is_some() && has_own {
                wrong.push(NavicertConfigError {
                    path: path.field("certificateAuthorityFile"),
                    message: "the issuer already has a `certificateAuthority`; remove one of the two"
                        .to_owned(),
                    kind: NavicertConfigErrorKind::AuthorityTwice,
                });
            }
        }
        for (index, authenticator) in compiled.authenticators.iter().enumerate() {
            let Some(egress) = authenticator.issuer.egress else { continue };
            let has_way = self.egress.iter().any(|(known, _)| *known == egress);
            if !self.egress.is_empty() && !has_way {
                wrong.push(NavicertConfigError {
                    path: FieldPath::root().field("egress").field(egress.name()),
                    message: format!("missing, but selected by `jwt[{index}].issuer.egressSelectorType`"),
                    kind: NavicertConfigErrorKind::MissingEgress,
                });
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    /// Loads an `AuthenticationConfiguration` and applies all settings of its issuers. `read` returns the contents of a file.
    ///
    /// # Errors
    /// In one sentence: the configuration is invalid, the two files do not match, or a certificate authority cannot be used.
    pub fn compile(
        &self,
        config: &[u8],
        profile: &AuthnProfile,
        read: impl Fn(&Path) -> io::Result<Vec<u8>>,
    ) -> Result<CompiledConfig, String> {
        let loaded = load_excluding_issuers(config, profile, &self.disallowed_issuers)
            .map_err(|error| format!("invalid configuration: {error}"))?;
        let mut compiled = loaded.compiled;
        self.apply(&mut compiled).map_err(|wrong| {
            let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
            format!("the NavicertConfiguration does not match the configuration: {}", wrong.join("; "))
        })?;
        self.apply_certificate_authorities(&mut compiled, read).map_err(|error| error_chain(&error))?;
        Ok(compiled)
    }
}

impl Decode for NavicertConfiguration {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| NavicertConfiguration {
            profile: fields.optional::<Keyword<BaseProfile>>("profile").and_then(|word| word.0),
            kube_version: fields.optional::<Keyword<KubeVersion>>("kubeVersion").and_then(|word| word.0),
            rules: fields.default::<HardeningSwitches>("rules").0,
            reload_health: fields
                .optional::<Keyword<ReloadHealth>>("reloadHealth")
                .and_then(|word| word.0)
                .unwrap_or_default(),
            revocation_list: fields.optional::<String>("revocationList").map(PathBuf::from),
            disallowed_issuers: fields.default("disallowedIssuers"),
            last_good_copy: fields.optional::<String>("lastGoodCopy").map(PathBuf::from),
            instance: fields.optional("instance"),
            egress: fields.default::<EgressRoutes>("egress").0,
            issuers: fields.default::<DistinctIssuers>("issuers").0,
            servers: fields.node("servers").filter(|node| !node.is_null()).cloned(),
        })
    }
}

impl Decode for IssuerSettings {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| IssuerSettings {
            url: fields.required("url"),
            allowed_algorithms: fields.optional::<AlgorithmNames>("allowedAlgorithms").map(|names| names.0),
            allow_system_prefix: fields.default("allowSystemPrefix"),
            allow_system_masters: fields.default("allowSystemMasters"),
            jwks_file: fields.optional::<String>("jwksFile").map(PathBuf::from),
            certificate_authority_file: fields
                .optional::<String>("certificateAuthorityFile")
                .map(PathBuf::from),
            distributed_claim_issuers: fields.default("distributedClaimIssuers"),
            lazy_distributed_claims: fields.default("lazyDistributedClaims"),
        })
    }
}

/// One of a fixed set of keywords.
struct Keyword<T>(Option<T>);

impl<T> Default for Keyword<T> {
    fn default() -> Self {
        Keyword(None)
    }
}

impl Decode for Keyword<BaseProfile> {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let words = [("kube", BaseProfile::Kube), ("hardened", BaseProfile::Hardened)];
        decoder.one_of(node, &words).map(|profile| Keyword(Some(profile)))
    }
}

impl Decode for Keyword<KubeVersion> {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let words = KubeVersion::ALL.map(|version| (version.name(), version));
        decoder.one_of(node, &words).map(|version| Keyword(Some(version)))
    }
}

impl Decode for Keyword<ReloadHealth> {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let words =
            [("all", ReloadHealth::All), ("changed", ReloadHealth::Changed), ("none", ReloadHealth::None)];
        decoder.one_of(node, &words).map(|health| Keyword(Some(health)))
    }
}

/// `{H1: on}`
#[derive(Default)]
struct HardeningSwitches(Vec<(Hardening, bool)>);

impl Decode for HardeningSwitches {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let switches = IndexMap::<String, bool>::decode(node, decoder)?;
        let known = |decoder: &mut Decoder, name: &str| {
            unknown_key(
                node,
                name,
                decoder,
                Hardening::from_code(name),
                "unknown hardening rule, expected H1 to H25",
            )
        };
        Some(HardeningSwitches(
            switches.into_iter().filter_map(|(name, on)| Some((known(decoder, &name)?, on))).collect(),
        ))
    }
}

/// `{cluster: socks5://…}`
#[derive(Default)]
struct EgressRoutes(Vec<(Egress, String)>);

impl Decode for EgressRoutes {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let ways = IndexMap::<String, String>::decode(node, decoder)?;
        let known = |decoder: &mut Decoder, name: &str| {
            let egress =
                [Egress::ControlPlane, Egress::Cluster].into_iter().find(|egress| egress.name() == name);
            unknown_key(node, name, decoder, egress, "expected `controlplane` or `cluster`")
        };
        Some(EgressRoutes(
            ways.into_iter().filter_map(|(name, way)| Some((known(decoder, &name)?, way))).collect(),
        ))
    }
}

/// Reports an unknown key at its position.
fn unknown_key<T>(
    node: &Node,
    name: &str,
    decoder: &mut Decoder,
    meaning: Option<T>,
    message: &str,
) -> Option<T> {
    if meaning.is_none() {
        let span = node
            .as_mapping()
            .and_then(|mapping| mapping.last(name))
            .map_or(node.span, |entry| entry.key_span);
        let path = decoder.path().field(name);
        decoder.report_at(path, span, DiagnosticKind::InvalidValue, message.to_owned(), None);
    }
    meaning
}

#[derive(Default)]
struct DistinctIssuers(Vec<IssuerSettings>);

impl Decode for DistinctIssuers {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let issuers = Vec::<IssuerSettings>::decode(node, decoder)?;
        for (index, issuer) in issuers.iter().enumerate() {
            let earlier = issuers.iter().take(index).any(|other| other.url == issuer.url);
            if earlier && !issuer.url.is_empty() {
                let path = decoder.path().index(index).field("url");
                let span =
                    node.as_sequence().and_then(|items| items.get(index)).map_or(node.span, |item| item.span);
                let message = "duplicate settings for this issuer".to_owned();
                decoder.report_at(path, span, DiagnosticKind::InvalidValue, message, None);
            }
        }
        Some(DistinctIssuers(issuers))
    }
}

struct AlgorithmNames(JwsAlgorithmSet);

impl Default for AlgorithmNames {
    fn default() -> Self {
        AlgorithmNames(JwsAlgorithmSet::ALL)
    }
}

impl Decode for AlgorithmNames {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let Some(items) = node.as_sequence().filter(|items| !items.is_empty()) else {
            decoder.report_invalid_value(node, "expected a list with at least one algorithm");
            return None;
        };
        let found = items
            .iter()
            .enumerate()
            .map(|(index, item)| decoder.index::<Keyword<JwsAlgorithm>>(index, item).0);
        // Collects first, so that every unknown name is reported.
        let found: Vec<Option<JwsAlgorithm>> = found.collect();
        found.into_iter().collect::<Option<JwsAlgorithmSet>>().map(AlgorithmNames)
    }
}

impl Decode for Keyword<JwsAlgorithm> {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let words = JwsAlgorithm::ALL.map(|algorithm| (algorithm.name(), algorithm));
        decoder.one_of(node, &words).map(|algorithm| Keyword(Some(algorithm)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "apiVersion: navicert/v1alpha1\nkind: NavicertConfiguration\n";

    fn parse(text: &str) -> Result<NavicertConfiguration, Vec<String>> {
        NavicertConfiguration::parse(format!("{HEAD}{text}").as_bytes())
            .map_err(|wrong| wrong.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn every_field_is_decoded() {
        let read = parse(
            "profile: kube\nrules: {H7: on, H17: true, H9: off}\nreloadHealth: all\nrevocationList: /r.yaml\n\
             disallowedIssuers: [https://sa]\nlastGoodCopy: /copy.yaml\ninstance: one\negress: {cluster: 'socks5://127.0.0.1:1080', controlplane: direct}\nissuers:\n\
             - url: https://i\n  allowedAlgorithms: [RS256, ES256]\n  allowSystemPrefix: true\n  allowSystemMasters: true\n  jwksFile: /k.json\n\
             \x20 distributedClaimIssuers: [https://d]\n  lazyDistributedClaims: true\nservers: {webhook: {}}\n",
        )
        .unwrap();
        let profile = read.profile(None, None);
        assert!(
            profile.has(Hardening::ExactClaimNames)
                && profile.has(Hardening::ReservedSystemPrefix)
                && !profile.has(Hardening::CanonicalEncoding)
                && !profile.has(Hardening::SingleDocument)
        );
        let profile = read.profile(Some(BaseProfile::Hardened), None);
        assert!(
            profile.has(Hardening::SingleDocument) && !profile.has(Hardening::CanonicalEncoding),
            "the command line's profile, then the switches"
        );
        assert_eq!(read.reload_health, ReloadHealth::All);
        let issuer = &read.issuers[0];
        assert!(issuer.allow_system_masters);
        assert!(
            issuer.allow_system_prefix && issuer.allowed_algorithms.unwrap().contains(JwsAlgorithm::ES256)
        );
        assert!(!issuer.allowed_algorithms.unwrap().contains(JwsAlgorithm::PS256));
        assert_eq!(issuer.distributed_claim_issuers, ["https://d"]);
        assert!(issuer.lazy_distributed_claims);
        assert_eq!(read.egress[0], (Egress::Cluster, "socks5://127.0.0.1:1080".to_owned()));
        assert!(read.servers.is_some());
        assert_eq!(read.disallowed_issuers, ["https://sa"]);
        assert_eq!(read.last_good_copy.as_deref(), Some(Path::new("/copy.yaml")));
        let nothing = parse("").unwrap();
        assert_eq!(
            (nothing.profile(None, None), nothing.reload_health),
            (AuthnProfile::HARDENED, ReloadHealth::Changed)
        );
    }

    #[test]
    fn every_problem_is_reported_at_once() {
        let wrong = parse(
            "profile: strict\nrules: {H0: on, H1: maybe}\nissuers:\n- {allowedAlgorithms: [RS256, none]}\n\
             - {url: u, allowedAlgorithms: []}\n- {url: u, allowSystemPrefixes: true}\negress: {etcd: direct}\nserver: {}\n",
        )
        .unwrap_err();
        let expected = [
            "profile: expected one of `kube`, `hardened` (line 3, column 10)",
            "rules.H0: unknown hardening rule, expected H1 to H25 (line 4, column 9)",
            "rules[H1]: expected a boolean, found a string (line 4, column 21)",
            "issuers[0].url: missing required field (line 6, column 3)",
            "issuers[0].allowedAlgorithms[1]: expected one of `ES256`, `ES384`, `ES512`, `PS256`, `PS384`, `PS512`, \
             `RS256`, `RS384`, `RS512` (line 6, column 31)",
            "issuers[1].allowedAlgorithms: expected a list with at least one algorithm (line 7, column 31)",
            "issuers[2].url: duplicate settings for this issuer (line 8, column 3)",
            "issuers[2].allowSystemPrefixes: unknown field (line 8, column 12); did you mean `allowSystemPrefix`?",
            "egress.etcd: expected `controlplane` or `cluster` (line 9, column 10)",
            "server: unknown field (line 10, column 1); did you mean `servers`?",
        ];
        assert_eq!(wrong, expected);
    }
}
