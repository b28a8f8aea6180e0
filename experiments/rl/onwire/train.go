package onwire

import (
	"bufio"
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
	"sync"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/p4ctl"
	"github.com/olafctl/olaf/pktgen/process"
)

// ErrHost reports that a program on a host ended too early.
var ErrHost = olaf.NewError(olaf.Failed, "a program of the training ended")

// ErrInvalid reports that a training run is invalid.
var ErrInvalid = olaf.NewError(olaf.Failed, "invalid training")

// Options contains the settings for training on a testbed that are not in the training's configuration. The queue for
// the packets is configured by Config.Network.
type Options struct {
	// Command returns the command of a worker or a server, given its name and arguments, for 'olafctl worker' and
	// 'olafctl ps'.
	Command func(args ...string) *exec.Cmd
	// OnUpdate, if set, is called for every update from a worker, with no order between workers.
	OnUpdate func(worker int, p rl.Point)
}

// Vector is the line that a worker prints for each update.
type Vector struct {
	Vector *uint32 `json:"vector"`
	AtNS   int64   `json:"at_ns"`
	Reward float64 `json:"reward"`
}

// Listening is the line that a server prints when it is ready.
type Listening struct {
	Listening netip.AddrPort `json:"listening"`
}

// WorkerReport is the last line that a worker prints.
type WorkerReport struct {
	Worker olaf.WorkerID `json:"worker"`
	process.Report
	Diverged string `json:"diverged,omitempty"` // why its iterations diverged
}

// ServerReport is the last line that a server prints.
type ServerReport struct {
	process.Report
	Servers  []rl.ServerStats `json:"servers"`
	Places   []uint64         `json:"places,omitempty"`   // updates in all packets, by place in a gradient
	Greedy   float64          `json:"greedy_reward"`      // reward of cluster 0's policy, without exploration
	Diverged string           `json:"diverged,omitempty"` // why a cluster's weights diverged
}

// Outcome is the result of a training run on a testbed.
type Outcome struct {
	Curves    [][]rl.Point      `json:"-"`
	Workers   []WorkerReport    `json:"workers"`
	Server    ServerReport      `json:"server"`
	Queue     map[string]uint64 `json:"queue"` // packets and, for delivered ones, the updates in them
	Decisions *olaf.Decisions   `json:"decisions,omitempty"`
	Pacing    *fpga.Pacing      `json:"pacing,omitempty"`
	Checks    []Check           `json:"identities"`
	Invalid   []string          `json:"invalid,omitempty"`
}

// Check is an accounting identity with the values on both sides.
type Check struct {
	Name  string `json:"name"`
	Left  uint64 `json:"left"`
	Right uint64 `json:"right"`
}

// Holds reports whether both sides are equal.
func (c *Check) Holds() bool { return c.Left == c.Right }

// HostCounts returns the number of hosts that training on a testbed needs, and the number of addresses per host.
func HostCounts(c *rl.Config) (workers, addresses int) { return c.Workers, GradientLayout().Packets() }

// Rates that eight workers on two processors can offer on time while they fly the lander, and an output rate that they
// overload threefold.
const (
	TimelyRate    = 1800 * olaf.Kbps
	TimelyOutRate = 600 * olaf.Kbps
)

// CheckRates rejects a training whose rates exceed half of the rate that a testbed was measured to carry. The error
// suggests rates that are known to work.
func CheckRates(c *rl.Config, carried int64) error {
	n := &c.Network
	packet := float64(UpdateSize().Bits()) / float64(GradientLayout().Packets())
	limit, asked := float64(carried/2), float64(max(n.Rate, n.OutRate))/packet
	if asked <= limit {
		return nil
	}
	return fmt.Errorf("%w: this machine carried %d packets per second when it was measured, and at most half of "+
		"that is accepted, but %v are %.0f packets per second; try --rate %v --out-rate %v, which eight workers "+
		"on two processors managed in time",
		fpga.ErrRefused, carried, max(n.Rate, n.OutRate), asked, TimelyRate, TimelyOutRate)
}

// placeAddress returns the address for one place of a packet in a worker's vectors.
func placeAddress(first netip.Addr, place int) netip.Addr {
	for range place {
		first = first.Next()
	}
	return first
}

// buildTables returns tables that map each address to a cluster and a worker.
func buildTables(c *rl.Config, h *testbed.Hosts) p4ctl.Tables {
	t := p4ctl.Tables{Servers: []netip.Addr{h.Server.Address}}
	packets := GradientLayout().Packets()
	for k := range h.Workers {
		for place := range packets {
			t.Workers = append(t.Workers, p4ctl.Worker{
				Address: placeAddress(h.Workers[k].Address, place),
				Cluster: c.Cluster(k)*olaf.ClusterID(packets) + olaf.ClusterID(place), ID: olaf.WorkerID(k),
			})
		}
	}
	return t.WithGroups(0)
}

// witness is a device that reports how well it works.
type witness interface {
	Decisions() (*olaf.Decisions, error)
	Pacing() *fpga.Pacing
	Faults() []string
}

// run is the state of a training run.
type run struct {
	Options
	config  *rl.Config
	bed     *testbed.Testbed
	device  fpga.Device
	out     *Outcome
	server  *child
	workers []*child
}

// Train trains c on a testbed that was opened for c. The queue has c's number of slots for each packet of an update, so
// that it can contain the same number of updates. The error matches ErrHost, or ErrInvalid together with a complete
// outcome. Other errors come from the device or the context.
func Train(ctx context.Context, c rl.Config, bed *testbed.Testbed, o Options) (*Outcome, error) {
	r := &run{Options: o, config: &c, bed: bed, device: bed.Cards[0].Device,
		out: &Outcome{Curves: make([][]rl.Point, c.Workers)}}
	if err := errors.Join(c.Check(), CheckRates(&c, bed.Hosts.Carried)); err != nil {
		return nil, err
	}
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	defer r.kill()
	if err := r.play(ctx); err != nil {
		return nil, r.because(ctx, err)
	}
	return r.out, r.judge()
}

// play runs all programs until they have ended.
func (r *run) play(ctx context.Context) error {
	if err := r.start(ctx); err != nil {
		return err
	}
	if err := r.watch(ctx); err != nil {
		return err
	}
	return r.end(ctx)
}

// because returns the reason why a training run failed. If a part of the testbed failed, it returns that failure
// instead of the errors that it caused in the programs.
func (r *run) because(ctx context.Context, err error) error {
	if bed, ok := r.device.(interface{ CheckIntact() error }); ok && ctx.Err() == nil {
		return cmp.Or(bed.CheckIntact(), err)
	}
	return err
}

// prepare writes the tables and configures the queue.
func (r *run) prepare(ctx context.Context) error {
	if _, err := r.bed.Program(ctx, buildTables(r.config, r.bed.Hosts)); err != nil {
		return err
	}
	n := &r.config.Network
	rate, err := engine.FromRate(n.OutRate)
	if err != nil {
		return fmt.Errorf("%w: --out-rate: %w", rl.ErrConfig, err)
	}
	threshold, err := engine.FixedReward(n.RewardThreshold)
	if err != nil {
		return fmt.Errorf("%w: %w", rl.ErrConfig, err)
	}
	queue := fpga.QueueConfig{Discipline: n.Kind, Depth: n.Slots * GradientLayout().Packets(),
		Output: engine.Output{Rate: rate}, RewardFilter: n.RewardFilter, RewardThreshold: threshold}
	return fpga.ConfigureQueue(ctx, r.device, queue)
}

// Start-up time of programs before the training begins.
const (
	leadIn    = 500 * time.Millisecond
	leadInOne = 60 * time.Millisecond // per worker
)

// start starts all programs of the run.
func (r *run) start(ctx context.Context) error {
	text, err := json.Marshal(r.config)
	if err != nil {
		return err
	}
	hosts := r.bed.Hosts
	at := func(a netip.Addr) string { return netip.AddrPortFrom(a, olaf.UDPPort).String() }
	common := []string{"--system", r.config.Network.Kind, "--training", "-", "-o", "jsonl"}
	args := append([]string{"ps", "--listen", at(hosts.Server.Address)}, common...)
	for i := range hosts.Workers {
		args = append(args, "--worker", at(hosts.Workers[i].Address))
	}
	listening := make(chan struct{})
	var once sync.Once
	if r.server, err = r.launch(&hosts.Server, text, args, func(line []byte) {
		var l Listening
		if json.Unmarshal(line, &l) == nil && l.Listening.IsValid() {
			once.Do(func() { close(listening) })
		}
	}); err != nil {
		return err
	}
	select {
	case <-listening:
	case <-r.server.process.Done():
		return r.server.awaitEnd()
	case <-ctx.Done():
		return ctx.Err()
	}
	begin := time.Now().Add(leadIn + time.Duration(len(hosts.Workers))*leadInOne).Format(time.RFC3339Nano)
	for k := range hosts.Workers {
		args := append([]string{"worker", "--worker", strconv.Itoa(k), "--listen", at(hosts.Workers[k].Address),
			"--server", at(hosts.Server.Address), "--start", begin}, common...)
		w, err := r.launch(&hosts.Workers[k], text, append(args, controlArgs(r.config)...), func(line []byte) { r.recordUpdate(k, line) })
		if err != nil {
			return err
		}
		r.workers = append(r.workers, w)
	}
	return nil
}

// recordUpdate records the update that worker k printed as line.
func (r *run) recordUpdate(k int, line []byte) {
	var v Vector
	if json.Unmarshal(line, &v) != nil || v.Vector == nil { // the line is the report
		return
	}
	p := rl.Point{AtNS: v.AtNS, Reward: v.Reward}
	r.out.Curves[k] = append(r.out.Curves[k], p)
	if r.OnUpdate != nil {
		r.OnUpdate(k, p)
	}
}

// child is a program on a host and the lines that it printed. The last line is its report.
type child struct {
	name    string
	process testbed.Process
	lines   sync.WaitGroup
	last    []byte
	errors  bytes.Buffer
}

func (r *run) launch(h *testbed.Node, stdin []byte, args []string, line func([]byte)) (*child, error) {
	return launch(h.Start, args[0]+" on "+h.Address.String(), r.Command(args...), stdin, line)
}

// launch starts a program and passes every line that it prints to line.
func launch(start func(*exec.Cmd) (testbed.Process, error), name string, cmd *exec.Cmd, stdin []byte,
	line func([]byte)) (*child, error) {
	k := &child{name: name}
	cmd.Stdin, cmd.Stderr = bytes.NewReader(stdin), &k.errors
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = write
	k.process, err = start(cmd)
	_ = write.Close() // the program has its own copy
	if err != nil {
		return nil, errors.Join(err, read.Close())
	}
	k.lines.Go(func() {
		defer read.Close()
		for s := bufio.NewScanner(read); s.Scan(); {
			k.last = append(k.last[:0], s.Bytes()...)
			line(k.last)
		}
	})
	return k, nil
}

// awaitEnd waits for the program to end. It returns the reason if the program failed.
func (k *child) awaitEnd() error {
	err := k.process.Wait()
	k.lines.Wait()
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrHost, k.name, process.Ended(err, k.errors.Bytes()))
	}
	return nil
}

// report waits for the program to end and decodes the last line that it printed.
func (k *child) report(ctx context.Context, into any) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-k.process.Done():
	}
	if err := k.awaitEnd(); err != nil {
		return err
	}
	if err := json.Unmarshal(k.last, into); err != nil {
		return fmt.Errorf("%w: %s: no report: %w", ErrHost, k.name, err)
	}
	return nil
}

// look is the interval at which the device's log is read while workers train.
const look = 20 * olaf.Millisecond

// watch waits until all workers have ended. It returns an error if the server ends before them.
func (r *run) watch(ctx context.Context) error {
	for left := len(r.workers); left > 0; {
		if err := r.device.Sleep(ctx, look); err != nil {
			return err
		}
		left = 0
		for _, w := range r.workers {
			select {
			case <-w.process.Done():
				if err := w.awaitEnd(); err != nil {
					return err
				}
			default:
				left++
			}
		}
		select {
		case <-r.server.process.Done():
			return errors.Join(fmt.Errorf("%w: %s", ErrHost, r.server.name), r.server.awaitEnd())
		default:
		}
	}
	r.out.Workers = make([]WorkerReport, len(r.workers))
	for k, w := range r.workers {
		if err := w.report(ctx, &r.out.Workers[k]); err != nil {
			return err
		}
	}
	return nil
}

// onTheWay is the longest time that the last packets from the queue may take to reach the server.
const onTheWay = 200 * olaf.Millisecond

// end lets the queue drain and asks the server for its report.
func (r *run) end(ctx context.Context) error {
	if err := fpga.DrainQueue(ctx, r.device); err != nil {
		return err
	}
	if err := r.device.Sleep(ctx, onTheWay); err != nil {
		return err
	}
	if err := r.server.process.Signal(os.Interrupt); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrHost, r.server.name, err)
	}
	if err := r.server.report(ctx, &r.out.Server); err != nil {
		return err
	}
	return r.count()
}

// count reads the device's counters, decisions, pacing and faults.
func (r *run) count() error {
	o := r.out
	var err error
	if o.Queue, err = queueCounts(r.device); err != nil {
		return err
	}
	if w, ok := r.device.(witness); ok {
		if o.Decisions, err = w.Decisions(); err != nil {
			return err
		}
		o.Pacing, o.Invalid = w.Pacing(), w.Faults()
	}
	return nil
}

// queueCounts returns the counts of a device's queue.
func queueCounts(d fpga.Device) (map[string]uint64, error) {
	counters, err := fpga.Snapshot(d)
	if err != nil {
		return nil, err
	}
	q := &counters.Queue
	counts := map[string]uint64{
		"in": q.In, "appended": q.Appended, "aggregated": q.Aggregated, "replaced": q.Replaced,
		"dropped":          q.DroppedFull + q.DroppedMismatch,
		"delivered_frames": q.DeliveredFrames, "delivered_updates": q.DeliveredUpdates, "queued": q.QueuedFrames,
		"lane_saturations": q.LaneSaturations,
		"bypassed":         q.Bypassed, "malformed": q.Malformed, "misidentified": q.Misidentified,
		"lost_before_engine": q.LostBeforeEngine,
	}
	if by := q.ReplacedReward + q.DroppedReward; by > 0 { // the reward filter is on
		counts["replaced_reward"], counts["dropped_reward"] = q.ReplacedReward, q.DroppedReward
		counts["discarded_updates"] = q.DiscardedUpdates
	}
	return counts, nil
}

// judge checks the accounting identities of the run.
func (r *run) judge() error {
	o, q := r.out, r.out.Queue
	var sent, vectors uint64
	for i := range o.Workers {
		sent += uint64(o.Workers[i].Packets)
		vectors += o.Workers[i].Counts["vectors_computed"]
	}
	hold := func(name string, left, right uint64) { o.Checks = append(o.Checks, Check{name, left, right}) }
	told := 0
	for _, c := range o.Curves {
		told += len(c)
	}
	hold("updates that workers told of = iterations × workers", uint64(told),
		uint64(r.config.Iterations*r.config.Workers))
	hold("gradients that workers computed = iterations × workers", vectors,
		uint64(r.config.Iterations*r.config.Workers))
	hold("packets that workers sent = packets that the queue decided about", sent, q["in"])
	hold("packets that the queue delivered = packets at the server", q["delivered_frames"],
		o.Server.Counts["packets_received"])
	kept := q["appended"] + q["aggregated"] // each replacement discards one update
	if _, filters := q["discarded_updates"]; filters {
		kept += q["replaced"] + q["replaced_reward"] - q["discarded_updates"]
	}
	hold("updates in packets that the queue delivered = updates that it took and did not replace",
		q["delivered_updates"]+q["queued"], kept)
	hold("packets of strangers, broken, or lost before the queue = 0",
		q["malformed"]+q["misidentified"]+q["lost_before_engine"], 0)
	for i := range o.Checks {
		if c := &o.Checks[i]; !c.Holds() {
			o.Invalid = append(o.Invalid, fmt.Sprintf("%s: %d, %d", c.Name, c.Left, c.Right))
		}
	}
	if d := o.Decisions; d != nil && (d.Void != "" || d.Differ()) {
		o.Invalid = append(o.Invalid, fmt.Sprintf("%d of %d decisions are the engine's; %s%s", d.Equal, d.Checked,
			d.First, d.Void))
	}
	if why := o.divergence(); why != "" {
		o.Invalid = append(o.Invalid, why)
	}
	return errors.Join(olaf.Map(o.Invalid, func(why string) error { return fmt.Errorf("%w: %s", ErrInvalid, why) })...)
}

// divergence returns the reason why the training diverged, or "" if it did not.
func (o *Outcome) divergence() string {
	for i := range o.Workers {
		if why := o.Workers[i].Diverged; why != "" {
			return why
		}
	}
	return o.Server.Diverged
}

// kill ends all running programs.
func (r *run) kill() {
	for _, k := range append(r.workers, r.server) {
		if k == nil {
			continue
		}
		_ = k.process.Signal(os.Kill) // most have ended already
		<-k.process.Done()
		k.lines.Wait()
	}
}
