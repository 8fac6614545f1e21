//! Detects the cloud of this machine from firmware data. The clouds share one metadata address, and requests to it
//! elsewhere take many seconds to time out.
// I213

use std::fs;
use std::path::Path;

/// The cloud of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cloud {
    /// Amazon EC2.
    Amazon,
    /// Google Compute Engine.
    Google,
    /// Azure, or other Microsoft hardware or virtual machines.
    Microsoft,
    /// Any other machine.
    Other,
    /// Firmware data is missing, as in some containers; only a metadata request can tell.
    Unknown,
}

impl Cloud {
    /// Reads the firmware data under `/sys`.
    pub(crate) fn detect(system: &Path) -> Self {
        let read = |name: &str| {
            let text = fs::read_to_string(system.join(name)).ok()?;
            Some(text.trim().to_owned()).filter(|text| !text.is_empty())
        };
        let vendor = read("class/dmi/id/sys_vendor");
        let product = read("class/dmi/id/product_name");
        // Older Xen instances only have the EC2 prefix in their UUID.
        let uuid = read("hypervisor/uuid").or_else(|| read("class/dmi/id/product_uuid"));
        let asset = read("class/dmi/id/board_asset_tag");
        let is_ec2 = |text: &String| text.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("ec2"));
        let is_instance = |text: &String| text.len() == 19 && text.starts_with("i-");
        if vendor.as_deref() == Some("Amazon EC2")
            || uuid.as_ref().is_some_and(is_ec2)
            || asset.as_ref().is_some_and(is_instance)
        {
            return Cloud::Amazon;
        }
        match (vendor.as_deref(), product.as_deref()) {
            (_, Some("Google" | "Google Compute Engine")) => Cloud::Google,
            (Some("Microsoft Corporation"), _) => Cloud::Microsoft,
            (None, None) if uuid.is_none() => Cloud::Unknown,
            _ => Cloud::Other,
        }
    }

    /// Whether to request the metadata of `this` cloud.
    pub(crate) fn may_be(self, this: Cloud) -> bool {
        self == this || self == Cloud::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_the_cloud_from_firmware_data() {
        // I165, I166, I213
        for (files, cloud) in [
            (&[("class/dmi/id/sys_vendor", "Amazon EC2\n")][..], Cloud::Amazon),
            (&[("class/dmi/id/sys_vendor", "Xen"), ("hypervisor/uuid", "ec2e1916-9099")], Cloud::Amazon),
            (&[("class/dmi/id/sys_vendor", "Xen"), ("class/dmi/id/product_uuid", "EC2E1916")], Cloud::Amazon),
            (&[("class/dmi/id/board_asset_tag", "i-0123456789abcdef0")], Cloud::Amazon),
            (&[("class/dmi/id/product_name", "Google Compute Engine\n")], Cloud::Google),
            (&[("class/dmi/id/product_name", "Google")], Cloud::Google),
            (&[("class/dmi/id/product_name", "Googlish")], Cloud::Other),
            (&[("class/dmi/id/sys_vendor", "Microsoft Corporation")], Cloud::Microsoft),
            (&[("class/dmi/id/sys_vendor", "QEMU"), ("hypervisor/uuid", "0000")], Cloud::Other),
            (&[], Cloud::Unknown),
        ] {
            let dir = tempfile::tempdir().unwrap();
            for (name, text) in files {
                let path = dir.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            assert_eq!(Cloud::detect(dir.path()), cloud, "{files:?}");
        }
        assert!(Cloud::Unknown.may_be(Cloud::Google) && !Cloud::Other.may_be(Cloud::Google));
    }
}
