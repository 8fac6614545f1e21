//! Any bytes as the query of a login's callback: a code is accepted only in the right state and from the right issuer, and it is
//! the one that another decoder reads.

#![no_main]

use libfuzzer_sys::fuzz_target;
use navicert_login::receiver::{PendingLogin, ResponseMode, accepted_code};

const STATE: &str = "s";
const ISSUER: &str = "i";

fuzz_target!(|parameters: &[u8]| {
    for iss_required in [false, true] {
        let login = PendingLogin {
            authorization_url: String::new().into(),
            // Short, so that the fuzzer finds them.
            state: STATE.to_owned().into(),
            issuer: ISSUER.to_owned(),
            iss_required,
            response_mode: ResponseMode::Query,
        };
        let Some(code) = accepted_code(parameters, &login) else { continue };
        let values = |name: &str| -> Vec<String> {
            let pairs = form_urlencoded::parse(parameters);
            pairs.filter(|(found, _)| found == name).map(|(_, value)| value.into_owned()).collect()
        };
        assert_eq!(values("state"), [STATE]);
        assert_eq!(values("code"), [code.expose().as_str()]);
        assert!(values("error").is_empty());
        let issuers = values("iss");
        assert!(issuers == [ISSUER] || issuers.is_empty() && !iss_required, "{issuers:?}");
        assert!(
            (1..=4096).contains(&code.expose().len())
                && code.expose().bytes().all(|byte| byte.is_ascii_graphic())
        );
    }
});
