package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga/remote"
	"github.com/olafctl/olaf/p4ctl"
)

// systemRoots is the flag value that selects the certificate authorities trusted by the host.
const systemRoots = "system"

// ClientTLS contains a client's TLS flags: the server's certificate authority, the client's certificate and key, and
// the expected server name.
type ClientTLS struct{ authority, cert, key, name string }

// AddClientTLS adds the TLS flags to every command that connects to an agent or a work queue.
func AddClientTLS(cmd *cobra.Command, env *Env) {
	c, devices := &env.TLS, env.Devices
	flags := cmd.Flags()
	agent, queue := flags.Lookup("device") != nil || flags.Lookup("target") != nil, flags.Lookup("token-file") != nil
	if cmd.Runnable() && flags.Lookup("tls-cert") == nil && (agent || queue) {
		group := CardFlagsOf
		if !agent {
			group = otherFlags
		}
		InGroup(cmd, group, func() {
			c.AddFlags(flags)
			if flags.Lookup("device") != nil {
				flags.BoolVar(&env.Push, "push", false, "copy this olafctl to the hosts of ssh:// addresses that lack it")
			}
		})
		run := cmd.RunE
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if c.authority != "" && !reachesAgent(cmd.Flags(), devices) {
				return UsageError("--tls-ca needs an agent or a work queue: add -d grpc://HOST:PORT, --target " +
					"HOST:PORT or --workers nats://HOST:PORT")
			}
			return run(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		AddClientTLS(sub, env)
	}
}

// AddFlags adds the TLS flags for connections to an agent or another server.
func (c *ClientTLS) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.authority, "tls-ca", "", "use TLS; PEM file of the trusted CA, or 'system'")
	flags.StringVar(&c.cert, "tls-cert", "", "client certificate (PEM file)")
	flags.StringVar(&c.key, "tls-key", "", "private key for --tls-cert")
	flags.StringVar(&c.name, "tls-server-name", "", "server name in the certificate, if it differs from the host")
}

// queueFlagNames lists the flags that may contain the address of a work queue.
var queueFlagNames = []string{"workers", "from"}

// reachesAgent reports whether a command line connects to an agent or a work queue.
func reachesAgent(flags *pflag.FlagSet, devices testbed.Devices) bool {
	device, target := flags.Lookup("device"), flags.Lookup("target")
	if device != nil {
		if _, only := device.Value.(*TargetFlag); only || devices.Check(device.Value.String(), testbed.Dialled) == nil {
			return true
		}
	}
	if target != nil && target.Value.String() != "" {
		return true
	}
	return slices.ContainsFunc(queueFlagNames, func(name string) bool {
		f := flags.Lookup(name)
		if f == nil {
			return false
		}
		if both, ok := f.Value.(*NumberOrQueue); ok {
			return both.Address != ""
		}
		return IsAddress(f.Value.String())
	})
}

// Config returns the client's TLS configuration, or nil if TLS is not used.
func (c *ClientTLS) Config(now time.Time) (*tls.Config, error) {
	switch {
	case c.authority == "" && (c.cert != "" || c.key != "" || c.name != ""):
		return nil, UsageError("--tls-cert, --tls-key and --tls-server-name need --tls-ca, which turns TLS on; "+
			"--tls-ca %s uses the host's authorities", systemRoots)
	case c.authority == "":
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13, ServerName: c.name}
	var err error
	if c.authority != systemRoots {
		if config.RootCAs, err = loadAuthorities("--tls-ca", c.authority); err != nil {
			return nil, err
		}
	}
	if c.cert != "" || c.key != "" {
		config.Certificates, err = keyPair(c.cert, c.key, now)
	}
	return config, err
}

// loadAuthorities reads the certificates of the authorities. One of them must have signed the peer's certificate.
func loadAuthorities(flag, path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, UsageError("%s: %v", flag, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, UsageError("%s: %s contains no certificate in PEM form", flag, path)
	}
	return pool, nil
}

// keyPair reads a certificate and its key, and checks that the certificate is valid now.
func keyPair(cert, key string, now time.Time) ([]tls.Certificate, error) {
	if cert == "" || key == "" {
		return nil, UsageError("--tls-cert and --tls-key go together")
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, UsageError("--tls-cert %s, --tls-key %s: %v", cert, key, err)
	}
	if from, to := pair.Leaf.NotBefore, pair.Leaf.NotAfter; now.Before(from) || now.After(to) {
		return nil, UsageError("--tls-cert %s: it is valid from %s to %s, but now is %s; renew it, or set the clock",
			cert, from.Format(time.RFC3339), to.Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	return []tls.Certificate{pair}, nil
}

// ServerTLS contains a server's TLS flags: its certificate and key, and the certificate authority of its clients.
type ServerTLS struct{ cert, key, clients string }

func (s *ServerTLS) Add(flags *pflag.FlagSet) {
	flags.StringVar(&s.cert, "tls-cert", "", "serve TLS with this certificate chain (PEM file)")
	flags.StringVar(&s.key, "tls-key", "", "private key for --tls-cert")
	flags.StringVar(&s.clients, "tls-client-ca", "", "require client certificates signed by this CA (PEM file)")
}

// Config returns the server's TLS configuration, or nil if TLS is not used.
func (s *ServerTLS) Config(now time.Time) (*tls.Config, error) {
	if s.cert == "" && s.key == "" {
		if s.clients != "" {
			return nil, UsageError("--tls-client-ca needs --tls-cert and --tls-key")
		}
		return nil, nil
	}
	pair, err := keyPair(s.cert, s.key, now)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: pair}
	if s.clients != "" {
		config.ClientAuth = tls.RequireAndVerifyClientCert
		config.ClientCAs, err = loadAuthorities("--tls-client-ca", s.clients)
	}
	return config, err
}

// NeedsCertificate reports whether clients need a certificate.
func (s *ServerTLS) NeedsCertificate() bool { return s.clients != "" }

// Arguments returns the flags in the form of arguments for another program.
func (s *ServerTLS) Arguments() []string {
	return []string{"-tls-cert", s.cert, "-tls-key", s.key, "-tls-client-ca", s.clients}
}

// Describe describes how connections are secured.
func (s *ServerTLS) Describe() string {
	switch {
	case s.cert == "":
		return ""
	case s.clients == "":
		return " over TLS"
	}
	return " over TLS, to clients with a certificate"
}

// ClientFlags returns the flags that clients need in addition to the address.
func (s *ServerTLS) ClientFlags() string {
	switch {
	case s.cert == "":
		return ""
	case s.clients == "":
		return " --tls-ca CA.pem"
	}
	return " --tls-ca CA.pem --tls-cert ME.pem --tls-key ME.key"
}

// dropped lists errors on connections that the peer closed during the handshake. The peer's TLS alert does not reach
// us.
var dropped = []string{"error reading server preface", "broken pipe", "connection reset by peer"}

// Advise adds a remedy to errors about an unreachable agent, a TLS mismatch, or another controller that prevents a
// command from writing.
func (c *ClientTLS) Advise(err error) error {
	if contest := new(p4ctl.ContestError); errors.As(err, &contest) && !errors.Is(err, p4ctl.ErrPreempted) {
		return fmt.Errorf("%w; %s", err, c.adviseElection(contest))
	}
	if !errors.Is(err, remote.ErrUnreachable) && !errors.Is(err, p4ctl.ErrUnreachable) {
		return err
	}
	text := err.Error()
	lost := slices.ContainsFunc(dropped, func(s string) bool { return strings.Contains(text, s) })
	for _, m := range []struct {
		seen   bool
		advice string
	}{
		{strings.Contains(text, "first record does not look like a TLS handshake"),
			"the agent does not use TLS: leave out --tls-ca, or start it with 'serve --tls-cert'"},
		{strings.Contains(text, "certificate signed by unknown authority"),
			"the agent's certificate is not signed by --tls-ca"},
		{strings.Contains(text, "certificate has expired or is not yet valid"),
			"renew the agent's certificate and start it again, or set the clock"},
		{strings.Contains(text, "certificate is valid for"),
			"reach the agent by that name, or give it with --tls-server-name"},
		{lost && c.authority == "", "the agent seems to use TLS: add --tls-ca"},
		{lost && c.cert == "", "the agent seems to require a client certificate: add --tls-cert and --tls-key"},
		{lost, "the agent seems not to trust our certificate: --tls-cert must be signed by its --tls-client-ca"},
	} {
		if m.seen {
			return fmt.Errorf("%w; %s", err, m.advice)
		}
	}
	if errors.Is(err, p4ctl.ErrUnreachable) { // remote.ErrUnreachable already contains this remedy
		return fmt.Errorf("%w; 'olafctl device serve' starts one", err)
	}
	return err
}

// adviseElection returns advice on how a command can become the primary controller.
func (c *ClientTLS) adviseElection(e *p4ctl.ContestError) string {
	enough := fmt.Sprintf("use --election-id %s or higher", e.Highest.Next())
	switch {
	case !e.Chosen:
		return c.Takeover(e.Target) + " ends the other controller's run, and then this command works"
	case errors.Is(e, p4ctl.ErrElectionInUse):
		return "use another --election-id, or leave it out"
	case e.Vacant:
		return enough + ", or leave it out"
	}
	return enough + ", which ends the other controller's run"
}

// Takeover returns the command line that ends the run of the agent's primary controller.
func (c *ClientTLS) Takeover(target string) string {
	words := []string{"olafctl tables takeover"}
	for _, flag := range []struct{ name, value string }{
		{"--target", target}, {"--tls-ca", c.authority}, {"--tls-cert", c.cert}, {"--tls-key", c.key},
		{"--tls-server-name", c.name},
	} {
		if flag.value != "" {
			words = append(words, flag.name, inShell(flag.value))
		}
	}
	return "'" + strings.Join(words, " ") + "'"
}

// inShell quotes a word for the shell if it needs quotes.
func inShell(word string) string {
	if strings.ContainsAny(word, " \t\"'`$&|;<>()*?[]{}#~!\\") {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(word) + `"`
	}
	return word
}

// Access returns how this process reaches devices: cards in its host, and agents with or without TLS.
func (e *Env) Access() (testbed.Access, error) {
	config, err := e.TLS.Config(e.Now())
	building := func() { fmt.Fprintln(e.Stderr, "building the logic's simulation once, which takes a minute or two…") }
	var now func() time.Time
	if e.Bus.Clock != nil {
		now = e.Bus.Clock.Now
	}
	return testbed.Access{Devices: e.Devices, Programs: e.Programs, TLS: config, Now: now, Locks: e.Bus.Locks,
		SSH: e.sshOptions(), OpenCapture: e.OpenCapture, Building: building}, err
}
