//! Structured authentication: the two environments in which Kubernetes compiles rules, the values of their
//! variables, and results as JSON.

pub mod batch;
pub mod claims_json;
pub mod render;
pub mod report;
pub(crate) mod versions;

pub use versions::language_rows;

use crate::check::{Environment, EnvironmentBuilder};
use crate::functions::messages::USER_TYPE;
use crate::value::{Arena, Map, Object, ValueRef};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::{LazyLock, PoisonError, RwLock};

/// The Kubernetes minor version whose libraries the environments provide, unless another is named.
pub const VERSION: u16 = 37;

/// A builder with the declarations of [`claims_environment_of`] a minor version, for adding libraries.
pub fn claims_builder(minor: u16) -> EnvironmentBuilder {
    Environment::kubernetes_version(minor).variable("claims", CLAIMS_TYPE)
}

/// A builder with the declarations of [`user_environment_of`] a minor version, for adding libraries.
pub fn user_builder(minor: u16) -> EnvironmentBuilder {
    let fields = [
        ("username", "string"),
        ("uid", "string"),
        ("groups", "list(string)"),
        ("extra", "map(string, list(string))"),
    ];
    Environment::kubernetes_version(minor).object(USER_TYPE, &fields).variable("user", USER_TYPE)
}

#[expect(clippy::panic, reason = "the declarations are constants of this crate, and a test builds them")]
fn build(builder: EnvironmentBuilder) -> Environment {
    match builder.build() {
        Ok(environment) => environment,
        Err(error) => panic!("built-in declarations: {error}"),
    }
}

const CLAIMS_TYPE: &str = "map(string, any)";

/// Environments by minor version, built on first use: that takes longer than compiling an expression.
struct Environments {
    build: fn(u16) -> Environment,
    built: RwLock<BTreeMap<u16, Environment>>,
}

impl Environments {
    const fn new(build: fn(u16) -> Environment) -> Self {
        Environments { build, built: RwLock::new(BTreeMap::new()) }
    }

    fn of(&self, minor: u16) -> Environment {
        let known = self.built.read().unwrap_or_else(PoisonError::into_inner).get(&minor).cloned();
        known.unwrap_or_else(|| {
            let mut built = self.built.write().unwrap_or_else(PoisonError::into_inner);
            built.entry(minor).or_insert_with(|| (self.build)(minor)).clone()
        })
    }
}

static CLAIMS: Environments = Environments::new(|minor| build(claims_builder(minor)));
static USER: Environments = Environments::new(|minor| build(user_builder(minor)));
static CLAIMS_AND_USER: LazyLock<Environment> =
    LazyLock::new(|| build(user_builder(VERSION).variable("claims", CLAIMS_TYPE)));

impl Environment {
    /// The environment of structured authentication: the libraries of Kubernetes 1.37, and the variables `claims` and
    /// `user`. Bind those that your expression uses.
    ///
    /// ```
    /// let program = navicert_cel::Environment::kubernetes().compile("'admins' in user.groups")?;
    /// assert_eq!(program.result_type(), "bool");
    /// # Ok::<(), navicert_cel::CompileError>(())
    /// ```
    ///
    /// Kubernetes declares one of the variables per rule: [`claims_environment`] and [`user_environment`] reject what it
    /// rejects. [`Environment::kubernetes_version`] starts a builder for variables of your own.
    pub fn kubernetes() -> Self {
        CLAIMS_AND_USER.clone()
    }
}

/// The environment of claim mappings and claim validation rules, with the variable `claims`.
pub fn claims_environment() -> Environment {
    claims_environment_of(VERSION)
}

/// The environment of claim mappings and claim validation rules in Kubernetes 1.N, with the variable `claims`.
///
/// ```
/// use navicert_cel::kubernetes::claims_environment_of;
///
/// let rule = "cidr('10.0.0.0/8').isMask()";
/// assert!(claims_environment_of(37).compile_rule(rule).is_err());
/// assert!(claims_environment_of(38).compile_rule(rule).is_ok());
/// ```
pub fn claims_environment_of(minor: u16) -> Environment {
    CLAIMS.of(minor)
}

/// The environment of user validation rules, with the variable `user`.
pub fn user_environment() -> Environment {
    user_environment_of(VERSION)
}

/// The environment of user validation rules in Kubernetes 1.N, with the variable `user`.
pub fn user_environment_of(minor: u16) -> Environment {
    USER.of(minor)
}

/// The authenticated user, as exposed to user validation rules.
#[derive(Debug, Clone, Default)]
pub struct User {
    /// `user.username`
    pub username: String,
    /// `user.uid`
    pub uid: String,
    /// `user.groups`
    pub groups: Vec<String>,
    /// `user.extra`
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Reads a user from a JSON object; missing members are empty.
    pub fn from_json(json: &Json) -> Self {
        let text = |name: &str| json.get(name).and_then(Json::as_str).unwrap_or("").to_owned();
        let strings = |json: &Json| -> Vec<String> {
            let items = json.as_array().map_or(&[][..], |items| items);
            items.iter().filter_map(Json::as_str).map(str::to_owned).collect()
        };
        let extra = json.get("extra").and_then(Json::as_object);
        User {
            username: text("username"),
            uid: text("uid"),
            groups: json.get("groups").map(strings).unwrap_or_default(),
            extra: extra
                .into_iter()
                .flatten()
                .map(|(name, values)| (name.clone(), strings(values)))
                .collect(),
        }
    }

    /// The value of the variable `user`. Returns `None` if the arena is full.
    pub fn val<'a>(&'a self, arena: &'a Arena) -> Option<ValueRef<'a>> {
        let fields = arena.slice(&[
            ("username", ValueRef::Str(&self.username)),
            ("uid", ValueRef::Str(&self.uid)),
            ("groups", ValueRef::List(crate::value::List::Strings(&self.groups))),
            ("extra", ValueRef::Map(Map::Lists(&self.extra, true))),
        ])?;
        Some(ValueRef::Object(arena.alloc(Object { type_name: USER_TYPE, fields })?))
    }
}
