//! Examples in `--help`. A test parses every command shown here.

pub(crate) const NAVICERT: &str = "\
Examples:
  navicert doctor
  navicert run -- kubectl get pods
  navicert help authn explain";

pub(crate) const LOGIN: &str = "\
Examples:
  navicert login --oidc-issuer-url=https://id.example.com --oidc-client-id=kubernetes
  navicert login --oidc-issuer-url=https://id.example.com --oidc-client-id=kubernetes --grant-type=device-code
  navicert login get-token --oidc-issuer-url=https://id.example.com --oidc-client-id=kubernetes

In a kubeconfig, name it as the exec plugin of a user: command: navicert, args: [login, --oidc-issuer-url=…, …]. The token is \
printed only to a client or a pipe, never to a terminal. With get-token, the defaults are those of kubelogin.";

pub(crate) const LOGIN_GET_TOKEN: &str = "\
Examples:
  navicert login get-token --oidc-issuer-url=https://id.example.com --oidc-client-id=kubernetes

Takes every flag of `navicert login`; --listen-address, the redirect URI and the scopes have kubelogin's defaults.";

pub(crate) const LOGIN_SETUP: &str = "\
Examples:
  navicert login setup --oidc-issuer-url=https://id.example.com --oidc-client-id=kubernetes
  navicert login setup --oidc-issuer-url=https://id.example.com --oidc-client-id=kubernetes --write --context=prod
  navicert login setup --from-kubelogin --write --force

Prints an AuthenticationConfiguration that it has tried with your token, RBAC bindings and the user of a kubeconfig. With --write, puts the \
user into the kubeconfig: shows the change, asks, and keeps the previous file as FILE.bak. Claims are shown on a terminal only.";

pub(crate) const LOGIN_CLEAN: &str = "\
Examples:
  navicert login clean
  navicert login clean --token-cache-dir ~/.kube/cache/navicert

Asks no provider: sessions stay valid there. `navicert logout` revokes one.";

pub(crate) const LOGOUT: &str = "\
Examples:
  navicert logout --oidc-issuer-url=https://id.example.com --oidc-client-id=kubernetes
  navicert logout --context prod --browser
  navicert logout --all --local

Give the flags of the login that select the session, the context that uses it, or --all. --browser ends the browser's own session at \
the provider as well; its page may ask you to confirm.";

pub(crate) const STATUS: &str = "\
Examples:
  navicert status
  navicert status --context prod
  navicert status -o json

Exits with 0 if a session has a fresh token, and with 1 otherwise.";

pub(crate) const KUBECONFIG: &str = "\
Examples:
  navicert kubeconfig view --minify
  navicert kubeconfig check --all-contexts";

pub(crate) const KUBECONFIG_VIEW: &str = "\
Examples:
  navicert kubeconfig view --minify --context prod
  KUBECONFIG=a.yaml:b.yaml navicert kubeconfig view -o json | jq .contexts";

pub(crate) const KUBECONFIG_CHECK: &str = "\
Examples:
  navicert kubeconfig check
  navicert kubeconfig check --all-contexts -o json";

pub(crate) const WHOAMI: &str = "\
Examples:
  navicert whoami
  navicert whoami --context prod -o json";

pub(crate) const DOCTOR: &str = "\
Examples:
  navicert doctor
  navicert doctor prod --kubeconfig ./kubeconfig
  navicert doctor --front-proxy --kubeconfig proxy.kubeconfig

The last line says what to fix first. A credential plugin is run if the server is reachable. Secrets are never shown.";

pub(crate) const EXEC_PLUGIN: &str = "\
Examples:
  navicert exec-plugin check aws eks get-token --cluster-name test
  navicert exec-plugin keep --any-directory -- aws eks get-token --cluster-name test
  navicert exec-plugin decode --jsonl < responses.jsonl";

pub(crate) const EXEC_PLUGIN_CHECK: &str = "\
Examples:
  navicert exec-plugin check aws eks get-token --cluster-name test
  navicert exec-plugin check -o json --api-version v1 -- ./my-plugin --verbose

Options of navicert stand before COMMAND; everything after it is passed to the plugin. The plugin is run with and without cluster \
information and a terminal. Its output is never shown. A plugin that supports only one version of ExecCredential conforms.";

pub(crate) const EXEC_PLUGIN_KEEP: &str = "\
Examples:
  navicert exec-plugin keep --any-directory -- aws eks get-token --cluster-name test
  navicert exec-plugin keep --max-age 5m --drop-env TMUX_PANE -- kubelogin get-token
  navicert exec-plugin keep --clear

In a kubeconfig, write it before the plugin: command: navicert, args: [exec-plugin, keep, --any-directory, --, aws, eks, …]. Answers are \
kept per plugin, arguments, environment, cluster and working directory until they expire, in the memory of a process that ends by itself; \
an answer without expiry is kept for a minute. A client that runs the plugin twice was refused with the first answer, and gets a new one. \
The exit code is the plugin's.";

pub(crate) const EXEC_PLUGIN_PIN: &str = "\
Examples:
  navicert exec-plugin pin aws eks get-token
  navicert exec-plugin pin --yes --add-plugins-in-use /usr/local/bin/gke-gcloud-auth-plugin

Options of navicert stand before COMMAND. Shows the change of the kuberc and asks before it writes. The first entry makes the policy an \
allowlist, which forbids every other plugin: those in use are listed, and can be added. Pin a plugin again after each update.";

pub(crate) const EXEC_PLUGIN_DECODE: &str = "\
Examples:
  navicert exec-plugin decode --jsonl < responses.jsonl

A line is {\"id\": …, \"apiVersion\": \"client.authentication.k8s.io/v1\", \"stdout\": \"…\", \"exit\": 0}.";

pub(crate) const EXEC_PLUGIN_INFO: &str = "\
Examples:
  navicert exec-plugin info --jsonl < requests.jsonl

A line is {\"id\": …, \"apiVersion\": \"client.authentication.k8s.io/v1\", \"server\": \"https://…\", \"provideClusterInfo\": true, …}.";

pub(crate) const AUTHN: &str = "\
Examples:
  navicert authn check auth.yaml
  navicert authn explain --config auth.yaml --online --token-file token.jwt";

pub(crate) const AUTHN_CHECK: &str = "\
Examples:
  navicert authn check auth.yaml
  navicert authn check auth.yaml --online --deny-lints";

pub(crate) const AUTHN_EVAL: &str = "\
Examples:
  navicert authn eval --config auth.yaml --jwks jwks.json --token-file token.jwt
  navicert authn eval --config auth.yaml --online < token.jwt";

pub(crate) const AUTHN_EXPLAIN: &str = "\
Examples:
  navicert authn explain --config auth.yaml --online --token-file token.jwt
  kubectl create token app | navicert authn explain --config auth.yaml --jwks jwks.json";

pub(crate) const AUTHN_TEST: &str = "\
Examples:
  navicert authn test auth-test.yaml
  navicert authn test --require-coverage auth-test.yaml";

pub(crate) const AUTHN_DIFF: &str = "\
Examples:
  navicert authn diff --from 1.37 --to 1.38 auth.yaml
  navicert authn diff auth.yaml auth-new.yaml --suite auth-test.yaml

Exits with 1 if something changes. Tokens are found by a search over the constants, boundaries and rules of both sides, so that no difference \
found is no proof. The default profile is `kube`.";

pub(crate) const AUTHN_MIGRATE: &str = "\
Examples:
  navicert authn migrate /etc/kubernetes/manifests/kube-apiserver.yaml > auth.yaml
  navicert authn migrate -- --oidc-issuer-url=https://login.example.com --oidc-client-id=kubernetes";

pub(crate) const CEL: &str = "\
Examples:
  navicert cel check 'claims.sub'
  navicert cel eval 'claims.groups.size() > 0' --claims claims.json";

pub(crate) const CEL_CHECK: &str = "\
Examples:
  navicert cel check 'claims.sub'
  navicert cel check --rule --for user \"!user.username.startsWith('system:')\"";

pub(crate) const CEL_EVAL: &str = "\
Examples:
  navicert cel eval 'claims.groups.size() > 0' --claims claims.json --trace
  navicert cel eval 'x + 1' --var x=41";

pub(crate) const IMAGE: &str = "\
Examples:
  navicert image explain registry.example/team/app:v1
  navicert image check --config credential-providers.yaml --bin-dir /usr/libexec/credential-providers";

pub(crate) const IMAGE_GET: &str = "\
Examples:
  navicert image get registry.example/team/app:v1
  navicert image get registry.example/team/app:v1 --pod team/app-0 --show-secrets";

pub(crate) const IMAGE_EXPLAIN: &str = "\
Examples:
  navicert image explain registry.example/team/app:v1
  navicert image explain --dry-run busybox --config credential-providers.yaml";

pub(crate) const IMAGE_CHECK: &str = "\
Examples:
  navicert image check
  navicert image check --config credential-providers.yaml --bin-dir /usr/libexec/credential-providers";

pub(crate) const IMAGE_MATCH: &str = "\
Examples:
  navicert image match '*.dkr.ecr.*.amazonaws.com' 123456789012.dkr.ecr.eu-west-1.amazonaws.com/app";

pub(crate) const IMAGE_KEYRING: &str = "\
Examples:
  navicert image keyring ~/.docker/config.json registry.example/team/app";

pub(crate) const IMAGE_RESPONSE: &str = "\
Examples:
  navicert image response response.json
  ./my-provider < request.json | navicert image response";

pub(crate) const IMAGE_AUTH_FILE: &str = "\
Examples:
  navicert image auth-file --file auth.json registry.example/team/app";

pub(crate) const IMAGE_PLUGIN_CHECK: &str = "\
Examples:
  navicert image plugin-check --image registry.example/app -- ./my-provider --flag";

pub(crate) const IMAGE_SERVE: &str = "\
Examples:
  navicert image serve
  navicert image serve --mirror mirror.example=registry.example";

pub(crate) const IMAGE_INVALIDATE: &str = "\
Examples:
  navicert image invalidate registry.example/team/app";

pub(crate) const IMAGE_METRICS: &str = "\
Examples:
  navicert image metrics";

pub(crate) const SIGNER: &str = "\
Examples:
  navicert signer list
  navicert signer check 'pkcs11:token=YubiKey;id=%01'
  navicert signer request 'pkcs11:object=ann' --common-name ann --submit --wait --store";

pub(crate) const SIGNER_LIST: &str = "\
Examples:
  navicert signer list
  navicert signer list --module /usr/lib/x86_64-linux-gnu/libykcs11.so

Without --module, uses NAVICERT_PKCS11_MODULE or searches the default module paths. No PIN is needed.";

pub(crate) const SIGNER_CHECK: &str = "\
Examples:
  navicert signer check 'pkcs11:token=YubiKey;id=%01?module-path=/usr/lib/libykcs11.so'

The PIN is read from the URI's `pin-source` file, from the NAVICERT_PINENTRY program or from the terminal.";

pub(crate) const SIGNER_REQUEST: &str = "\
Examples:
  navicert signer request 'pkcs11:token=machine;object=ann' --generate ec-p256 --common-name ann
  navicert signer request 'pkcs11:object=ann' --common-name ann --submit --wait --store
  navicert signer request 'pkcs11:token=machine;object=ann' --certificate ann.crt --store

Prints the request as PEM, or the certificate if there is one. --submit uses the current context, whose user needs the permission to create \
CertificateSigningRequests; an administrator approves it with `kubectl certificate approve NAME`. With --wait and --name, waits for a \
request that was submitted before.";

pub(crate) const SIGNER_SETUP: &str = "\
Examples:
  navicert signer setup --context prod
  navicert signer setup 'pkcs11:token=YubiKey;id=%01' --module /usr/lib/libykcs11.so --user ann --yes

Shows the changes of both files and asks before it writes. No PIN is needed. The first entry of a kuberc makes its policy an allowlist, \
which forbids every other plugin: those in use are listed, and can be added.";

pub(crate) const SIGNER_SERVE: &str = "\
Examples:
  navicert signer serve 'pkcs11:token=YubiKey;id=%01?module-path=/usr/lib/libykcs11.so'

Clients with `signerApiVersion: v1` in their kubeconfig find the socket and need no PIN while it runs.";

pub(crate) const SERVE_WEBHOOK: &str = "\
Examples:
  navicert serve webhook --authentication-config auth.yaml \\
    --tls-cert-file tls.crt --tls-private-key-file tls.key --client-ca-file apiserver-ca.crt
  navicert serve webhook --authentication-config auth.yaml --print-kubeconfig \\
    --server-url https://navicert.example:8443 --tls-cert-file tls.crt";

pub(crate) const COMPLETIONS: &str = "\
Examples:
  navicert completions bash > /etc/bash_completion.d/navicert
  navicert completions zsh > /usr/local/share/zsh/site-functions/_navicert
  navicert completions fish > ~/.config/fish/completions/navicert.fish";

pub(crate) const MAN: &str = "\
Examples:
  navicert man | man -l -
  navicert man --dir /usr/local/share/man/man1";

pub(crate) const HELP: &str = "\
Examples:
  navicert help
  navicert help authn explain
  navicert help topics";

pub(crate) const VERSION: &str = "\
Examples:
  navicert version
  navicert version -o json";

#[cfg(test)]
mod tests {
    use clap::Command;
    use clap::error::ErrorKind;

    use crate::args::definition;

    /// Every visible command with its path.
    fn commands(command: &Command, path: &str) -> Vec<(String, String)> {
        let help = command.get_after_help().or(command.get_after_long_help());
        let own = (path.to_owned(), help.map(ToString::to_string).unwrap_or_default());
        let visible = command.get_subcommands().filter(|verb| !verb.is_hide_set());
        let below = visible.flat_map(|verb| commands(verb, &format!("{path} {}", verb.get_name())));
        std::iter::once(own).chain(below).collect()
    }

    /// The words of a shell command that are given to navicert: from its name to a pipe, a redirection or the end.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
        for symbol in line.chars() {
            match (quote, symbol) {
                (Some(open), _) if open == symbol => quote = None,
                (None, '\'' | '"') => quote = Some(symbol),
                (None, ' ') => words.push(std::mem::take(&mut word)),
                _ => word.push(symbol),
            }
        }
        words.push(word);
        let start = words.iter().position(|word| word == "navicert").unwrap_or(words.len());
        let is_end = |word: &String| ["|", "<", ">", "&&"].contains(&word.as_str());
        words
            .into_iter()
            .skip(start)
            .take_while(|word| !is_end(word))
            .filter(|word| !word.is_empty())
            .collect()
    }

    /// The commands of an `Examples:` section.
    fn examples(help: &str) -> Vec<String> {
        let help = help.replace("\\\n", "");
        let section = help.split("Examples:\n").nth(1).unwrap_or_default();
        section.lines().take_while(|line| line.starts_with("  ")).map(|line| line.trim().to_owned()).collect()
    }

    #[test]
    fn every_verb_has_examples_and_every_example_parses() {
        let mut built = definition();
        built.build();
        let all = commands(&built, "navicert");
        assert!(all.len() > 40, "{}", all.len());
        for (path, help) in all {
            let examples = examples(&help);
            assert!(!examples.is_empty(), "{path} has no examples: {help}");
            assert!(!help.contains("Example:"), "{path}: {help}");
            for example in examples {
                let words = words(&example);
                assert!(words.join(" ").starts_with(&path), "{path} shows another verb: {example}");
                let outcome = definition().try_get_matches_from(&words);
                assert!(
                    outcome.as_ref().err().is_none_or(|error| error.kind() == ErrorKind::DisplayHelp),
                    "{example}: {:?}",
                    outcome.err()
                );
            }
        }
    }

    #[test]
    fn examples_are_read_as_a_shell_reads_them() {
        assert_eq!(
            words("A=b navicert cel eval 'x + 1' --var x=41"),
            ["navicert", "cel", "eval", "x + 1", "--var", "x=41"]
        );
        assert_eq!(words("a | navicert man --dir d > e"), ["navicert", "man", "--dir", "d"]);
    }
}
