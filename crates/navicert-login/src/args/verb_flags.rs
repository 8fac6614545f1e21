//! The flags that single verbs have besides those of a login.

use super::flags::{Flag, FlagKind, own};

/// Flags that only `navicert login setup` knows.
pub const SETUP_FLAGS: &[Flag] = {
    use FlagKind::{Bool, OptionalText, Text};
    &[
        own("write", Bool, "", "Write the user into the kubeconfig, after showing the change"),
        own(
            "kubeconfig",
            Text,
            "FILE",
            "Kubeconfig to read and write instead of `KUBECONFIG` or `~/.kube/config`",
        ),
        own("user", Text, "NAME", "Name of the user [default: oidc, or the user that is read]"),
        own("context", Text, "NAME", "Context to set the user of, or to read the user of"),
        own("force", Bool, "", "Replace a user of that name that has other content"),
        own("yes", Bool, "", "Write without asking"),
        own(
            "from-auth-provider",
            OptionalText,
            "USER",
            "Take the settings of a user with `auth-provider: oidc` [default: the context's user]",
        ),
        own(
            "from-kubelogin",
            OptionalText,
            "USER",
            "Take the settings of a user that runs kubelogin [default: the context's user]",
        ),
        own("exec-api-version", Text, "VERSION", "ExecCredential version: v1 or v1beta1 [default: v1]"),
        own(
            "authn-api-version",
            Text,
            "VERSION",
            "AuthenticationConfiguration version: v1 or v1beta1 [default: v1beta1]",
        ),
    ]
};

/// Flags of `navicert status` besides the cache folder.
pub const STATUS_FLAGS: &[Flag] = {
    use FlagKind::Text;
    &[
        own("context", Text, "CONTEXT", "Use the session of this kubeconfig context"),
        own("kubeconfig", Text, "FILE", "Kubeconfig with that context [default: KUBECONFIG, ~/.kube/config]"),
    ]
};

/// Flags of `navicert logout` besides those of `navicert login`, which select a session.
pub const LOGOUT_FLAGS: &[Flag] = {
    use FlagKind::{Bool, Text};
    &[
        own("context", Text, "CONTEXT", "End the session of this kubeconfig context"),
        own("kubeconfig", Text, "FILE", "Kubeconfig with that context [default: KUBECONFIG, ~/.kube/config]"),
        own("all", Bool, "", "End every session of the cache folder"),
        own("local", Bool, "", "Remove the session here and do not revoke it at the provider"),
        own("browser", Bool, "", "End the browser's own session at the provider too"),
        own(
            "post-logout-redirect-url",
            Text,
            "URL",
            "Where the provider sends the browser afterwards; the client must have registered it",
        ),
    ]
};
