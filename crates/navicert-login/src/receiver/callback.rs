//! Reads the provider's answer and decides what it means for the pending login. Pure functions: no request here has an effect.
// L911

use aws_lc_rs::constant_time::verify_slices_are_equal;
use navicert_go::percent::{Plus, decode_lenient};
use navicert_types::Secret;

use super::{AnswerError, PendingLogin};

/// Longest authorization code, in bytes.
const MAX_CODE_BYTES: usize = 4096;

/// What a request to the callback means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Repeated parameters: rejected without effect.
    Ambiguous,
    /// No `state` at all: rejected without effect.
    NoState,
    /// Another state: rejected, and counted.
    WrongState,
    /// The answer of the pending login.
    Answer(Result<Secret<String>, AnswerError>),
}

/// Decides in the order of the checks: repetition, state, issuer, error, code.
pub(super) fn judge(parameters: &[u8], login: &PendingLogin) -> Verdict {
    let Some(answer) = AnswerParameters::parse(parameters) else { return Verdict::Ambiguous };
    let Some(state) = &answer.state else { return Verdict::NoState };
    if verify_slices_are_equal(state, login.state.expose().as_bytes()).is_err() {
        return Verdict::WrongState;
    }
    let is_from_issuer = match &answer.iss {
        Some(iss) => *iss == login.issuer.as_bytes(),
        None => !login.iss_required,
    };
    if !is_from_issuer {
        let answered = answer.iss.as_deref().map(show);
        return Verdict::Answer(Err(AnswerError::MixUp { answered, expected: login.issuer.clone() }));
    }
    if let Some(error) = &answer.error {
        let description = answer.error_description.as_deref().map(show);
        return Verdict::Answer(Err(AnswerError::Provider { error: show(error), description }));
    }
    Verdict::Answer(answer.code.and_then(valid_code).ok_or(AnswerError::Malformed))
}

/// The parameters of an answer, decoded. Unknown parameters are ignored.
#[derive(Default)]
struct AnswerParameters {
    state: Option<Vec<u8>>,
    code: Option<Vec<u8>>,
    iss: Option<Vec<u8>>,
    error: Option<Vec<u8>>,
    error_description: Option<Vec<u8>>,
}

impl AnswerParameters {
    /// `None` if a parameter that decides is repeated.
    fn parse(parameters: &[u8]) -> Option<Self> {
        let mut answer = AnswerParameters::default();
        for pair in parameters.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()) {
            let end = pair.iter().position(|byte| *byte == b'=');
            let (name, value) = end.and_then(|end| pair.split_at_checked(end)).unwrap_or((pair, b"="));
            let value = decode_lenient(value.get(1..).unwrap_or_default(), Plus::Space);
            let (field, may_repeat) = match &*decode_lenient(name, Plus::Space) {
                b"state" => (&mut answer.state, false),
                b"code" => (&mut answer.code, false),
                b"iss" => (&mut answer.iss, false),
                b"error" => (&mut answer.error, false),
                b"error_description" => (&mut answer.error_description, true),
                _ => continue,
            };
            match field {
                None => *field = Some(value.into_owned()),
                Some(_) if may_repeat => {}
                Some(_) => return None,
            }
        }
        Some(answer)
    }
}

fn valid_code(code: Vec<u8>) -> Option<Secret<String>> {
    let is_valid = (1..=MAX_CODE_BYTES).contains(&code.len()) && code.iter().all(u8::is_ascii_graphic);
    is_valid.then(|| String::from_utf8(code).ok())?.map(Secret::from)
}

fn show(text: impl AsRef<[u8]>) -> String {
    String::from_utf8_lossy(text.as_ref()).into_owned()
}

/// The code that these parameters bring a login, for the fuzz target.
#[cfg(feature = "fuzzing")]
pub fn accepted_code(parameters: &[u8], login: &PendingLogin) -> Option<Secret<String>> {
    match judge(parameters, login) {
        Verdict::Answer(answer) => answer.ok(),
        Verdict::Ambiguous | Verdict::NoState | Verdict::WrongState => None,
    }
}

#[cfg(test)]
pub(super) mod tests_support {
    use super::super::ResponseMode;
    use super::PendingLogin;

    pub(in super::super) fn login(iss_required: bool) -> PendingLogin {
        PendingLogin {
            authorization_url: "https://login.example/authorize?state=right".to_owned().into(),
            state: "right".to_owned().into(),
            issuer: "https://login.example".to_owned(),
            iss_required,
            response_mode: ResponseMode::Query,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::tests_support::login;
    use super::*;

    fn answer(query: &str) -> Verdict {
        judge(query.as_bytes(), &login(false))
    }

    fn code(text: &str) -> Verdict {
        Verdict::Answer(Ok(Secret::from(text.to_owned())))
    }

    fn provider_error(error: &str, description: Option<&str>) -> Verdict {
        let description = description.map(str::to_owned);
        Verdict::Answer(Err(AnswerError::Provider { error: error.to_owned(), description }))
    }

    #[test]
    fn code_needs_the_right_state() {
        // L911 steps 1 and 2, L1301
        assert_eq!(answer("code=abc&state=right"), code("abc"));
        assert_eq!(answer("st%61te=r%69ght&code=a%2Fb%2Bc"), code("a/b+c"));
        assert_eq!(answer("&&state=right&&code=abc&session_state=x&code_verifier=y&"), code("abc"));
        for query in ["code=abc&state=wrong", "code=abc&state=", "code=abc&state", "code=abc&state=right%00"]
        {
            assert_eq!(answer(query), Verdict::WrongState, "{query}");
        }
        for query in ["", "code=abc", "error=access_denied", "State=right&code=abc", "state[]=right&code=a"] {
            assert_eq!(answer(query), Verdict::NoState, "{query}");
        }
    }

    #[test]
    fn repeated_parameters_are_rejected() {
        for name in ["state", "code", "iss", "error"] {
            let query = format!("state=right&code=abc&iss=https://login.example&error=x&{name}=y");
            assert_eq!(answer(&query), Verdict::Ambiguous, "{name}");
        }
        assert_eq!(answer("state=right&st%61te=wrong&code=abc"), Verdict::Ambiguous);
        let repeated = "state=right&error=x&error_description=one&error_description=two";
        assert_eq!(answer(repeated), provider_error("x", Some("one")));
    }

    #[test]
    fn error_counts_only_in_the_right_state() {
        // A stranger's `?error=` does not end the login.
        assert_eq!(answer("error=access_denied&state=wrong"), Verdict::WrongState);
        assert_eq!(answer("error=access_denied&state=right"), provider_error("access_denied", None));
        let both = "error=access_denied&error_description=No+way&state=right&code=abc";
        assert_eq!(answer(both), provider_error("access_denied", Some("No way")));
    }

    #[test]
    fn answer_of_another_issuer_is_a_mix_up() {
        // L911 step 3, L1304
        let from =
            |iss: &str, required| judge(format!("code=abc&state=right{iss}").as_bytes(), &login(required));
        assert_eq!(from("&iss=https%3A%2F%2Flogin.example", true), code("abc"));
        assert_eq!(from("&iss=https%3A%2F%2Flogin.example", false), code("abc"));
        assert_eq!(from("", false), code("abc"));
        let mix_up = |answered: Option<&str>| {
            let (answered, expected) = (answered.map(str::to_owned), "https://login.example".to_owned());
            Verdict::Answer(Err(AnswerError::MixUp { answered, expected }))
        };
        assert_eq!(from("", true), mix_up(None));
        for iss in ["https://evil.example", "https://login.example/", "https://LOGIN.example", ""] {
            assert_eq!(from(&format!("&iss={iss}"), false), mix_up(Some(iss)), "{iss}");
        }
        // Errors are checked in the same way: another provider cannot end the login either.
        let error = judge(b"error=access_denied&state=right&iss=https://evil.example", &login(false));
        assert_eq!(error, mix_up(Some("https://evil.example")));
    }

    #[test]
    fn unusable_codes_are_rejected() {
        let malformed = Verdict::Answer(Err(AnswerError::Malformed));
        for value in ["", "a b", "a+b", "%00", "%e9", "%0d%0a", &"x".repeat(4097)] {
            assert_eq!(answer(&format!("state=right&code={value}")), malformed, "{value:.10}");
        }
        assert_eq!(answer("state=right"), malformed);
        let longest = "x".repeat(4096);
        assert_eq!(answer(&format!("state=right&code={longest}")), code(&longest));
    }

    proptest! {
        #[test]
        fn any_bytes_are_judged(parameters in proptest::collection::vec(any::<u8>(), 0..200)) {
            let verdict = judge(&parameters, &login(true));
            prop_assert!(!matches!(verdict, Verdict::Answer(Ok(_))), "{:?}", parameters);
        }

        #[test]
        fn code_survives_encoding(text in "[!-~]{1,100}") {
            let encoded: String = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
            prop_assert_eq!(answer(&format!("state=right&code={encoded}")), code(&text));
        }
    }
}
