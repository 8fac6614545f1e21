//! The provider's documents as they were fetched: public data, checked again whenever it is read.

use navicert_types::Timestamp;
use serde::{Deserialize, Serialize};

use super::time_text;

/// The discovery document and the key set, each as text with the time of its fetch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProviderDocuments {
    pub(crate) discovery: String,
    #[serde(with = "time_text")]
    pub(crate) discovered_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) keys: Option<String>,
    #[serde(default, with = "time_text::optional", skip_serializing_if = "Option::is_none")]
    pub(crate) keys_fetched_at: Option<Timestamp>,
}
