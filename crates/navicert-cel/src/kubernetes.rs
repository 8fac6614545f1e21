//! Structured authentication: the two environments in which Kubernetes compiles rules, the values of their
//! variables, and results as JSON.

pub mod batch;
pub mod claims_json;
pub mod render;
pub mod report;

use crate::check::{Environment, EnvironmentBuilder};
use crate::functions::messages::USER_TYPE;
use crate::value::{Arena, Map, Object, ValueRef};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The Kubernetes minor version whose libraries the environments provide.
pub const VERSION: u16 = 37;

/// A builder with the declarations of [`claims_environment`], for adding libraries.
pub fn claims_builder() -> EnvironmentBuilder {
    Environment::kubernetes_version(VERSION).variable("claims", CLAIMS_TYPE)
}

/// A builder with the declarations of [`user_environment`], for adding libraries.
pub fn user_builder() -> EnvironmentBuilder {
    let fields = [
        ("username", "string"),
        ("uid", "string"),
        ("groups", "list(string)"),
        ("extra", "map(string, list(string))"),
    ];
    Environment::kubernetes_version(VERSION).object(USER_TYPE, &fields).variable("user", USER_TYPE)
}

#[expect(clippy::panic, reason = "the declarations are constants of this crate, and a test builds them")]
fn build(builder: EnvironmentBuilder) -> Environment {
    match builder.build() {
        Ok(environment) => environment,
        Err(error) => panic!("built-in declarations: {error}"),
    }
}

const CLAIMS_TYPE: &str = "map(string, any)";

static CLAIMS: LazyLock<Environment> = LazyLock::new(|| build(claims_builder()));
static USER: LazyLock<Environment> = LazyLock::new(|| build(user_builder()));
static CLAIMS_AND_USER: LazyLock<Environment> =
    LazyLock::new(|| build(user_builder().variable("claims", CLAIMS_TYPE)));

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
    CLAIMS.clone()
}

/// The environment of user validation rules, with the variable `user`.
pub fn user_environment() -> Environment {
    USER.clone()
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
