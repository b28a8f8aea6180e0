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
	"runtime"
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

// queueProgram is the server that 'make' builds beside olafctl.
const queueProgram = "olafctl-queue"

// QueueFlags say where work is handed out.
type QueueFlags struct {
	Url   string
	token string  // file
	share float64 // of the results that are repeated here, in per cent
}

// add adds the flags; name is the one of the address.
func (f *QueueFlags) add(cmd *cobra.Command, name, usage string) {
	cmd.Flags().StringVar(&f.Url, name, "", usage+", such as nats://lab:4222")
	f.addToken(cmd)
}

// addToken adds what belongs to any address; TLS does too.
func (f *QueueFlags) addToken(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.token, "token-file", "", "file with the queue's auth token; not needed for your own queue on this host")
}

// AddWorkers adds the flags of a command that hands work out.
func (f *QueueFlags) AddWorkers(cmd *cobra.Command, usage string) {
	f.add(cmd, "workers", usage)
	f.addCheck(cmd)
}

// addCheck adds the share of results that are checked.
func (f *QueueFlags) addCheck(cmd *cobra.Command) {
	cmd.Flags().Float64Var(&f.share, "check", 2, "with a work queue: per cent of results to recompute here; 0 for none")
}

// check refuses what is no address.
func (f *QueueFlags) check() error {
	if !(f.share >= 0 && f.share <= 100) {
		return cli.UsageError("--check %v: use 0 to 100 per cent", f.share)
	}
	if f.Url != "" && !cli.IsAddress(f.Url) {
		return cli.UsageError("%q is no address of a work queue; write it as nats://HOST:4222 (processes of this machine are --processes N)", f.Url)
	}
	return nil
}

// dial connects to the queue.
func (f *QueueFlags) dial(ctx context.Context, env *cli.Env) (*queue.Queue, error) {
	if err := f.check(); err != nil {
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

// outstanding is how many jobs of a sweep wait in the queue at once.
const outstanding = 256

// Handed is the evidence about results that came through a work queue.
type Handed struct {
	Differences []string
	Checked     []found.Checked
}

// HandOut lets an engine hand its jobs out instead of starting processes. done, which is given the engine's error, ends that
// and repeats some of the results.
func (f *QueueFlags) HandOut(ctx context.Context, env *cli.Env, engine *sweep.Engine) (done func(error) (Handed, error), err error) {
	q, err := f.dial(ctx, env)
	if err != nil {
		return nil, err
	}
	whole := ctx
	ctx, stop := context.WithCancel(ctx)
	h, err := queue.NewHandout(ctx, q, engine.Plan.Build)
	arrived := make(chan struct{}, 1)
	if err == nil {
		err = q.Others(ctx, Meet(env, queue.Works, engine.Plan.Build, func(_ queue.Presence, own bool) {
			if own {
				select {
				case arrived <- struct{}{}:
				default: // one is enough
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
	here.Go(q.Present(ctx, Presence(env, queue.HandsOut, engine.Plan.Build), env.Now))
	here.Go(func() { awaitWorker(ctx, env, f.Url, arrived) })
	engine.Start, engine.Workers = h.Start, outstanding
	return func(work error) (all Handed, err error) {
		keys := map[string]bool{}
		for cell := range engine.Plan.Cells {
			for lot := range engine.Plan.Lots() {
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

// lonely is how long a sweep waits for a worker before it reports that there is none.
const lonely = 2 * time.Second

// awaitWorker prints a remark when no worker of this build is there yet.
func awaitWorker(ctx context.Context, env *cli.Env, url string, arrived <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-arrived:
	case <-time.After(lonely):
		fmt.Fprintf(env.Stderr, "no worker of this build is there yet; start some with 'olafctl sweep work --from %s'\n", url)
	}
}

func Presence(env *cli.Env, role string, build sweep.Build) queue.Presence {
	host, err := env.Hostname()
	if err != nil {
		host = "unknown"
	}
	return queue.Presence{Role: role, Host: host, Build: build.Hash(), Named: build.String()}
}

// farOff is from how much on two clocks differ so that people should know.
const farOff = time.Hour

// Meet says once of everybody of a role whose build or clock is another. foreign, if not nil, is told of other builds, and of our
// own.
func Meet(env *cli.Env, role string, build sweep.Build, foreign func(p queue.Presence, own bool)) func(queue.Presence) {
	met := map[string]bool{}
	return func(p queue.Presence) {
		who := p.Host + p.Build
		if p.Role != role || met[who] {
			return
		}
		met[who] = true
		if at, err := time.Parse(time.RFC3339, p.At); err == nil && env.Now().Sub(at).Abs() > farOff {
			fmt.Fprintf(env.Stderr, "the clock of %s is %v off ours; no number depends on it, but times of results do\n", p.Host, env.Now().Sub(at).Round(time.Minute))
		}
		if foreign != nil {
			foreign(p, p.Build == build.Hash())
		}
		if p.Build != build.Hash() {
			fmt.Fprintf(env.Stderr, "%s has another build (%s) than this (%v): neither takes jobs of the other\n", p.Host, p.Named, build)
		}
	}
}

// queueServerFlags are the flags of sweep serve.
type queueServerFlags struct {
	where    cli.StoreFlag
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
		RunE: func(cmd *cobra.Command, _ []string) error { return f.serve(cmd.Context(), env) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:4222", "HOST:PORT")
	flags.StringVar(&f.token, "token-file", "", "file with the auth token; default a new token in the store")
	flags.BoolVar(&f.insecure, "insecure", false, "allow listening on a network without TLS")
	f.secure.Add(flags)
	f.where.Add(cmd)
	return cmd
}

// serve runs the queue's server, unless it would let in whoever comes.
func (f *queueServerFlags) serve(ctx context.Context, env *cli.Env) error {
	if _, _, err := net.SplitHostPort(f.listen); err != nil {
		return cli.UsageError("--listen %q: use HOST:PORT", f.listen)
	}
	config, err := f.secure.Config(env.Now())
	if err != nil {
		return err
	}
	if config == nil && !f.insecure && !loopback(f.listen) {
		return cli.UsageError("--listen %s opens the queue to a network, where anybody could send work; add --tls-cert, --tls-key and --tls-client-ca, or --insecure if you mean it", f.listen)
	}
	if _, err := ReadToken(f.token); err != nil {
		return err
	}
	var folder, made string
	err = f.where.With(env, func(s *store.Store) (err error) {
		folder = filepath.Join(s.Dir(), "queue")
		if f.token == "" && !f.secure.Mutual() {
			made, err = MakeToken(s.Dir())
		}
		return err
	})
	if err != nil {
		return err
	}
	token := cmp.Or(f.token, made)
	args := append([]string{"-listen", f.listen, "-store", folder, "-token-file", token}, f.secure.Arguments()...)
	beside := f.secure.Beside()
	switch {
	case made != "" && loopback(f.listen): // found without it
	case made != "":
		beside += " --token-file " + made
	case f.token != "":
		beside += " --token-file FILE"
	}
	return serveQueue(ctx, env, args, f.secure.Describe(), beside, made)
}

// loopback says whether an address is this host's alone.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// findQueue finds the server: beside this program, or where programs are.
func findQueue(env *cli.Env) (string, error) {
	if own, err := env.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(own), queueProgram)
		if info, err := os.Stat(beside); err == nil && !info.IsDir() {
			return beside, nil
		}
	}
	path, err := exec.LookPath(queueProgram)
	if err != nil {
		return "", cli.UsageError("the queue's server %s is neither beside olafctl nor in PATH: 'make' builds both. Without it, any NATS server with JetStream will do ('olafctl sweep run --workers nats://HOST:4222'), and one machine needs none", queueProgram)
	}
	return path, nil
}

// serveQueue runs the server until ctx ends. beside are the flags that its clients need beside its address; token is the file
// that clients on this host find by themselves, empty for none.
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
		_ = server.Wait() // it has said why: an address, a folder or a file that it was given
		return cli.UsageError("the queue's server did not start")
	}
	address = strings.TrimSpace(address)
	defer ShareToken(env, address, token)()
	fmt.Fprintf(env.Stderr, "handing out work at nats://%s%s (Ctrl-C ends it)\n  olafctl sweep work --from nats://%s%s        on every machine\n  olafctl sweep run FILE.yaml --workers nats://%s%s\n",
		address, secured, address, beside, address, beside)
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	select {
	case err := <-ended:
		return fmt.Errorf("the queue's server ended: %w", err)
	case <-ctx.Done(): // being told to stop is how it ends
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
				return cli.UsageError("say either whose work to take (--from nats://HOST:4222) or which share of a file (FILE.yaml --shard I/N)")
			case from.Url != "" && len(args) > 0:
				return cli.UsageError("--from takes what is handed out; leave the file out")
			case from.Url != "":
				return f.workFrom(cmd.Context(), env, &from, idle)
			case len(args) == 0:
				return cli.UsageError("--shard is of a file; name it")
			}
			return f.workOn(cmd.Context(), env, args[0], shard)
		},
	}
	from.add(cmd, "from", "take jobs from this work queue")
	cmd.Flags().StringVar(&shard, "shard", "", "work on share I of N: I/N")
	cmd.Flags().DurationVar(&idle, "idle", 0, "with --from: exit after this long without a job; 0s for never")
	cmd.Flags().IntVar(&f.processes, "processes", 0, "worker processes; 0 for one per core")
	cmd.Flags().BoolVarP(&f.Quiet, "quiet", "q", false, "no progress on stderr")
	f.Where.Add(cmd)
	return cmd
}

// workFrom takes jobs from a queue.
func (f *GridFlags) workFrom(ctx context.Context, env *cli.Env, from *QueueFlags, idle time.Duration) error {
	build, err := ThisBuild(env)
	if err != nil {
		return err
	}
	q, err := from.dial(ctx, env)
	if err != nil {
		return err
	}
	defer q.Close()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	me, id := Presence(env, queue.Works, build), make([]byte, 4)
	_, _ = rand.Read(id) // never fails
	var here sync.WaitGroup
	here.Go(q.Present(ctx, me, env.Now)) // before we look around, so that we are seen even if there is nothing for us
	if err := q.Others(ctx, Meet(env, queue.HandsOut, build, untilForeign(build, stop))); err != nil {
		return err
	}
	l := &queue.Labour{Queue: q, Build: build, Workers: f.processes, Host: me.Host, ID: hex.EncodeToString(id), Now: env.Now, Start: Processes(env, build), Idle: idle}
	if l.Workers == 0 {
		l.Workers = runtime.GOMAXPROCS(0)
	}
	if !f.Quiet {
		fmt.Fprintf(env.Stderr, "taking jobs from %s with %s; Ctrl-C ends it\n", from.Url, olaf.Plural(l.Workers, "worker"))
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
		return nil // being told to stop is how it ends
	}
	return err
}

// untilForeign stops who meets nobody but those that hand out work of another build.
func untilForeign(build sweep.Build, stop context.CancelCauseFunc) func(queue.Presence, bool) {
	known := false
	return func(p queue.Presence, own bool) {
		if known = known || own; !known {
			stop(fmt.Errorf("%w: %s hands out work of %s, this is %v; use the same program on both sides", sweep.ErrBuild, p.Host, p.Named, build))
		}
	}
}

// workOn works on a share of a sweep.
func (f *GridFlags) workOn(ctx context.Context, env *cli.Env, path, shard string) error {
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
	return f.Where.With(env, func(s *store.Store) error {
		host := Presence(env, "", plan.Build).Host
		engine := &sweep.Engine{Plan: plan, Results: s.Singles(), Workers: f.processes, Host: host, Now: env.Now, Start: Processes(env, plan.Build), Shard: part - 1, Shards: of}
		if engine.Workers == 0 {
			engine.Workers = runtime.GOMAXPROCS(0)
		}
		bar := cli.StartNotedProgress(env, f.Quiet, func() (int, int) { p := engine.Progress(); return p.LotsDone, p.Lots }, SweepNote(env, engine))
		_, differ, err := engine.Run(ctx)
		bar.Stop()
		p := engine.Progress()
		fmt.Fprintf(env.Stderr, "share %s: %d of %d cells done, %d failed\n", shard, p.Done, p.Cells, p.Failed)
		switch {
		case errors.Is(err, context.Canceled):
			return cli.Stopped(ctx, err)
		case err != nil:
			return err
		case len(differ) > 0:
			return fmt.Errorf("%w: %s", store.ErrConflict, differ[0])
		case p.Failed > 0:
			return fmt.Errorf("%s failed; 'olafctl sweep run %s' says why", olaf.Plural(p.Failed, "cell"), path)
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

// readSweep reads the file of a sweep; - is standard input.
func readSweep(env *cli.Env, path string) (*sweep.File, error) {
	name, text, err := cli.ReadInput(env, path)
	if err != nil {
		return nil, err
	}
	return sweep.Parse(name, text)
}

// resolveFile fixes every cell of the sweep that a file describes.
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
