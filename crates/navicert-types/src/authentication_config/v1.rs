//! `apiserver.config.k8s.io/v1`: the fields of all three versions.

use super::{
    AnonymousAuthCondition, AnonymousAuthConfig, AuthenticationConfiguration, ClaimMappings,
    ClaimOrExpression, ClaimValidationRule, ExtraMapping, Issuer, JwtAuthenticator,
    PrefixedClaimOrExpression, UserValidationRule,
};
use crate::decode::{Decode, Decoder};
use crate::tree::Node;
use crate::versioned::Kind;

pub(super) const KIND: Kind<AuthenticationConfiguration> = Kind {
    api_version: "apiserver.config.k8s.io/v1",
    kind: super::KIND,
    decode: AuthenticationConfiguration::decode,
};

impl Decode for AuthenticationConfiguration {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| AuthenticationConfiguration {
            jwt: fields.default("jwt"),
            anonymous: fields.optional("anonymous"),
        })
    }
}

impl Decode for JwtAuthenticator {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| JwtAuthenticator {
            issuer: fields.default("issuer"),
            claim_validation_rules: fields.default("claimValidationRules"),
            claim_mappings: fields.default("claimMappings"),
            user_validation_rules: fields.default("userValidationRules"),
        })
    }
}

impl Decode for Issuer {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| Issuer {
            url: fields.default("url"),
            discovery_url: fields.default("discoveryURL"),
            certificate_authority: fields.default("certificateAuthority"),
            audiences: fields.default("audiences"),
            audience_match_policy: fields.default("audienceMatchPolicy"),
            egress_selector_type: fields.default("egressSelectorType"),
        })
    }
}

impl Decode for ClaimValidationRule {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| ClaimValidationRule {
            claim: fields.default("claim"),
            required_value: fields.default("requiredValue"),
            expression: fields.default("expression"),
            message: fields.default("message"),
        })
    }
}

impl Decode for ClaimMappings {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| ClaimMappings {
            username: fields.default("username"),
            groups: fields.default("groups"),
            uid: fields.default("uid"),
            extra: fields.default("extra"),
        })
    }
}

impl Decode for PrefixedClaimOrExpression {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| PrefixedClaimOrExpression {
            claim: fields.default("claim"),
            prefix: fields.optional("prefix"),
            expression: fields.default("expression"),
        })
    }
}

impl Decode for ClaimOrExpression {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| ClaimOrExpression {
            claim: fields.default("claim"),
            expression: fields.default("expression"),
        })
    }
}

impl Decode for ExtraMapping {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| ExtraMapping {
            key: fields.default("key"),
            value_expression: fields.default("valueExpression"),
        })
    }
}

impl Decode for UserValidationRule {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| UserValidationRule {
            expression: fields.default("expression"),
            message: fields.default("message"),
        })
    }
}

impl Decode for AnonymousAuthConfig {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| AnonymousAuthConfig {
            enabled: fields.default("enabled"),
            conditions: fields.default("conditions"),
        })
    }
}

impl Decode for AnonymousAuthCondition {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| AnonymousAuthCondition { path: fields.default("path") })
    }
}
