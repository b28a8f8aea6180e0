package sweep

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/sweep"
	"github.com/olafctl/olaf/experiments/sweep/queue"
	"github.com/olafctl/olaf/results/store"
	found "github.com/olafctl/olaf/results/sweep"
)

// queueProgram is the name of the server program, which 'make' builds next to olafctl.
const queueProgram = "olafctl-queue"

// QueueFlags are the flags for using a work queue.
type QueueFlags struct {
	Url   string
	token string  // file that contains the token
	share float64 // percentage of the results to repeat here
}

// addAddress adds the flags for connecting to a queue. name is the flag for the queue's address.
func (f *QueueFlags) addAddress(cmd *cobra.Command, name, usage string) {
	cmd.Flags().StringVar(&f.Url, name, "", usage+", such as nats://lab:4222")
	f.addToken(cmd)
}

// addToken adds the flag for the queue's token.
func (f *QueueFlags) addToken(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.token, "token-file", "",
		"file with the queue's auth token; not needed for your own queue on this host")
}

// AddWorkers adds the flags for a command whose jobs can be run by workers of a queue.
func (f *QueueFlags) AddWorkers(cmd *cobra.Command, usage string) {
	f.addAddress(cmd, "workers", usage)
	f.addCheck(cmd)
}

// addCheck adds the flag for the share of results that are computed again as a check.
func (f *QueueFlags) addCheck(cmd *cobra.Command) {
	cmd.Flags().Float64Var(&f.share, "check", 2, "with a work queue: per cent of results to recompute here; 0 for none")
}

// checkAddress rejects an invalid address or an invalid share.
func (f *QueueFlags) checkAddress() error {
	if !(f.share >= 0 && f.share <= 100) {
		return cli.UsageError("--check %v: use 0 to 100 per cent", f.share)
	}
	if f.Url != "" && !cli.IsAddress(f.Url) {
		return cli.UsageError("%q is not the address of a work queue; use nats://HOST:4222 (or --processes N for "+
			"processes on this machine)", f.Url)
	}
	return nil
}

// dialQueue connects to the queue.
func (f *QueueFlags) dialQueue(ctx context.Context, env *cli.Env) (*queue.Queue, error) {
	if err := f.checkAddress(); err != nil {
		return nil, err
	}
	o := queue.Options{URL: f.Url, Name: "olafctl", Remark: func(what string) { fmt.Fprintln(env.Stderr, what) }}
	var err error
	if o.TLS, err = env.TLS.Config(env.Now()); err != nil {
		return nil, err
	}
	if f.token == "" {
		o.Token = OwnToken(env, f.Url)
	} else if o.Token, err = ReadToken(f.token); err != nil {
		return nil, err
	}
	return queue.Dial(ctx, o)
}

func ReadToken(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", &cli.Exit{Kind: olaf.Usage, Err: err}
	}
	return strings.TrimSpace(string(text)), nil
}

// outstanding is the maximum number of jobs of a sweep that wait in the queue at the same time.
const outstanding = 256

// Handed describes the reliability of results from a work queue: which results conflicted, and which were repeated on
// this machine.
type Handed struct {
	Differences []string
	Checked     []found.Checked
}

// HandOut makes an engine send its jobs to a work queue instead of starting processes. The caller must call done with
// the engine's error. done stops sending jobs, looks for conflicting results and repeats some results.
func (f *QueueFlags) HandOut(ctx context.Context, env *cli.Env, engine *sweep.Engine) (done func(error) (Handed, error),
	err error) {
	q, err := f.dialQueue(ctx, env)
	if err != nil {
		return nil, err
	}
	whole := ctx
	ctx, stop := context.WithCancel(ctx)
	h, err := queue.NewHandout(ctx, q, engine.Plan.Build)
	arrived := make(chan struct{}, 1)
	if err == nil {
		err = q.FollowPresence(ctx, AnnouncePeers(env, queue.Works, engine.Plan.Build, func(_ queue.Presence, own bool) {
			if own {
				select {
				case arrived <- struct{}{}:
				default: // one signal is enough
				}
			}
		}))
	}
	if err != nil {
		stop()
		q.Close()
		return nil, err
	}
	var here sync.WaitGroup
	here.Go(q.Announce(ctx, NewPresence(env, queue.HandsOut, engine.Plan.Build), env.Now))
	here.Go(func() { awaitWorker(ctx, env, f.Url, arrived) })
	engine.Start, engine.Workers = h.Start, outstanding
	return func(work error) (all Handed, err error) {
		keys := map[string]bool{}
		for cell := range engine.Plan.Cells {
			for lot := range engine.Plan.MaxLots() {
				keys[engine.Plan.Job(cell, lot).Key] = true
			}
		}
		if work == nil {
			all.Differences, err = q.Differences(ctx, func(key string) bool { return keys[key] })
		}
		stop()
		here.Wait()
		q.Close()
		if work != nil || err != nil {
			return all, err
		}
		commands := env.WorkCommands(env)
		checked, differ, err := engine.Check(whole, sweep.SpotCheck{Share: f.share / 100, Do: commands.Do})
		return Handed{append(all.Differences, differ...), checked}, errors.Join(err, commands.Close())
	}, nil
}

// maxWait is the time after which a remark is printed if a sweep still has no worker.
const maxWait = 2 * time.Second

// awaitWorker prints a remark if no worker with this build has arrived after a while.
func awaitWorker(ctx context.Context, env *cli.Env, url string, arrived <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-arrived:
	case <-time.After(maxWait):
		fmt.Fprintf(env.Stderr, "no worker of this build is there yet; start some with 'olafctl sweep work "+
			"--from %s'\n", url)
	}
}

func NewPresence(env *cli.Env, role string, build sweep.Build) queue.Presence {
	return queue.Presence{Role: role, Host: env.HostName(), Build: build.Hash(), Named: build.String()}
}

// maxClockOff is the difference between two hosts' clocks above which a remark is printed.
const maxClockOff = time.Hour

// AnnouncePeers returns a function that prints a remark about each peer in the given role whose build or clock differs,
// at most once per host and build. foreign, if not nil, is called for every new peer.
func AnnouncePeers(env *cli.Env, role string, build sweep.Build,
	foreign func(p queue.Presence, own bool)) func(queue.Presence) {
	met := map[string]bool{}
	return func(p queue.Presence) {
		who := p.Host + p.Build
		if p.Role != role || met[who] {
			return
		}
		met[who] = true
		if at, err := time.Parse(time.RFC3339, p.At); err == nil && env.Now().Sub(at).Abs() > maxClockOff {
			fmt.Fprintf(env.Stderr, "the clock of %s differs from ours by %v; only the times of results depend on it\n",
				p.Host, env.Now().Sub(at).Round(time.Minute))
		}
		if foreign != nil {
			foreign(p, p.Build == build.Hash())
		}
		if p.Build != build.Hash() {
			fmt.Fprintf(env.Stderr, "%s has another build (%s) than this one (%v): neither takes jobs from the other\n",
				p.Host, p.Named, build)
		}
	}
}

// queueServerFlags are the flags of sweep serve.
type queueServerFlags struct {
	store    cli.StoreFlag
	secure   cli.ServerTLS
	listen   string
	token    string
	insecure bool
}

func newSweepServeCmd(env *cli.Env) *cobra.Command {
	f := new(queueServerFlags)
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve a work queue for sweeps on several machines",
		Long: `Start the work queue for sweeps on several machines, until interrupted. It runs the program olafctl-queue, which 'make'
builds beside olafctl. Clients need the token from --token-file, or the one this command creates in its store and your own
commands on this host find; with --tls-client-ca certificates replace it. Addresses other than loopback need TLS or
--insecure. See docs/guide/sweep-cluster.md.`,
		Example: `  olafctl sweep serve
  olafctl sweep serve --listen :4222 --tls-cert lab.pem --tls-key lab.key --tls-client-ca lab-ca.pem`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.startServer(cmd.Context(), env) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:4222", "HOST:PORT")
	flags.StringVar(&f.token, "token-file", "", "file with the auth token; default a new token in the store")
	flags.BoolVar(&f.insecure, "insecure", false, "allow listening on a network without TLS")
	f.secure.Add(flags)
	f.store.Add(cmd)
	return cmd
}

// startServer runs the queue's server. It refuses to start a server that all users on a network could use.
func (f *queueServerFlags) startServer(ctx context.Context, env *cli.Env) error {
	if _, _, err := net.SplitHostPort(f.listen); err != nil {
		return cli.UsageError("--listen %q: use HOST:PORT", f.listen)
	}
	config, err := f.secure.Config(env.Now())
	if err != nil {
		return err
	}
	if config == nil && !f.insecure && !isLoopback(f.listen) {
		return cli.UsageError("--listen %s opens the queue to a network, where anyone could send work; add "+
			"--tls-cert, --tls-key and --tls-client-ca, or --insecure to allow it", f.listen)
	}
	if _, err := ReadToken(f.token); err != nil {
		return err
	}
	var folder, made string
	err = f.store.WithStore(env, func(s *store.Store) (err error) {
		folder = filepath.Join(s.Dir(), "queue")
		if f.token == "" && !f.secure.NeedsCertificate() {
			made, err = MakeToken(s.Dir())
		}
		return err
	})
	if err != nil {
		return err
	}
	token := cmp.Or(f.token, made)
	args := append([]string{"-listen", f.listen, "-store", folder, "-token-file", token}, f.secure.Arguments()...)
	beside := f.secure.ClientFlags()
	switch {
	case made != "" && isLoopback(f.listen): // clients find it without a flag
	case made != "":
		beside += " --token-file " + made
	case f.token != "":
		beside += " --token-file FILE"
	}
	return serveQueue(ctx, env, args, f.secure.Describe(), beside, made)
}

// isLoopback reports whether an address can be reached only from this host.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// findQueue returns the path of the server program, which is next to this program or in PATH.
func findQueue(env *cli.Env) (string, error) {
	if own, err := env.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(own), queueProgram)
		if info, err := os.Stat(beside); err == nil && !info.IsDir() {
			return beside, nil
		}
	}
	path, err := exec.LookPath(queueProgram)
	if err != nil {
		return "", cli.UsageError("the queue's server %s is neither next to olafctl nor in PATH: 'make' builds "+
			"both. Any NATS server with JetStream works too ('olafctl sweep run --workers nats://HOST:4222'); one "+
			"machine needs no server", queueProgram)
	}
	return path, nil
}

// serveQueue runs the server until ctx ends. beside contains the flags that clients need in addition to the address.
// token is the token file that clients on this host find without a flag, or "" if there is none.
func serveQueue(ctx context.Context, env *cli.Env, args []string, secured, beside, token string) error {
	path, err := findQueue(env)
	if err != nil {
		return err
	}
	server := exec.Command(path, args...)
	server.Stderr = env.Stderr
	in, err := server.StdinPipe()
	if err != nil {
		return err
	}
	out, err := server.StdoutPipe()
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return fmt.Errorf("start the queue's server: %w", err)
	}
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = server.Wait() // the server has already printed the reason
		return cli.UsageError("the queue's server did not start")
	}
	address = strings.TrimSpace(address)
	defer ShareToken(env, address, token)()
	fmt.Fprintf(env.Stderr, "handing out work at nats://%s%s (Ctrl-C ends it)\n  olafctl sweep work --from "+
		"nats://%s%s        on every machine\n  olafctl sweep run FILE.yaml --workers nats://%s%s\n",
		address, secured, address, beside, address, beside)
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	select {
	case err := <-ended:
		return fmt.Errorf("the queue's server ended: %w", err)
	case <-ctx.Done(): // an interrupt is the normal way to end
		return errors.Join(in.Close(), <-ended)
	}
}

func newSweepWorkCmd(env *cli.Env) *cobra.Command {
	f := &GridFlags{}
	var (
		from  QueueFlags
		shard string
		idle  time.Duration
	)
	cmd := &cobra.Command{
		Use:   "work [FILE.yaml]",
		Short: "Work on sweeps from a queue, or on one share of a sweep",
		Long: `With --from, take jobs from another machine's work queue until interrupted; only jobs of the same build are taken. With
--shard I/N, compute share I of N and store the results in the common store, as the scripts of 'olafctl sweep export' do.`,
		Example: `  olafctl sweep work --from nats://lab:4222
  olafctl sweep work slots.yaml --shard 3/16 --store /lab/olaf`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case (from.Url == "") == (shard == ""):
				return cli.UsageError("use either --from nats://HOST:4222 for jobs from a queue, or FILE.yaml " +
					"--shard I/N for a share of a sweep")
			case from.Url != "" && len(args) > 0:
				return cli.UsageError("--from takes jobs from a queue; leave out the file")
			case from.Url != "":
				return f.workFromQueue(cmd.Context(), env, &from, idle)
			case len(args) == 0:
				return cli.UsageError("--shard needs the file of a sweep")
			}
			return f.workOnShare(cmd.Context(), env, args[0], shard)
		},
	}
	from.addAddress(cmd, "from", "take jobs from this work queue")
	cmd.Flags().StringVar(&shard, "shard", "", "work on share I of N: I/N")
	cmd.Flags().DurationVar(&idle, "idle", 0, "with --from: exit after this long without a job; 0s for never")
	cmd.Flags().IntVar(&f.processes, "processes", 0, "worker processes; 0 for one per core")
	cli.AddQuiet(cmd.Flags(), &f.Quiet)
	f.Store.Add(cmd)
	return cmd
}

// workFromQueue runs jobs from a work queue.
func (f *GridFlags) workFromQueue(ctx context.Context, env *cli.Env, from *QueueFlags, idle time.Duration) error {
	build, err := ThisBuild(env)
	if err != nil {
		return err
	}
	q, err := from.dialQueue(ctx, env)
	if err != nil {
		return err
	}
	defer q.Close()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	me, id := NewPresence(env, queue.Works, build), make([]byte, 4)
	_, _ = rand.Read(id) // never fails
	var here sync.WaitGroup
	here.Go(q.Announce(ctx, me, env.Now)) // first, so that others see this worker even if no work is available
	if err := q.FollowPresence(ctx, AnnouncePeers(env, queue.HandsOut, build, untilForeign(build, stop))); err != nil {
		return err
	}
	l := &queue.Labour{Queue: q, Build: build, Workers: f.countProcesses(), Host: me.Host, ID: hex.EncodeToString(id),
		Now: env.Now, Start: ProcessStarter(env, build), Idle: idle}
	if !f.Quiet {
		fmt.Fprintf(env.Stderr, "taking jobs from %s with %s; Ctrl-C ends it\n", from.Url,
			olaf.Plural(l.Workers, "worker"))
	}
	err = l.Work(ctx)
	cause := context.Cause(ctx)
	stop(nil)
	here.Wait()
	if !f.Quiet {
		fmt.Fprintf(env.Stderr, "%s done\n", olaf.Plural(l.Done.Load(), "job"))
	}
	if errors.Is(cause, sweep.ErrBuild) {
		return cause
	}
	if errors.Is(err, context.Canceled) {
		return nil // an interrupt is the normal way to end
	}
	return err
}

// untilForeign returns a function that stops the worker if a peer with another build hands out work before any peer
// with this build has appeared.
func untilForeign(build sweep.Build, stop context.CancelCauseFunc) func(queue.Presence, bool) {
	known := false
	return func(p queue.Presence, own bool) {
		if known = known || own; !known {
			stop(fmt.Errorf("%w: %s hands out work of %s, this is %v; use the same program on both sides",
				sweep.ErrBuild, p.Host, p.Named, build))
		}
	}
}

// workOnShare runs the cells in one share of a sweep.
func (f *GridFlags) workOnShare(ctx context.Context, env *cli.Env, path, shard string) error {
	part, of, ok := ParseShard(shard)
	if !ok {
		return cli.UsageError("--shard %q: write it as I/N, such as 3/16", shard)
	}
	plan, err := resolveFile(env, path, true)
	if err != nil {
		return err
	}
	if plan.Build, err = ThisBuild(env); err != nil {
		return err
	}
	return f.Store.WithStore(env, func(s *store.Store) error {
		engine := f.newEngine(env, s, plan)
		engine.Shard, engine.Shards = part-1, of
		_, differ, err := f.runWithBar(ctx, env, engine)
		p := engine.Progress()
		fmt.Fprintf(env.Stderr, "share %s: %d of %d cells done, %d failed\n", shard, p.Done, p.Cells, p.Failed)
		switch {
		case errors.Is(err, context.Canceled):
			return cli.ShortenInterrupt(ctx, err)
		case err != nil:
			return err
		case len(differ) > 0:
			return fmt.Errorf("%w: %s", store.ErrConflict, differ[0])
		case p.Failed > 0:
			return fmt.Errorf("%s failed; 'olafctl sweep run %s' prints the reasons", olaf.Plural(p.Failed, "cell"),
				path)
		}
		return nil
	})
}

func ParseShard(text string) (part, of int, ok bool) {
	a, b, cut := strings.Cut(text, "/")
	part, err := strconv.Atoi(a)
	of, err2 := strconv.Atoi(b)
	return part, of, cut && err == nil && err2 == nil && part >= 1 && part <= of
}

// readSweep reads a sweep file, or standard input if path is "-".
func readSweep(env *cli.Env, path string) (*sweep.File, error) {
	name, text, err := cli.ReadInput(env, path)
	if err != nil {
		return nil, err
	}
	return sweep.ParseFile(name, text)
}

// resolveFile reads a sweep file and resolves every cell.
func resolveFile(env *cli.Env, path string, large bool) (*sweep.Plan, error) {
	file, err := readSweep(env, path)
	if err != nil {
		return nil, err
	}
	plan, err := file.Resolve(env.SweepCommands(env), large)
	if err == nil {
		plan.Order = sweep.Random
	}
	return plan, err
}
