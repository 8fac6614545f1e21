package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"math/big"
	"math/rand/v2"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"
)

// renderTLS makes the certificates of a question.
func renderTLS(tree any) (map[string]any, bool) {
	members, _ := tree.(map[string]any)
	descriptions, ok := members["certificates"].(map[string]any)
	now, also := members["now"].(int)
	name, _ := members["name"].(string)
	// Without a name Go does not look for one.
	if !ok || !also || name == "" {
		return nil, false
	}
	made := map[string]string{}
	take := func(member string) ([]any, bool) {
		names, ok := members[member].([]any)
		out := []any{}
		for _, each := range names {
			name, _ := each.(string)
			if made[name] == "" {
				der, ok := makeCertificate(descriptions, name)
				if !ok {
					return nil, false
				}
				made[name] = base64.StdEncoding.EncodeToString(der)
			}
			out = append(out, made[name])
		}
		return out, ok
	}
	chain, ok := take("chain")
	roots, also := take("roots")
	if !ok || !also || len(chain) == 0 {
		return nil, false
	}
	return map[string]any{"chain": chain, "roots": roots, "name": name, "now": now}, true
}

// makeCertificate makes one certificate. Of its issuer only name and key matter.
func makeCertificate(descriptions map[string]any, name string) ([]byte, bool) {
	description, ok := descriptions[name].(map[string]any)
	issuer := description
	if by, _ := description["by"].(string); by != "" {
		issuer, _ = descriptions[by].(map[string]any)
	}
	if !ok || issuer == nil {
		return nil, false
	}
	key, ok := keyOf(description)
	signer, also := keyOf(issuer)
	template, too := certificateTemplate(description)
	if !ok || !also || !too {
		return nil, false
	}
	flaw, _ := description["flaw"].(string)
	if flaw == "issuer key" {
		signer, _ = keyNamed("p256-stranger")
	}
	parent := &x509.Certificate{Subject: subjectOf(issuer), SubjectKeyId: keyIdentifier(signer)}
	if flaw == "wrong authority key identifier" {
		parent.SubjectKeyId = []byte("another")
	}
	if flaw == "issuer name" {
		parent.Subject = pkix.Name{CommonName: "another"}
	}
	if flaw == "version 1" {
		return versionOne(template, parent, key, signer)
	}
	der, err := x509.CreateCertificate(nil, template, parent, key.Public(), signer)
	if err != nil {
		return nil, false
	}
	if flaw == "signature" {
		der[len(der)-1] ^= 1
	}
	return der, true
}

func subjectOf(description map[string]any) pkix.Name {
	subject, _ := description["subject"].(string)
	if description["flaw"] == "no subject" {
		return pkix.Name{}
	}
	return pkix.Name{CommonName: subject, Organization: []string{"throw-away test key"}}
}

var (
	keyUsages = map[string]x509.KeyUsage{"sign": x509.KeyUsageCertSign, "signature": x509.KeyUsageDigitalSignature, "encipherment": x509.KeyUsageKeyEncipherment, "crl": x509.KeyUsageCRLSign}
	purposes  = map[string]x509.ExtKeyUsage{"server": x509.ExtKeyUsageServerAuth, "client": x509.ExtKeyUsageClientAuth, "any": x509.ExtKeyUsageAny}
)

func certificateTemplate(description map[string]any) (*x509.Certificate, bool) {
	days, _ := description["days"].([]any)
	if len(days) != 2 {
		return nil, false
	}
	from, _ := days[0].(int)
	until, _ := days[1].(int)
	serial, _ := description["serial"].(int)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(serial) + 1),
		Subject:      subjectOf(description),
		NotBefore:    time.Unix(tlsNow+int64(from)*day, 0),
		NotAfter:     time.Unix(tlsNow+int64(until)*day, 0),
	}
	if isCA, there := description["ca"].(bool); there {
		template.BasicConstraintsValid, template.IsCA, template.MaxPathLen = true, isCA, -1
		if path, limited := description["path"].(int); limited && isCA {
			template.MaxPathLen, template.MaxPathLenZero = path, path == 0
		}
	}
	for _, name := range texts(description["usage"]) {
		template.KeyUsage |= keyUsages[name]
	}
	for _, name := range texts(description["purposes"]) {
		if name == "unknown" {
			template.UnknownExtKeyUsage = append(template.UnknownExtKeyUsage, asn1.ObjectIdentifier{1, 2, 3, 4})
		} else {
			template.ExtKeyUsage = append(template.ExtKeyUsage, purposes[name])
		}
	}
	return template, addNames(template, description) && addExtension(template, description)
}

func addNames(template *x509.Certificate, description map[string]any) bool {
	template.DNSNames = texts(description["dns"])
	template.EmailAddresses = texts(description["emails"])
	for _, text := range texts(description["ips"]) {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(text))
	}
	for _, text := range texts(description["uris"]) {
		parsed, err := url.Parse(text)
		if err != nil {
			return false
		}
		template.URIs = append(template.URIs, parsed)
	}
	template.PermittedDNSDomains, template.ExcludedDNSDomains = texts(description["permitted"]), texts(description["excluded"])
	template.PermittedURIDomains, template.ExcludedURIDomains = texts(description["permittedURIs"]), texts(description["excludedURIs"])
	template.PermittedEmailAddresses, template.ExcludedEmailAddresses = texts(description["permittedEmails"]), texts(description["excludedEmails"])
	for _, text := range texts(description["permittedIPs"]) {
		_, network, err := net.ParseCIDR(text)
		if err != nil {
			return false
		}
		template.PermittedIPRanges = append(template.PermittedIPRanges, network)
	}
	for _, text := range texts(description["excludedIPs"]) {
		_, network, err := net.ParseCIDR(text)
		if err != nil {
			return false
		}
		template.ExcludedIPRanges = append(template.ExcludedIPRanges, network)
	}
	return true
}

func addExtension(template *x509.Certificate, description map[string]any) bool {
	text, there := description["extension"].(string)
	if !there {
		return true
	}
	name, critical := strings.CutPrefix(text, "critical ")
	extension := pkix.Extension{Critical: critical}
	var err error
	switch name {
	case "unknown":
		extension.Id, extension.Value = asn1.ObjectIdentifier{1, 2, 3, 5}, []byte{5, 0}
	case "unknown standard":
		extension.Id, extension.Value = asn1.ObjectIdentifier{2, 5, 29, 99}, []byte{5, 0}
	case "policies":
		extension.Id = asn1.ObjectIdentifier{2, 5, 29, 32}
		extension.Value, err = asn1.Marshal([]struct{ ID asn1.ObjectIdentifier }{{asn1.ObjectIdentifier{1, 2, 3}}})
	case "inhibit any policy":
		extension.Id = asn1.ObjectIdentifier{2, 5, 29, 54}
		extension.Value, err = asn1.Marshal(0)
	case "directory constraint":
		// permittedSubtrees [0] { SEQUENCE { directoryName [4] { Name } } }
		extension.Id = asn1.ObjectIdentifier{2, 5, 29, 30}
		extension.Value = []byte{0x30, 0x08, 0xa0, 0x06, 0x30, 0x04, 0xa4, 0x02, 0x30, 0x00}
	case "twice key usage":
		extension.Id, extension.Value = asn1.ObjectIdentifier{2, 5, 29, 15}, []byte{3, 2, 2, 4}
		template.ExtraExtensions = append(template.ExtraExtensions, extension)
	default:
		return false
	}
	template.ExtraExtensions = append(template.ExtraExtensions, extension)
	return err == nil
}

func texts(list any) []string {
	var out []string
	elements, _ := list.([]any)
	for _, element := range elements {
		if text, ok := element.(string); ok {
			out = append(out, text)
		}
	}
	return out
}

// versionOne makes a certificate without extensions, as they were before version 3.
func versionOne(template, parent *x509.Certificate, key, signer crypto.Signer) ([]byte, bool) {
	der, err := x509.CreateCertificate(nil, &x509.Certificate{SerialNumber: template.SerialNumber, Subject: template.Subject, NotBefore: template.NotBefore, NotAfter: template.NotAfter}, parent, key.Public(), signer)
	if err != nil {
		return nil, false
	}
	var whole struct {
		TBS       asn1.RawValue
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}
	if _, err := asn1.Unmarshal(der, &whole); err != nil {
		return nil, false
	}
	var tbs struct {
		Version                                             asn1.RawValue
		Serial                                              *big.Int
		Algorithm, Issuer, Validity, Subject, PublicKeyInfo asn1.RawValue
		Extensions                                          asn1.RawValue `asn1:"optional"`
	}
	if _, err := asn1.Unmarshal(whole.TBS.FullBytes, &tbs); err != nil {
		return nil, false
	}
	old := struct {
		Serial                                              *big.Int
		Algorithm, Issuer, Validity, Subject, PublicKeyInfo asn1.RawValue
	}{tbs.Serial, tbs.Algorithm, tbs.Issuer, tbs.Validity, tbs.Subject, tbs.PublicKeyInfo}
	text, err := asn1.Marshal(old)
	if err != nil {
		return nil, false
	}
	digest, hash := text, crypto.Hash(0)
	if _, isEd25519 := signer.(ed25519.PrivateKey); !isEd25519 {
		hash = hashOf(signer)
		hasher := hash.New()
		hasher.Write(text)
		digest = hasher.Sum(nil)
	}
	signature, err := signer.Sign(nil, digest, hash)
	if err != nil {
		return nil, false
	}
	whole.TBS = asn1.RawValue{FullBytes: text}
	whole.Signature = asn1.BitString{Bytes: signature, BitLength: len(signature) * 8}
	out, err := asn1.Marshal(whole)
	return out, err == nil
}

// hashOf is the hash that crypto/x509 takes for a key.
func hashOf(key crypto.Signer) crypto.Hash {
	if key, ok := key.(*ecdsa.PrivateKey); ok {
		switch key.Curve {
		case elliptic.P384():
			return crypto.SHA384
		case elliptic.P521():
			return crypto.SHA512
		}
	}
	return crypto.SHA256
}

func keyIdentifier(key crypto.Signer) []byte {
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil
	}
	sum := sha256.Sum256(der)
	return sum[:20]
}

func keyOf(description map[string]any) (crypto.Signer, bool) {
	name, _ := description["key"].(string)
	return keyNamed(name)
}

var (
	keysMutex sync.Mutex
	keysMade  = map[string]crypto.Signer{}
)

// keyNamed makes a throw-away key from its name, always the same.
func keyNamed(name string) (crypto.Signer, bool) {
	keysMutex.Lock()
	defer keysMutex.Unlock()
	if key, there := keysMade[name]; there {
		return key, true
	}
	key, ok := makeKey(name)
	if ok {
		keysMade[name] = key
	}
	return key, ok
}

func makeKey(name string) (crypto.Signer, bool) {
	kind, _, _ := strings.Cut(name, "-")
	source := rand.NewChaCha8(sha256.Sum256([]byte(name)))
	octets := func(count int) []byte {
		out := make([]byte, count)
		source.Read(out)
		return out
	}
	curve, isCurve := map[string]elliptic.Curve{"p224": elliptic.P224(), "p256": elliptic.P256(), "p384": elliptic.P384(), "p521": elliptic.P521()}[kind]
	switch {
	case kind == "ed25519":
		return ed25519.NewKeyFromSeed(octets(32)), true
	case isCurve:
		scalar := octets((curve.Params().BitSize + 7) / 8)
		scalar[0] = 0 // below the order of every curve
		key, err := ecdsa.ParseRawPrivateKey(curve, scalar)
		return key, err == nil
	case kind == "rsa1024":
		return rsaKey(512, octets)
	case kind == "rsa2048":
		return rsaKey(1024, octets)
	}
	return nil, false
}

// rsaKey searches two primes of so many bits.
func rsaKey(bits int, octets func(int) []byte) (crypto.Signer, bool) {
	exponent, one := big.NewInt(65537), big.NewInt(1)
	prime := func() *big.Int {
		for {
			candidate := new(big.Int).SetBytes(octets(bits / 8))
			candidate.SetBit(candidate, bits-1, 1).SetBit(candidate, bits-2, 1).SetBit(candidate, 0, 1)
			less := new(big.Int).Sub(candidate, one)
			if candidate.ProbablyPrime(20) && new(big.Int).GCD(nil, nil, exponent, less).Cmp(one) == 0 {
				return candidate
			}
		}
	}
	p, q := prime(), prime()
	totient := new(big.Int).Mul(new(big.Int).Sub(p, one), new(big.Int).Sub(q, one))
	key := &rsa.PrivateKey{
		PublicKey: rsa.PublicKey{N: new(big.Int).Mul(p, q), E: 65537},
		D:         new(big.Int).ModInverse(exponent, totient),
		Primes:    []*big.Int{p, q},
	}
	key.Precompute()
	return key, key.Validate() == nil
}
