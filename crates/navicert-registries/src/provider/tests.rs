//! The detected cloud decides which metadata server is called; on other clouds, none is (I213).

use std::fs;
use std::sync::Arc;

use navicert_testkit::services::cloud::Amazon;
use navicert_types::{SystemClock, error_chain};
use tempfile::TempDir;

use super::*;
use crate::acr::{Acr, CloudConfig};
use crate::ecr::Ecr;
use crate::gcp::Gcp;
use crate::http::Sleep;

#[derive(Debug)]
struct NoPause;

impl Sleep for NoPause {
    fn sleep(&self, _: Duration) {}
}

/// A run on a machine with this firmware vendor and product.
fn on_machine(vendor: &str, product: &str, variables: &[(&str, &str)]) -> (ProviderContext, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let firmware = dir.path().join("class/dmi/id");
    fs::create_dir_all(&firmware).unwrap();
    fs::write(firmware.join("sys_vendor"), vendor).unwrap();
    fs::write(firmware.join("product_name"), product).unwrap();
    let environment = variables.iter().copied().collect();
    let limit = Duration::from_secs(5);
    let mut context = ProviderContext::new(environment, Arc::new(SystemClock), Box::new(NoPause), limit);
    context.sysfs = dir.path().to_owned();
    (context, dir)
}

fn ask<P: RegistryProvider>(
    provider: &P,
    context: &ProviderContext,
    image: &str,
) -> Result<(), RegistryError> {
    let request =
        CredentialProviderRequest { image: image.to_owned(), ..CredentialProviderRequest::default() };
    provide(provider, context, &request).map(drop)
}

#[test]
fn calls_no_metadata_server_on_another_cloud() {
    for (vendor, product) in [("QEMU", "Standard PC"), ("Google", "Googlish")] {
        let (context, _folder) = on_machine(vendor, product, &[]);
        let image = "123456789012.dkr.ecr.us-west-2.amazonaws.com/x";
        let error = ask(&Ecr::default(), &context, image).unwrap_err();
        assert!(error_chain(&error).ends_with("this machine is not on EC2"), "{error}");
        let error = ask(&Gcp::default(), &context, "gcr.io/x").unwrap_err();
        assert!(error_chain(&error).ends_with("this machine is not on Google Compute Engine"), "{error}");
        let config = CloudConfig { managed_identity: true, ..CloudConfig::default() };
        let acr = Acr { config, ..Acr::default() };
        let error = ask(&acr, &context, "mine.azurecr.io/x").unwrap_err();
        assert!(error_chain(&error).ends_with("this machine is not on Azure"), "{error}");
        let journal = context.journal.to_string();
        assert!(!journal.contains("call "), "a request was sent: {journal}");
    }
}

#[test]
fn calls_configured_metadata_server_on_any_machine() {
    let amazon = Amazon::start();
    let url = amazon.server().url();
    let variables = [("AWS_ENDPOINT_URL", url.as_str()), ("AWS_EC2_METADATA_SERVICE_ENDPOINT", &url)];
    let (context, _folder) = on_machine("QEMU", "Standard PC", &variables);
    ask(&Ecr::default(), &context, "123456789012.dkr.ecr.us-west-2.amazonaws.com/x").unwrap();
    assert_eq!(amazon.server().requests().len(), 4, "token, role, credentials, ECR");
    amazon.violations().assert_none();
}
