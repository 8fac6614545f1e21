//! A configuration ready for use: what it says, with expressions as programs. Only validation builds one.

use std::fmt;
use std::sync::OnceLock;

use navicert_cel::kubernetes::{VERSION, claims_builder, claims_environment, user_builder, user_environment};
use navicert_cel::syntax::query;
use navicert_cel::{CompileError, Environment, EnvironmentBuilder, Library, Program, Stage, unescape};
use navicert_types::FieldPath;
use navicert_types::authentication_config::AnonymousAuthConfig;

use super::side_car::IssuerSettings;
use super::violation::Violations;
use crate::profile::{self, Profile};

/// A whole configuration.
#[derive(Debug)]
pub struct Compiled {
    /// In the order of the file; issuer URLs are distinct.
    pub authenticators: Vec<CompiledAuthenticator>,
    /// Who may come without a credential.
    pub anonymous: Option<AnonymousAuthConfig>,
    /// Whose rules it was compiled for.
    pub profile: Profile,
}

/// One issuer and what its tokens mean.
#[derive(Debug)]
pub struct CompiledAuthenticator {
    /// Where it is in the file: `jwt[0]`.
    pub path: FieldPath,
    /// Who signs.
    pub issuer: CompiledIssuer,
    /// What our own file says about the issuer.
    pub settings: IssuerSettings,
    /// The user's name.
    pub username: Mapping,
    /// The user's groups, if any.
    pub groups: Option<Mapping>,
    /// The user's UID, if any. Its prefix is empty.
    pub uid: Option<Mapping>,
    /// Further attributes.
    pub extra: Vec<Extra>,
    /// Claims that must have a value.
    pub required_claims: Vec<RequiredClaim>,
    /// Rules over `claims`.
    pub claim_rules: Vec<Rule>,
    /// Rules over `user`.
    pub user_rules: Vec<Rule>,
    /// The claims that expressions can look at; `None`: any.
    pub reached: Option<Vec<String>>,
}

/// Who signs, and how to get there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompiledIssuer {
    /// The exact value of `iss`.
    pub url: String,
    /// Where discovery is, if not below the URL.
    pub discovery_url: Option<String>,
    /// The only roots, in DER; empty: the system's.
    pub certificate_authority: Vec<Vec<u8>>,
    /// Whom tokens are for; one of them is enough.
    pub audiences: Vec<String>,
    /// Which way requests take.
    pub egress: Option<Egress>,
}

/// The two ways out that have names.
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

/// Where a value comes from.
#[derive(Debug)]
pub enum Mapping {
    /// A claim and what is put before it.
    Claim {
        /// The claim's name.
        claim: String,
        /// Put before every value.
        prefix: String,
    },
    /// An expression over `claims`.
    Expression(Box<Expression>),
}

/// A further attribute of the user.
#[derive(Debug)]
pub struct Extra {
    /// Its name.
    pub key: String,
    /// Its values.
    pub value: Expression,
}

/// A claim that must have a value.
#[derive(Debug)]
pub struct RequiredClaim {
    /// Where the rule is.
    pub path: FieldPath,
    /// The claim's name.
    pub claim: String,
    /// The value it must have.
    pub value: String,
}

/// An expression that must be true.
#[derive(Debug)]
pub struct Rule {
    /// The expression.
    pub expression: Expression,
    /// Said when it is false.
    pub message: String,
}

/// A compiled expression that knows where it is from.
pub struct Expression {
    /// The field.
    pub path: FieldPath,
    /// As it was written.
    pub text: String,
    /// As it is evaluated.
    pub program: Program,
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.text)
    }
}

/// What an expression has to be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Any type, over `claims`.
    Mapping,
    /// bool, over `claims`.
    ClaimRule,
    /// bool, over `user`.
    UserRule,
}

/// The two environments of a profile.
pub(super) struct Compiler {
    claims: Environment,
    user: Environment,
    refuses_collections: bool,
}

impl Compiler {
    pub(super) fn new(profile: &Profile) -> Self {
        // Making an environment takes longer than compiling an expression, so each is made once.
        let made = |is_wide: bool, is_extended: bool| -> (Environment, Environment) {
            let built = |builder: EnvironmentBuilder, plain: fn() -> Environment| {
                let builder = if is_extended { extended(builder) } else { builder };
                builder.unescape_everywhere(is_wide).build().unwrap_or_else(|_| plain())
            };
            let claims = if is_wide { wide_claims_builder() } else { claims_builder() };
            (built(claims, claims_environment), built(user_builder(), user_environment))
        };
        static WIDE: OnceLock<(Environment, Environment)> = OnceLock::new();
        let (claims, user) = match (profile.wide_expressions, profile.has(profile::Rule::H4)) {
            (false, false) => (claims_environment(), user_environment()),
            (true, false) => WIDE.get_or_init(|| made(true, false)).clone(),
            (is_wide, true) => made(is_wide, true),
        };
        Compiler { claims, user, refuses_collections: profile.has(profile::Rule::H5) }
    }

    /// Compiles, or reports at `path` why not (S66).
    pub(super) fn compile(
        &self,
        text: &str,
        role: Role,
        path: &FieldPath,
        violations: &mut Violations,
    ) -> Option<Expression> {
        let environment = if role == Role::UserRule { &self.user } else { &self.claims };
        let program = match environment.compile(text) {
            Ok(program) => program,
            Err(error) => {
                // A rule's type is looked at before a program is made of it.
                let of_type = || environment.check(text).is_ok_and(|found| found == "bool");
                if role != Role::Mapping && error.stage == Stage::Program && !of_type() {
                    no_bool(text, path, violations);
                } else {
                    refused(&error, text, path, violations);
                }
                return None;
            }
        };
        if role != Role::Mapping && program.result_type() != "bool" {
            no_bool(text, path, violations);
            return None;
        }
        if self.refuses_collections && query::treats_as_collection(program.tree(), "claims") {
            let detail = "`claims` itself cannot be iterated over, measured or searched: kube-apiserver gives \
                its values in random order, or fails";
            violations.invalid(path.clone(), text, detail);
            violations.hint("ask for a claim by name: `has(claims.x)`");
            return None;
        }
        Some(Expression { path: path.clone(), text: text.to_owned(), program })
    }
}

fn no_bool(text: &str, path: &FieldPath, violations: &mut Violations) {
    violations.invalid(path.clone(), text, "must evaluate to bool");
    violations.hint("compare explicitly, as in `claims.email_verified == true`");
}

/// S311
fn wide_claims_builder() -> EnvironmentBuilder {
    Environment::kubernetes(VERSION).variable("claims", "map(string, dyn)")
}

fn extended(builder: EnvironmentBuilder) -> EnvironmentBuilder {
    [Library::Math, Library::Encoders, Library::Bindings]
        .into_iter()
        .fold(builder, EnvironmentBuilder::library)
}

fn refused(error: &CompileError, text: &str, path: &FieldPath, violations: &mut Violations) {
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

/// The claims that some expression can look at, or `None` if one of them can look at any.
pub(super) fn reached<'e>(expressions: impl Iterator<Item = &'e Expression>) -> Option<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for expression in expressions {
        for field in query::reached_fields(expression.program.tree(), "claims")? {
            // A name that stands for nothing finds nothing (S82).
            if let Some(name) = unescape(field)
                && !names.iter().any(|known| *known == name)
            {
                names.push(name.into_owned());
            }
        }
    }
    Some(names)
}
