package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/testbed"
)

// signer is a certificate authority for tests.
type signer struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// lasts contains the validity period of each certificate.
var lasts = map[string]time.Duration{"lab": time.Hour, "agent": time.Hour, "client": time.Hour, "stranger": time.Hour, "late": -time.Minute}

// issue creates a certificate for a name and writes dir/name.pem and dir/name.key. With a nil receiver, the certificate
// is a self-signed authority.
func (a *signer) issue(t *testing.T, dir, name string) *signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(int64(len(name))), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lasts[name]),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, DNSNames: []string{name}}
	parent, by := template, crypto.Signer(key)
	if a == nil {
		template.IsCA, template.BasicConstraintsValid = true, true
	} else {
		parent, by = a.certificate, a.key
	}
	if name == "agent" {
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{".pem": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(dir, name+file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &signer{made, key}
}

// laboratory returns a folder with certificates for an authority, an agent, a client, and an unrelated authority.
func laboratory(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	lab := (*signer)(nil).issue(t, dir, "lab")
	lab.issue(t, dir, "agent")
	lab.issue(t, dir, "client")
	lab.issue(t, dir, "late")
	(*signer)(nil).issue(t, dir, "stranger")
	return dir
}

// startNetwork runs 'olafctl device serve' on a free port of the loopback interface and returns the address.
func startNetwork(t *testing.T, args ...string) string {
	t.Helper()
	said := serveIn(t, func(*cli.Env) {}, append([]string{"--listen", "127.0.0.1:0"}, args...)...)
	return regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(said)
}

// TestOldTLSIsRefused checks the minimum TLS version.
func TestOldTLSIsRefused(t *testing.T) {
	dir := laboratory(t)
	address := startNetwork(t, "--tls-cert", filepath.Join(dir, "agent.pem"), "--tls-key", filepath.Join(dir, "agent.key"))
	text, err := os.ReadFile(filepath.Join(dir, "lab.pem"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	for version, works := range map[uint16]bool{tls.VersionTLS12: false, tls.VersionTLS13: true} {
		c, err := tls.Dial("tcp", address, &tls.Config{RootCAs: roots, MinVersion: version, MaxVersion: version, NextProtos: []string{"h2"}})
		if (err == nil) != works {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
		if err == nil && c.ConnectionState().NegotiatedProtocol != "h2" {
			t.Error("no HTTP/2 was agreed on, which other P4Runtime clients need")
		}
		if err == nil {
			_ = c.Close()
		}
	}
}

// TestExpiredCertificate checks the error for an agent whose certificate expired while the agent was running.
func TestExpiredCertificate(t *testing.T) {
	dir := laboratory(t)
	late, err := tls.LoadX509KeyPair(filepath.Join(dir, "late.pem"), filepath.Join(dir, "late.key"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := testbed.ServeDevice(t.Context(), "twin:", testbed.ServeOptions{Listen: "127.0.0.1:0", TLS: &tls.Config{Certificates: []tls.Certificate{late}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	step{"reg read queue.depth -d grpc://OPEN --tls-ca DIR/lab.pem", 3, "^$", "renew the agent's certificate"}.run(t, strings.NewReplacer("OPEN", s.Target, "DIR", dir))
}

// TestTLS checks connections to an agent with a certificate, to one that also requires client certificates, and to one
// without TLS.
func TestTLS(t *testing.T) {
	dir := laboratory(t)
	in := func(name string) string { return filepath.Join(dir, name) }
	agent := []string{"--tls-cert", in("agent.pem"), "--tls-key", in("agent.key")}
	replace := strings.NewReplacer(
		"OPEN", startNetwork(t, agent...), "CLOSED", startNetwork(t, append(agent, "--tls-client-ca", in("lab.pem"))...), "PLAIN", startNetwork(t),
		"TRUST", "--tls-ca "+in("lab.pem"), "OURS", "--tls-cert "+in("client.pem")+" --tls-key "+in("client.key"), "DIR", dir,
		"FILE", writeFile(t, "t.yaml", storyTables), "BENCH", "bench --runs 1 --out-rate 40G --versus none --keep=false -q -o csv")
	for _, s := range []step{
		{"reg read queue.depth -d grpc://OPEN TRUST", 0, "slots", ""},
		{"tables apply FILE --target OPEN TRUST", 0, "", "8 added"},
		{"cluster move --to 1 10.1.0.1 --target OPEN TRUST", 0, "", "done as one batch"},
		{"tables takeover --target OPEN TRUST", 0, "", "primary"},
		{"BENCH -d grpc://CLOSED TRUST OURS", 0, "olaf", ""},
		{"tables show --target CLOSED TRUST OURS", 0, "workers", ""},
		{"reg read queue.depth -d grpc://OPEN TRUST --tls-server-name agent", 0, "slots", ""},

		{"reg read queue.depth -d grpc://OPEN TRUST --tls-server-name other", 3, "^$", "not other.*reach the agent by that name"},
		{"reg read queue.depth -d grpc://OPEN --tls-ca DIR/stranger.pem", 3, "^$", "the agent.s certificate is not signed by --tls-ca"},
		{"reg read queue.depth -d grpc://OPEN --tls-ca system", 3, "^$", "the agent.s certificate is not signed by --tls-ca"},
		{"tables get --target OPEN --tls-ca DIR/stranger.pem", 3, "^$", "the agent.s certificate is not signed by --tls-ca"},
		{"reg read queue.depth -d grpc://OPEN", 3, "^$", "seems to use TLS: add --tls-ca"},
		{"tables apply FILE --target OPEN", 3, "^$", "seems to use TLS: add --tls-ca"},
		{"reg read queue.depth -d grpc://PLAIN TRUST", 3, "^$", "does not use TLS"},
		{"tables apply FILE --target PLAIN TRUST", 3, "^$", "does not use TLS"},
		{"reg read queue.depth -d grpc://CLOSED TRUST", 3, "^$", "requires? a client certificate"},
		{"tables apply FILE --target CLOSED TRUST", 3, "^$", "requires? a client certificate"},
		{"reg read queue.depth -d grpc://CLOSED TRUST --tls-cert DIR/stranger.pem --tls-key DIR/stranger.key", 3, "^$", "seems not to trust our certificate"},

		{"reg read queue.depth -d grpc://OPEN OURS", 2, "^$", "need --tls-ca"},
		{"reg read queue.depth -d grpc://OPEN TRUST --tls-cert DIR/client.pem", 2, "^$", "go together"},
		{"reg read queue.depth -d grpc://OPEN --tls-ca DIR/nothing.pem", 2, "^$", "no such file"},
		{"reg read queue.depth -d grpc://OPEN --tls-ca DIR/lab.key", 2, "^$", "no certificate in PEM form"},
		{"reg read queue.depth -d grpc://OPEN TRUST --tls-cert DIR/late.pem --tls-key DIR/late.key", 2, "^$", "late.pem: it is valid from .*; renew it"},
		{"reg read queue.depth TRUST", 2, "^$", "--tls-ca needs an agent"},
		{"bench TRUST", 2, "^$", "--tls-ca needs an agent"},
		{"tables show TRUST", 2, "^$", "--tls-ca needs an agent"},
		{"serve --tls-cert DIR/late.pem --tls-key DIR/late.key", 2, "^$", "late.pem: it is valid from .*; renew it"},
		{"serve --tls-cert DIR/agent.pem --tls-key DIR/client.key", 2, "^$", "private key does not match"},
		{"serve --tls-cert DIR/agent.pem --tls-key DIR/nothing.key", 2, "^$", "no such file"},
		{"serve --tls-cert DIR/agent.pem", 2, "^$", "go together"},
		{"serve --tls-client-ca DIR/lab.pem", 2, "^$", "needs --tls-cert"},
		{"serve --tls-cert DIR/agent.pem --tls-key DIR/agent.key --tls-client-ca DIR/lab.key", 2, "^$", "no certificate in PEM form"},
	} {
		s.run(t, replace)
	}
}
