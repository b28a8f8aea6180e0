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

// systemRoots stands for the authorities that the host trusts.
const systemRoots = "system"

// ClientTLS is how an agent over a network is trusted, and how it is to trust us.
type ClientTLS struct{ authority, cert, key, name string }

// AddClientTLS gives every command that reaches an agent, by a device address or as a P4Runtime target, or a work queue, the flags
// for TLS.
func AddClientTLS(cmd *cobra.Command, c *ClientTLS, devices testbed.Devices) {
	flags := cmd.Flags()
	agent, queue := flags.Lookup("device") != nil || flags.Lookup("target") != nil, flags.Lookup("token-file") != nil
	if cmd.Runnable() && flags.Lookup("tls-cert") == nil && (agent || queue) {
		group := CardFlagsOf
		if !agent {
			group = otherFlags
		}
		InGroup(cmd, group, func() { c.AddFlags(flags) })
		run := cmd.RunE
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if c.authority != "" && !reachesAgent(cmd.Flags(), devices) {
				return UsageError("--tls-ca is for an agent or a work queue: add -d grpc://HOST:PORT, --target HOST:PORT or --workers nats://HOST:PORT, as the command takes it")
			}
			return run(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		AddClientTLS(sub, c, devices)
	}
}

// AddFlags adds the flags for TLS with an agent, or with whoever else serves.
func (c *ClientTLS) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.authority, "tls-ca", "", "use TLS; PEM file of the trusted CA, or 'system'")
	flags.StringVar(&c.cert, "tls-cert", "", "client certificate (PEM file)")
	flags.StringVar(&c.key, "tls-key", "", "private key for --tls-cert")
	flags.StringVar(&c.name, "tls-server-name", "", "server name in the certificate, if it differs from the host")
}

// queueFlagNames are the flags that may hold the address of a work queue.
var queueFlagNames = []string{"workers", "from"}

// reachesAgent says whether a command is going to talk to an agent or a work queue.
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

// Config is nil where no TLS was asked for.
func (c *ClientTLS) Config(now time.Time) (*tls.Config, error) {
	switch {
	case c.authority == "" && (c.cert != "" || c.key != "" || c.name != ""):
		return nil, UsageError("--tls-cert, --tls-key and --tls-server-name need --tls-ca, which turns TLS on; --tls-ca %s takes the host's authorities", systemRoots)
	case c.authority == "":
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13, ServerName: c.name}
	var err error
	if c.authority != systemRoots {
		if config.RootCAs, err = authorities("--tls-ca", c.authority); err != nil {
			return nil, err
		}
	}
	if c.cert != "" || c.key != "" {
		config.Certificates, err = keyPair(c.cert, c.key, now)
	}
	return config, err
}

// authorities reads the certificates that vouch for the other side.
func authorities(flag, path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, UsageError("%s: %v", flag, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, UsageError("%s: %s holds no certificate in PEM form", flag, path)
	}
	return pool, nil
}

// keyPair reads a certificate that holds now, with its key.
func keyPair(cert, key string, now time.Time) ([]tls.Certificate, error) {
	if cert == "" || key == "" {
		return nil, UsageError("--tls-cert and --tls-key go together")
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, UsageError("--tls-cert %s, --tls-key %s: %v", cert, key, err)
	}
	if from, to := pair.Leaf.NotBefore, pair.Leaf.NotAfter; now.Before(from) || now.After(to) {
		return nil, UsageError("--tls-cert %s: it holds from %s to %s, and now is %s; renew it, or set the clock",
			cert, from.Format(time.RFC3339), to.Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	return []tls.Certificate{pair}, nil
}

// ServerTLS is how an agent proves who it is, and whom it lets in.
type ServerTLS struct{ cert, key, clients string }

// Add adds the flags of a server.
func (s *ServerTLS) Add(flags *pflag.FlagSet) {
	flags.StringVar(&s.cert, "tls-cert", "", "serve TLS with this certificate chain (PEM file)")
	flags.StringVar(&s.key, "tls-key", "", "private key for --tls-cert")
	flags.StringVar(&s.clients, "tls-client-ca", "", "require client certificates signed by this CA (PEM file)")
}

// Config is nil where no TLS was asked for.
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
		config.ClientCAs, err = authorities("--tls-client-ca", s.clients)
	}
	return config, err
}

// Mutual reports whether clients need a certificate.
func (s *ServerTLS) Mutual() bool { return s.clients != "" }

// Arguments are the flags as they are given to another program.
func (s *ServerTLS) Arguments() []string {
	return []string{"-tls-cert", s.cert, "-tls-key", s.key, "-tls-client-ca", s.clients}
}

// Describe says how connections are secured.
func (s *ServerTLS) Describe() string {
	switch {
	case s.cert == "":
		return ""
	case s.clients == "":
		return " over TLS"
	}
	return " over TLS, to clients with a certificate"
}

// Beside are the flags that clients have to give beside the address.
func (s *ServerTLS) Beside() string {
	switch {
	case s.cert == "":
		return ""
	case s.clients == "":
		return " --tls-ca CA.pem"
	}
	return " --tls-ca CA.pem --tls-cert ME.pem --tls-key ME.key"
}

// dropped is how a connection ends that the other side gave up in the middle: what it had to say about that, it says in
// another tongue, or too late for gRPC to read.
var dropped = []string{"error reading server preface", "broken pipe", "connection reset by peer"}

// Advise adds what to do where an agent cannot be reached, as nobody is there or the two sides disagree about TLS, and where
// another controller, or one that was there before, keeps a command from writing.
func (c *ClientTLS) Advise(err error) error {
	if contest := new(p4ctl.ContestError); errors.As(err, &contest) && !errors.Is(err, p4ctl.ErrPreempted) {
		return fmt.Errorf("%w; %s", err, c.winning(contest))
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
		{strings.Contains(text, "first record does not look like a TLS handshake"), "the agent speaks no TLS: leave out --tls-ca, or give it a certificate with 'serve --tls-cert'"},
		{strings.Contains(text, "certificate signed by unknown authority"), "--tls-ca does not vouch for the agent's certificate"},
		{strings.Contains(text, "certificate has expired or is not yet valid"), "renew the agent's certificate and start it again, or set the clock"},
		{strings.Contains(text, "certificate is valid for"), "reach the agent by that name, or give it with --tls-server-name"},
		{lost && c.authority == "", "the agent seems to speak TLS: add --tls-ca"},
		{lost && c.cert == "", "the agent seems to want a certificate of ours: add --tls-cert and --tls-key"},
		{lost, "the agent seems not to trust our certificate: --tls-cert must be of an authority that its --tls-client-ca names"},
	} {
		if m.seen {
			return fmt.Errorf("%w; %s", err, m.advice)
		}
	}
	if errors.Is(err, p4ctl.ErrUnreachable) { // the other error says so itself
		return fmt.Errorf("%w; 'olafctl device serve' starts one", err)
	}
	return err
}

// winning is what makes a command primary.
func (c *ClientTLS) winning(e *p4ctl.ContestError) string {
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

// Takeover is the command that ends the run of whoever is primary at an agent that is reached like this.
func (c *ClientTLS) Takeover(target string) string {
	words := []string{"olafctl tables takeover"}
	for _, flag := range []struct{ name, value string }{
		{"--target", target}, {"--tls-ca", c.authority}, {"--tls-cert", c.cert}, {"--tls-key", c.key}, {"--tls-server-name", c.name},
	} {
		if flag.value != "" {
			words = append(words, flag.name, inShell(flag.value))
		}
	}
	return "'" + strings.Join(words, " ") + "'"
}

// inShell is a word as it is typed; few need quotes.
func inShell(word string) string {
	if strings.ContainsAny(word, " \t\"'`$&|;<>()*?[]{}#~!\\") {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(word) + `"`
	}
	return word
}

// Access is how this process reaches devices: cards of its host, and agents with or without TLS.
func (e *Env) Access() (testbed.Access, error) {
	config, err := e.TLS.Config(e.Now())
	building := func() { fmt.Fprintln(e.Stderr, "building the logic's simulation once, which takes a minute or two…") }
	return testbed.Access{Devices: e.Devices, Programs: e.Programs, TLS: config, Bus: &e.Bus, Clock: e.CardClock, Building: building}, err
}
