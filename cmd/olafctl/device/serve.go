package device

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/experiments/testbed/lab"
	"github.com/olafctl/olaf/experiments/testbed/roles"
	"github.com/olafctl/olaf/experiments/testbed/sshlink"
)

// serveFlags are the flags of device serve.
type serveFlags struct {
	options testbed.ServeOptions
	device  string
	card    cli.CardFlags
	secure  cli.ServerTLS
	system  string
	watch   cli.MetricsFlag
	// lifeline makes the agent exit at the end of its standard input, for ssh:// addresses. noDevice makes it offer
	// only its host.
	lifeline, noDevice bool
	owner              string // user@host that the agent runs for; empty for this user
}

func NewServe(env *cli.Env) *cobra.Command {
	f := new(serveFlags)
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve a device to other processes: registers, tap and P4Runtime tables",
		Long: `Serve a device to other processes at one address until interrupted: registers, time and tap to olafctl (-d
grpc://HOST:PORT), and the tables to any P4Runtime controller. One session at a time may write registers. Addresses other than loopback
and unix sockets need --tls-cert and --tls-key. A card's packets need --capture, and its tables a build with -tags vnp4. The
agent exits with code 3 if its card is replaced, reset or power-cycled. See docs/reference/p4runtime.md.`,
		Example: `  olafctl device serve --listen 127.0.0.1:9559
  olafctl device serve --system iswitch                  # with isw.members: who may contribute to which job
  olafctl device serve --listen unix:/run/olaf.sock --device pci:0000:3b:00.0 --capture enp1s0f0
  olafctl device info -d unix:/run/olaf.sock
  olafctl device serve --listen :9559 --tls-cert agent.pem --tls-key agent.key --tls-client-ca lab.pem
  olafctl bench -d grpc://127.0.0.1:9559`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd, env) },
	}
	o, flags := &f.options, cmd.Flags()
	flags.StringVar(&o.Listen, "listen", "",
		"unix:PATH or HOST:PORT, without TLS a loopback one "+
			"(default "+testbed.DefaultListen+"; for a card a socket that only you can open)")
	flags.BoolVar(&o.Insecure, "insecure", false,
		"also serve a card at a HOST:PORT without TLS, to every user of this host")
	flags.StringVar(&o.Journal, "journal", "", "store the tables in this file and reload them at start")
	cli.AddAddress(cmd, &f.device, env.Devices.LendableOnes(), "device to lend")
	flags.StringVar(&f.system, "system", "", "serve this system's tables until a controller pushes a pipeline")
	cli.Complete(cmd, "system", func() []string { return cli.TableSystems(env.Systems) })
	flags.BoolVar(&f.lifeline, "lifeline", false, "end with standard input")
	flags.BoolVar(&f.noDevice, "no-device", false, "offer only this host")
	flags.StringVar(&f.owner, "owner", "", "user@host for whom this agent runs")
	for _, name := range []string{"lifeline", "no-device", "owner"} {
		_ = flags.MarkHidden(name) // the flag exists
	}
	f.secure.Add(flags)
	f.watch.Add(cmd)
	f.card.Add(cmd)
	cli.AddDriverCommand(cmd)
	return cmd
}

// hostService returns the services of this host for the process that started the agent over SSH. The run's folder is
// the folder that contains the agent's socket.
func hostService(env *cli.Env, listen string) (*testbed.HostService, error) {
	program, err := env.Executable()
	if err != nil {
		return nil, err
	}
	calls := map[string]testbed.CallHandler{
		examineCall: func(_ context.Context, body json.RawMessage) (any, error) { return answerExamine(env, body) },
	}
	return &testbed.HostService{OpenFrames: env.OpenCapture, Program: program, Folder: filepath.Dir(strings.TrimPrefix(listen, "unix:")),
		Calls: calls}, nil
}

// serve serves the device or, without a device, only the services of this host.
func (f *serveFlags) serve(ctx context.Context, o testbed.ServeOptions) (*testbed.Service, error) {
	if f.noDevice {
		return testbed.ServeHost(ctx, o)
	}
	return testbed.ServeDevice(ctx, f.device, o)
}

// attend waits for the process that started this agent, if the agent has a lifeline to it. The returned context ends
// when that process ends. The caller calls ready when the agent is serving.
func (f *serveFlags) attend(ctx context.Context, env *cli.Env, o *testbed.ServeOptions) (alive context.Context, ready func() error, err error) {
	if !f.lifeline {
		return ctx, func() error { return nil }, nil
	}
	build, err := env.Build()
	if err != nil {
		return nil, nil, err
	}
	if alive, ready, err = sshlink.Attend(ctx, env.Stdin, env.Stdout, build); err == nil {
		o.Host, err = hostService(env, o.Listen)
	}
	return alive, ready, err
}

// complete sets the access to the device, the calls for this host, TLS and the switch programs.
func (f *serveFlags) complete(cmd *cobra.Command, env *cli.Env, o *testbed.ServeOptions) (err error) {
	if o.Device.Access, err = f.card.AccessCard(cmd, env, f.device); err != nil {
		return err
	}
	if o.Device.Access.Owner = f.owner; o.Host != nil {
		maps.Copy(o.Host.Calls, o.Device.Access.HostCalls())
		maps.Copy(o.Host.Calls, roles.HostCalls(o.Device.Access))
	}
	if o.TLS, err = f.secure.Config(env.Now()); err != nil {
		return err
	}
	o.Programs, err = cli.TablePrograms(env.Systems, f.system)
	return err
}

// relay passes connections on to the process that holds a testbed and lends one of its devices, until the lifeline or
// that process ends.
func (f *serveFlags) relay(ctx context.Context, name string, ready func() error) error {
	target, err := roles.FindHeld(name)
	if err != nil {
		return err
	}
	r, err := sshlink.StartRelay(strings.TrimPrefix(f.options.Listen, "unix:"), strings.TrimPrefix(target, "unix:"))
	if err != nil {
		return err
	}
	if err := errors.Join(sshlink.ShareSocket(f.options.Listen), ready()); err != nil {
		return errors.Join(err, r.Close())
	}
	select {
	case <-r.Lost():
		return errors.Join(fmt.Errorf("%w: %s: it has ended", lab.ErrHolder, name), r.Close())
	case <-ctx.Done(): // interrupted, or the lifeline ended
		return r.Close()
	}
}

// describeOffer lists what a service offers.
func describeOffer(s *testbed.Service) string {
	what := []string{"registers"}
	if s.Captures {
		what = append(what, "tap")
	}
	if s.Tables {
		what = append(what, "P4Runtime")
	}
	return strings.Join(what, ", ")
}

// run serves the device until the command is interrupted, the device is lost or the lifeline ends.
func (f *serveFlags) run(cmd *cobra.Command, env *cli.Env) (err error) {
	o := f.options
	ctx, ready, err := f.attend(cmd.Context(), env, &o)
	if err != nil {
		return err
	}
	if name, held := strings.CutPrefix(f.device, roles.HeldScheme); held && f.lifeline {
		return f.relay(ctx, name, ready)
	}
	if err := f.complete(cmd, env, &o); err != nil {
		return err
	}
	monitor, stop, err := f.watch.StartMonitor(ctx, env)
	if err != nil {
		return err
	}
	defer stop()
	if monitor != nil {
		o.Calls = monitor.CountCalls()
	}
	o.Warn = func(what string) { fmt.Fprintf(env.Stderr, "journal: %s\n", what) }
	s, err := f.serve(ctx, o)
	if err != nil {
		return err
	}
	if f.lifeline {
		err = sshlink.ShareSocket(s.Target)
	} else {
		fmt.Fprintf(env.Stderr, "serving %s of %s at %s%s (Ctrl-C ends it)\n", describeOffer(s), s.Identity.Address, s.Target,
			f.secure.Describe())
	}
	if err := errors.Join(err, ready()); err != nil {
		return errors.Join(err, s.Close())
	}
	select {
	case err := <-s.LostDevice():
		return errors.Join(fmt.Errorf("the agent ended: %w", err), s.End())
	case <-ctx.Done(): // interrupted, or its lifeline ended
		return s.Close()
	}
}
