//! Hosts of Amazon ECR: account, service, region and the suffix of that region's partition have to fit together.

use super::{Host, is_label};

/// A part of AWS with names, endpoints and credentials of its own.
// I175
#[derive(Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its name.
    pub id: &'static str,
    /// How its regions begin.
    region_prefix: &'static str,
    /// Where its endpoints are.
    pub suffix: &'static str,
    /// Where its endpoints are that also have IPv6 addresses.
    pub dual_stack_suffix: &'static str,
    /// Where its registries are.
    registries: &'static str,
    /// Where its registries are that also have IPv6 addresses.
    dual_stack_registries: Option<&'static str>,
}

/// The partitions; the last one is every region that begins otherwise.
pub static PARTITIONS: [Partition; 8] = [
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
    /// The partition of a region; none if the text cannot be a region.
    pub fn for_region(region: &str) -> Option<&'static Self> {
        if !is_region(region) {
            return None;
        }
        PARTITIONS.iter().find(|partition| region.starts_with(partition.region_prefix))
    }
}

/// A registry of Amazon's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EcrHost {
    /// The one for everybody.
    Public,
    /// An account's.
    Private {
        /// Twelve digits; none for a host that only its operator knows to be ECR.
        account: Option<String>,
        /// Where it is.
        region: String,
        /// Its partition.
        partition: &'static Partition,
        /// Whether the host is one with validated cryptography.
        fips: bool,
        /// Whether the host also has IPv6 addresses.
        dual_stack: bool,
    },
}

impl EcrHost {
    /// Whose this host is, if it is Amazon's (I171, and stricter: the suffix has to be that of the region's partition).
    pub fn from_host(host: &Host) -> Option<Self> {
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

    /// A host that its operator says is ECR's, such as a name of one's own in front of it.
    pub fn in_region(region: &str) -> Option<Self> {
        let partition = Partition::for_region(region)?;
        let region = region.to_owned();
        Some(EcrHost::Private { account: None, region, partition, fips: false, dual_stack: false })
    }
}

/// `us-west-2`, `us-gov-east-1`, `eusc-de-east-1`: words, and a number at the end.
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
    fn every_partition_and_form_is_recognised() {
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
