//! Encodes the request on a plugin's stdin, byte for byte like the kubelet.
// I87–I90

use navicert_types::Secret;
use navicert_types::image_credential::{CredentialProviderRequest, REQUEST_KIND, WireVersion};

use crate::go_json::Object;

/// Encodes a request as one line of JSON. Omits service-account fields for versions before v1.
pub(crate) fn encode(request: &CredentialProviderRequest, version: WireVersion) -> Secret<Vec<u8>> {
    let mut object = Object::new()
        .text("kind", REQUEST_KIND)
        .text("apiVersion", version.api_version())
        .text("image", &request.image);
    if version.has_service_accounts() {
        object = object.text_if_nonempty("serviceAccountToken", request.service_account_token.expose());
        if !request.service_account_annotations.is_empty() {
            let annotations = request.service_account_annotations.iter();
            let annotations = annotations.fold(Object::new(), |object, (key, value)| object.text(key, value));
            object = object.object("serviceAccountAnnotations", annotations);
        }
    }
    let mut text = object.finish();
    text.push('\n');
    Secret::new(text.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use navicert_types::image_credential::CREDENTIAL_PROVIDER_REQUEST;

    use super::*;

    fn request() -> CredentialProviderRequest {
        CredentialProviderRequest {
            image: "a.io/x".to_owned(),
            service_account_token: Secret::from("tok".to_owned()),
            service_account_annotations: [("b", "2"), ("a", "<1>&")]
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .into(),
        }
    }

    #[test]
    fn bytes_equal_the_kubelets() {
        // I87, I90, I273
        let expected = concat!(
            r#"{"kind":"CredentialProviderRequest","apiVersion":"credentialprovider.kubelet.k8s.io/v1","image":"a.io/x","#,
            r#""serviceAccountToken":"tok","serviceAccountAnnotations":{"a":"\u003c1\u003e\u0026","b":"2"}}"#,
            "\n"
        );
        assert_eq!(str::from_utf8(encode(&request(), WireVersion::V1).expose()).unwrap(), expected);
    }

    #[test]
    fn omits_service_account_for_older_versions_and_empty_values() {
        // I88, I89
        for version in [WireVersion::V1Alpha1, WireVersion::V1Beta1] {
            let text = format!(
                "{{\"kind\":\"CredentialProviderRequest\",\"apiVersion\":\"{}\",\"image\":\"a.io/x\"}}\n",
                version.api_version()
            );
            assert_eq!(*encode(&request(), version).expose(), text.into_bytes());
        }
        let plain =
            CredentialProviderRequest { image: "a.io/x".to_owned(), ..CredentialProviderRequest::default() };
        assert!(!String::from_utf8_lossy(encode(&plain, WireVersion::V1).expose()).contains("service"));
    }

    #[test]
    fn encoded_request_decodes_to_itself() {
        let bytes = encode(&request(), WireVersion::V1);
        assert_eq!(CREDENTIAL_PROVIDER_REQUEST.decode(bytes.expose()).unwrap(), request());
    }
}
