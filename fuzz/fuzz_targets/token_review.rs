//! TokenReview requests and responses: decoded requests round-trip, and nothing panics.
#![no_main]

use libfuzzer_sys::fuzz_target;
use navicert_types::token_review::{TokenReviewRequest, TokenReviewResponse};

fuzz_target!(|data: &[u8]| {
    if let Ok(request) = TokenReviewRequest::parse(data) {
        let written = request.to_json();
        let again = TokenReviewRequest::parse(written.as_bytes()).expect("encoded request decodes");
        assert_eq!((request.version, &request.token), (again.version, &again.token));
        assert_eq!(request.audiences, again.audiences);
    }
    // Responses are only read: the webhook writes its own.
    let _ = serde_json::from_slice::<TokenReviewResponse>(data);
});
