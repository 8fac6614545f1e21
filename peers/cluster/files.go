package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// writeFiles writes the authentication configuration, the kubeconfigs and the shell's environment.
func writeFiles(out description, made credentials, settings settings) error {
	issuerCA, err := os.ReadFile(out.IssuerCA)
	if err != nil {
		return err
	}
	admin, err := adminUser(made.admin)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	for path, text := range map[string]string{
		out.AuthenticationConfig:            fmt.Sprintf(authenticationConfig, out.Issuer, indent(string(issuerCA), 6), audience),
		out.AdminKubeconfig:                 kubeconfig(out, "admin", admin),
		out.JWTKubeconfig:                   kubeconfig(out, "jwt", fmt.Sprintf(execUser, program, out.Directory)),
		filepath.Join(out.Directory, "env"): fmt.Sprintf(environment, out.Directory, out.AdminKubeconfig, settings.binaries),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// kubectl's caches go into the cluster's directory too and vanish with it.
const environment = `export NAVICERT_CLUSTER='%s'
export KUBECONFIG='%s'
export KUBECACHEDIR="$NAVICERT_CLUSTER/kubectl-cache"
export PATH='%s':"$PATH"
`

const authenticationConfig = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer:
    url: %s
    certificateAuthority: |
%s
    audiences:
    - %s
  claimMappings:
    username:
      expression: '"peers:" + claims.sub'
    groups:
      expression: 'dyn(claims.?groups.orValue([])).map(g, "peers:" + g)'
    uid:
      claim: sub
    extra:
    - key: peers.navicert/groups
      valueExpression: claims.?groups.orValue([])
  claimValidationRules:
  - expression: claims.exp - claims.nbf <= 86400.0
    message: total token lifetime must not exceed 24 hours
  userValidationRules:
  - expression: "!user.username.startsWith('system:')"
    message: username cannot use the system prefix
anonymous:
  enabled: true
  conditions:
  - path: /livez
  - path: /readyz
  - path: /healthz
`

const execUser = `    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: '%s'
      args: [token, -dir, '%s']
      interactiveMode: Never
`

func adminUser(admin pair) (string, error) {
	certificate, err := os.ReadFile(admin.certificate)
	if err != nil {
		return "", err
	}
	key, err := os.ReadFile(admin.key)
	if err != nil {
		return "", err
	}
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("    client-certificate-data: %s\n    client-key-data: %s\n", encode(certificate), encode(key)), nil
}

func kubeconfig(out description, name, user string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: peers
  cluster:
    server: %[1]s
    certificate-authority: '%[2]s'
users:
- name: %[3]s
  user:
%[4]scontexts:
- name: %[3]s
  context:
    cluster: peers
    user: %[3]s
current-context: %[3]s
`, out.Server, out.CA, name, user)
}

func indent(text string, by int) string {
	pad := strings.Repeat(" ", by)
	return pad + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+pad)
}

// grant lets the issuer's developers look around, and waits until one of them may. (The built-in role `view` is empty here: a
// controller that does not run would fill it.)
func grant(ctx context.Context, out description) error {
	for _, arguments := range [][]string{
		{"create", "clusterrole", "peers-look", "--verb=get,list,watch", "--resource=namespaces,pods,configmaps,serviceaccounts"},
		{"create", "clusterrolebinding", "peers-look", "--clusterrole=peers-look", "--group=peers:developers"},
	} {
		if err := kubectl(ctx, out, out.AdminKubeconfig, arguments...); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		err := kubectl(ctx, out, out.JWTKubeconfig, "auth", "can-i", "list", "namespaces")
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func kubectl(ctx context.Context, out description, kubeconfig string, arguments ...string) error {
	command := exec.CommandContext(ctx, out.Kubectl, append([]string{"--kubeconfig", kubeconfig}, arguments...)...)
	command.Env = append(os.Environ(), "KUBECACHEDIR="+filepath.Join(out.Directory, "kubectl-cache"))
	if text, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(arguments, " "), err, text)
	}
	return nil
}
