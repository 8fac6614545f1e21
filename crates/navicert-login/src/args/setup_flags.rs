//! The flags of `navicert login setup` besides those of a login.

use super::flags::{Flag, FlagKind, Origin};

const fn flag(name: &'static str, kind: FlagKind, value: &'static str, help: &'static str) -> Flag {
    Flag { name, short: None, kind, value, origin: Origin::Navicert, help }
}

/// Flags that only `navicert login setup` knows.
pub const SETUP_FLAGS: &[Flag] = {
    use FlagKind::{Bool, OptionalText, Text};
    &[
        flag("write", Bool, "", "Write the user into the kubeconfig, after showing the change"),
        flag(
            "kubeconfig",
            Text,
            "FILE",
            "Kubeconfig to read and write instead of `KUBECONFIG` or `~/.kube/config`",
        ),
        flag("user", Text, "NAME", "Name of the user [default: oidc, or the user that is read]"),
        flag("context", Text, "NAME", "Context to set the user of, or to read the user of"),
        flag("force", Bool, "", "Replace a user of that name that has other content"),
        flag("yes", Bool, "", "Write without asking"),
        flag(
            "from-auth-provider",
            OptionalText,
            "USER",
            "Take the settings of a user with `auth-provider: oidc` [default: the context's user]",
        ),
        flag(
            "from-kubelogin",
            OptionalText,
            "USER",
            "Take the settings of a user that runs kubelogin [default: the context's user]",
        ),
        flag("exec-api-version", Text, "VERSION", "ExecCredential version: v1 or v1beta1 [default: v1]"),
        flag(
            "authn-api-version",
            Text,
            "VERSION",
            "AuthenticationConfiguration version: v1 or v1beta1 [default: v1beta1]",
        ),
    ]
};
