package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/testbed/lab"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/xdp"
	"github.com/olafctl/olaf/pktgen/process"
)

// ErrWrong says that something did not add up.
var ErrWrong = olaf.NewError(olaf.Failed, "the kernel's sums are not what was sent")

// Config is what is asked for.
type Config struct {
	process.Job
	Every time.Duration // between two packets of a worker
	Skip  int           // packets that a worker leaves out, every so-many-th
	Mode  xdp.Mode
	// Command starts a worker or a server: its name and its arguments. It is what 'olafctl' does with 'worker' and 'ps'.
	Command func(args ...string) *exec.Cmd
	Say     func(format string, args ...any) // what goes on
}

// Report is what happened.
type Report struct {
	Workers []process.WorkerReport `json:"workers"`
	Server  process.ServerReport   `json:"server"`
	Kernel  map[string]uint64      `json:"kernel"` // counts of the program
	Took    time.Duration          `json:"took_ns"`
	Agent   int                    `json:"agent_resent"` // sums that the server asked the aggregator for
	Checks  []Check                `json:"identities"`
}

// Check is an identity that was held.
type Check struct {
	Name  string `json:"name"`
	Left  uint64 `json:"left"`
	Right uint64 `json:"right"`
	Holds bool   `json:"holds"`
}

// bench is the demo while it stands.
type bench struct {
	*Config
	lab  *lab.Lab
	adds *lab.Adder
}

// Run sets everything up, plays the job, holds what must hold, and takes everything down. The error matches netlab.ErrRights or
// xdp.ErrRights, ErrWrong, or is the kernel's.
func Run(ctx context.Context, c Config) (r *Report, err error) {
	b := &bench{Config: &c}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.open(); err != nil {
		return nil, err
	}
	c.Say("%s", b.lab.Summary())
	started := time.Now()
	if r, err = b.play(ctx); err != nil {
		return nil, err
	}
	r.Took = time.Since(started)
	return r, b.judge(r)
}

// open brings up a testbed of workers around one aggregator, as a file with these two numbers would.
func (b *bench) open() error {
	text := fmt.Sprintf("name: demo\ntree: {workers: %d, mode: %s}\njob: {id: %d, lanes: %d, fragments: %d}\n", b.Workers, b.Mode, b.ID, b.Lanes, b.Fragments())
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

// close takes everything down.
func (b *bench) close() error {
	if b.lab == nil {
		return nil
	}
	return b.lab.Close()
}

// below and above are where sockets are at the two ends of a node's cable towards the server.
func (b *bench) below(node int) netip.AddrPort {
	return netip.AddrPortFrom(b.cable(node).Lower, olaf.UDPPort)
}

func (b *bench) above(node int) netip.AddrPort {
	return netip.AddrPortFrom(b.cable(node).Upper, olaf.UDPPort)
}

func (b *bench) cable(node int) *lab.PlannedCable {
	return &b.lab.Plan.Cables[b.lab.Plan.Nodes[node].Up]
}

// child is a program in its namespace, and what it prints.
type child struct {
	process  *netlab.Process
	out, err bytes.Buffer
}

// start starts a program in a node's namespace, which listens at an address there.
func (b *bench) start(node int, listen netip.AddrPort, args ...string) (*child, error) {
	k := &child{}
	cmd := b.Command(append(args, "--id", strconv.Itoa(int(b.ID)), "--workers", strconv.Itoa(b.Workers), "--values", strconv.Itoa(b.Values),
		"--lanes", strconv.Itoa(b.Lanes), "--vectors", strconv.Itoa(b.Epochs), "--listen", listen.String())...)
	cmd.Stdout, cmd.Stderr = &k.out, &k.err
	var err error
	k.process, err = b.lab.Nodes[node].Start(cmd)
	return k, err
}

// wait waits for a child's report.
func (k *child) wait(ctx context.Context, into any) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-k.process.Done():
	}
	if err := k.process.Wait(); err != nil {
		return fmt.Errorf("a process of the job ended: %w: %s", err, bytes.TrimSpace(k.err.Bytes()))
	}
	return json.Unmarshal(k.out.Bytes(), into)
}

// play runs the job.
func (b *bench) play(ctx context.Context) (*Report, error) {
	r := &Report{Workers: make([]process.WorkerReport, b.Workers)}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	agent, err := b.answer(ctx, r)
	if err != nil {
		return nil, err
	}
	adds, nodes := b.adds.Planned.Node, b.lab.Workers()
	args := []string{"ps", "--agent", b.below(adds).String()}
	for _, node := range nodes {
		args = append(args, "--worker", b.below(node).String())
	}
	server, err := b.start(b.lab.Server(), b.above(adds), args...)
	if err != nil {
		return nil, err
	}
	workers := make([]*child, b.Workers)
	for i, node := range nodes {
		workers[i], err = b.start(node, b.below(node), "worker", "--worker", strconv.Itoa(i), "--aggregator", b.above(node).String(),
			"--server", b.above(adds).String(), "--every", b.Every.String(), "--skip", strconv.Itoa(b.Skip))
		if err != nil {
			return nil, err
		}
	}
	b.Say("%d workers and a parameter server, %d vectors of %d values in %d packets", b.Workers, b.Epochs, b.Values, b.Fragments())
	for i, w := range workers {
		if err := w.wait(ctx, &r.Workers[i]); err != nil {
			return nil, err
		}
	}
	if err := interrupt(server.process.PID()); err != nil {
		return nil, err
	}
	if err := server.wait(ctx, &r.Server); err != nil {
		return nil, err
	}
	stop()
	if err := <-agent; err != nil {
		return nil, err
	}
	r.Kernel, err = b.adds.Latch()
	return r, err
}

// interrupt asks a process to end and to report.
func interrupt(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Signal(os.Interrupt)
}

// answer is the aggregator's agent: it sends sums once more that the server did not get. It ends with the context.
func (b *bench) answer(ctx context.Context, r *Report) (<-chan error, error) {
	var conn *net.UDPConn
	node := b.adds.Planned.Node
	err := b.lab.Nodes[node].Do(func() (err error) {
		conn, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(b.below(node)))
		return err
	})
	if err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	go func() {
		in, out, lanes := make([]byte, 2048), make([]byte, 2048), make([]int32, b.Lanes)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(in)
			if err != nil {
				done <- nil
				return
			}
			epoch, fragment, ok := process.DecodeAsk(in[:n])
			if !ok || fragment >= b.Fragments() {
				continue
			}
			a, err := b.adds.Fragment(fragment, lanes)
			if err != nil {
				done <- err
				return
			}
			if a.Epoch != epoch || a.Inside != b.Workers {
				continue
			}
			sum, err := process.EncodeSum(out, &b.Job, epoch, fragment, a.Count, lanes[:a.Lanes])
			if err != nil {
				done <- err
				return
			}
			r.Agent++
			_, _ = conn.WriteToUDPAddrPort(sum, from) // what is lost is asked for again
		}
	}()
	return done, nil
}

// judge holds the identities of a job.
func (b *bench) judge(r *Report) error {
	var sent, checked, wrong, results uint64
	for _, w := range r.Workers {
		sent += uint64(w.Sent)
		checked += uint64(w.Checked)
		wrong += uint64(w.Wrong)
		results += uint64(w.Results)
	}
	k, fragments := r.Kernel, uint64(b.Fragments()*b.Epochs)
	hold := func(name string, left, right uint64) {
		r.Checks = append(r.Checks, Check{name, left, right, left == right})
	}
	hold("packets sent = packets that the kernel decided about", sent, k["consumed"]+k["completed"]+k["duplicate"]+k["late"]+k["mismatched"]+k["out_of_range"])
	hold("sums completed = fragments of all vectors", k["completed"], fragments)
	hold("packets added = fragments × workers", k["consumed"]+k["completed"], fragments*uint64(b.Workers))
	hold("sums at the server = sums completed", uint64(r.Server.Sums), k["completed"])
	hold("results at the workers = fragments × workers", results, fragments*uint64(b.Workers))
	hold("values that workers checked = values × vectors × workers", checked, uint64(b.Values*b.Epochs*b.Workers))
	hold("values that were wrong = 0", wrong, 0)
	hold("packets of strangers, broken or lost before the program = 0", k["malformed"]+k["misidentified"]+k["lost_before_engine"], 0)
	var errs []error
	for _, c := range r.Checks {
		if !c.Holds {
			errs = append(errs, fmt.Errorf("%w: %s: %d, %d", ErrWrong, c.Name, c.Left, c.Right))
		}
	}
	return errors.Join(errs...)
}
