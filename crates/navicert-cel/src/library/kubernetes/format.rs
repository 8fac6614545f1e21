//! `kubernetes.NamedFormat`: the formats of Kubernetes names and of OpenAPI strings, with the error messages of
//! apimachinery's validation.

use super::url::Url;

mod rules;

/// A named format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NamedFormat {
    /// `dns1123Label`
    Dns1123Label,
    /// `dns1123Subdomain`
    Dns1123Subdomain,
    /// `dns1035Label`
    Dns1035Label,
    /// `qualifiedName`
    QualifiedName,
    /// `dns1123LabelPrefix`
    Dns1123LabelPrefix,
    /// `dns1123SubdomainPrefix`
    Dns1123SubdomainPrefix,
    /// `dns1035LabelPrefix`
    Dns1035LabelPrefix,
    /// `labelValue`
    LabelValue,
    /// `uri`
    Uri,
    /// `uuid`
    Uuid,
    /// `byte`: base64
    Byte,
    /// `date`
    Date,
    /// `datetime`
    DateTime,
}

impl NamedFormat {
    /// Every format.
    pub(crate) const ALL: [Self; 13] = [
        Self::Dns1123Label,
        Self::Dns1123Subdomain,
        Self::Dns1035Label,
        Self::QualifiedName,
        Self::Dns1123LabelPrefix,
        Self::Dns1123SubdomainPrefix,
        Self::Dns1035LabelPrefix,
        Self::LabelValue,
        Self::Uri,
        Self::Uuid,
        Self::Byte,
        Self::Date,
        Self::DateTime,
    ];

    /// `format.named(name)`
    #[must_use]
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The name, also used by the function `format.<name>()`.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Dns1123Label => "dns1123Label",
            Self::Dns1123Subdomain => "dns1123Subdomain",
            Self::Dns1035Label => "dns1035Label",
            Self::QualifiedName => "qualifiedName",
            Self::Dns1123LabelPrefix => "dns1123LabelPrefix",
            Self::Dns1123SubdomainPrefix => "dns1123SubdomainPrefix",
            Self::Dns1035LabelPrefix => "dns1035LabelPrefix",
            Self::LabelValue => "labelValue",
            Self::Uri => "uri",
            Self::Uuid => "uuid",
            Self::Byte => "byte",
            Self::Date => "date",
            Self::DateTime => "datetime",
        }
    }

    /// `validate(text)`: the validation errors, empty for a valid text. The list is short, but the error of `uri`
    /// contains the text.
    #[must_use]
    pub(crate) fn validate(self, text: &str) -> Vec<String> {
        match self {
            Self::Dns1123Label => rules::dns1123_label(text),
            Self::Dns1123Subdomain => rules::dns1123_subdomain(text),
            Self::Dns1035Label => rules::dns1035_label(text),
            Self::QualifiedName => rules::qualified_name(text),
            Self::Dns1123LabelPrefix => rules::dns1123_label(&rules::without_trailing_dash(text)),
            Self::Dns1123SubdomainPrefix => rules::dns1123_subdomain(&rules::without_trailing_dash(text)),
            Self::Dns1035LabelPrefix => rules::dns1035_label(&rules::without_trailing_dash(text)),
            Self::LabelValue => rules::label_value(text),
            Self::Uri => Url::check_request(text).err().into_iter().collect(),
            Self::Uuid => errors_unless(rules::is_uuid(text), "does not match the UUID format"),
            Self::Byte => errors_unless(rules::is_base64(text), "invalid base64"),
            Self::Date => errors_unless(rules::is_date(text), "invalid date"),
            Self::DateTime => errors_unless(rules::is_date_time(text), "invalid datetime"),
        }
    }
}

fn errors_unless(valid: bool, error: &str) -> Vec<String> {
    if valid { Vec::new() } else { vec![error.to_owned()] }
}

#[cfg(test)]
mod tests;
