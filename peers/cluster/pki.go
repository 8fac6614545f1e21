package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// authority signs certificates. Each purpose has its own, so that a test which mixes them up fails.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	// file is the certificate's path.
	file string
}

// pair is the paths of a certificate and its key.
type pair struct {
	certificate, key string
}

// pki writes keys and certificates into one directory.
type pki struct {
	directory string
}

func (p pki) path(name string) string { return filepath.Join(p.directory, name) }

func (p pki) authority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := template(name)
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign
	encoded, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(encoded)
	if err != nil {
		return nil, err
	}
	written, err := p.write(name, encoded, key)
	return &authority{certificate, key, written.certificate}, err
}

// serving makes a certificate for a server on loopback.
func (p pki) serving(by *authority, name string) (pair, error) {
	template := template(name)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default.svc"}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	return p.sign(by, name, template)
}

// client makes a certificate for a user and its groups.
func (p pki) client(by *authority, name, user string, groups ...string) (pair, error) {
	template := template(user)
	template.Subject.Organization = groups
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return p.sign(by, name, template)
}

func (p pki) sign(by *authority, name string, template *x509.Certificate) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	encoded, err := x509.CreateCertificate(rand.Reader, template, by.certificate, key.Public(), by.key)
	if err != nil {
		return pair{}, err
	}
	return p.write(name, encoded, key)
}

func template(name string) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		panic(err) // the system has no randomness
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(30 * 24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}

func (p pki) write(name string, certificate []byte, key *ecdsa.PrivateKey) (pair, error) {
	out := pair{p.path(name + ".crt"), p.path(name + ".key")}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return out, err
	}
	if err := writePEM(out.key, "PRIVATE KEY", encoded); err != nil {
		return out, err
	}
	return out, writePEM(out.certificate, "CERTIFICATE", certificate)
}

// signingKey makes a key without a certificate; `name.pub` beside it has the public half.
func (p pki) signingKey(name string) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return pair{}, err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return pair{}, err
	}
	out := pair{p.path(name + ".pub"), p.path(name + ".key")}
	if err := writePEM(out.key, "EC PRIVATE KEY", private); err != nil {
		return out, err
	}
	return out, writePEM(out.certificate, "PUBLIC KEY", public)
}

func readSigningKey(path string) (*ecdsa.PrivateKey, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("no key in `%s`", path)
	}
	return x509.ParseECPrivateKey(block.Bytes)
}

func writePEM(path, kind string, bytes []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600)
}
