package lab

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/realtime"
	"github.com/olafctl/olaf/fpga/xdp"
)

// queue is a switch that stands, and the programs on the hosts around it.
type queue struct {
	mu       sync.Mutex // of the card
	card     *realtime.Card
	programs []*hosted
	stop     context.CancelFunc
	followed chan struct{}
	failed   error // of the card
}

// hosted is a program on a host.
type hosted struct {
	name    string
	process *netlab.Process
	said    bytes.Buffer // on stderr
}

// raise makes a plan with a queue.
func (l *Lab) raise(o Options) error {
	s := l.Switch
	workers := l.Workers()
	card, err := realtime.Open(realtime.Kernel(xdp.Mode(s.Mode)), realtime.Hosts{Workers: len(workers)})
	if err != nil {
		return err
	}
	q := &queue{card: card, followed: make(chan struct{})}
	ctx, stop := context.WithCancel(context.Background())
	l.queue, q.stop = q, stop
	go q.follow(ctx)
	var senders []xdp.Sender
	for number, node := range workers {
		at, address := card.Worker(number)
		l.Nodes[node], l.Cables[l.Plan.Nodes[node].Up] = at.Node, &netlab.Cable{A: at}
		senders = append(senders, xdp.Sender{Address: address, Cluster: olaf.ClusterID(l.Plan.Nodes[node].Cluster), Worker: olaf.WorkerID(number)})
	}
	l.Nodes[l.Server()], l.Cables[l.Plan.Nodes[s.Node].Up] = card.Server().Node, &netlab.Cable{B: card.Server()}
	if err := l.fits(card.Carry()); err != nil {
		return err
	}
	rate, err := engine.FromRate(s.OutRate)
	if err != nil {
		return err
	}
	q.mu.Lock()
	err = card.SetSenders(senders)
	if err == nil {
		err = fpga.ConfigureQueue(ctx, card, fpga.QueueConfig{Discipline: s.System, Depth: s.Slots, Output: engine.Output{Rate: rate}})
	}
	if err == nil {
		err = fpga.ClearCounters(card)
	}
	q.mu.Unlock()
	if err != nil || o.Command == nil {
		return err
	}
	return l.host(o.Command)
}

// update is what one takes on the wire.
func (l *Lab) update() int64 { return olaf.FrameSize(l.Lanes).Bits() }

// fits refuses what this machine does not carry in time: half of what it carried when the testbed was opened.
func (l *Lab) fits(carried int64) error {
	var offered olaf.Rate
	for _, node := range l.Workers() {
		offered += l.Plan.Nodes[node].Rate
	}
	limit := olaf.Rate(carried / 2 * l.update())
	if asked := max(offered, l.Switch.OutRate); asked > limit {
		return fmt.Errorf("%w: this machine carried %d frames a second when it was measured, and keeps time at half of it; the testbed asks for %v, and %v is what fits",
			fpga.ErrRefused, carried, asked, limit)
	}
	return nil
}

// host starts the server, and the workers that send.
func (l *Lab) host(command func(args ...string) *exec.Cmd) error {
	s := l.Switch
	common := []string{"--system", s.System, "--lanes", strconv.Itoa(l.Lanes)}
	at := func(a netip.Addr) string { return netip.AddrPortFrom(a, olaf.UDPPort).String() }
	server := at(l.Plan.Cables[l.Plan.Nodes[s.Node].Up].Upper)
	serve := append([]string{"ps", "--id", "0", "--listen", server, "--clusters", strconv.Itoa(s.Clusters)}, common...)
	sends := false
	for _, node := range l.Workers() {
		serve = append(serve, "--worker", at(l.Plan.Cables[l.Plan.Nodes[node].Up].Lower))
		sends = sends || l.Plan.Nodes[node].Rate > 0
	}
	if !sends {
		return nil
	}
	if err := l.start(l.Server(), command(serve...)); err != nil {
		return err
	}
	for number, node := range l.Workers() {
		n := &l.Plan.Nodes[node]
		if n.Rate == 0 {
			continue
		}
		every := time.Duration(float64(l.update()) / float64(n.Rate) * float64(time.Second))
		args := append([]string{"worker", "--id", strconv.Itoa(n.Cluster), "--worker", strconv.Itoa(number), "--listen", at(l.Plan.Cables[n.Up].Lower), "--server", server,
			"--every", every.String(), "--vectors", strconv.Itoa(endless), "--tc", time.Duration(n.TC / olaf.Nanosecond).String()}, common...)
		if err := l.start(node, command(args...)); err != nil {
			return err
		}
	}
	return nil
}

// endless is as many updates as a worker can count.
const endless = 1<<32 - 1

func (l *Lab) start(node int, cmd *exec.Cmd) (err error) {
	h := &hosted{name: l.nameOf(node)}
	cmd.Stderr = &h.said
	if h.process, err = l.Nodes[node].Start(cmd); err == nil {
		l.queue.programs = append(l.queue.programs, h)
	}
	return err
}

// followEvery is how often what the program decided is taken up.
const followEvery = 100 * time.Millisecond

// follow takes up the log of decisions as long as the testbed stands.
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

// counts are what the queue counted since the testbed stands, and how many of its decisions are the engine's.
func (q *queue) counts() (map[string]uint64, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c, err := fpga.Snapshot(q.card)
	if err != nil {
		return nil, err
	}
	k := &c.Queue
	counts := map[string]uint64{
		"in": k.In, "appended": k.Appended, "aggregated": k.Aggregated, "replaced": k.Replaced, "dropped_full": k.DroppedFull, "dropped_mismatch": k.DroppedMismatch,
		"delivered_frames": k.DeliveredFrames, "delivered_updates": k.DeliveredUpdates, "queued_frames": k.QueuedFrames,
		"bypassed": k.Bypassed, "malformed": k.Malformed, "misidentified": k.Misidentified, "lost_before_engine": k.LostBeforeEngine,
	}
	d, err := q.card.Decisions()
	if d != nil && d.Void == "" {
		counts["decisions_checked"], counts["decisions_equal"] = uint64(d.Checked), uint64(d.Equal)
	}
	return counts, err
}

// reason is what a program that ended said, and by what error.
func (h *hosted) reason() (text string) {
	if err := h.process.Wait(); err != nil {
		text = ": " + err.Error()
	}
	if said := bytes.TrimSpace(h.said.Bytes()); len(said) > 0 {
		text += ": " + string(said)
	}
	return text
}

// faults are what is not as it was made, and programs that ended.
func (q *queue) faults() (faults []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, err := range []error{q.failed, q.card.Attached()} {
		if err != nil {
			faults = append(faults, err.Error())
		}
	}
	for _, h := range q.programs {
		select {
		case <-h.process.Done():
			faults = append(faults, "the program on "+h.name+" ended"+h.reason())
		default:
		}
	}
	return faults
}

// Close ends everything: programs end with their namespaces.
func (q *queue) Close() error {
	q.stop()
	<-q.followed
	return q.card.Close()
}
