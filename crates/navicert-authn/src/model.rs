//! What the stages of a token's request path exchange: the request, its steps, the outcome and the user. This module uses no other
//! module of the crate, and every other one may use it.

mod algorithm;
pub mod outcome;
mod request;
mod step;
mod user;

pub(crate) use algorithm::SignatureScheme;
pub use algorithm::{JwsAlgorithm, JwsAlgorithmSet};
pub use request::{AuthnRequest, Interrupt};
pub use step::{AuthnStep, StepObserver, StepOutcome};
pub use user::{AuthenticatedUser, CREDENTIAL_ID};

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    fn check(directory: &Path, files: &mut usize) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                check(&path, files);
                continue;
            }
            *files += 1;
            let text = fs::read_to_string(&path).unwrap();
            let uses_crate =
                text.lines().find(|line| line.contains("crate::") || line.contains("super::super"));
            assert_eq!(uses_crate, None, "{}", path.display());
        }
    }

    #[test]
    fn model_uses_no_other_module_of_the_crate() {
        let mut files = 0;
        check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/model"), &mut files);
        assert!(files >= 6, "{files}");
    }

    #[test]
    fn mapping_does_not_use_the_authenticator() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/mapping");
        let mut files = 0;
        for entry in fs::read_dir(directory).unwrap() {
            let text = fs::read_to_string(entry.unwrap().path()).unwrap();
            assert!(!text.contains("crate::authenticator") && !text.contains("crate::explain"));
            files += 1;
        }
        assert!(files >= 5, "{files}");
    }
}
