package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"time"
)

// credentials is every key and certificate of a cluster.
type credentials struct {
	serverCA, clientCA, frontProxyCA, etcdCA, issuerCA *authority

	server, admin, frontProxy, etcd, etcdClient, issuer pair
	serviceAccount, issuerSigning                       pair
}

func newCredentials(directory string) (credentials, error) {
	keys := pki{filepath.Join(directory, "pki")}
	var out credentials
	failures := []error{os.Mkdir(keys.directory, 0o700)}
	authority := func(name string) *authority {
		made, err := keys.authority(name)
		failures = append(failures, err)
		return made
	}
	keep := func(made pair, err error) pair {
		failures = append(failures, err)
		return made
	}
	out.serverCA, out.clientCA, out.frontProxyCA = authority("server-ca"), authority("client-ca"), authority("front-proxy-ca")
	out.etcdCA, out.issuerCA = authority("etcd-ca"), authority("issuer-ca")
	if err := errors.Join(failures...); err != nil {
		return out, err
	}
	out.server = keep(keys.serving(out.serverCA, "kube-apiserver"))
	out.etcd = keep(keys.serving(out.etcdCA, "etcd"))
	out.issuer = keep(keys.serving(out.issuerCA, "issuer"))
	out.etcdClient = keep(keys.client(out.etcdCA, "etcd-client", "kube-apiserver"))
	out.admin = keep(keys.client(out.clientCA, "admin", "peers-admin", "system:masters"))
	out.frontProxy = keep(keys.client(out.frontProxyCA, "front-proxy", "front-proxy"))
	out.serviceAccount = keep(keys.signingKey("service-account"))
	out.issuerSigning = keep(keys.signingKey("issuer-signing"))
	return out, errors.Join(failures...)
}

// start brings everything up and waits until the API server is ready. The processes that run are in `children` even if it
// fails.
func start(ctx context.Context, settings settings, children *children) (description, error) {
	made, err := newCredentials(settings.directory)
	if err != nil {
		return description{}, err
	}
	key, err := readSigningKey(made.issuerSigning.key)
	if err != nil {
		return description{}, err
	}
	issuer, err := startIssuer(key, made.issuer)
	if err != nil {
		return description{}, err
	}
	ports, err := freePorts(3)
	if err != nil {
		return description{}, err
	}
	out := description{
		Directory:            settings.directory,
		Server:               fmt.Sprintf("https://127.0.0.1:%d", ports[0]),
		CA:                   made.serverCA.file,
		Issuer:               issuer,
		IssuerCA:             made.issuerCA.file,
		IssuerKey:            made.issuerSigning.key,
		Audience:             audience,
		AdminKubeconfig:      filepath.Join(settings.directory, "admin.kubeconfig"),
		JWTKubeconfig:        filepath.Join(settings.directory, "jwt.kubeconfig"),
		ClientCA:             made.clientCA.file,
		ClientCAKey:          filepath.Join(settings.directory, "pki", "client-ca.key"),
		FrontProxy:           made.frontProxy.certificate,
		FrontProxyKey:        made.frontProxy.key,
		AuthenticationConfig: filepath.Join(settings.directory, "authentication.yaml"),
		Kubectl:              filepath.Join(settings.binaries, "kubectl"),
	}
	if err := writeFiles(out, made, settings); err != nil {
		return out, err
	}
	if err := children.start("etcd", filepath.Join(settings.binaries, "etcd"), etcdFlags(settings, made, ports[1], ports[2])); err != nil {
		return out, err
	}
	if err := children.start("kube-apiserver", filepath.Join(settings.binaries, "kube-apiserver"), apiserverFlags(out, settings, made, ports)); err != nil {
		return out, err
	}
	out.Processes = children.ids()
	if err := waitReady(ctx, out, made, children); err != nil {
		return out, err
	}
	// The exec plugin reads it.
	if err := out.write(); err != nil {
		return out, err
	}
	return out, grant(ctx, out)
}

func etcdFlags(settings settings, made credentials, client, peer int) []string {
	clientURL, peerURL := fmt.Sprintf("https://127.0.0.1:%d", client), fmt.Sprintf("https://127.0.0.1:%d", peer)
	return []string{
		"--name=peers",
		"--data-dir=" + filepath.Join(settings.directory, "etcd"),
		"--listen-client-urls=" + clientURL, "--advertise-client-urls=" + clientURL,
		"--listen-peer-urls=" + peerURL, "--initial-advertise-peer-urls=" + peerURL, "--initial-cluster=peers=" + peerURL,
		"--cert-file=" + made.etcd.certificate, "--key-file=" + made.etcd.key,
		"--client-cert-auth", "--trusted-ca-file=" + made.etcdCA.file,
		"--peer-cert-file=" + made.etcd.certificate, "--peer-key-file=" + made.etcd.key,
		"--peer-client-cert-auth", "--peer-trusted-ca-file=" + made.etcdCA.file,
		// Nothing here outlives the cluster.
		"--unsafe-no-fsync",
		"--log-level=warn",
	}
}

func apiserverFlags(out description, settings settings, made credentials, ports []int) []string {
	return append([]string{
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", ports[0]),
		fmt.Sprintf("--etcd-servers=https://127.0.0.1:%d", ports[1]),
		"--etcd-cafile=" + made.etcdCA.file, "--etcd-certfile=" + made.etcdClient.certificate, "--etcd-keyfile=" + made.etcdClient.key,
		"--tls-cert-file=" + made.server.certificate, "--tls-private-key-file=" + made.server.key,
		"--client-ca-file=" + made.clientCA.file,
		"--requestheader-client-ca-file=" + made.frontProxyCA.file,
		"--requestheader-allowed-names=front-proxy",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-uid-headers=X-Remote-Uid",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + made.frontProxy.certificate, "--proxy-client-key-file=" + made.frontProxy.key,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + made.serviceAccount.certificate,
		"--service-account-signing-key-file=" + made.serviceAccount.key,
		"--service-cluster-ip-range=10.96.0.0/24",
		"--authorization-mode=RBAC",
		"--authentication-config=" + out.AuthenticationConfig,
		// No controller makes the default service accounts, and no endpoint may name a loopback address.
		"--disable-admission-plugins=ServiceAccount",
		"--endpoint-reconciler-type=none",
		"--profiling=false",
	}, settings.apiserver...)
}

// freePorts gives ports that were free a moment ago. They lie below those that systems hand out for outgoing connections, so
// that nobody takes them by chance before our programs do.
func freePorts(count int) ([]int, error) {
	var out []int
	for range 1000 {
		port := 20000 + rand.IntN(12000)
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		// Closed at the end, so that no port comes twice.
		defer listener.Close()
		if out = append(out, port); len(out) == count {
			return out, nil
		}
	}
	return nil, errors.New("no free port between 20000 and 32000")
}

// readyLimit is generous: on a busy machine the API server alone takes half a minute to start.
const readyLimit = 3 * time.Minute
