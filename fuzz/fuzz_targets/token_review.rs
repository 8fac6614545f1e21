//! TokenReviews from both sides: what is read can be written and read again, and nothing panics.
#![no_main]

use libfuzzer_sys::fuzz_target;
use navicert_types::token_review::{Answer, Question};

fuzz_target!(|data: &[u8]| {
    if let Ok(question) = Question::parse(data) {
        let written = question.to_json();
        let again = Question::parse(written.as_bytes()).expect("what we write we can read");
        assert_eq!((question.version, &question.token), (again.version, &again.token));
        assert_eq!(question.audiences, again.audiences);
    }
    if let Ok(answer) = serde_json::from_slice::<Answer>(data) {
        let written = serde_json::to_string(&answer).expect("an answer is JSON");
        assert_eq!(serde_json::from_str::<Answer>(&written).expect("what we write we can read"), answer);
    }
});
