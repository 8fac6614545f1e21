//! API endpoint of a registry: region and partition from its host, FIPS and dual-stack from its host or the
//! environment, other endpoints only if the environment sets them.
// I172, I174, I175, I180

use crate::context::ProviderContext;
use crate::error::RegistryError;
use crate::host::{EcrHost, Partition};
use crate::http::HttpUrl;

/// Region of ECR Public.
const PUBLIC_REGION: &str = "us-east-1";

/// An AWS service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AwsService {
    /// ECR.
    Ecr,
    /// ECR Public.
    EcrPublic,
    /// STS.
    Sts,
}

impl AwsService {
    /// Name for messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            AwsService::Ecr => "ECR",
            AwsService::EcrPublic => "ECR Public",
            AwsService::Sts => "STS",
        }
    }

    /// Name in signatures.
    pub(crate) fn signing_name(self) -> &'static str {
        match self {
            AwsService::Ecr => "ecr",
            AwsService::EcrPublic => "ecr-public",
            AwsService::Sts => "sts",
        }
    }

    fn variable(self) -> &'static str {
        match self {
            AwsService::Ecr => "AWS_ENDPOINT_URL_ECR",
            AwsService::EcrPublic => "AWS_ENDPOINT_URL_ECR_PUBLIC",
            AwsService::Sts => "AWS_ENDPOINT_URL_STS",
        }
    }
}

/// Endpoints and regions for one registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoints {
    /// The registry's service.
    pub registry: AwsService,
    /// Signing region of the registry.
    pub region: String,
    /// Region of STS.
    pub sts_region: String,
    registry_url: HttpUrl,
    sts_url: HttpUrl,
}

impl Endpoints {
    /// The endpoints of a registry.
    ///
    /// # Errors
    /// If the environment sets an invalid endpoint or region.
    pub(crate) fn new(context: &ProviderContext, host: &EcrHost) -> Result<Self, RegistryError> {
        let (registry, region, host_fips, host_dual_stack) = match host {
            EcrHost::Public => (AwsService::EcrPublic, PUBLIC_REGION, false, false),
            EcrHost::Private { region, fips, dual_stack, .. } => {
                (AwsService::Ecr, region.as_str(), *fips, *dual_stack)
            }
        };
        let fips = context.flag("AWS_USE_FIPS_ENDPOINT").unwrap_or(host_fips);
        let dual_stack = context.flag("AWS_USE_DUALSTACK_ENDPOINT").unwrap_or(host_dual_stack);
        let sts_region = match registry {
            AwsService::EcrPublic => {
                let own = context.variable("AWS_REGION").or_else(|| context.variable("AWS_DEFAULT_REGION"));
                own.unwrap_or(PUBLIC_REGION)
            }
            _ => region,
        };
        let url = |service: AwsService, region: &str| {
            override_url(context, service)?.map_or_else(|| default_url(service, region, fips, dual_stack), Ok)
        };
        let endpoints = Endpoints {
            registry_url: url(registry, region)?,
            sts_url: url(AwsService::Sts, sts_region)?,
            registry,
            region: region.to_owned(),
            sts_region: sts_region.to_owned(),
        };
        context.journal.note("endpoint", format!("{} at {}", registry.name(), endpoints.registry_url));
        Ok(endpoints)
    }

    /// Endpoint URL of a service.
    pub(crate) fn url(&self, service: AwsService) -> &HttpUrl {
        if service == AwsService::Sts { &self.sts_url } else { &self.registry_url }
    }

    /// Signing region of a service.
    pub(crate) fn region_for(&self, service: AwsService) -> &str {
        if service == AwsService::Sts { &self.sts_region } else { &self.region }
    }
}

fn override_url(context: &ProviderContext, service: AwsService) -> Result<Option<HttpUrl>, RegistryError> {
    if context.flag("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS") == Some(true) {
        return Ok(None);
    }
    let named = [service.variable(), "AWS_ENDPOINT_URL"].into_iter();
    let Some((name, text)) = named.filter_map(|name| Some((name, context.variable(name)?))).next() else {
        return Ok(None);
    };
    let url = HttpUrl::parse(text)
        .map_err(|error| RegistryError::Environment(format!("invalid {name}: {error}")))?;
    context.journal.note("endpoint", format!("{name} sets {url} for {}", service.name()));
    Ok(Some(url))
}

fn default_url(
    service: AwsService,
    region: &str,
    fips: bool,
    dual_stack: bool,
) -> Result<HttpUrl, RegistryError> {
    let partition = Partition::for_region(region)
        .ok_or_else(|| RegistryError::Environment(format!("unknown AWS region `{region}`")))?;
    let host = service_host(service, region, partition, fips, dual_stack);
    Ok(HttpUrl::https(&host, "/"))
}

fn service_host(
    service: AwsService,
    region: &str,
    partition: &Partition,
    fips: bool,
    dual_stack: bool,
) -> String {
    let suffix = if dual_stack { partition.dual_stack_suffix } else { partition.suffix };
    let fips_name = |name: &str| if fips { format!("{name}-fips") } else { name.to_owned() };
    let name = match service {
        AwsService::Ecr if dual_stack => fips_name("ecr"),
        // FIPS endpoints in these two partitions have no `api` label.
        AwsService::Ecr if fips && matches!(partition.id, "aws" | "aws-us-gov") => "ecr-fips".to_owned(),
        AwsService::Ecr => format!("api.{}", fips_name("ecr")),
        AwsService::EcrPublic if dual_stack => fips_name("ecr-public"),
        AwsService::EcrPublic => format!("api.{}", fips_name("ecr-public")),
        // In GovCloud the default STS endpoint is the FIPS endpoint.
        AwsService::Sts if partition.id == "aws-us-gov" => "sts".to_owned(),
        AwsService::Sts => fips_name("sts"),
    };
    format!("{name}.{region}.{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_endpoints_of_every_partition() {
        // I172, I174, I175, I211
        use AwsService::{Ecr, EcrPublic, Sts};
        for (service, region, fips, dual_stack, host) in [
            (Ecr, "us-west-2", false, false, "api.ecr.us-west-2.amazonaws.com"),
            (Ecr, "us-west-2", true, false, "ecr-fips.us-west-2.amazonaws.com"),
            (Ecr, "us-west-2", false, true, "ecr.us-west-2.api.aws"),
            (Ecr, "us-west-2", true, true, "ecr-fips.us-west-2.api.aws"),
            (Ecr, "us-gov-east-1", true, false, "ecr-fips.us-gov-east-1.amazonaws.com"),
            (Ecr, "cn-north-1", false, false, "api.ecr.cn-north-1.amazonaws.com.cn"),
            (Ecr, "cn-north-1", false, true, "ecr.cn-north-1.api.amazonwebservices.com.cn"),
            (Ecr, "us-iso-east-1", true, false, "api.ecr-fips.us-iso-east-1.c2s.ic.gov"),
            (Ecr, "us-isob-east-1", false, false, "api.ecr.us-isob-east-1.sc2s.sgov.gov"),
            (Ecr, "eu-isoe-west-1", false, false, "api.ecr.eu-isoe-west-1.cloud.adc-e.uk"),
            (Ecr, "us-isof-south-1", false, false, "api.ecr.us-isof-south-1.csp.hci.ic.gov"),
            (Ecr, "eusc-de-east-1", false, false, "api.ecr.eusc-de-east-1.amazonaws.eu"),
            (EcrPublic, "us-east-1", false, false, "api.ecr-public.us-east-1.amazonaws.com"),
            (EcrPublic, "us-east-1", false, true, "ecr-public.us-east-1.api.aws"),
            (Sts, "us-west-2", false, false, "sts.us-west-2.amazonaws.com"),
            (Sts, "us-west-2", true, false, "sts-fips.us-west-2.amazonaws.com"),
            (Sts, "us-gov-west-1", true, false, "sts.us-gov-west-1.amazonaws.com"),
            (Sts, "us-west-2", false, true, "sts.us-west-2.api.aws"),
            (Sts, "eusc-de-east-1", false, false, "sts.eusc-de-east-1.amazonaws.eu"),
        ] {
            let url = default_url(service, region, fips, dual_stack).unwrap();
            assert_eq!(url.authority(), host);
            assert!(url.to_string().starts_with("https://"), "{url}");
        }
        assert!(default_url(Ecr, "evil.example/x", false, false).is_err());
    }
}
