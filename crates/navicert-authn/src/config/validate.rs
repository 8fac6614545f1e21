//! Validates a configuration in kube-apiserver's order and with its field paths, reports all violations at once, and compiles
//! a valid one.

use std::collections::HashSet;

use navicert_go::url::Url;
use navicert_types::FieldPath;
use navicert_types::authentication_config::{
    AnonymousAuthConfig, AudienceMatchPolicy, AuthenticationConfiguration, ClaimMappings, ClaimOrExpression,
    ClaimValidationRule, ExtraMapping, Issuer, JwtAuthenticator, PrefixedClaimOrExpression,
    UserValidationRule,
};

use super::compile::{
    self, AttributeMapping, CompiledAuthenticator, CompiledConfig, CompiledExpression, CompiledIssuer,
    Compiler, Egress, ExpressionRole, ExtraAttribute, RequiredClaim, ValidationRule,
};
use super::navicert_config::IssuerSettings;
use super::violation::Violations;
use super::{certificates, email_rule, extra_key};
use crate::profile::{self, AuthnProfile};

// S17
const MAX_AUTHENTICATORS: usize = 64;

/// Validates and compiles a configuration.
///
/// # Errors
/// Every violation.
pub fn validate(
    configuration: &AuthenticationConfiguration,
    profile: &AuthnProfile,
) -> Result<CompiledConfig, Violations> {
    validate_excluding_issuers(configuration, profile, &[])
}

/// Like [`validate`], and rejects these issuers: those of service accounts, whose tokens the API server verifies itself.
///
/// # Errors
/// Every violation.
// S22, S26
pub(crate) fn validate_excluding_issuers(
    configuration: &AuthenticationConfiguration,
    profile: &AuthnProfile,
    disallowed_issuers: &[String],
) -> Result<CompiledConfig, Violations> {
    let found = Violations::default();
    let mut check = Validator { compiler: Compiler::new(profile), profile, disallowed_issuers, found };
    let compiled = check.configuration(configuration);
    match compiled {
        Some(compiled) if check.found.is_empty() => Ok(compiled),
        _ => Err(check.found),
    }
}

struct Validator<'p> {
    compiler: Compiler,
    profile: &'p AuthnProfile,
    disallowed_issuers: &'p [String],
    found: Violations,
}

/// Claim validation rules by kind.
#[derive(Default)]
struct ClaimRules {
    required: Vec<RequiredClaim>,
    expressions: Vec<ValidationRule>,
}

#[derive(Default)]
struct Mappings {
    username: Option<AttributeMapping>,
    groups: Option<AttributeMapping>,
    uid: Option<AttributeMapping>,
    extra: Vec<ExtraAttribute>,
}

impl Validator<'_> {
    fn configuration(&mut self, configuration: &AuthenticationConfiguration) -> Option<CompiledConfig> {
        let root = FieldPath::root();
        let jwt = root.field("jwt");
        if configuration.jwt.len() > MAX_AUTHENTICATORS {
            self.found.too_many(jwt, configuration.jwt.len(), MAX_AUTHENTICATORS);
            return None;
        }
        let (mut urls, mut discovery_urls) = (HashSet::new(), HashSet::new());
        let mut authenticators = Vec::with_capacity(configuration.jwt.len());
        for (index, authenticator) in configuration.jwt.iter().enumerate() {
            let path = jwt.index(index);
            authenticators.extend(self.authenticator(authenticator, &path));
            let issuer = &authenticator.issuer;
            if !urls.insert(issuer.url.as_str()) {
                self.found.duplicate(path.field("issuer").field("url"), &issuer.url);
            }
            if !issuer.discovery_url.is_empty() && !discovery_urls.insert(issuer.discovery_url.as_str()) {
                self.found.duplicate(path.field("issuer").field("discoveryURL"), &issuer.discovery_url);
            }
        }
        self.anonymous(configuration.anonymous.as_ref(), &root.field("anonymous"));
        let anonymous = configuration.anonymous.clone();
        Some(CompiledConfig { authenticators, anonymous, profile: *self.profile })
    }

    fn authenticator(&mut self, spec: &JwtAuthenticator, path: &FieldPath) -> Option<CompiledAuthenticator> {
        let issuer = self.issuer(&spec.issuer, &path.field("issuer"));
        let rules = self.claim_rules(&spec.claim_validation_rules, &path.field("claimValidationRules"));
        let mappings = self.mappings(&spec.claim_mappings, &rules, &path.field("claimMappings"));
        let user_rules = self.user_rules(&spec.user_validation_rules, &path.field("userValidationRules"));
        let mapped = [mappings.username.as_ref(), mappings.groups.as_ref(), mappings.uid.as_ref()];
        let expressions = mapped.into_iter().flatten().filter_map(AttributeMapping::expression);
        let extra = mappings.extra.iter().map(|extra| &extra.value);
        let ruled = rules.expressions.iter().map(|rule| &rule.expression);
        Some(CompiledAuthenticator {
            accessed_claims: compile::accessed_claims(expressions.chain(extra).chain(ruled)),
            path: path.clone(),
            settings: IssuerSettings::default(),
            issuer,
            username: mappings.username?,
            groups: mappings.groups,
            uid: mappings.uid,
            extra: mappings.extra,
            required_claims: rules.required,
            claim_rules: rules.expressions,
            user_rules,
        })
    }

    fn issuer(&mut self, issuer: &Issuer, path: &FieldPath) -> CompiledIssuer {
        let url = path.field("url");
        if issuer.url.is_empty() {
            self.found.required(url, "");
        } else {
            self.not_disallowed(&issuer.url, &url);
            self.url(&issuer.url, &url);
        }
        let discovery_url = path.field("discoveryURL");
        if !issuer.discovery_url.is_empty() {
            let bare = |url: &str| url.trim_end_matches('/').to_owned();
            if !issuer.url.is_empty() && bare(&issuer.url) == bare(&issuer.discovery_url) {
                let detail = "discoveryURL must be different from URL";
                self.found.invalid(discovery_url.clone(), &issuer.discovery_url, detail);
                self.found.hint("remove `discoveryURL`: the document is below the issuer's URL by default");
            }
            self.url(&issuer.discovery_url, &discovery_url);
        }
        self.audiences(issuer, path);
        let mut certificate_authority = Vec::new();
        if !issuer.certificate_authority.is_empty() {
            match certificates::parse(&issuer.certificate_authority) {
                Ok(found) => certificate_authority = found,
                Err(detail) => {
                    self.found.invalid(path.field("certificateAuthority"), "<omitted>", detail);
                }
            }
        }
        let egress = match issuer.egress_selector_type.as_str() {
            "" => None,
            "controlplane" => Some(Egress::ControlPlane),
            "cluster" => Some(Egress::Cluster),
            other => {
                let detail = "egress selector must be either controlplane or cluster";
                self.found.invalid(path.field("egressSelectorType"), other, detail);
                None
            }
        };
        CompiledIssuer {
            url: issuer.url.clone(),
            discovery_url: Some(issuer.discovery_url.clone()).filter(|url| !url.is_empty()),
            certificate_authority,
            audiences: issuer.audiences.clone(),
            egress,
        }
    }

    /// Compares byte by byte: a trailing slash makes another issuer.
    // S22
    fn not_disallowed(&mut self, url: &str, path: &FieldPath) {
        if !self.disallowed_issuers.iter().any(|issuer| issuer == url) {
            return;
        }
        let mut all: Vec<&str> = self.disallowed_issuers.iter().map(String::as_str).collect();
        all.sort_unstable();
        all.dedup();
        let detail = format!("must not overlap with disallowed issuers: [{}]", all.join(" "));
        self.found.invalid(path.clone(), url, detail);
        self.found.hint("this issuer signs service account tokens, which the API server verifies itself");
    }

    // S23–S25
    fn url(&mut self, text: &str, path: &FieldPath) {
        let url = match Url::parse(text) {
            Ok(url) => url,
            Err(error) => {
                self.found.invalid(path.clone(), text, format!("parse {text:?}: {}", error.go_message()));
                return;
            }
        };
        let mut refuse = |broken: bool, detail: &str| {
            if broken {
                self.found.invalid(path.clone(), text, detail);
            }
        };
        refuse(url.scheme != "https", "URL scheme must be https");
        refuse(url.user_info.is_some(), "URL must not contain a username or password");
        refuse(url.query.is_some_and(|query| !query.is_empty()), "URL must not contain a query");
        refuse(url.fragment.is_some_and(|fragment| !fragment.is_empty()), "URL must not contain a fragment");
        if self.profile.has(profile::Hardening::StrictIssuerUrls) {
            refuse(url.is_opaque || url.host.is_empty(), "URL must have a host");
            let has_path = !url.is_opaque;
            refuse(
                has_path && url.path.split('/').any(|segment| segment == ".."),
                "URL must not contain `..`",
            );
            refuse(url.query == Some("") || url.fragment == Some(""), "URL must not end in `?` or `#`");
        }
    }

    // S29–S31
    fn audiences(&mut self, issuer: &Issuer, path: &FieldPath) {
        let list = path.field("audiences");
        if issuer.audiences.is_empty() {
            let detail = format!("at least one {list} is required");
            self.found.required(list, detail);
            return;
        }
        let mut seen = HashSet::new();
        for (index, audience) in issuer.audiences.iter().enumerate() {
            if audience.is_empty() {
                self.found.required(list.index(index), "");
            }
            if !seen.insert(audience) {
                self.found.duplicate(list.index(index), audience);
            }
        }
        let policy = &issuer.audience_match_policy;
        let at = path.field("audienceMatchPolicy");
        if issuer.audiences.len() > 1 && *policy != AudienceMatchPolicy::MatchAny {
            self.found.invalid(
                at,
                policy.as_str(),
                "audienceMatchPolicy must be MatchAny for multiple audiences",
            );
            self.found.hint("add `audienceMatchPolicy: MatchAny` inside `issuer`");
        } else if !matches!(policy, AudienceMatchPolicy::Unset | AudienceMatchPolicy::MatchAny) {
            let detail = "audienceMatchPolicy must be empty or MatchAny for single audience";
            self.found.invalid(at, policy.as_str(), detail);
        }
    }

    // S34–S39
    fn claim_rules(&mut self, rules: &[ClaimValidationRule], path: &FieldPath) -> ClaimRules {
        let mut kept = ClaimRules::default();
        let (mut claims, mut expressions) = (HashSet::new(), HashSet::new());
        for (index, rule) in rules.iter().enumerate() {
            let path = path.index(index);
            match (rule.claim.is_empty(), rule.expression.is_empty()) {
                (false, false) => {
                    self.found.invalid(path, &rule.claim, "claim and expression can't both be set");
                }
                (true, true) => self.found.required(path, "claim or expression is required"),
                (false, true) => {
                    if !rule.message.is_empty() {
                        let detail = "may not be specified when claim is set";
                        self.found.invalid(path.field("message"), &rule.message, detail);
                    }
                    if !claims.insert(&rule.claim) {
                        self.found.duplicate(path.field("claim"), &rule.claim);
                    }
                    let (claim, value) = (rule.claim.clone(), rule.required_value.clone());
                    kept.required.push(RequiredClaim { path, claim, value });
                }
                (true, false) => {
                    if !rule.required_value.is_empty() {
                        let detail = "may not be specified when expression is set";
                        self.found.invalid(path.field("requiredValue"), &rule.required_value, detail);
                    }
                    let at = path.field("expression");
                    if expressions.insert(&rule.expression) {
                        let expression = self.compile(&rule.expression, ExpressionRole::ClaimRule, &at);
                        let message = rule.message.clone();
                        kept.expressions
                            .extend(expression.map(|expression| ValidationRule { expression, message }));
                    } else {
                        self.found.duplicate(at, &rule.expression);
                    }
                }
            }
        }
        kept
    }

    /// Mappings, then the e-mail rule.
    // S40–S46
    fn mappings(&mut self, mappings: &ClaimMappings, rules: &ClaimRules, path: &FieldPath) -> Mappings {
        let at = path.field("username");
        if mappings.username.claim.is_empty() && mappings.username.expression.is_empty() {
            self.found.required(at.clone(), "claim or expression is required");
        }
        let before = self.found.len();
        let username = self.prefixed(&mappings.username, &at);
        let username_is_sound = self.found.len() == before;
        let groups = self.prefixed(&mappings.groups, &path.field("groups"));
        let uid = self.unprefixed(&mappings.uid, &path.field("uid"));
        let extra = self.extra(&mappings.extra, &path.field("extra"));
        if username_is_sound && let Some(AttributeMapping::Expression(expression)) = &username {
            self.email(expression, &extra, rules);
        }
        Mappings { username, groups, uid, extra }
    }

    fn prefixed(
        &mut self,
        mapping: &PrefixedClaimOrExpression,
        path: &FieldPath,
    ) -> Option<AttributeMapping> {
        match (mapping.claim.is_empty(), mapping.expression.is_empty()) {
            (false, false) => {
                self.found.invalid(path.clone(), "", "claim and expression can't both be set");
                None
            }
            (true, true) => None,
            (true, false) => {
                if let Some(prefix) = &mapping.prefix {
                    let detail = "may not be specified when expression is set";
                    self.found.invalid(path.field("prefix"), prefix, detail);
                }
                self.mapping(&mapping.expression, path)
            }
            (false, true) => {
                if mapping.prefix.is_none() {
                    let detail = "prefix is required when claim is set. It can be set to an empty string to \
                        disable prefixing";
                    self.found.required(path.field("prefix"), detail);
                    self.found.hint("write `prefix: \"\"` for no prefix, or choose one that no other user has, such as `prefix: \"oidc:\"`");
                }
                let (claim, prefix) = (mapping.claim.clone(), mapping.prefix.clone().unwrap_or_default());
                Some(AttributeMapping::Claim { claim, prefix })
            }
        }
    }

    fn unprefixed(&mut self, mapping: &ClaimOrExpression, path: &FieldPath) -> Option<AttributeMapping> {
        match (mapping.claim.is_empty(), mapping.expression.is_empty()) {
            (false, false) => {
                self.found.invalid(path.clone(), "", "claim and expression can't both be set");
                None
            }
            (true, true) => None,
            (true, false) => self.mapping(&mapping.expression, path),
            (false, true) => {
                Some(AttributeMapping::Claim { claim: mapping.claim.clone(), prefix: String::new() })
            }
        }
    }

    fn mapping(&mut self, text: &str, path: &FieldPath) -> Option<AttributeMapping> {
        self.compile(text, ExpressionRole::Mapping, &path.field("expression"))
            .map(|expression| AttributeMapping::Expression(Box::new(expression)))
    }

    fn extra(&mut self, mappings: &[ExtraMapping], path: &FieldPath) -> Vec<ExtraAttribute> {
        let mut keys = HashSet::new();
        let mut kept = Vec::new();
        for (index, mapping) in mappings.iter().enumerate() {
            let path = path.index(index);
            let at = path.field("key");
            if mapping.key.is_empty() {
                self.found.required(at.clone(), "");
            } else {
                extra_key::check(&mapping.key, &at, &mut self.found);
            }
            if !keys.insert(&mapping.key) {
                self.found.duplicate(at, &mapping.key);
                continue;
            }
            let at = path.field("valueExpression");
            if mapping.value_expression.is_empty() {
                self.found.required(at, "");
                continue;
            }
            let value = self.compile(&mapping.value_expression, ExpressionRole::Mapping, &at);
            kept.extend(value.map(|value| ExtraAttribute { key: mapping.key.clone(), value }));
        }
        kept
    }

    // S48–S54
    fn email(&mut self, username: &CompiledExpression, extra: &[ExtraAttribute], rules: &ClaimRules) {
        let uses = |expression: &CompiledExpression, claim| {
            email_rule::uses(&expression.program, claim, self.profile)
        };
        let verified = |expression: &CompiledExpression| uses(expression, "email_verified");
        let satisfied = !uses(username, "email")
            || verified(username)
            || extra.iter().any(|extra| verified(&extra.value))
            || rules.expressions.iter().any(|rule| verified(&rule.expression));
        if !satisfied {
            self.found.invalid(username.path.clone(), &username.text, email_rule::DETAIL);
            self.found.hint("add a rule: `claims.?email_verified.orValue(true) == true`");
        }
    }

    // S47
    fn user_rules(&mut self, rules: &[UserValidationRule], path: &FieldPath) -> Vec<ValidationRule> {
        let mut expressions = HashSet::new();
        let mut kept = Vec::new();
        for (index, rule) in rules.iter().enumerate() {
            let at = path.index(index).field("expression");
            if rule.expression.is_empty() {
                self.found.required(at, "");
            } else if !expressions.insert(&rule.expression) {
                self.found.duplicate(at, &rule.expression);
            } else {
                let expression = self.compile(&rule.expression, ExpressionRole::UserRule, &at);
                let message = rule.message.clone();
                kept.extend(expression.map(|expression| ValidationRule { expression, message }));
            }
        }
        kept
    }

    // S55
    fn anonymous(&mut self, anonymous: Option<&AnonymousAuthConfig>, path: &FieldPath) {
        if anonymous.is_some_and(|anonymous| !anonymous.enabled && !anonymous.conditions.is_empty()) {
            let detail = "enabled should be set to true when conditions are defined";
            self.found.invalid(path.field("conditions"), "", detail);
        }
    }

    fn compile(&mut self, text: &str, role: ExpressionRole, path: &FieldPath) -> Option<CompiledExpression> {
        self.compiler.compile(text, role, path, &mut self.found)
    }
}

impl AttributeMapping {
    /// The expression, if it is one.
    pub fn expression(&self) -> Option<&CompiledExpression> {
        match self {
            AttributeMapping::Claim { .. } => None,
            AttributeMapping::Expression(expression) => Some(expression),
        }
    }
}

#[cfg(test)]
mod tests;
