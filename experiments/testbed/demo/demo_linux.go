package demo

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/testbed/lab"
	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/xdp"
	"github.com/olafctl/olaf/pktgen/process"
)

// ErrWrong reports that an accounting identity is violated.
var ErrWrong = olaf.NewError(olaf.Failed, "the kernel's sums are not what was sent")

// ErrHost reports that a program on one of the hosts ended too early.
var ErrHost = olaf.NewError(olaf.Failed, "a program of the job ended")

// Config contains the settings of the demo.
type Config struct {
	process.Job
	Group int       // number of a worker's packets that are acknowledged together
	Line  olaf.Rate // per worker, in addition to the common Rate
	Rate  olaf.Rate // rate of the aggregator; 0 for no limit
	Skip  int       // a worker omits every n-th packet of its vectors
	Mode  dataplane.Mode
	// Command returns the command of a worker or a server, given its name and arguments, for 'olafctl worker' and
	// 'olafctl ps'.
	Command  func(args ...string) *exec.Cmd
	Progress func(format string, args ...any) // reports progress
}

// Report is the result of the demo.
type Report struct {
	Workers []process.SumsReport  `json:"workers"`
	Server  process.StationReport `json:"server"`
	Agent   map[string]uint64     `json:"agent"`  // counts of the aggregator's agent, in user space
	Kernel  map[string]uint64     `json:"kernel"` // counts of the program
	Fanout  xdp.FanoutCounts      `json:"fanout"` // results that the server sent once, and their copies
	Took    time.Duration         `json:"took_ns"`
	Checks  []Check               `json:"identities"`
}

// Check is one accounting identity with its two sides.
type Check struct {
	Name  string `json:"name"`
	Left  uint64 `json:"left"`
	Right uint64 `json:"right"`
	Holds bool   `json:"holds"`
}

// bench is the state of a running demo.
type bench struct {
	*Config
	lab  *lab.Lab
	adds *lab.Adder
}

// RunDemo sets up the hosts and the aggregator, runs the job, checks the accounting identities, and removes everything.
// The error matches netlab.ErrRights or xdp.ErrRights if a right is missing, ErrWrong if an identity is violated, or
// lab.ErrBroken if a cable or a program was removed. Other errors come from the kernel.
func RunDemo(ctx context.Context, c Config) (r *Report, err error) {
	b := &bench{Config: &c}
	defer func() { err = errors.Join(err, b.closeLab()) }()
	if err := b.openLab(); err != nil {
		return nil, err
	}
	c.Progress("%s", b.lab.Summary())
	started := time.Now()
	if err := b.lab.Guard(ctx, func(ctx context.Context) (err error) {
		r, err = b.runJob(ctx)
		return err
	}); err != nil {
		return nil, err
	}
	r.Took = time.Since(started)
	return r, errors.Join(b.lab.Broken(), b.checkIdentities(r))
}

// openLab starts a testbed in which the workers are connected to one aggregator. It is the same testbed as that of a
// file with these settings.
func (b *bench) openLab() error {
	text := fmt.Sprintf("name: demo\ntree: {workers: %d, mode: %s, rate: %v}\njob: {id: %d, lanes: %d, fragments: %d, group: %d}\n",
		b.Workers, b.Mode, b.Rate, b.ID, b.Lanes, b.Packets(), b.Group)
	file, err := lab.Parse("demo", []byte(text))
	if err != nil {
		return err
	}
	plan, err := file.Resolve()
	if err != nil {
		return err
	}
	if b.lab, err = lab.Up(plan, lab.Options{}); err != nil {
		return err
	}
	b.adds = b.lab.Adders[0]
	return nil
}

// closeLab removes the testbed.
func (b *bench) closeLab() error {
	if b.lab == nil {
		return nil
	}
	return b.lab.Close()
}

// below returns the socket address at the lower end of a node's cable towards the server. above returns the address at
// the upper end.
func (b *bench) below(node int) netip.AddrPort {
	return netip.AddrPortFrom(b.cable(node).Lower, olaf.UDPPort)
}

func (b *bench) above(node int) netip.AddrPort {
	return netip.AddrPortFrom(b.cable(node).Upper, olaf.UDPPort)
}

func (b *bench) cable(node int) *lab.PlannedCable {
	return &b.lab.Plan.Cables[b.lab.Plan.Nodes[node].Up]
}

// child is a program that runs in a namespace, with its output.
type child struct {
	name     string
	process  *netlab.Process
	out, err bytes.Buffer
}

// startChild starts a program in the namespace of a node. The program listens at the given address.
func (b *bench) startChild(node int, listen netip.AddrPort, args ...string) (*child, error) {
	k := &child{name: b.lab.Plan.Nodes[node].Name}
	cmd := b.Command(append(args, "--id", strconv.Itoa(int(b.ID)), "--workers", strconv.Itoa(b.Workers), "--values",
		strconv.Itoa(b.Values),
		"--lanes", strconv.Itoa(b.Lanes), "--vectors", strconv.Itoa(b.Vectors), "--listen", listen.String())...)
	cmd.Stdout, cmd.Stderr = &k.out, &k.err
	var err error
	k.process, err = b.lab.Nodes[node].Start(cmd)
	return k, err
}

// waitReport waits for the report of a child and decodes it into into.
func (k *child) waitReport(ctx context.Context, into any) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-k.process.Done():
	}
	if err := k.process.Wait(); err != nil {
		return k.endError(err)
	}
	return json.Unmarshal(k.out.Bytes(), into)
}

// endError returns an error about a child that ended too early, which includes the reason.
func (k *child) endError(why error) error {
	return fmt.Errorf("%w: %s: %w", ErrHost, k.name, process.Ended(why, k.err.Bytes()))
}

// gatherReports waits for the reports of all workers. It returns early if any program ends before its report.
func (r *Report) gatherReports(ctx context.Context, workers []*child, server *child) error {
	g, within := errgroup.WithContext(ctx)
	for i, w := range workers {
		g.Go(func() error { return w.waitReport(within, &r.Workers[i]) })
	}
	done := make(chan error, 1)
	go func() { done <- g.Wait() }()
	select {
	case err := <-done:
		return err
	case <-server.process.Done():
		return server.endError(cmp.Or(server.process.Wait(), errEarly))
	}
}

// errEarly is the error for a server that ends too early without reporting an error.
var errEarly = errors.New("it ended before the job")

// runJob starts the workers and the server and waits for their reports.
func (b *bench) runJob(ctx context.Context) (*Report, error) {
	r := &Report{Workers: make([]process.SumsReport, b.Workers)}
	adds, nodes := b.adds.Planned.Node, b.lab.Workers()
	args := []string{"ps", "--agent", b.below(adds).String(), "--line", b.Rate.String(), "--group",
		strconv.Itoa(b.Group)}
	for _, node := range nodes {
		args = append(args, "--worker", b.below(node).String())
	}
	if group := b.lab.Fanout(); group.IsValid() {
		args = append(args, "--fan-out", netip.AddrPortFrom(group, olaf.UDPPort).String())
	}
	server, err := b.startChild(b.lab.Server(), b.above(adds), args...)
	if err != nil {
		return nil, err
	}
	workers := make([]*child, b.Workers)
	for i, node := range nodes {
		workers[i], err = b.startChild(node, b.below(node), "worker", "--worker", strconv.Itoa(i), "--aggregator",
			b.above(node).String(),
			"--line", b.Line.String(), "--skip", strconv.Itoa(b.Skip))
		if err != nil {
			return nil, err
		}
	}
	b.Progress("%d workers and a parameter server, %d vectors of %d values in %d packets", b.Workers, b.Vectors, b.Values,
		b.Packets())
	if err := r.gatherReports(ctx, workers, server); err != nil {
		return nil, err
	}
	if err := server.process.Signal(os.Interrupt); err != nil {
		return nil, err
	}
	if err := server.waitReport(ctx, &r.Server); err != nil {
		return nil, err
	}
	return r, b.readCounts(r)
}

// readCounts reads the counters of the aggregator's agent and of its kernel programs.
func (b *bench) readCounts(r *Report) (err error) {
	r.Agent = b.adds.AgentCounts()
	if b.adds.Fanout != nil {
		if r.Fanout, err = b.adds.Fanout.Counts(); err != nil {
			return err
		}
	}
	r.Kernel, err = b.adds.Latch()
	return err
}

// check adds an accounting identity with its two sides to the report.
func (r *Report) check(name string, left, right uint64) {
	r.Checks = append(r.Checks, Check{name, left, right, left == right})
}

// checkCopies checks the accounting identities for results that the kernel copies.
func (b *bench) checkCopies(r *Report) {
	r.check("copies of results = results that the server sent once × workers", r.Fanout.Copied, r.Fanout.Frames*uint64(b.Workers))
	r.check("results that the server sent once = sums at the server", r.Fanout.Frames, r.Server.Counts["completed"])
}

// checkIdentities checks the accounting identities of the job.
func (b *bench) checkIdentities(r *Report) error {
	var frames, checked, wrong, results uint64
	checking := 0 // workers without learning, which know the sums in advance
	for i := range r.Workers {
		w := &r.Workers[i]
		if w.Work == nil {
			checking++
		}
		frames += uint64(w.Packets)
		checked += uint64(w.Checked)
		wrong += uint64(w.Wrong) + w.Counts["packets_inexact"]
		results += w.Counts["packets_received"]
	}
	lost, err := b.countLost()
	if err != nil {
		return err
	}
	k, s, fragments := r.Kernel, r.Server.Counts, uint64(b.Packets()*b.Vectors)
	decided := k["consumed"] + k["completed"] + k["duplicate"] + k["late"] + k["mismatched"] + k["out_of_range"]
	hold := r.check
	hold("packets that workers sent = decided about + handed to the agent + lost on cables", frames,
		decided+k["control"]+lost)
	hold("sums completed = fragments of all vectors", k["completed"], fragments)
	hold("packets added = fragments × workers", k["consumed"]+k["completed"], fragments*uint64(b.Workers))
	hold("sums at the server = sums completed", s["completed"], k["completed"])
	if b.adds.Fanout != nil {
		b.checkCopies(r)
	}
	hold("results at the workers = fragments × workers", results, fragments*uint64(b.Workers))
	hold("values that workers checked = values × vectors × workers", checked, uint64(b.Values*b.Vectors*checking))
	hold("values that were wrong = 0", wrong, 0)
	hold("packets of strangers, broken or lost before the program = 0",
		k["malformed"]+k["misidentified"]+k["lost_before_engine"], 0)
	var errs []error
	for _, c := range r.Checks {
		if !c.Holds {
			errs = append(errs, fmt.Errorf("%w: %s: %d, %d", ErrWrong, c.Name, c.Left, c.Right))
		}
	}
	return errors.Join(errs...)
}

// countLost returns the number of frames that were lost because the workers' cables had no room for them.
func (b *bench) countLost() (n uint64, err error) {
	for _, node := range b.lab.Workers() {
		c, err := b.lab.Cables[b.lab.Plan.Nodes[node].Up].A.Counts()
		if err != nil {
			return 0, err
		}
		n += c.SendDropped
	}
	return n, nil
}
