package lab

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/testbed/testbedtest"
	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/pktgen/endpoint"
	"github.com/olafctl/olaf/pktgen/process"
)

// hand runs a job step by step on a testbed: its workers and its server are started, killed and restarted one by one.
type hand struct {
	*Lab
	job    process.Job
	ticket uint32
	adopts time.Duration          // silence after which the server takes over the workers; 0 means never
	slow   time.Duration          // time of a vector after which it does the same; 0 means never
	line   olaf.Rate              // of the workers; 0 means that they do not ask for rates
	served *process.StationReport // of the server, after it was killed
}

// played is the result of a worker.
type played struct {
	*timed
	err error
}

// timed adds the time at which each sum was complete.
type timed struct {
	sums *process.Sums
	ends []time.Time // by vector
}

// Compute implements process.Work.
func (w *timed) Compute(ctx context.Context, vector uint32) process.Computed {
	return w.sums.Compute(ctx, vector)
}

// Apply implements process.Work.
func (w *timed) Apply(a *endpoint.Aggregate) {
	w.sums.Apply(a)
	for len(w.ends) <= int(a.Number) {
		w.ends = append(w.ends, time.Time{})
	}
	w.ends[a.Number] = time.Now()
}

func port(a netip.Addr) netip.AddrPort { return netip.AddrPortFrom(a, olaf.UDPPort) }

func (h *hand) above(node int) *PlannedCable { return &h.Plan.Cables[h.Plan.Nodes[node].Up] }

// serve starts the server and returns a function that kills it.
func (h *hand) serve(t *testing.T) (kill func()) {
	t.Helper()
	top := h.above(h.Adders[len(h.Adders)-1].Planned.Node)
	c := process.RootConfig{Job: h.job, Group: h.Group, Agent: port(top.Lower), Codec: &frame.Datagrams{Format: frame.XAgg}, Adopt: h.adopts, Slow: h.slow}
	for _, node := range h.Workers() {
		c.Workers = append(c.Workers, port(h.above(node).Lower))
	}
	root, err := process.NewRoot(c)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := h.Nodes[h.Server()].Datagrams(port(top.Upper))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		report, err := root.Run(ctx, conn)
		h.served = report
		ended <- err
	}()
	return func() {
		stop()
		if err := errors.Join(<-ended, conn.Close()); err != nil {
			t.Error(err)
		}
	}
}

// work starts a worker and calls at with its socket after the given number of packets. Closing the socket kills the
// worker.
func (h *hand) work(t *testing.T, number, packets int, at func(*net.UDPConn)) <-chan played {
	t.Helper()
	node := h.Workers()[number]
	conn, err := h.Nodes[node].Datagrams(port(h.above(node).Lower))
	if err != nil {
		t.Fatal(err)
	}
	above := port(h.above(node).Upper)
	sums := &timed{sums: &process.Sums{Job: h.job, Worker: olaf.WorkerID(number)}}
	p := &process.Player{
		Codec: &frame.Datagrams{Format: frame.XAgg, Results: true}, Work: sums, Patience: 4 * time.Second, To: func(endpoint.Peer, *program.Packet) netip.AddrPort { return above },
		Sent: func(*program.Packet) {
			if packets--; packets == 0 {
				at(conn)
			}
		},
	}
	if h.adopts > 0 || h.slow > 0 {
		p.Above = port(h.above(h.Adders[len(h.Adders)-1].Planned.Node).Upper)
	}
	cfg := endpoint.Config{Job: h.job.ID, Worker: sums.sums.Worker, Workers: h.job.Workers, Layout: h.job.Layout(), Updates: uint32(h.job.Vectors), Line: h.line}
	h.ticket++
	x := endpoint.XAgg{Timeout: 20 * olaf.Millisecond, Ticket: h.ticket, Overhead: frame.XAgg.Size(0)}
	if !h.Adders[0].runsInKernel() {
		x.Ticket = 0 // no epochs are assigned in user space
	}
	ended := make(chan played, 1)
	go func() {
		_, err := p.Run(t.Context(), conn, func(host endpoint.Host) (endpoint.Endpoint, error) { return endpoint.NewXAgg(cfg, x, host) })
		_ = conn.Close() // it may be closed already
		ended <- played{sums, err}
	}()
	return ended
}

// whole runs a job with all workers, checks every value of every sum, and returns the workers' results.
func (h *hand) whole(t *testing.T, began ...<-chan played) (all []played) {
	t.Helper()
	for number := len(began); number < h.job.Workers; number++ {
		began = append(began, h.work(t, number, 0, nil))
	}
	for i, w := range began {
		p := <-w
		if p.err != nil || p.sums.Wrong > 0 || p.sums.Checked != h.job.Vectors*h.job.Values {
			t.Errorf("worker %d of the next job: %+v, %v", i, p.sums, p.err)
		}
		all = append(all, p)
	}
	return all
}

// slowestTimes returns the slowest worker's time for each vector after the first.
func slowestTimes(all []played) (took []time.Duration) {
	for _, p := range all {
		for v := 1; v < len(p.ends); v++ {
			if v > len(took) {
				took = append(took, 0)
			}
			took[v-1] = max(took[v-1], p.ends[v].Sub(p.ends[v-1]))
		}
	}
	return took
}

// stalled checks that a worker gave up and had no wrong sums.
func stalled(t *testing.T, who string, w <-chan played) {
	t.Helper()
	if p := <-w; !errors.Is(p.err, process.ErrStalled) || p.sums.Wrong > 0 {
		t.Errorf("%s: %+v, %v", who, p.sums, p.err)
	}
}

// superseded checks that a worker gave up because another one of its job was restarted, before its patience ended.
func superseded(t *testing.T, who string, w <-chan played) {
	t.Helper()
	if p := <-w; !errors.Is(p.err, process.ErrStalled) || !strings.Contains(p.err.Error(), "another worker of it was started anew") || p.sums.Wrong > 0 {
		t.Errorf("%s: %+v, %v", who, p.sums, p.err)
	}
}

// killed ends a worker without notice.
func killed(at *net.UDPConn) { _ = at.Close() }

// dead checks that a worker was killed before its job was over.
func dead(t *testing.T, w <-chan played) {
	t.Helper()
	if p := <-w; !errors.Is(p.err, net.ErrClosed) || p.sums.Wrong > 0 {
		t.Errorf("who was killed: %+v, %v", p.sums, p.err)
	}
}

// TestRestartDuringAJob checks that if a worker or the server is killed and restarted in the middle of a job, no worker
// waits for ever, no sum is wrong, and the next job of all workers is complete on the same testbed.
func TestRestartDuringAJob(t *testing.T) {
	job := process.Job{ID: 1, Workers: 3, Values: 20 * 8, Lanes: 8, Vectors: 20}
	const some = 150 // packets out of 20 per vector
	bed := func(t *testing.T) *hand {
		return &hand{Lab: up(t, "tree: {workers: 3, children: 2}\njob: {lanes: 8, fragments: 20}"), job: job}
	}
	t.Run("worker", func(t *testing.T) {
		h := bed(t)
		defer h.serve(t)()
		first := []<-chan played{h.work(t, 0, 0, nil), h.work(t, 1, some, killed), h.work(t, 2, 0, nil)}
		dead(t, first[1])
		anew := h.work(t, 1, 0, nil)
		superseded(t, "who was there before", first[0])
		superseded(t, "who was there before", first[2])
		stalled(t, "who was started anew", anew)
		h.whole(t)
	})
	t.Run("worker that the others join", func(t *testing.T) {
		h := bed(t)
		defer h.serve(t)()
		for number := range job.Workers {
			dead(t, h.work(t, number, 3, killed)) // each starts alone and gets no sum
		}
		waits := make(chan struct{})
		alone := h.work(t, 0, job.Packets()+1, func(*net.UDPConn) { close(waits) }) // sends its request and most of a vector
		<-waits
		dead(t, h.work(t, 1, 3, killed)) // joins and leaves
		h.whole(t, alone)
	})
	t.Run("server", func(t *testing.T) {
		h := bed(t)
		kill := h.serve(t)
		gone := make(chan struct{})
		first := []<-chan played{h.work(t, 0, some, func(*net.UDPConn) { kill(); close(gone) }), h.work(t, 1, 0, nil), h.work(t, 2, 0, nil)}
		<-gone
		for _, w := range first {
			stalled(t, "without a server", w)
		}
		defer h.serve(t)()
		h.whole(t)
	})
	t.Run("server of a job that goes on", func(t *testing.T) {
		h := bed(t)
		kill := h.serve(t)
		gone := make(chan struct{})
		first := []<-chan played{h.work(t, 0, some, func(*net.UDPConn) { kill(); close(gone) }), h.work(t, 1, 0, nil), h.work(t, 2, 0, nil)}
		<-gone
		defer h.serve(t)()
		for _, w := range first { // a worker may stall: a sum that only others received is lost with the server
			if p := <-w; p.err != nil && !errors.Is(p.err, process.ErrStalled) || p.sums.Wrong > 0 {
				t.Errorf("%+v, %v", p.sums, p.err)
			}
		}
		h.whole(t)
	})
}

// TestProgramOff checks that the agent stops answering if the program is detached during a job, so that workers end
// instead of waiting for sums that are never made.
func TestProgramOff(t *testing.T) {
	h := &hand{Lab: up(t, "tree: {workers: 2}\njob: {lanes: 8, fragments: 20}"), job: process.Job{ID: 1, Workers: 2, Values: 20 * 8, Lanes: 8, Vectors: 10_000}}
	defer h.serve(t)()
	first := []<-chan played{h.work(t, 0, 150, func(*net.UDPConn) {
		if err := testbedtest.DetachPrograms("arrive"); err != nil {
			t.Error(err)
		}
	}), h.work(t, 1, 0, nil)}
	for _, w := range first {
		stalled(t, "without the program", w)
	}
	if faults := strings.Join(h.Faults(), "; "); !strings.Contains(faults, "to the agent of s0, past its program") {
		t.Errorf("%q", faults)
	}
}

// TestTreeChanges checks that if the programs are detached during a job whose server takes over the workers, the
// workers become the server's children over the same cables and finish the job in another epoch. Every sum is exact,
// from the kernel and from the server.
func TestTreeChanges(t *testing.T) {
	for _, tree := range []string{"{workers: 2}", "{workers: 3, children: 2}"} {
		h := &hand{Lab: up(t, "tree: "+tree+"\njob: {lanes: 8, fragments: 20}"), adopts: 200 * time.Millisecond}
		h.job = process.Job{ID: 1, Workers: len(h.Workers()), Values: 20 * 8, Lanes: 8, Vectors: 60}
		kill := h.serve(t)
		first := []<-chan played{h.work(t, 0, 20*20, func(*net.UDPConn) {
			if err := testbedtest.DetachPrograms("arrive"); err != nil {
				t.Error(err)
			}
		})}
		h.whole(t, first...)
		kill()
		counted, err := h.Adders[len(h.Adders)-1].Latch()
		if err != nil {
			t.Fatal(err)
		}
		kernel := counted["completed"]
		own, all := h.served.Counts["completed"], uint64(h.job.Vectors*h.job.Packets())
		if !h.served.Adopted || kernel == 0 || kernel >= all || own < all || h.served.Counts["consumed"] == 0 {
			t.Errorf("%s: %+v; the kernel completed %d of %d", tree, h.served, kernel, all)
		}
	}
}

// TestTreeChangesByLoad checks an aggregator, in user space and in the kernel, with a small share of its link. The
// server takes over its workers after a vector that took too long, and their next vectors bypass the loaded program.
// Every sum is exact. Afterwards, the slowest worker needs less than a quarter of the time for a vector, and the job
// ends in less than three quarters of its time without the change.
func TestTreeChangesByLoad(t *testing.T) {
	able(t)
	for _, mode := range []string{User, Generic, Native} {
		t.Run(mode, func(t *testing.T) {
			stays, moves := slowestTimes(loadedJob(t, mode, 0)), slowestTimes(loadedJob(t, mode, 100*time.Millisecond))
			first, last := stays[len(stays)-1], moves[len(moves)-1]
			before, after := sumDurations(stays), sumDurations(moves)
			t.Logf("through an aggregator with 2 Mbps left, the slowest worker takes %v for the last vector and %v for all; if it "+
				"moves after a slow vector, %v and %v", first.Round(time.Millisecond), before.Round(time.Millisecond),
				last.Round(time.Millisecond), after.Round(time.Millisecond))
			if last > first/4 || after > before*3/4 {
				t.Errorf("a vector took %v with a move and %v without, all vectors %v and %v", last, first, after, before)
			}
		})
	}
}

func sumDurations(all []time.Duration) (sum time.Duration) {
	for _, d := range all {
		sum += d
	}
	return sum
}

// loadedJob runs a job through a loaded aggregator and returns its workers' results; slow is that of process.RootConfig.
func loadedJob(t *testing.T, mode string, slow time.Duration) []played {
	t.Helper()
	p := plan(t, "tree: {workers: 2, mode: generic, rate: 2Mbps}\njob: {lanes: 64, fragments: 100}")
	p.Adders[0].Mode = mode
	l, err := Up(p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := &hand{Lab: l, slow: slow, line: 100 * olaf.Mbps}
	h.job = process.Job{ID: 1, Workers: 2, Values: 100 * 64, Lanes: 64, Vectors: 10}
	kill := h.serve(t)
	players := h.whole(t)
	kill()
	counted, err := l.Adders[0].Latch()
	if err != nil {
		t.Fatal(err)
	}
	all := uint64(h.job.Vectors * h.job.Packets())
	if sums := counted["completed"]; h.served.Adopted != (slow > 0) || sums == 0 || (sums < all) != (slow > 0) {
		t.Errorf("slow is %v: the loaded program completed %d of %d sums; the server: %+v", slow, sums, all, h.served)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	return players
}
