//! TokenReview requests and responses: decoded messages round-trip, and nothing panics.
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
    if let Ok(response) = serde_json::from_slice::<TokenReviewResponse>(data) {
        let written = serde_json::to_string(&response).expect("a response is JSON");
        assert_eq!(
            serde_json::from_str::<TokenReviewResponse>(&written).expect("encoded response decodes"),
            response
        );
    }
});
