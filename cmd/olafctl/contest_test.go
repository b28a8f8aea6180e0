package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/p4ctl"
)

var (
	namedCommand  = regexp.MustCompile(`'olafctl (tables takeover [^']*)'`)
	namedElection = regexp.MustCompile(`use (--election-id \d+:\d+) or higher`)
)

// TestNotPrimaryErrorSuggestsWorkingCommand creates every possible conflict with another controller, runs the printed
// remedy, and checks that the command then succeeds.
func TestNotPrimaryErrorSuggestsWorkingCommand(t *testing.T) {
	const gone = true
	dir := laboratory(t)
	in := func(name string) string { return filepath.Join(dir, name) }
	pool := x509.NewCertPool()
	text, err := os.ReadFile(in("lab.pem"))
	ok(t, err)
	pool.AppendCertsFromPEM(text)
	pair, err := tls.LoadX509KeyPair(in("client.pem"), in("client.key"))
	ok(t, err)
	secure := &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool, ServerName: "agent", Certificates: []tls.Certificate{pair}}
	ours := " --tls-ca " + in("lab.pem") + " --tls-cert " + in("client.pem") + " --tls-key " + in("client.key") + " --tls-server-name agent"
	file := writeFile(t, "t.yaml", storyTables)
	for name, c := range map[string]struct {
		holder p4ctl.ElectionID
		gone   bool
		args   string
		named  *regexp.Regexp
	}{
		"a higher one":                     {p4ctl.ElectionID{High: 9, Low: 1}, false, "tables apply FILE --target", namedCommand},
		"one with our own id":              {p4ctl.DefaultElectionID(), false, "tables apply FILE --target", namedCommand},
		"a bench beside a higher one":      {p4ctl.ElectionID{High: 9, Low: 1}, false, "bench --runs 1 --out-rate 40G --versus none --keep=false -q -d grpc://", namedCommand},
		"the clauses beside the lowest":    {p4ctl.ElectionID{Low: 1}, false, "tables conformance --write -d", namedCommand},
		"a lower id than a live one's":     {p4ctl.ElectionID{High: 9, Low: 1}, false, "tables apply FILE --election-id 1:1 --target", namedElection},
		"a lower id than one that is gone": {p4ctl.ElectionID{High: 9, Low: 1}, gone, "tables apply FILE --election-id 1:1 --target", namedElection},
	} {
		t.Run(name, func(t *testing.T) {
			address := startNetwork(t, "--tls-cert", in("agent.pem"), "--tls-key", in("agent.key"), "--tls-client-ca", in("lab.pem"))
			holder, err := p4ctl.Dial(t.Context(), address, p4ctl.Options{ElectionID: c.holder, TLS: secure})
			ok(t, err)
			defer holder.Close()
			if c.gone {
				ok(t, holder.Close())
			}
			olafctl := func(args string) (int, string) {
				var stderr bytes.Buffer
				code := run(context.Background(), testEnvironment(new(bytes.Buffer), &stderr), strings.Fields(args))
				return code, stderr.String()
			}
			command := strings.Replace(c.args, "FILE", file, 1) + " " + address + ours
			command = strings.Replace(command, "grpc:// ", "grpc://", 1)
			code, said := olafctl(command)
			named := c.named.FindStringSubmatch(said)
			if code != cli.ExitDevice || named == nil {
				t.Fatalf("exit code %d: %s", code, said)
			}
			if c.named == namedElection {
				command = strings.Replace(command, "--election-id 1:1", named[1], 1)
			} else if code, said := olafctl(named[1]); code != cli.ExitDone {
				t.Errorf("%s: exit code %d: %s", named[1], code, said)
			}
			if code, said := olafctl(command); code != cli.ExitDone {
				t.Errorf("%s: exit code %d: %s", command, code, said)
			}
			if or := "or leave it out"; strings.Contains(said, or) != c.gone {
				t.Errorf("%q: a command without an id follows one that is gone alone", said)
			}
		})
	}
}
