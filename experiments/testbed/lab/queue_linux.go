package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/realtime"
	"github.com/olafctl/olaf/fpga/xdp"
)

// queue is a running switch with a queue.
type queue struct {
	mu       sync.Mutex // guards the card
	card     *realtime.Card
	stop     context.CancelFunc
	followed chan struct{}
	failed   error // the card's error
}

// hosted is a program that runs on a host.
type hosted struct {
	name    string
	process *netlab.Process
	stderr  bytes.Buffer // stderr
}

// raise builds the switch's part of a testbed whose plan has a queue.
func (l *Lab) raise(o Options) error {
	s := l.Switch
	workers := l.Workers()
	outside, err := l.outside()
	if err != nil {
		return err
	}
	card, err := realtime.Open(xdp.NewBackend(dataplane.Mode(s.Mode)),
		realtime.Hosts{Workers: len(workers), Addresses: s.frames(), Outside: outside, Wires: l.wires()})
	if err != nil {
		return err
	}
	q := &queue{card: card, followed: make(chan struct{})}
	ctx, stop := context.WithCancel(context.Background())
	l.queue, q.stop = q, stop
	go q.follow(ctx)
	senders := l.around(card)
	for i, c := range l.Cables {
		if err := errors.Join(wide(c.A, l.Plan.Cables[i].MTU), wide(c.B, l.Plan.Cables[i].MTU)); err != nil {
			return err
		}
	}
	if err := l.fits(card.Carry()); err != nil {
		return err
	}
	rate, err := engine.FromRate(s.OutRate)
	if err != nil {
		return err
	}
	err = q.configure(ctx, senders, fpga.QueueConfig{Discipline: s.System, Depth: s.Slots * s.frames(), Output: engine.Output{Rate: rate}})
	if err != nil || o.Command == nil {
		return err
	}
	return l.host(o.Command)
}

// around records the nodes and cables around a running card, and returns the card's senders.
func (l *Lab) around(card *realtime.Card) (senders []dataplane.Sender) {
	workers := l.Workers()
	for number, node := range workers {
		n := &l.Plan.Nodes[node]
		cable := &netlab.Cable{B: card.Hub(number)}
		if n.Device == "" && l.isHere(node) {
			cable.A, _ = card.Worker(number)
			l.Nodes[node] = cable.A.Node
		}
		l.Cables[n.Up] = cable
		address, frames := l.Plan.Cables[n.Up].Lower, l.Switch.frames()
		for place := range frames {
			senders = append(senders, dataplane.Sender{Address: address, Cluster: olaf.ClusterID(n.Cluster*frames + place),
				Worker: olaf.WorkerID(number)})
			address = address.Next()
		}
	}
	up := &netlab.Cable{A: card.Hub(len(workers)), B: card.Server()}
	if l.Cables[l.Plan.Nodes[l.Switch.Node].Up] = up; up.B != nil {
		l.Nodes[l.Server()] = up.B.Node
	}
	return senders
}

// configure sets the senders and the queue of the card, and clears its counters.
func (q *queue) configure(ctx context.Context, senders []dataplane.Sender, c fpga.QueueConfig) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.card.SetSenders(senders); err != nil {
		return err
	}
	return fpga.ConfigureQueue(ctx, q.card, c)
}

// frame returns the size in bits of a frame on the wire.
func (l *Lab) frame() int64 { return olaf.FrameSize(l.Lanes).Bits() }

// fits rejects a testbed that needs more than half of the load that this machine was measured to carry when the testbed
// was opened.
func (l *Lab) fits(carried int64) error {
	var offered olaf.Rate
	for _, node := range l.Workers() {
		offered += l.Plan.Nodes[node].Rate
	}
	limit := olaf.Rate(carried / 2 * l.frame())
	if asked := max(offered, l.Switch.OutRate); asked > limit {
		return fmt.Errorf("%w: this machine carried %d frames a second when it was measured, and at most half of "+
			"that is accepted; the testbed asks for %v, and %v is what fits",
			fpga.ErrRefused, carried, asked, limit)
	}
	return nil
}

// outside returns the hosts at the switch that are behind interfaces of this machine, by number.
func (l *Lab) outside() (map[int]realtime.Outside, error) {
	all := map[int]realtime.Outside{}
	for number, node := range append(l.Workers(), l.Server()) {
		n := &l.Plan.Nodes[node]
		if n.Device == "" && l.isHere(node) {
			continue
		}
		at, mac := realtime.Outside{Interface: n.Device, Virtual: n.Virtual}, n.MAC
		if n.Role == Worker {
			c := &l.Plan.Cables[n.Up]
			if at.Hub = netip.PrefixFrom(c.Upper, netBits); n.Device == "" {
				at.Interface, at.Virtual = c.Ends.Parent, c.Ends.Virtual
			}
			all[number] = at
			continue
		}
		c := &l.Plan.Cables[n.Down[0]]
		if n.Device == "" {
			at.Interface, at.Virtual, mac = c.Ends.Child, c.Ends.Virtual, c.Ends.ParentMAC
		}
		var err error
		if at.MAC, err = net.ParseMAC(mac); err != nil {
			return nil, fmt.Errorf("%w: %s has the MAC %q", ErrFile, n.Name, mac)
		}
		at.Hub = netip.PrefixFrom(c.Lower, netBits)
		all[number] = at
	}
	return all, nil
}

// wires returns the cables at the switch that connect interfaces of this machine, by the number of the host. The
// server's number follows those of the workers.
func (l *Lab) wires() map[int]realtime.Wire {
	all := map[int]realtime.Wire{}
	for _, w := range l.HostWires() {
		if !l.isHere(w.Node) {
			continue
		}
		number := l.Plan.Nodes[w.Node].Number
		if w.Node == l.Server() {
			number = len(l.Workers())
		}
		all[number] = realtime.Wire{Host: w.Host, Hub: w.Hub, Virtual: w.Virtual}
	}
	return all
}

// host starts the programs of the sending workers in namespaces and of the server. The server is also started if any
// worker is behind an interface.
func (l *Lab) host(command func(args ...string) *exec.Cmd) error {
	answers := false
	for _, node := range l.Workers() {
		n := &l.Plan.Nodes[node]
		answers = answers || n.Rate > 0 || n.Device != ""
	}
	if server := l.Server(); answers && l.Nodes[server] != nil {
		if err := l.start(server, command(l.hostArgs(server)...)); err != nil {
			return err
		}
	}
	for _, node := range l.Workers() {
		n := &l.Plan.Nodes[node]
		if n.Rate == 0 || l.Nodes[node] == nil {
			continue
		}
		every := time.Duration(float64(l.frame()*int64(l.Switch.frames())) / float64(n.Rate) * float64(time.Second))
		args := append(l.hostArgs(node), "--every", every.String(), "--vectors", strconv.Itoa(endless), "--tc",
			time.Duration(n.TC/olaf.Nanosecond).String())
		if err := l.start(node, command(args...)); err != nil {
			return err
		}
	}
	return nil
}

// endless is the maximum number of updates that a worker can send.
const endless = 1<<32 - 1

func (l *Lab) start(node int, cmd *exec.Cmd) (err error) {
	h := &hosted{name: l.nameOf(node)}
	cmd.Stderr = &h.stderr
	if h.process, err = l.Nodes[node].Start(cmd); err == nil {
		l.programs = append(l.programs, h)
	}
	return err
}

// followEvery is the interval at which the log of the kernel program's decisions is read.
const followEvery = 100 * time.Millisecond

// follow reads the log of the kernel program's decisions as long as the testbed is up.
func (q *queue) follow(ctx context.Context) {
	defer close(q.followed)
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			q.mu.Lock()
			if err := q.card.Sleep(ctx, 0); err != nil && ctx.Err() == nil && q.failed == nil {
				q.failed = err
			}
			q.mu.Unlock()
		}
	}
}

// counts returns the queue's counters since its start. They include the number of decisions that agree with the
// engine's.
func (q *queue) counts() (map[string]uint64, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c, err := fpga.Snapshot(q.card)
	if err != nil {
		return nil, err
	}
	k := &c.Queue
	counts := map[string]uint64{
		"in": k.In, "appended": k.Appended, "aggregated": k.Aggregated, "replaced": k.Replaced,
		"dropped_full": k.DroppedFull, "dropped_mismatch": k.DroppedMismatch,
		"delivered_frames": k.DeliveredFrames, "delivered_updates": k.DeliveredUpdates, "queued_frames": k.QueuedFrames,
		"bypassed": k.Bypassed, "malformed": k.Malformed, "misidentified": k.Misidentified, "lost_before_engine": k.LostBeforeEngine,
	}
	d, err := q.card.Decisions()
	if d != nil { // all decisions read so far are checked, except the last few while traffic continues
		counts["decisions_checked"], counts["decisions_equal"] = uint64(d.Checked), uint64(d.Equal)
	}
	if n := q.card.Unlogged(); n > 0 {
		counts["decisions_unlogged"] = n
	}
	return counts, err
}

// reason describes why a program ended, including its output.
func (h *hosted) reason() (text string) {
	if err := h.process.Wait(); err != nil {
		text = ": " + err.Error()
	}
	if output := bytes.TrimSpace(h.stderr.Bytes()); len(output) > 0 {
		text += ": " + string(output)
	}
	return text
}

// faults describes why the card failed, and a program that was detached from its interface or replaced.
func (q *queue) faults() (faults []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, err := range []error{q.failed, q.card.CheckAttached()} {
		if err != nil {
			faults = append(faults, err.Error())
		}
	}
	return faults
}

// programFaults describes the programs that have ended.
func (l *Lab) programFaults() (faults []string) {
	for _, h := range l.programs {
		select {
		case <-h.process.Done():
			faults = append(faults, "the program on "+h.name+" ended"+h.reason())
		default:
		}
	}
	return faults
}

// Close removes the switch and its namespaces. The programs end with their namespaces.
func (q *queue) Close() error {
	q.stop()
	<-q.followed
	return q.card.Close()
}
