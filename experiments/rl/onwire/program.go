package onwire

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/clients/python"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/internal/tempfolder"
	"github.com/olafctl/olaf/pktgen/attach"
	"github.com/olafctl/olaf/pktgen/process"
	"github.com/olafctl/olaf/results/result"
)

// ErrProgram reports that a program that computes gradients failed.
var ErrProgram = olaf.NewError(olaf.Failed, "the program failed")

// Program describes training in which a command computes the gradients. There is one process for each worker, and one
// for the server if the system has weights there. The processes attach to workers and a server that exchange real
// packets.
type Program struct {
	Command  string    `json:"command"` // a shell command
	Systems  []string  `json:"systems"`
	Seeds    []uint64  `json:"seeds"`
	Device   string    `json:"device"`
	Workers  int       `json:"workers"`
	Clusters int       `json:"clusters"`
	Values   int       `json:"values"` // values in the longest vector
	Lanes    int       `json:"lanes"`  // int32 per frame
	Scale    float64   `json:"scale"`
	Slots    int       `json:"slots,omitempty"`    // in a queue, for each frame of a vector
	OutRate  olaf.Rate `json:"out_rate,omitempty"` // output rate of a queue

	// Olafctl returns the command that starts a worker or a server, given its name and arguments.
	Olafctl  func(args ...string) *exec.Cmd `json:"-"`
	Progress func(format string, a ...any)  `json:"-"` // reports progress; required
	OnPoint  func(p Point)                  `json:"-"` // receives every point; required

	most uint32 // maximum number of updates per worker for a network in this process; 0 means mostRounds
}

// Check returns an error that matches attach.ErrConfig if the fields do not describe a valid training.
func (p *Program) Check() error {
	c := attach.Config{Workers: p.Workers, Largest: p.Values, Lanes: p.Lanes, Scale: p.Scale}
	if p.Command == "" || p.Workers < 1 || p.Clusters < 1 || p.Clusters > p.Workers || len(p.Seeds) == 0 ||
		p.Lanes > process.MaxOpenLanes {
		return fmt.Errorf("%w: the command %q on %d workers in %d clusters with %d seeds and %d lanes a frame; use 1 or "+
			"more of each, and up to %d lanes",
			attach.ErrConfig, p.Command, p.Workers, p.Clusters, len(p.Seeds), p.Lanes, process.MaxOpenLanes)
	}
	return c.Check()
}

// Frames returns the number of frames that the longest vector takes in a queue.
func (p *Program) Frames() int { return attach.PushLayout(p.Values, p.Lanes).Packets() }

// Point is one report from a worker's program. The program prints it as a line with a JSON object that contains loss or
// reward.
type Point struct {
	AtNS   int64    `json:"at_ns"` // since the first one of any worker
	Loss   *float64 `json:"loss,omitempty"`
	Reward *float64 `json:"reward,omitempty"`
}

// ProgramRun is the result of one training run by programs.
type ProgramRun struct {
	System string            `json:"system"`
	Seed   uint64            `json:"seed"`
	TookNS int64             `json:"took_ns"` // since the first point
	Points [][]Point         `json:"points"`  // by worker
	Counts map[string]uint64 `json:"counts"`  // counts of the queue or of the kernel's program
	Server json.RawMessage   `json:"server"`  // the server daemon's report
	Daemon []json.RawMessage `json:"workers"`
}

// place starts daemons on one host of the testbed.
type place struct {
	name    string     // default the address
	address netip.Addr // at which the daemon listens; none if it exchanges frames with a switch
	start   func(*exec.Cmd) (testbed.Process, error)
}

// stand describes where the daemons of one training run start, their arguments, and whether a program computes at the
// server.
type stand struct {
	workers  []place
	server   place
	common   []string // arguments of all daemons besides those of the training
	worker   func(k int) []string
	ps       []string
	computes bool // a program computes at the server
	end      func(context.Context) (counts map[string]uint64, err error)

	// local, if set, starts a network in this process instead of daemons.
	local func(ctx context.Context, a *attempt) (localNet, error)
}

// attempt is the state of one training run by programs.
type attempt struct {
	*Program
	*stand
	system   string
	seed     uint64
	folder   string
	port     int
	python   string // PYTHONPATH of the programs
	began    time.Time
	net      localNet // nil with daemons
	daemons  []*child
	group    *programGroup // of the programs
	programs []*computation
	mu       sync.Mutex // guards the points
	points   [][]Point
}

// computation is one running process of the command that computes gradients.
type computation struct {
	name     string
	cmd      *exec.Cmd
	done     chan struct{}
	err      error
	errors   bytes.Buffer
	progress func(format string, a ...any)
}

// run carries out one training run. When it returns, all processes that it started have ended.
func (p *Program) run(ctx context.Context, s *stand, system string, seed uint64) (_ *ProgramRun, err error) {
	folder, remove, err := tempfolder.MakeFolder()
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	path, err := python.WritePackage(folder)
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	ctx, stop := context.WithCancel(ctx)
	a := &attempt{Program: p, stand: s, system: system, seed: seed, folder: folder, port: port, points: make([][]Point,
		p.Workers), python: addPath(os.Getenv("PYTHONPATH"), path)}
	defer func() {
		stop()
		a.kill()
		err = errors.Join(err, remove())
	}()
	if s.local != nil {
		a.net, err = s.local(ctx, a)
		defer a.net.end()
	} else {
		err = a.startDaemons(ctx)
	}
	if err != nil {
		return nil, err
	}
	if err := a.startPrograms(ctx); err != nil {
		return nil, err
	}
	r, err := a.finish(ctx)
	switch {
	case a.net == nil:
		return r, err
	case err != nil:
		return nil, cmp.Or(a.net.failure(), err)
	}
	return r, a.net.complete(r)
}

// addPath appends a folder to a search path.
func addPath(path, folder string) string {
	if path == "" {
		return folder
	}
	return path + string(os.PathListSeparator) + folder
}

// freePort returns a free TCP port on which the programs can find each other.
func freePort() (int, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	at, err := netip.ParseAddrPort(l.Addr().String())
	return int(at.Port()), errors.Join(err, l.Close())
}

// socket returns the path of worker k's socket, or of the server's socket for k = -1.
func (a *attempt) socket(k int) string {
	if k < 0 {
		return "unix:" + filepath.Join(a.folder, "ps.sock")
	}
	return "unix:" + filepath.Join(a.folder, "w"+strconv.Itoa(k)+".sock")
}

// startDaemons starts the daemons of the server and the workers, and waits until they listen.
func (a *attempt) startDaemons(ctx context.Context) error {
	common := append([]string{"--system", a.system, "--values", strconv.Itoa(a.Values), "-o", "jsonl"}, a.common...)
	own := []string{"--attach"}
	if a.server.address.IsValid() {
		common = append(common, "--lanes", strconv.Itoa(a.Lanes))
		own = []string{"--scale", strconv.FormatFloat(a.Scale, 'g', -1, 64), "--attach"}
	}
	args := append(append([]string{"ps"}, common...), a.ps...)
	if a.computes {
		args = append(append(args, own...), a.socket(-1))
	}
	if err := a.daemon(ctx, a.server, args, a.computes); err != nil {
		return err
	}
	for k := range a.workers {
		args := append(append([]string{"worker"}, common...), "--worker", strconv.Itoa(k))
		if err := a.daemon(ctx, a.workers[k], append(append(append(args, a.worker(k)...), own...), a.socket(k)),
			true); err != nil {
			return err
		}
	}
	return nil
}

// daemon starts the daemon of a worker or the server. If prints is set, it waits for the line that the daemon prints
// once it is listening.
func (a *attempt) daemon(ctx context.Context, at place, args []string, prints bool) error {
	listening := make(chan struct{})
	var once sync.Once
	name := args[0] + " on " + at.name
	if at.address.IsValid() {
		name = args[0] + " on " + at.address.String()
		args = append(args, "--listen", netip.AddrPortFrom(at.address, olaf.UDPPort).String())
	}
	k, err := launch(at.start, name, a.Olafctl(args...), nil, func(line []byte) {
		var l Listening
		if json.Unmarshal(line, &l) == nil && (l.Listening.IsValid() || !at.address.IsValid()) {
			once.Do(func() { close(listening) })
		}
	})
	if err != nil {
		return err
	}
	if a.daemons = append(a.daemons, k); !prints {
		return nil
	}
	select {
	case <-listening:
		return nil
	case <-k.process.Done():
		return cmp.Or(k.awaitEnd(), fmt.Errorf("%w: %s", ErrHost, k.name))
	case <-ctx.Done():
		return ctx.Err()
	}
}

// startPrograms starts the command once for the server and once for each worker.
func (a *attempt) startPrograms(ctx context.Context) error {
	a.began = time.Now()
	var err error
	if a.group, err = startGroup(); err != nil {
		return fmt.Errorf("%w: the guard of the programs: %w", ErrProgram, err)
	}
	if a.computes {
		if err := a.program(ctx, -1); err != nil {
			return err
		}
	}
	for k := range a.Workers {
		if err := a.program(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

// endTime is the longest time that a program or its daemon may take to end after it was told to stop or after its
// counterpart failed.
const endTime = 15 * time.Second

// program starts the command for worker k, or for the server if k is -1. The command's environment is that of torchrun,
// with the socket added.
func (a *attempt) program(ctx context.Context, k int) error {
	role := "worker"
	c := &computation{name: "worker " + strconv.Itoa(k), done: make(chan struct{}), progress: a.Progress}
	if k < 0 {
		role, c.name = "server", "server"
	}
	c.cmd = exec.CommandContext(ctx, "sh", "-c", "exec "+a.Command)
	c.cmd.Cancel = func() error { return c.cmd.Process.Signal(os.Interrupt) }
	c.cmd.WaitDelay = endTime
	c.cmd.Env = append(os.Environ(), "OLAF_ATTACH="+a.socket(k), "OLAF_ROLE="+role,
		"OLAF_SEED="+strconv.FormatUint(a.seed, 10), "PYTHONPATH="+a.python,
		"WORLD_SIZE="+strconv.Itoa(a.Workers), "MASTER_ADDR=127.0.0.1", "MASTER_PORT="+strconv.Itoa(a.port))
	if k >= 0 {
		c.cmd.Env = append(c.cmd.Env, "RANK="+strconv.Itoa(k), "LOCAL_RANK="+strconv.Itoa(k))
	}
	c.cmd.Stderr = &c.errors
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	a.group.add(c.cmd)
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.cmd.Start()
		if started <- err; err != nil {
			return
		}
		a.readLines(k, c.name, out)
		c.err = c.cmd.Wait()
		close(c.done)
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("%w: %s: %w", ErrProgram, a.Command, err)
	}
	a.programs = append(a.programs, c)
	return nil
}

// readLines extracts the points from a program's output and copies the other lines to out.
func (a *attempt) readLines(k int, name string, out io.Reader) {
	for s := bufio.NewScanner(out); s.Scan(); {
		p := Point{AtNS: time.Since(a.began).Nanoseconds()}
		if k < 0 || json.Unmarshal(s.Bytes(), &p) != nil || p.Loss == nil && p.Reward == nil {
			a.Progress("%s: %s", name, s.Text())
			continue
		}
		a.mu.Lock()
		a.points[k] = append(a.points[k], p)
		a.mu.Unlock()
		a.OnPoint(p)
	}
}

// missingHint is the hint that is added to errors of Python programs that lack a module. The package olaf is always
// available.
const missingHint = "name the interpreter that has the module in --program, such as /usr/bin/python3, or set PYTHONPATH"

// ended returns the reason why the program failed, or nil if it did not fail.
func (c *computation) ended() error {
	if c.err == nil {
		return nil
	}
	output := c.errors.Bytes()
	if exception := findException(output); exception != nil {
		c.progress("%s: %s", c.name, bytes.TrimSpace(output))
		output = exception
	}
	err := fmt.Errorf("%w: %s: %w", ErrProgram, c.name, process.Ended(c.err, output))
	if bytes.Contains(c.errors.Bytes(), []byte("ModuleNotFoundError")) {
		err = fmt.Errorf("%w; %s", err, missingHint)
	}
	return err
}

// findException returns the line that names the last exception in a Python program's output, or nil if there is none.
func findException(output []byte) []byte {
	_, trace, found := bytes.Cut(output[max(0, bytes.LastIndex(output, []byte(traceback))):], []byte(traceback))
	if !found {
		return nil
	}
	for line := range bytes.Lines(trace) {
		if line[0] != ' ' && len(bytes.TrimSpace(line)) > 0 {
			return line
		}
	}
	return nil
}

// traceback is the line that a Python program prints before the stack trace of an exception.
const traceback = "Traceback (most recent call last):"

// finish waits until the workers' programs have ended, lets the network drain, and ends the other processes.
func (a *attempt) finish(ctx context.Context) (*ProgramRun, error) {
	if err := a.awaitPrograms(ctx); err != nil {
		return nil, err
	}
	r := &ProgramRun{System: a.system, Seed: a.seed, TookNS: time.Since(a.began).Nanoseconds(), Points: a.points}
	r.rebase()
	if a.net != nil {
		return r, nil
	}
	for _, d := range a.daemons[1:] {
		report, err := a.stopDaemon(ctx, d)
		if err != nil {
			return nil, err
		}
		r.Daemon = append(r.Daemon, report)
	}
	var err error
	if r.Counts, err = a.end(ctx); err != nil {
		return nil, err
	}
	r.Server, err = a.stopDaemon(ctx, a.daemons[0])
	return r, errors.Join(err, r.countReports())
}

// Names of the counts in attach.Pulls.
const (
	modelsPulled = "models_pulled"
	modelsTorn   = "models_torn"
)

// AddPulls adds the number of models that a worker's client pulled to the worker's counts.
func AddPulls(counts map[string]uint64, p attach.Pulls) {
	counts[modelsPulled] += p.Models
	counts[modelsTorn] += p.Torn
}

// countReports adds the numbers of updates around a switch, and of models that the workers' clients pulled, to the
// counts. It takes them from the workers' reports.
func (r *ProgramRun) countReports() error {
	_, wired := r.Counts["frames"]
	for _, text := range r.Daemon {
		var report struct {
			Counts map[string]uint64 `json:"counts"`
		}
		if err := json.Unmarshal(text, &report); err != nil {
			return fmt.Errorf("%w: a worker's report: %w", ErrHost, err)
		}
		if pulled, counted := report.Counts[modelsPulled]; counted {
			AddPulls(r.Counts, attach.Pulls{Models: pulled, Torn: report.Counts[modelsTorn]})
		}
		if wired {
			r.Counts["vectors_computed"] += report.Counts["vectors_computed"]
		}
	}
	return nil
}

// rebase makes all times relative to the first point, so that curves do not include the start-up of the programs.
func (r *ProgramRun) rebase() {
	first := r.TookNS
	for _, points := range r.Points {
		if len(points) > 0 {
			first = min(first, points[0].AtNS)
		}
	}
	for _, points := range r.Points {
		for i := range points {
			points[i].AtNS -= first
		}
	}
	r.TookNS -= first
}

// awaitPrograms waits until the programs of all workers have ended. It returns early if any program or daemon fails.
func (a *attempt) awaitPrograms(ctx context.Context) error {
	failed := make(chan error, len(a.programs)+len(a.daemons))
	within, stop := context.WithCancel(ctx)
	defer stop()
	workers := a.programs[len(a.programs)-a.Workers:]
	for _, c := range a.programs[:len(a.programs)-a.Workers] { // the server's programs
		go c.watchServer(within, failed)
	}
	if a.net == nil {
		go a.daemons[0].watchEnd(within, failed)
	}
	for i, c := range workers {
		var over <-chan struct{} // the worker ended
		if a.net == nil {
			over = a.daemons[1+i].process.Done()
		}
		go func() {
			select {
			case <-c.done:
				if a.net != nil {
					a.net.leave(i)
				}
				failed <- c.ended()
			case <-over:
				failed <- c.outlive(within, a.daemons[1+i].awaitEnd())
			case <-within.Done():
			}
		}()
	}
	for range workers {
		select {
		case err := <-failed:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// watchServer reports an error if the server's program ends before the workers' programs.
func (c *computation) watchServer(ctx context.Context, failed chan<- error) {
	select {
	case <-c.done:
		failed <- cmp.Or(c.ended(), fmt.Errorf("%w: the server's ended before the workers'", ErrProgram))
	case <-ctx.Done():
	}
}

// watchEnd waits for the server to end and sends an error to failed. The server should not end before the programs, so
// watchEnd stops without an error if ctx ends first.
func (d *child) watchEnd(ctx context.Context, failed chan<- error) {
	select {
	case <-d.process.Done():
		failed <- cmp.Or(d.awaitEnd(), fmt.Errorf("%w: %s ended before the programs", ErrHost, d.name))
	case <-ctx.Done():
	}
}

// outlive waits for a program whose worker has ended, and returns an error if one of them failed. A program that said
// goodbye may take some time, for example to store its model. A program whose worker failed is expected to end.
func (c *computation) outlive(ctx context.Context, failed error) error {
	if failed != nil {
		limited, stop := context.WithTimeout(ctx, endTime)
		defer stop()
		ctx = limited
	}
	select {
	case <-c.done:
		return errors.Join(failed, c.ended())
	case <-ctx.Done():
		return failed
	}
}

// stopDaemon stops a daemon, unless it has already ended with its program, and returns its report.
func (a *attempt) stopDaemon(ctx context.Context, d *child) (report json.RawMessage, err error) {
	ctx, stop := context.WithTimeout(ctx, endTime)
	defer stop()
	select {
	case <-d.process.Done():
	default:
		_ = d.process.Signal(os.Interrupt) // the process may have ended just now
		select {
		case <-d.process.Done():
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %s does not exit", ErrHost, d.name)
		}
	}
	d.lines.Wait()
	_ = d.process.Wait()
	if !json.Valid(d.last) || len(d.last) == 0 {
		return nil, fmt.Errorf("%w: %s has no report: %s", ErrHost, d.name, d.errors.Bytes())
	}
	return append(json.RawMessage(nil), d.last...), nil
}

// kill ends all processes that are still running.
func (a *attempt) kill() {
	for _, d := range a.daemons {
		_ = d.process.Signal(os.Kill) // most have ended
		<-d.process.Done()
		d.lines.Wait()
	}
	if a.group == nil {
		return
	}
	for _, c := range a.programs {
		_ = c.cmd.Process.Signal(os.Interrupt) // their context has ended
	}
	late := time.AfterFunc(endTime, a.group.kill) // processes that a program started may have its output open
	for _, c := range a.programs {
		<-c.done
	}
	late.Stop()
	a.group.end()
}

// ProgramReport is the result of training by programs, together with all their points.
type ProgramReport struct {
	*result.Result
	Runs []*ProgramRun
}

// ProgramFile is the name of the file that is stored next to the document. It contains one ProgramRun per line.
const ProgramFile = "programs.jsonl"

// Files implements bench.Attaching. It returns the file with the training runs.
func (r *ProgramReport) Files() (map[string][]byte, error) { return writeLines(ProgramFile, r.Runs) }

// runAll carries out a training run through every system with every seed, and returns the report.
func (p *Program) runAll(run func(system string, seed uint64) (*ProgramRun, error)) (*ProgramReport, error) {
	var runs []*ProgramRun
	for _, system := range p.Systems {
		for _, seed := range p.Seeds {
			r, err := run(system, seed)
			if err != nil {
				return nil, err
			}
			runs = append(runs, r)
		}
	}
	return p.report(runs), nil
}

// report draws the loss and the reward for all systems over the number of updates and over time.
func (p *Program) report(runs []*ProgramRun) *ProgramReport {
	r := &ProgramReport{Result: experiments.NewResult("program", "learning curves", &experiments.Options{}, p),
		Runs: runs}
	for _, of := range []struct {
		name  string
		value func(*Point) *float64
	}{{"loss", func(q *Point) *float64 { return q.Loss }}, {"reward", func(q *Point) *float64 { return q.Reward }}} {
		updates := result.Panel{Name: of.name + " over updates", XLabel: "updates of a worker, %", YLabel: of.name}
		times := result.Panel{Name: of.name + " over time", XLabel: "seconds", YLabel: of.name}
		for _, system := range p.Systems {
			u, t := curvesOf(system, runs, of.value)
			if len(u.X) > 0 {
				updates.Series, times.Series = append(updates.Series, u), append(times.Series, t)
			}
		}
		if len(updates.Series) > 0 {
			r.Panels = append(r.Panels, updates, times)
		}
	}
	r.Say("%s: %s, %s, each ± the 95 %% interval over seeds", p.Command, olaf.Plural(p.Workers, "worker"),
		olaf.Plural(len(p.Seeds), "seed"))
	for _, run := range runs {
		r.Say("%s, seed %d: %v; %s", run.System, run.Seed, roundTime(time.Duration(run.TookNS)), run.fate())
	}
	return r
}

// roundTime rounds d to three or four significant digits.
func roundTime(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 10_000 {
		unit *= 10
	}
	return d.Round(unit)
}

// fate returns a summary of what happened to the updates.
func (r *ProgramRun) fate() string {
	c := r.Counts
	if rounds, waits := c["rounds"]; waits {
		return fmt.Sprintf("%d rounds, %d frames, %d of them lost, %d packets sent again", rounds, c["frames"], c["lost"],
			c["packets_resent"])
	}
	if _, job := c["frames"]; job {
		return fmt.Sprintf("%d updates, %d of them too old to send, %d frames, %d of them lost", c["vectors_computed"],
			c["vectors_discarded"], c["frames"], c["lost"])
	}
	torn := ""
	if c[modelsTorn] > 0 {
		torn = fmt.Sprintf(", %d of %d models that workers pulled torn", c[modelsTorn], c[modelsPulled])
	}
	if _, queue := c["delivered_updates"]; queue {
		return fmt.Sprintf("%d frames sent, %d delivered in %d, %d dropped, %d replaced, %d lanes saturated%s", c["in"],
			c["delivered_updates"], c["delivered_frames"], c["dropped"], c["replaced"], c["lane_saturations"], torn)
	}
	if _, kernel := c["completed"]; !kernel {
		return "an ideal network: nothing is lost or late" + torn
	}
	return fmt.Sprintf("%d sums of frames, %d duplicates, %d lanes saturated", c["completed"], c["duplicate"],
		c["lane_saturations"])
}

// curvePoints is the number of points in each curve.
const curvePoints = 10

// curvesOf returns two curves of a value from the programs of one system: by the number of updates and by time. Each
// point is the mean over the workers and the seeds in a tenth of the training.
func curvesOf(system string, runs []*ProgramRun, value func(*Point) *float64) (updates, times result.Series) {
	updates, times = result.Series{Name: system}, result.Series{Name: system}
	longest := int64(1)
	for _, r := range runs {
		if r.System == system {
			longest = max(longest, r.TookNS)
		}
	}
	for part := range curvePoints {
		var byUpdate, byTime []float64
		for _, r := range runs {
			if r.System != system {
				continue
			}
			byUpdate = append(byUpdate, r.mean(value,
				func(i, n int, _ *Point) bool { return i*curvePoints/n == part })...)
			byTime = append(byTime, r.mean(value, func(_, _ int, q *Point) bool {
				return int(min(q.AtNS*curvePoints/longest, curvePoints-1)) == part
			})...)
		}
		if len(byUpdate) > 0 {
			updates.X, updates.Y = append(updates.X, float64(100*(part+1)/curvePoints)), append(updates.Y,
				result.Describe(byUpdate))
		}
		if len(byTime) > 0 {
			times.X = append(times.X, float64(longest)*float64(part+1)/curvePoints/1e9)
			times.Y = append(times.Y, result.Describe(byTime))
		}
	}
	return updates, times
}

// mean returns the mean value of the matching points as a slice with one element, or an empty slice if no point
// matches.
func (r *ProgramRun) mean(value func(*Point) *float64, match func(i, n int, q *Point) bool) []float64 {
	sum, n := 0.0, 0
	for _, points := range r.Points {
		for i := range points {
			if v := value(&points[i]); v != nil && match(i, len(points), &points[i]) {
				sum, n = sum+*v, n+1
			}
		}
	}
	if n == 0 {
		return nil
	}
	return []float64{sum / float64(n)}
}
