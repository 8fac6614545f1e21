package decide

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// TLSVerifyInput is what a server sends, what a client trusts, and what it expects. Certificates are DER in base64.
type TLSVerifyInput struct {
	Chain []string `json:"chain"`
	Roots []string `json:"roots"`
	Name  string   `json:"name"`
	// Now is in whole Unix seconds.
	Now int64 `json:"now"`
}

// TLSVerifyDecision says whether a Go client goes on with the handshake.
type TLSVerifyDecision struct {
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
	// Stricter is given when every chain that Go accepts has something that navicert refuses by design. It is informative.
	Stricter []string `json:"stricter,omitempty"`
}

// tlsVerify does what crypto/tls does with a server's certificates.
func tlsVerify(input TLSVerifyInput) (TLSVerifyDecision, error) {
	refused := func(err error) (TLSVerifyDecision, error) { return TLSVerifyDecision{Error: err.Error()}, nil }
	var sent []*x509.Certificate
	for _, text := range input.Chain {
		certificate, err := parseCertificate(text)
		if err != nil {
			return refused(err)
		}
		sent = append(sent, certificate)
	}
	if len(sent) == 0 {
		return TLSVerifyDecision{}, fmt.Errorf("`chain` has no certificate")
	}
	options := x509.VerifyOptions{
		Roots:         x509.NewCertPool(),
		Intermediates: x509.NewCertPool(),
		DNSName:       input.Name,
		CurrentTime:   time.Unix(input.Now, 0),
	}
	for _, text := range input.Roots {
		// A bundle's certificates that do not parse are skipped.
		if certificate, err := parseCertificate(text); err == nil {
			options.Roots.AddCert(certificate)
		}
	}
	for _, certificate := range sent[1:] {
		options.Intermediates.AddCert(certificate)
	}
	chains, err := sent[0].Verify(options)
	if err != nil {
		return refused(err)
	}
	return TLSVerifyDecision{OK: true, Stricter: stricterThanGo(chains, input.Name)}, nil
}

func parseCertificate(text string) (*x509.Certificate, error) {
	der, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// maxIntermediates is webpki's limit.
const maxIntermediates = 6

// stricterThanGo lists why navicert refuses chains that Go accepts; nothing if there is one that it accepts.
func stricterThanGo(chains [][]*x509.Certificate, name string) []string {
	var reasons []string
	for _, chain := range chains {
		found := stricterAbout(chain, name)
		if len(found) == 0 {
			return nil
		}
		reasons = append(reasons, found...)
	}
	slices.Sort(reasons)
	return slices.Compact(reasons)
}

func stricterAbout(chain []*x509.Certificate, name string) []string {
	var out []string
	leaf := chain[0]
	add := func(is bool, reason string) {
		if is {
			out = append(out, reason)
		}
	}
	alone := len(chain) == 1
	add(alone && (!bytes.Equal(leaf.RawIssuer, leaf.RawSubject) || leaf.CheckSignature(leaf.SignatureAlgorithm, leaf.RawTBSCertificate, leaf.Signature) != nil), "trusted but not self-signed")
	add(!alone && leaf.BasicConstraintsValid && leaf.IsCA, "authority as server")
	add(len(chain)-2 > maxIntermediates, "long chain")
	add(onlyUnusualName(leaf, name), "unusual name")
	for index, certificate := range chain {
		isRoot := index == len(chain)-1
		// Of a trusted certificate only name, key and restrictions are read, so that these do not matter there.
		if !isRoot {
			add(onlyAnyPurpose(certificate), "any purpose")
			add(certificate.Version < 3, "old version")
			add(certificate.NotBefore.Unix() < 0, "before 1970")
		}
		add((!isRoot || alone) && hasCriticalPolicies(certificate), "critical policies")
		add((index > 0 || alone) && weakKey(certificate), "weak key")
		add(index > 0 && hasUnreadConstraints(certificate, chain[:index]), "constraints of other names")
	}
	return out
}

func onlyAnyPurpose(certificate *x509.Certificate) bool {
	return slices.Contains(certificate.ExtKeyUsage, x509.ExtKeyUsageAny) && !slices.Contains(certificate.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
}

var policyExtensions = []asn1.ObjectIdentifier{{2, 5, 29, 32}, {2, 5, 29, 33}, {2, 5, 29, 36}, {2, 5, 29, 54}}

func hasCriticalPolicies(certificate *x509.Certificate) bool {
	for _, extension := range certificate.Extensions {
		if extension.Critical && slices.ContainsFunc(policyExtensions, extension.Id.Equal) {
			return true
		}
	}
	return false
}

func weakKey(certificate *x509.Certificate) bool {
	switch key := certificate.PublicKey.(type) {
	case *rsa.PublicKey:
		return key.N.BitLen() < 2048 || key.N.BitLen() > 8192
	case *ecdsa.PublicKey:
		return key.Curve == elliptic.P224()
	}
	return false
}

// hasUnreadConstraints is about URIs, mail addresses, directories and unusual DNS names: webpki refuses every such name below a
// constraint of its kind.
func hasUnreadConstraints(certificate *x509.Certificate, below []*x509.Certificate) bool {
	ofURIs := len(certificate.PermittedURIDomains)+len(certificate.ExcludedURIDomains) > 0
	ofMail := len(certificate.PermittedEmailAddresses)+len(certificate.ExcludedEmailAddresses) > 0
	ofDNS := len(certificate.PermittedDNSDomains)+len(certificate.ExcludedDNSDomains) > 0
	ofIPs := len(certificate.PermittedIPRanges)+len(certificate.ExcludedIPRanges) > 0
	hasExtension := slices.ContainsFunc(certificate.Extensions, func(extension pkix.Extension) bool { return extension.Id.Equal(nameConstraints) })
	if hasExtension && !ofURIs && !ofMail && !ofDNS && !ofIPs {
		return true
	}
	return slices.ContainsFunc(below, func(each *x509.Certificate) bool {
		return ofURIs && len(each.URIs) > 0 || ofMail && len(each.EmailAddresses) > 0 || ofDNS && slices.ContainsFunc(each.DNSNames, isUnusual)
	})
}

var nameConstraints = asn1.ObjectIdentifier{2, 5, 29, 30}

// isUsual is about host names, and wildcards with two labels after them. The last label is no number.
func isUsual(name string) bool {
	labels := strings.Split(name, ".")
	if labels[0] == "*" {
		if labels = labels[1:]; len(labels) < 2 {
			return false
		}
	}
	return !slices.ContainsFunc(labels, func(label string) bool { return !usualLabel.MatchString(label) }) && !number.MatchString(labels[len(labels)-1])
}

var (
	usualLabel = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?$`)
	number     = regexp.MustCompile(`^[0-9]+$`)
)

func isUnusual(name string) bool { return !isUsual(name) }

// onlyUnusualName says whether a server's name matches nothing else.
func onlyUnusualName(leaf *x509.Certificate, name string) bool {
	usual := slices.DeleteFunc(slices.Clone(leaf.DNSNames), isUnusual)
	return len(usual) < len(leaf.DNSNames) && (&x509.Certificate{DNSNames: usual, IPAddresses: leaf.IPAddresses}).VerifyHostname(name) != nil
}
