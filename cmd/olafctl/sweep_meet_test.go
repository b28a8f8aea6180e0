package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	sweepcmd "github.com/olafctl/olaf/cmd/olafctl/sweep"
	"github.com/olafctl/olaf/experiments/sweep"
	"github.com/olafctl/olaf/experiments/sweep/queue"
)

// TestMismatchedMachinesAreReported checks that a machine with a wrong clock or another build is reported exactly once,
// and that no other machine is reported.
func TestMismatchedMachinesAreReported(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	ours, theirs := sweep.Build{Commit: "0123456789abcdef", Go: "go1.26", Arch: "amd64"}, sweep.Build{Commit: "fedcba9876543210", Go: "go1.26", Arch: "amd64"}
	for _, c := range []struct {
		name  string
		who   queue.Presence
		wants []string
	}{
		{"one of us", queue.Presence{Role: queue.Works, Host: "a", Build: ours.Hash(), At: "2026-03-04T05:06:30Z"}, nil},
		{"another role", queue.Presence{Role: queue.HandsOut, Host: "b", Build: theirs.Hash(), At: "2020-01-01T00:00:00Z"}, nil},
		{"hours ahead", queue.Presence{Role: queue.Works, Host: "c", Build: ours.Hash(), At: "2026-03-04T12:06:07Z"}, []string{"the clock of c differs from ours by -7h0m0s"}},
		{"hours behind", queue.Presence{Role: queue.Works, Host: "d", Build: ours.Hash(), At: "2026-03-03T05:06:07Z"}, []string{"the clock of d differs from ours by 24h0m0s"}},
		{"half an hour", queue.Presence{Role: queue.Works, Host: "e", Build: ours.Hash(), At: "2026-03-04T05:36:07Z"}, nil},
		{"another build", queue.Presence{Role: queue.Works, Host: "f", Build: theirs.Hash(), Named: theirs.String(), At: "2026-03-04T05:06:07Z"}, []string{"f has another build (fedcba987654 go1.26 amd64) than this one (0123456789ab go1.26 amd64): neither takes jobs from the other"}},
	} {
		var said bytes.Buffer
		env := testEnvironment(&said, &said)
		env.Now = func() time.Time { return now }
		met := 0
		see := sweepcmd.AnnouncePeers(env, queue.Works, ours, func(_ queue.Presence, own bool) {
			if met++; own != (c.who.Build == ours.Hash()) {
				t.Errorf("%s: own is %v", c.name, own)
			}
		})
		for range 3 { // repeated every few seconds
			see(c.who)
		}
		if lines := strings.Count(said.String(), "\n"); lines != len(c.wants) {
			t.Errorf("%s: %q", c.name, said.String())
		}
		for _, want := range c.wants {
			if !strings.Contains(said.String(), want) {
				t.Errorf("%s: no %q in %q", c.name, want, said.String())
			}
		}
		if want := map[bool]int{true: 1}[c.who.Role == queue.Works]; met != want {
			t.Errorf("%s: met %d times", c.name, met)
		}
	}
}

// TestSweepCertificates checks that servers and workers reject an expired certificate before anything else.
func TestSweepCertificates(t *testing.T) {
	dir := laboratory(t)
	names := strings.NewReplacer("DIR", dir)
	for _, args := range []string{
		"sweep serve --listen 127.0.0.1:0 --store DIR/store --tls-cert DIR/late.pem --tls-key DIR/late.key",
		"sweep work --from nats://127.0.0.1:1 --tls-ca DIR/lab.pem --tls-cert DIR/late.pem --tls-key DIR/late.key",
		"reproduce olaf/fig6 --quick --workers nats://127.0.0.1:1 --store DIR/store --tls-ca DIR/lab.pem --tls-cert DIR/late.pem --tls-key DIR/late.key",
	} {
		step{args, 2, "^$", "late.pem: it is valid from .* to .*, but now is .*; renew it, or set the clock"}.run(t, names)
	}
}
