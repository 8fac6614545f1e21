//! Our own file beside upstream's: `kind: NavicertConfiguration`. Which rules are on, and what an issuer may do that
//! upstream's schema has no field for. Files of Kubernetes are never extended.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use navicert_types::decode::{Decode, Decoder, Mode};
use navicert_types::diagnostic::DiagnosticKind;
use navicert_types::tree::{Node, Syntax};
use navicert_types::versioned::{Kind, Versions};
use navicert_types::{Diagnostics, FieldPath};

use super::compile::{Compiled, Egress};
use crate::jwt::{Algorithm, Algorithms};
use crate::profile::{Profile, Rule};

/// The version of our own files.
pub const API_VERSION: &str = "navicert/v1alpha1";
/// The kind's name.
const KIND: &str = "NavicertConfiguration";

static CONFIGURATION: Versions<NavicertConfiguration> = Versions {
    syntax: Syntax::JsonOrYaml,
    mode: Mode::Strict,
    default_api_version: None,
    default_kind: None,
    kinds: &[Kind { api_version: API_VERSION, kind: KIND, decode: NavicertConfiguration::decode }],
};

/// A whole file.
#[derive(Clone, Debug, Default)]
pub struct NavicertConfiguration {
    /// Whose rules to begin with; `None`: hardened, or what the command line says.
    pub profile: Option<BaseProfile>,
    /// Rules that are switched one by one.
    pub rules: Vec<(Rule, bool)>,
    /// Who has to be well before a changed configuration takes over (H24).
    pub reload_health: ReloadHealth,
    /// The file with the list of revoked tokens.
    pub revocation_list: Option<PathBuf>,
    /// Issuers that no authenticator may have: those of the cluster's service accounts (S22, S26).
    pub disallowed_issuers: Vec<String>,
    /// Where a copy of the last good configuration is kept, for a start with a bad one (S192).
    pub last_good_copy: Option<PathBuf>,
    /// What this instance is called in metrics; `None`: the host's name (S196).
    pub instance: Option<String>,
    /// The ways out that issuers can ask for: a proxy's address, or `direct` (S154).
    pub egress: Vec<(Egress, String)>,
    /// What issuers may do.
    pub issuers: Vec<IssuerSettings>,
    /// For the servers, which read it themselves.
    pub servers: Option<Node>,
}

/// The two profiles by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseProfile {
    /// `kube`
    Kube,
    /// `hardened`
    Hardened,
}

/// Who has to be well before a changed configuration takes over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReloadHealth {
    /// Every issuer.
    All,
    /// The issuers that are new or changed.
    #[default]
    Changed,
    /// Nobody.
    None,
}

/// What one issuer may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IssuerSettings {
    /// Which issuer: the exact `issuer.url` of an authenticator.
    pub url: String,
    /// The only algorithms its tokens may be signed with; `None`: all nine (H25, S312).
    pub allowed_algorithms: Option<Algorithms>,
    /// Its users may have names and groups that begin with `system:` (H17).
    pub allow_system_prefix: bool,
    /// Its keys are in this file, and nobody is asked for them (S171).
    pub jwks_file: Option<PathBuf>,
    /// Other issuers whose word counts for its distributed claims (H23).
    pub distributed_claim_issuers: Vec<String>,
    /// Expressions get distributed claims, each fetched when one wants it (S181).
    pub lazy_distributed_claims: bool,
}

/// A side-car that does not fit the configuration it is beside.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct SideCarError {
    /// The field.
    pub path: FieldPath,
    /// What is wrong with it.
    pub message: String,
}

impl NavicertConfiguration {
    /// Reads a file: JSON or YAML, strictly.
    ///
    /// ```
    /// use navicert_authn::config::NavicertConfiguration;
    ///
    /// let text = b"apiVersion: navicert/v1alpha1\nkind: NavicertConfiguration\nrules: {H77: on}\n";
    /// let wrong = NavicertConfiguration::parse(text).unwrap_err();
    /// assert_eq!(wrong.to_string(), "rules.H77: there is no such rule; they are H1 to H25 (line 3, column 9)");
    /// ```
    ///
    /// # Errors
    /// Everything that is wrong, in the order of the text.
    pub fn parse(text: &[u8]) -> Result<Self, Diagnostics> {
        CONFIGURATION.decode(text)
    }

    /// The same with the files it names, which are relative to the folder it is in.
    #[must_use]
    pub fn in_folder(mut self, folder: &Path) -> Self {
        let files = self.issuers.iter_mut().filter_map(|issuer| issuer.jwks_file.as_mut());
        for path in files.chain(self.revocation_list.as_mut()).chain(self.last_good_copy.as_mut()) {
            *path = folder.join(&*path);
        }
        self
    }

    /// The rules that count: those of `named` (a command line's word), else of the file, else hardened; then each rule
    /// that the file switches.
    pub fn profile(&self, named: Option<BaseProfile>) -> Profile {
        let base = match named.or(self.profile) {
            Some(BaseProfile::Kube) => Profile::KUBE,
            Some(BaseProfile::Hardened) | None => Profile::HARDENED,
        };
        self.rules.iter().fold(base, |profile, (rule, on)| profile.with(*rule, *on))
    }

    /// Puts each issuer's settings beside its authenticator.
    ///
    /// # Errors
    /// An issuer that no authenticator has: a setting that protects nothing is worse than none.
    pub fn apply(&self, compiled: &mut Compiled) -> Result<(), Vec<SideCarError>> {
        let mut wrong = Vec::new();
        for (index, settings) in self.issuers.iter().enumerate() {
            let mut authenticators = compiled.authenticators.iter_mut();
            match authenticators.find(|one| one.issuer.url == settings.url) {
                Some(authenticator) => authenticator.settings = settings.clone(),
                None => wrong.push(SideCarError {
                    path: FieldPath::root().field("issuers").index(index).field("url"),
                    message: "no authenticator has this issuer".to_owned(),
                }),
            }
        }
        for (index, authenticator) in compiled.authenticators.iter().enumerate() {
            let Some(egress) = authenticator.issuer.egress else { continue };
            let has_way = self.egress.iter().any(|(known, _)| *known == egress);
            if !self.egress.is_empty() && !has_way {
                wrong.push(SideCarError {
                    path: FieldPath::root().field("egress").field(egress.name()),
                    message: format!("is missing, and `jwt[{index}].issuer.egressSelectorType` asks for it"),
                });
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }
}

impl Decode for NavicertConfiguration {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| NavicertConfiguration {
            profile: fields.optional::<Word<BaseProfile>>("profile").and_then(|word| word.0),
            rules: fields.default::<Rules>("rules").0,
            reload_health: fields
                .optional::<Word<ReloadHealth>>("reloadHealth")
                .and_then(|word| word.0)
                .unwrap_or_default(),
            revocation_list: fields.optional::<String>("revocationList").map(PathBuf::from),
            disallowed_issuers: fields.default("disallowedIssuers"),
            last_good_copy: fields.optional::<String>("lastGoodCopy").map(PathBuf::from),
            instance: fields.optional("instance"),
            egress: fields.default::<Ways>("egress").0,
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
            jwks_file: fields.optional::<String>("jwksFile").map(PathBuf::from),
            distributed_claim_issuers: fields.default("distributedClaimIssuers"),
            lazy_distributed_claims: fields.default("lazyDistributedClaims"),
        })
    }
}

/// One of a fixed set of words.
struct Word<T>(Option<T>);

impl<T> Default for Word<T> {
    fn default() -> Self {
        Word(None)
    }
}

impl Decode for Word<BaseProfile> {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let words = [("kube", BaseProfile::Kube), ("hardened", BaseProfile::Hardened)];
        decoder.one_of(node, &words).map(|profile| Word(Some(profile)))
    }
}

impl Decode for Word<ReloadHealth> {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let words =
            [("all", ReloadHealth::All), ("changed", ReloadHealth::Changed), ("none", ReloadHealth::None)];
        decoder.one_of(node, &words).map(|health| Word(Some(health)))
    }
}

/// `{H1: on}`
#[derive(Default)]
struct Rules(Vec<(Rule, bool)>);

impl Decode for Rules {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let switches = IndexMap::<String, bool>::decode(node, decoder)?;
        let known = |decoder: &mut Decoder, name: &str| {
            unknown_key(node, name, decoder, Rule::named(name), "there is no such rule; they are H1 to H25")
        };
        Some(Rules(
            switches.into_iter().filter_map(|(name, on)| Some((known(decoder, &name)?, on))).collect(),
        ))
    }
}

/// `{cluster: socks5://…}`
#[derive(Default)]
struct Ways(Vec<(Egress, String)>);

impl Decode for Ways {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let ways = IndexMap::<String, String>::decode(node, decoder)?;
        let known = |decoder: &mut Decoder, name: &str| {
            let egress =
                [Egress::ControlPlane, Egress::Cluster].into_iter().find(|egress| egress.name() == name);
            unknown_key(node, name, decoder, egress, "expected `controlplane` or `cluster`")
        };
        Some(Ways(ways.into_iter().filter_map(|(name, way)| Some((known(decoder, &name)?, way))).collect()))
    }
}

/// What a key stands for; if nothing, says so at the key.
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
                let message = "this issuer has settings already".to_owned();
                decoder.report_at(path, span, DiagnosticKind::InvalidValue, message, None);
            }
        }
        Some(DistinctIssuers(issuers))
    }
}

struct AlgorithmNames(Algorithms);

impl Default for AlgorithmNames {
    fn default() -> Self {
        AlgorithmNames(Algorithms::ALL)
    }
}

impl Decode for AlgorithmNames {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let Some(items) = node.as_sequence().filter(|items| !items.is_empty()) else {
            decoder.invalid_value(node, "expected a list with at least one algorithm");
            return None;
        };
        let found =
            items.iter().enumerate().map(|(index, item)| decoder.index::<Word<Algorithm>>(index, item).0);
        // Every name is looked at before the first one that is none ends it.
        let found: Vec<Option<Algorithm>> = found.collect();
        found.into_iter().collect::<Option<Algorithms>>().map(AlgorithmNames)
    }
}

impl Decode for Word<Algorithm> {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let words = Algorithm::ALL.map(|algorithm| (algorithm.name(), algorithm));
        decoder.one_of(node, &words).map(|algorithm| Word(Some(algorithm)))
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
    fn every_field_is_read() {
        let read = parse(
            "profile: kube\nrules: {H7: on, H17: true, H9: off}\nreloadHealth: all\nrevocationList: /r.yaml\n\
             disallowedIssuers: [https://sa]\nlastGoodCopy: /copy.yaml\ninstance: one\negress: {cluster: 'socks5://127.0.0.1:1080', controlplane: direct}\nissuers:\n\
             - url: https://i\n  allowedAlgorithms: [RS256, ES256]\n  allowSystemPrefix: true\n  jwksFile: /k.json\n\
             \x20 distributedClaimIssuers: [https://d]\n  lazyDistributedClaims: true\nservers: {webhook: {}}\n",
        )
        .unwrap();
        let profile = read.profile(None);
        assert!(
            profile.has(Rule::H7)
                && profile.has(Rule::H17)
                && !profile.has(Rule::H9)
                && !profile.has(Rule::H1)
        );
        let profile = read.profile(Some(BaseProfile::Hardened));
        assert!(
            profile.has(Rule::H1) && !profile.has(Rule::H9),
            "the command line's word, then the switches"
        );
        assert_eq!(read.reload_health, ReloadHealth::All);
        let issuer = &read.issuers[0];
        assert!(issuer.allow_system_prefix && issuer.allowed_algorithms.unwrap().contains(Algorithm::ES256));
        assert!(!issuer.allowed_algorithms.unwrap().contains(Algorithm::PS256));
        assert_eq!(issuer.distributed_claim_issuers, ["https://d"]);
        assert!(issuer.lazy_distributed_claims);
        assert_eq!(read.egress[0], (Egress::Cluster, "socks5://127.0.0.1:1080".to_owned()));
        assert!(read.servers.is_some());
        assert_eq!(read.disallowed_issuers, ["https://sa"]);
        assert_eq!(read.last_good_copy.as_deref(), Some(Path::new("/copy.yaml")));
        let nothing = parse("").unwrap();
        assert_eq!(
            (nothing.profile(None), nothing.reload_health),
            (Profile::HARDENED, ReloadHealth::Changed)
        );
    }

    #[test]
    fn everything_that_is_wrong_is_said_at_once() {
        let wrong = parse(
            "profile: strict\nrules: {H0: on, H1: maybe}\nissuers:\n- {allowedAlgorithms: [RS256, none]}\n\
             - {url: u, allowedAlgorithms: []}\n- {url: u, allowSystemPrefixes: true}\negress: {etcd: direct}\nserver: {}\n",
        )
        .unwrap_err();
        let expected = [
            "profile: expected one of `kube`, `hardened` (line 3, column 10)",
            "rules.H0: there is no such rule; they are H1 to H25 (line 4, column 9)",
            "rules[H1]: expected a boolean, found a string (line 4, column 21)",
            "issuers[0].url: required field is missing (line 6, column 3)",
            "issuers[0].allowedAlgorithms[1]: expected one of `ES256`, `ES384`, `ES512`, `PS256`, `PS384`, `PS512`, \
             `RS256`, `RS384`, `RS512` (line 6, column 31)",
            "issuers[1].allowedAlgorithms: expected a list with at least one algorithm (line 7, column 31)",
            "issuers[2].url: this issuer has settings already (line 8, column 3)",
            "issuers[2].allowSystemPrefixes: unknown field (line 8, column 12); did you mean `allowSystemPrefix`?",
            "egress.etcd: expected `controlplane` or `cluster` (line 9, column 10)",
            "server: unknown field (line 10, column 1); did you mean `servers`?",
        ];
        assert_eq!(wrong, expected);
    }
}
