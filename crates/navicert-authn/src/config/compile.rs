//! A compiled configuration: expressions are CEL programs. Only validation constructs one.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use navicert_cel::kubernetes::{claims_builder, claims_environment_of, user_builder, user_environment_of};
use navicert_cel::syntax::query;
use navicert_cel::{CompileError, Environment, EnvironmentBuilder, Library, Program, Stage, unescape};
use navicert_types::FieldPath;
use navicert_types::authentication_config::AnonymousAuthConfig;

use super::navicert_config::IssuerSettings;
use super::violation::Violations;
use crate::profile::{self, AuthnProfile};

/// A compiled configuration.
#[derive(Debug)]
pub struct CompiledConfig {
    /// In the order of the file; issuer URLs are distinct.
    pub authenticators: Vec<CompiledAuthenticator>,
    /// Anonymous access.
    pub anonymous: Option<AnonymousAuthConfig>,
    /// The profile it was compiled for.
    pub profile: AuthnProfile,
}

/// The authenticator of one issuer.
#[derive(Debug)]
pub struct CompiledAuthenticator {
    /// Its field path: `jwt[0]`.
    pub path: FieldPath,
    /// The issuer.
    pub issuer: CompiledIssuer,
    /// Settings of the issuer in the NavicertConfiguration.
    pub settings: IssuerSettings,
    /// The username.
    pub username: AttributeMapping,
    /// The groups, if mapped.
    pub groups: Option<AttributeMapping>,
    /// The UID, if mapped. Its prefix is empty.
    pub uid: Option<AttributeMapping>,
    /// Extra attributes.
    pub extra: Vec<ExtraAttribute>,
    /// Claims with a required value.
    pub required_claims: Vec<RequiredClaim>,
    /// Claim validation rules.
    pub claim_rules: Vec<ValidationRule>,
    /// User validation rules.
    pub user_rules: Vec<ValidationRule>,
    /// Claims that expressions can access; `None`: any claim.
    pub accessed_claims: Option<Vec<String>>,
}

/// An issuer and how to reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompiledIssuer {
    /// The exact value of `iss`.
    pub url: String,
    /// URL of the discovery document, if not below the issuer's URL.
    pub discovery_url: Option<String>,
    /// The only trusted roots, in DER; empty: the system roots.
    pub certificate_authority: Vec<Vec<u8>>,
    /// Accepted audiences; a token needs one of them.
    pub audiences: Vec<String>,
    /// The egress selector, if set.
    pub egress: Option<Egress>,
}

/// Egress selectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Egress {
    /// `controlplane`
    ControlPlane,
    /// `cluster`
    Cluster,
}

impl Egress {
    /// Its name in a configuration.
    pub fn name(self) -> &'static str {
        match self {
            Egress::ControlPlane => "controlplane",
            Egress::Cluster => "cluster",
        }
    }
}

/// The source of a user attribute.
#[derive(Debug)]
pub enum AttributeMapping {
    /// A claim with a prefix.
    Claim {
        /// The claim's name.
        claim: String,
        /// Prepended to every value.
        prefix: String,
    },
    /// An expression over `claims`.
    Expression(Box<CompiledExpression>),
}

/// An extra attribute of the user.
#[derive(Debug)]
pub struct ExtraAttribute {
    /// Its key.
    pub key: String,
    /// The expression for its values.
    pub value: CompiledExpression,
}

/// A claim with a required value.
#[derive(Debug)]
pub struct RequiredClaim {
    /// Field path of the rule.
    pub path: FieldPath,
    /// The claim's name.
    pub claim: String,
    /// The required value.
    pub value: String,
}

/// A CEL expression that must evaluate to true.
#[derive(Debug)]
pub struct ValidationRule {
    /// The expression.
    pub expression: CompiledExpression,
    /// The message if it is false.
    pub message: String,
}

/// A compiled expression and its source.
pub struct CompiledExpression {
    /// Its field path.
    pub path: FieldPath,
    /// The source text.
    pub text: String,
    /// The compiled program.
    pub program: Program,
}

impl fmt::Debug for CompiledExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.text)
    }
}

/// What an expression is used for: its variables and result type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ExpressionRole {
    /// Any type, over `claims`.
    Mapping,
    /// bool, over `claims`.
    ClaimRule,
    /// bool, over `user`.
    UserRule,
}

/// The two CEL environments of a profile.
pub(super) struct Compiler {
    claims: Environment,
    user: Environment,
    refuses_collections: bool,
}

impl Compiler {
    pub(super) fn new(profile: &AuthnProfile) -> Self {
        let minor = profile.version.minor();
        let is_extended = profile.has(profile::Hardening::ExtendedLibraries);
        let (claims, user) = match (profile.wide_expressions, is_extended) {
            (false, false) => (claims_environment_of(minor), user_environment_of(minor)),
            (is_wide, is_extended) => other_environments(minor, is_wide, is_extended),
        };
        Compiler { claims, user, refuses_collections: profile.has(profile::Hardening::NoClaimsIteration) }
    }

    /// Compiles an expression, or reports a violation at `path`.
    // S66
    pub(super) fn compile(
        &self,
        text: &str,
        role: ExpressionRole,
        path: &FieldPath,
        violations: &mut Violations,
    ) -> Option<CompiledExpression> {
        let environment = if role == ExpressionRole::UserRule { &self.user } else { &self.claims };
        let program = match environment.compile(text) {
            Ok(program) => program,
            Err(error) => {
                // The result type of a rule is checked before the program is built.
                let of_type = || environment.check(text).is_ok_and(|found| found == "bool");
                if role != ExpressionRole::Mapping && error.stage == Stage::Program && !of_type() {
                    report_not_bool(text, path, violations);
                } else {
                    report_compile_error(&error, text, path, violations);
                }
                return None;
            }
        };
        if role != ExpressionRole::Mapping && program.result_type() != "bool" {
            report_not_bool(text, path, violations);
            return None;
        }
        if self.refuses_collections && query::treats_as_collection(program.tree(), "claims") {
            let detail = "`claims` itself cannot be iterated over, measured or searched: kube-apiserver returns \
                its values in random order, or fails";
            violations.invalid(path.clone(), text, detail);
            violations.hint("select a claim by name: `has(claims.x)`");
            return None;
        }
        Some(CompiledExpression { path: path.clone(), text: text.to_owned(), program })
    }
}

fn report_not_bool(text: &str, path: &FieldPath, violations: &mut Violations) {
    violations.invalid(path.clone(), text, "must evaluate to bool");
    violations.hint("compare explicitly, as in `claims.email_verified == true`");
}

// S311
/// Environments that Kubernetes does not have. Building one takes longer than compiling an expression, so those with wide
/// expressions, which profile `hardened` uses, are built once.
fn other_environments(minor: u16, is_wide: bool, is_extended: bool) -> (Environment, Environment) {
    static WIDE: Mutex<BTreeMap<u16, (Environment, Environment)>> = Mutex::new(BTreeMap::new());
    let built = |builder: EnvironmentBuilder, plain: fn(u16) -> Environment| {
        let builder = if is_extended { extended(builder) } else { builder };
        builder.unescape_everywhere(is_wide).build().unwrap_or_else(|_| plain(minor))
    };
    let both = || {
        let claims = if is_wide { wide_claims_builder(minor) } else { claims_builder(minor) };
        (built(claims, claims_environment_of), built(user_builder(minor), user_environment_of))
    };
    if is_extended {
        return both();
    }
    let mut wide = WIDE.lock().unwrap_or_else(PoisonError::into_inner);
    wide.entry(minor).or_insert_with(both).clone()
}

fn wide_claims_builder(minor: u16) -> EnvironmentBuilder {
    Environment::kubernetes_version(minor).variable("claims", "map(string, dyn)")
}

fn extended(builder: EnvironmentBuilder) -> EnvironmentBuilder {
    [Library::Math, Library::Encoders, Library::Bindings]
        .into_iter()
        .fold(builder, EnvironmentBuilder::library)
}

fn report_compile_error(error: &CompileError, text: &str, path: &FieldPath, violations: &mut Violations) {
    let detail = format!("compilation failed: {error}");
    if error.stage == Stage::Program {
        violations.internal(path.clone(), detail);
    } else {
        violations.invalid(path.clone(), text, detail);
    }
    if let Some(hint) = error.diagnostics.iter().find_map(|diagnostic| diagnostic.hint) {
        violations.hint(hint);
    }
}

impl CompiledAuthenticator {
    /// The claims that the expression at a path can access, `None` within if it can access any. `None` if no expression over claims
    /// has this path.
    pub(crate) fn accessed_by(&self, path: &FieldPath) -> Option<Option<Vec<String>>> {
        let mapped = [Some(&self.username), self.groups.as_ref(), self.uid.as_ref()].into_iter().flatten();
        let mapped = mapped.filter_map(|mapping| match mapping {
            AttributeMapping::Expression(expression) => Some(&**expression),
            AttributeMapping::Claim { .. } => None,
        });
        let extra = self.extra.iter().map(|extra| &extra.value);
        let rules = self.claim_rules.iter().map(|rule| &rule.expression);
        let found = mapped.chain(extra).chain(rules).find(|expression| expression.path == *path)?;
        Some(accessed_claims(std::iter::once(found)))
    }
}

/// The claims that the expressions access, or `None` if one of them can access any claim.
pub(super) fn accessed_claims<'e>(
    expressions: impl Iterator<Item = &'e CompiledExpression>,
) -> Option<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for expression in expressions {
        for field in query::reached_fields(expression.program.tree(), "claims")? {
            // A name without an unescaped form matches no claim (S82).
            if let Some(name) = unescape(field)
                && !names.iter().any(|known| *known == name)
            {
                names.push(name.into_owned());
            }
        }
    }
    Some(names)
}
