//! Environments: which variables, types, functions and macros an expression may use.

use super::additions::{ADDITIONS, Addition};
use super::declaration::{Declaration, Functions};
use super::types::{self, TypeId, Types};
use crate::functions;
use crate::language::LanguageFacts;
use crate::syntax::{Macros, ParseOptions};
use crate::value::HashedName;
use std::collections::HashMap;
use std::sync::Arc;

/// Which implementation an environment is compatible with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compatibility {
    /// Kubernetes 1.N with the libraries available in that minor version.
    Kubernetes(u16),
    /// The CEL conformance suite with the newest libraries.
    Standard,
}

/// Function libraries that can be added to the operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Library {
    /// Conversions, `size`, time accessors and the standard macros.
    Standard,
    /// `optional.of`, `.?`, `optMap`…
    Optional,
    /// `split`, `format`, `lowerAscii`…
    Strings,
    /// `sort`, `distinct`, `lists.range`…
    Lists,
    /// `sets.contains`…
    Sets,
    /// `all(k, v, …)`, `transformMap`…
    TwoVariables,
    /// The Kubernetes list functions: `isSorted`, `sum`, `indexOf`…
    KubernetesLists,
    /// `find`, `findAll`
    Regex,
    /// `url`
    Url,
    /// `quantity`
    Quantity,
    /// `ip`, `cidr`
    Network,
    /// `format.named`
    Format,
    /// `semver`
    Semver,
    /// The authorizer types; no value of them can be created.
    Authorization,
    /// `math.greatest`…
    Math,
    /// `base64.encode`…
    Encoders,
    /// `cel.bind`
    Bindings,
}

/// An invalid declaration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvironmentError {
    /// A type cannot be parsed.
    #[error("invalid type `{0}`")]
    Type(String),
    /// A signature cannot be parsed.
    #[error("invalid signature `{0}`")]
    Signature(String),
}

#[derive(Debug, Clone)]
pub(crate) struct VariableDeclaration {
    pub(crate) name: HashedName<Box<str>>,
    pub(crate) declared: TypeId,
}

/// A message type: a type with fields.
#[derive(Debug, Clone)]
pub(crate) struct ObjectType {
    pub(crate) id: TypeId,
    pub(crate) fields: Vec<(Box<str>, TypeId)>,
    /// Whether a literal `Name{…}` can create a value of the type.
    pub(crate) constructible: bool,
}

/// The declarations of an environment, shared by all programs compiled in it.
#[derive(Debug)]
pub(crate) struct Scope {
    pub(crate) types: Types,
    pub(crate) functions: Functions,
    pub(crate) variables: Vec<VariableDeclaration>,
    pub(crate) objects: HashMap<Box<str>, ObjectType>,
    /// Type names, with the type of the name as an expression.
    pub(crate) type_names: HashMap<Box<str>, TypeId>,
    pub(crate) container: Box<str>,
    pub(crate) compatibility: Compatibility,
    pub(crate) options: ParseOptions,
    /// Reject mixed element types and invalid durations, timestamps, patterns and format strings in literals.
    pub(crate) validate: bool,
    /// Do not join mixed element types of lists and maps to `dyn`.
    pub(crate) homogeneous: bool,
    /// Iterating over a value of type `any` is allowed.
    pub(crate) lenient_any: bool,
    /// Resolve escaped field names on iterated values too.
    pub(crate) unescape_everywhere: bool,
    /// What versions of the language differ in.
    pub(crate) facts: &'static LanguageFacts,
}

/// An environment, ready to compile expressions. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Environment {
    pub(crate) scope: Arc<Scope>,
}

impl Environment {
    /// Creates a builder with the semantics and libraries of Kubernetes 1.N.
    pub fn kubernetes_version(minor: u16) -> EnvironmentBuilder {
        let mut builder = EnvironmentBuilder::new(Compatibility::Kubernetes(minor));
        for (_, addition) in ADDITIONS.into_iter().filter(|(since, _)| *since <= minor) {
            match addition {
                Addition::Library(library) => builder = builder.library(library),
                Addition::Functions(functions) => builder.declare(functions),
            }
        }
        builder
    }

    /// Creates a builder with the standard language and all its extensions.
    pub fn standard() -> EnvironmentBuilder {
        let mut builder = EnvironmentBuilder::new(Compatibility::Standard);
        for library in [
            Library::Standard,
            Library::Optional,
            Library::Strings,
            Library::Lists,
            Library::Sets,
            Library::TwoVariables,
            Library::Math,
            Library::Encoders,
            Library::Bindings,
            Library::Network,
        ] {
            builder = builder.library(library);
        }
        builder
    }

    /// Names of the declared variables.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.scope.variables.iter().map(|variable| &**variable.name)
    }
}

/// Builder for an [`Environment`].
#[derive(Debug, Clone)]
pub struct EnvironmentBuilder {
    types: Types,
    functions: Functions,
    variables: Vec<VariableDeclaration>,
    objects: HashMap<Box<str>, ObjectType>,
    type_names: HashMap<Box<str>, TypeId>,
    container: Box<str>,
    compatibility: Compatibility,
    facts: &'static LanguageFacts,
    options: ParseOptions,
    homogeneous: bool,
    lenient_any: bool,
    unescape_everywhere: bool,
    problem: Option<EnvironmentError>,
}

impl EnvironmentBuilder {
    /// Creates a builder with the operators only.
    pub fn new(compatibility: Compatibility) -> Self {
        let facts = match compatibility {
            Compatibility::Kubernetes(minor) => LanguageFacts::for_minor(minor),
            Compatibility::Standard => LanguageFacts::NEWEST,
        };
        let mut builder = EnvironmentBuilder {
            types: Types::new(),
            functions: Functions::default(),
            variables: Vec::new(),
            objects: HashMap::new(),
            type_names: HashMap::new(),
            container: "".into(),
            compatibility,
            facts,
            options: ParseOptions {
                max_code_points: 100_000,
                max_depth: 250,
                max_nodes: 400_000,
                optional_syntax: false,
                quoted_fields: facts.quoted_fields,
                macros: Macros::default(),
            },
            homogeneous: false,
            lenient_any: false,
            unescape_everywhere: false,
            problem: None,
        };
        for name in [
            "bool",
            "int",
            "uint",
            "double",
            "string",
            "bytes",
            "null_type",
            "google.protobuf.Duration",
            "google.protobuf.Timestamp",
        ] {
            builder.name_type(name, name);
        }
        builder.name_type("list", "list(dyn)");
        builder.name_type("map", "map(dyn, dyn)");
        builder.name_type("type", "type");
        builder.declare(functions::operators::FUNCTIONS);
        for (name, fields, result) in functions::messages::MESSAGES {
            builder.message(name, fields, result);
        }
        builder
    }

    fn name_type(&mut self, name: &str, written: &str) {
        if let Some(of) = self.types.parse(written) {
            let id = self.types.intern(types::Type::Type(of));
            self.type_names.insert(name.into(), id);
        }
    }

    fn message(&mut self, name: &str, fields: &[(&str, &str)], result: &str) {
        let Some(id) = self.types.parse(result) else { return };
        let fields = fields
            .iter()
            .filter_map(|(field, written)| Some(((*field).into(), self.types.parse(written)?)))
            .collect();
        let named = self.types.intern(types::Type::Type(id));
        self.type_names.insert(name.into(), named);
        self.objects.insert(name.into(), ObjectType { id, fields, constructible: true });
    }

    fn declare(&mut self, declarations: &[Declaration]) {
        for (id, signature, body) in declarations {
            self.declare_one(id, signature, Some(*body));
        }
    }

    fn declare_one(&mut self, id: &str, signature: &str, body: Option<super::declaration::Body>) {
        if self.functions.declare(&mut self.types, self.facts, (id, signature, body)).is_none()
            && self.problem.is_none()
        {
            self.problem = Some(EnvironmentError::Signature(signature.to_owned()));
        }
    }

    /// Declares a variable with a type such as `map(string, any)`.
    #[must_use]
    pub fn variable(mut self, name: &str, written: &str) -> Self {
        match self.types.parse(written) {
            Some(declared) => {
                self.variables.push(VariableDeclaration { name: HashedName::new(name.into()), declared });
            }
            None => self.problem = Some(EnvironmentError::Type(written.to_owned())),
        }
        self
    }

    /// Declares a type with fields, given as pairs of name and type.
    #[must_use]
    pub fn object(mut self, name: &str, fields: &[(&str, &str)]) -> Self {
        let id = self.types.object(name);
        let mut known = Vec::new();
        for (field, written) in fields {
            match self.types.parse(written) {
                Some(declared) => known.push(((*field).into(), declared)),
                None => self.problem = Some(EnvironmentError::Type((*written).to_owned())),
            }
        }
        let named = self.types.intern(types::Type::Type(id));
        self.type_names.insert(name.into(), named);
        self.objects.insert(name.into(), ObjectType { id, fields: known, constructible: false });
        self
    }

    /// Declares a function without an implementation. Calling it is an error at run time.
    #[must_use]
    pub fn function(mut self, id: &str, signature: &str) -> Self {
        self.declare_one(id, signature, None);
        self
    }

    /// Sets the container: the namespace in which names are resolved first.
    #[must_use]
    pub fn container(mut self, name: &str) -> Self {
        self.container = name.into();
        self
    }

    /// Requires the elements of a literal to have one type, and validates literals at compile time.
    #[must_use]
    pub fn homogeneous(mut self, on: bool) -> Self {
        self.homogeneous = on;
        self
    }

    /// Allows macros to iterate over a value of type `any`. Kubernetes rejects it.
    #[must_use]
    pub fn lenient_any(mut self, on: bool) -> Self {
        self.lenient_any = on;
        self
    }

    /// Resolves escaped names such as `a__dot__b` on iterated values too. Kubernetes does not.
    #[must_use]
    pub fn unescape_everywhere(mut self, on: bool) -> Self {
        self.unescape_everywhere = on;
        self
    }

    /// Disables the macros, for parser tests.
    #[must_use]
    pub fn without_macros(mut self) -> Self {
        self.options.macros = Macros::default();
        self
    }

    /// Adds a library.
    #[must_use]
    pub fn library(mut self, library: Library) -> Self {
        let standard = self.compatibility == Compatibility::Standard;
        match library {
            Library::Standard => {
                self.options.macros.standard = true;
                self.declare(functions::standard::FUNCTIONS);
                if self.facts.duration_of_int {
                    self.declare(functions::standard::DURATION_OF_INT);
                }
            }
            Library::Optional => {
                self.options.macros.optional = true;
                self.options.optional_syntax = true;
                self.name_type("optional_type", "optional_type(dyn)");
                self.declare(functions::optional::FUNCTIONS);
            }
            Library::Strings => {
                self.declare(functions::strings::FUNCTIONS);
                if standard {
                    self.declare(functions::strings::STANDARD_ONLY);
                }
            }
            Library::Lists => {
                self.options.macros.sort_by = true;
                self.declare(functions::lists::FUNCTIONS);
            }
            Library::Sets => self.declare(functions::sets::FUNCTIONS),
            Library::TwoVariables => {
                self.options.macros.two_variables = true;
                self.declare(functions::lists::MAP_INSERT);
            }
            Library::KubernetesLists => self.declare(functions::lists::KUBERNETES),
            Library::Regex => self.declare(functions::regex::FUNCTIONS),
            Library::Url => self.declare(functions::kubernetes::URL),
            Library::Quantity => self.declare(functions::kubernetes::QUANTITY),
            Library::Network => {
                self.name_type("net.IP", "net.IP");
                self.name_type("net.CIDR", "net.CIDR");
                self.declare(functions::kubernetes::NETWORK);
                if standard {
                    self.declare(functions::kubernetes::NETWORK_IS_MASK);
                }
            }
            Library::Format => self.declare(functions::kubernetes::FORMAT),
            Library::Semver => self.declare(functions::kubernetes::SEMVER),
            Library::Authorization => {
                for name in functions::authorization::TYPES {
                    self.name_type(name, name);
                }
                self.declare(functions::authorization::FUNCTIONS);
            }
            Library::Math => {
                self.options.macros.math = true;
                self.declare(functions::math::FUNCTIONS);
            }
            Library::Encoders => self.declare(functions::encoders::FUNCTIONS),
            Library::Bindings => self.options.macros.bind = true,
        }
        self
    }

    /// Builds the environment.
    pub fn build(self) -> Result<Environment, EnvironmentError> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        let validate = matches!(self.compatibility, Compatibility::Kubernetes(_));
        Ok(Environment {
            scope: Arc::new(Scope {
                types: self.types,
                functions: self.functions,
                variables: self.variables,
                objects: self.objects,
                type_names: self.type_names,
                container: self.container,
                compatibility: self.compatibility,
                facts: self.facts,
                options: self.options,
                validate,
                homogeneous: self.homogeneous,
                lenient_any: self.lenient_any,
                unescape_everywhere: self.unescape_everywhere,
            }),
        })
    }
}

impl Scope {
    /// Candidate names for a name in the container, most qualified first.
    pub(crate) fn candidates<'n>(&self, name: &'n str) -> Vec<std::borrow::Cow<'n, str>> {
        if let Some(absolute) = name.strip_prefix('.') {
            return vec![absolute.into()];
        }
        let mut found = Vec::new();
        let mut container = &*self.container;
        while !container.is_empty() {
            found.push(format!("{container}.{name}").into());
            container = container.rsplit_once('.').map_or("", |(outer, _)| outer);
        }
        found.push(name.into());
        found
    }

    pub(crate) fn variable(&self, name: &str) -> Option<(u32, TypeId)> {
        let at = self.variables.iter().position(|variable| &**variable.name == name)?;
        let declared = self.variables.get(at)?.declared;
        Some((u32::try_from(at).ok()?, declared))
    }

    /// The type of a global name: a variable or a type.
    pub(crate) fn global_type(&self, name: &str) -> Option<TypeId> {
        self.candidates(name).iter().find_map(|candidate| {
            let variable = self.variable(candidate).map(|found| found.1);
            variable.or_else(|| self.type_names.get(&**candidate).copied())
        })
    }

    pub(crate) fn is_standard(&self) -> bool {
        self.compatibility == Compatibility::Standard
    }
}
