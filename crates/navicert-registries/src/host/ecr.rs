//! Hosts of Amazon ECR: account, service, region and the suffix of that region's partition must be consistent.

use super::{Host, is_label};

/// An AWS partition: regions with their own domain names, endpoints and credentials.
// I175
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Partition {
    /// Partition id.
    pub id: &'static str,
    /// Prefix of its region names.
    region_prefix: &'static str,
    /// Domain suffix of its endpoints.
    pub suffix: &'static str,
    /// Domain suffix of its dual-stack endpoints.
    pub dual_stack_suffix: &'static str,
    /// Domain suffix of its registries.
    registries: &'static str,
    /// Domain suffix of its dual-stack registries.
    dual_stack_registries: Option<&'static str>,
}

/// The partitions; the last one matches every other region.
pub(crate) static PARTITIONS: [Partition; 8] = [
    partition(
        "aws-cn",
        "cn-",
        "amazonaws.com.cn",
        "api.amazonwebservices.com.cn",
        Some("on.amazonwebservices.com.cn"),
    ),
    partition("aws-us-gov", "us-gov-", "amazonaws.com", "api.aws", Some("on.aws")),
    partition("aws-iso", "us-iso-", "c2s.ic.gov", "api.aws.ic.gov", None),
    partition("aws-iso-b", "us-isob-", "sc2s.sgov.gov", "api.aws.scloud", None),
    partition("aws-iso-e", "eu-isoe-", "cloud.adc-e.uk", "api.cloud-aws.adc-e.uk", None),
    partition("aws-iso-f", "us-isof-", "csp.hci.ic.gov", "api.aws.hci.ic.gov", None),
    partition("aws-eusc", "eusc-", "amazonaws.eu", "api.amazonwebservices.eu", None),
    partition("aws", "", "amazonaws.com", "api.aws", Some("on.aws")),
];

const fn partition(
    id: &'static str,
    region_prefix: &'static str,
    suffix: &'static str,
    dual_stack_suffix: &'static str,
    dual_stack_registries: Option<&'static str>,
) -> Partition {
    Partition { id, region_prefix, suffix, dual_stack_suffix, registries: suffix, dual_stack_registries }
}

impl Partition {
    /// The partition of a region; `None` if the text is not a region name.
    pub(crate) fn for_region(region: &str) -> Option<&'static Self> {
        if !is_region(region) {
            return None;
        }
        PARTITIONS.iter().find(|partition| region.starts_with(partition.region_prefix))
    }
}

/// An Amazon ECR registry host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EcrHost {
    /// ECR Public.
    Public,
    /// A private registry.
    Private {
        /// Account id, twelve digits; `None` for a custom host configured as ECR.
        account: Option<String>,
        /// Region.
        region: String,
        /// Partition of the region.
        partition: &'static Partition,
        /// Whether the host is a FIPS endpoint.
        fips: bool,
        /// Whether the host is a dual-stack endpoint.
        dual_stack: bool,
    },
}

impl EcrHost {
    /// Matches an ECR host. Stricter than upstream: the suffix must be that of the region's partition.
    // I171
    pub(crate) fn from_host(host: &Host) -> Option<Self> {
        if matches!(host.name(), "public.ecr.aws" | "ecr-public.aws.com") {
            return Some(EcrHost::Public);
        }
        let (account, rest) = host.name().split_once('.')?;
        if account.len() != 12 || !account.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let (service, rest, dual_stack) = if let Some(rest) = rest.strip_prefix("dkr.") {
            let (service, rest) = rest.split_once('.')?;
            (service, rest, false)
        } else {
            let (service, rest) = rest.strip_prefix("dkr-")?.split_once('.')?;
            (service, rest, true)
        };
        let fips = match service {
            "ecr" => false,
            "ecr-fips" => true,
            _ => return None,
        };
        let (region, suffix) = rest.split_once('.')?;
        let partition = Partition::for_region(region)?;
        let expected = if dual_stack { partition.dual_stack_registries? } else { partition.registries };
        let account = Some(account.to_owned());
        let found = EcrHost::Private { account, region: region.to_owned(), partition, fips, dual_stack };
        (suffix == expected).then_some(found)
    }

    /// A custom host in front of ECR, configured with this region.
    pub(crate) fn in_region(region: &str) -> Option<Self> {
        let partition = Partition::for_region(region)?;
        let region = region.to_owned();
        Some(EcrHost::Private { account: None, region, partition, fips: false, dual_stack: false })
    }
}

/// Whether a text has the form of a region: words and a trailing number, such as `us-gov-east-1`.
fn is_region(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let Some((number, words)) = parts.split_last() else { return false };
    let word = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
    is_label(text)
        && words.len() >= 2
        && words.iter().all(word)
        && (1..=2).contains(&number.len())
        && number.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ecr_host(host: &str) -> Option<EcrHost> {
        EcrHost::from_host(&Host::from_image(host).ok()?)
    }

    #[test]
    fn recognises_hosts_of_every_partition() {
        // I171, I175
        for (host, region, id, fips, dual_stack) in [
            ("123456789012.dkr.ecr.us-west-2.amazonaws.com", "us-west-2", "aws", false, false),
            ("123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn", "cn-north-1", "aws-cn", false, false),
            ("123456789012.dkr-ecr.us-west-2.on.aws", "us-west-2", "aws", false, true),
            (
                "123456789012.dkr-ecr.cn-north-1.on.amazonwebservices.com.cn",
                "cn-north-1",
                "aws-cn",
                false,
                true,
            ),
            ("123456789012.dkr-ecr-fips.us-gov-east-1.on.aws", "us-gov-east-1", "aws-us-gov", true, true),
            (
                "123456789012.dkr.ecr-fips.us-gov-west-1.amazonaws.com",
                "us-gov-west-1",
                "aws-us-gov",
                true,
                false,
            ),
            ("123456789012.dkr.ecr.eusc-de-east-1.amazonaws.eu", "eusc-de-east-1", "aws-eusc", false, false),
            ("123456789012.dkr.ecr.us-iso-east-1.c2s.ic.gov", "us-iso-east-1", "aws-iso", false, false),
            (
                "123456789012.dkr.ecr.us-isob-east-1.sc2s.sgov.gov",
                "us-isob-east-1",
                "aws-iso-b",
                false,
                false,
            ),
            (
                "123456789012.dkr.ecr.eu-isoe-west-1.cloud.adc-e.uk",
                "eu-isoe-west-1",
                "aws-iso-e",
                false,
                false,
            ),
            (
                "123456789012.dkr.ecr.us-isof-east-1.csp.hci.ic.gov",
                "us-isof-east-1",
                "aws-iso-f",
                false,
                false,
            ),
            ("123456789012.dkr.ecr.mx-central-1.amazonaws.com:443", "mx-central-1", "aws", false, false),
        ] {
            let partition = PARTITIONS.iter().find(|partition| partition.id == id).unwrap();
            let account = Some("123456789012".to_owned());
            let expected =
                EcrHost::Private { account, region: region.to_owned(), partition, fips, dual_stack };
            assert_eq!(ecr_host(host), Some(expected), "{host}");
        }
        for host in ["public.ecr.aws/x/y", "ecr-public.aws.com"] {
            assert_eq!(ecr_host(host), Some(EcrHost::Public));
        }
        assert!(EcrHost::in_region("us-west-2").is_some() && EcrHost::in_region("nowhere").is_none());
    }
}
