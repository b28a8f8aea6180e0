package process

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/xagg"
	"github.com/olafctl/olaf/internal/splitmix"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// plain is the simplest codec: it writes all fields of a packet and its lanes.
type plain struct {
	results bool
	lanes   []uint32
}

// packet is a packet as written by plain.
type packet struct {
	Seg, Bitmap, Value uint64
	Job                olaf.ClusterID
	Worker             olaf.WorkerID
	Count, Round       uint16
	Lanes              uint16
	Kind, Action       uint8
}

func (c *plain) Encode(dst []byte, p *program.Packet, lanes []uint32, _ int32, _ uint64) ([]byte, error) {
	b := bytes.NewBuffer(dst[:0])
	w := packet{p.Seg, p.Bitmap, p.Value, p.Job, p.Worker, p.Count, p.Round, p.Lanes, uint8(p.Kind), p.Action}
	err := errors.Join(binary.Write(b, binary.BigEndian, &w), binary.Write(b, binary.BigEndian, lanes))
	return b.Bytes(), err
}

func (c *plain) Decode(b []byte, p *program.Packet) ([]uint32, bool) {
	var w packet
	r := bytes.NewReader(b)
	if binary.Read(r, binary.BigEndian, &w) != nil || r.Len() != int(w.Lanes)*olaf.LaneBytes {
		return nil, false
	}
	c.lanes = make([]uint32, w.Lanes)
	_ = binary.Read(r, binary.BigEndian, c.lanes) // cannot fail: the length was checked
	*p = program.Packet{Seg: w.Seg, Bitmap: w.Bitmap, Value: w.Value, Job: w.Job, Worker: w.Worker, Count: w.Count, Round: w.Round, Lanes: w.Lanes,
		Kind: program.Kind(w.Kind), Action: w.Action}
	p.Vectors = uint32(p.Count)
	if c.results && p.Kind == program.Data {
		p.Kind = program.Result
	}
	return c.lanes, true
}

func (*plain) Offset() int { return 0 }

// bound returns a socket on this host.
func bound(t *testing.T) (*net.UDPConn, netip.AddrPort) {
	t.Helper()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, c.LocalAddr().(*net.UDPAddr).AddrPort()
}

// grove is a tree of real sockets in one process: workers below one server, and the root above it.
type grove struct {
	job                Job
	conns              []*net.UDPConn
	at                 []netip.AddrPort
	serverConn, rootAt *net.UDPConn
	server, root       netip.AddrPort
	adds               *xagg.Server
}

// loopback returns a socket with an address of its own in the loopback network, by which stations identify its host.
func loopback(t *testing.T, last byte) (*net.UDPConn, netip.AddrPort) {
	t.Helper()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 7, 7, last)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, c.LocalAddr().(*net.UDPAddr).AddrPort()
}

func plant(t *testing.T, job Job) *grove {
	t.Helper()
	g := &grove{job: job}
	g.serverConn, g.server = loopback(t, 1)
	g.rootAt, g.root = loopback(t, 2)
	for k := range job.Workers {
		c, at := loopback(t, byte(10+k))
		g.conns, g.at = append(g.conns, c), append(g.at, at)
	}
	var err error
	if g.adds, err = xagg.New(program.Config{Slots: job.Packets(), LaneMemory: job.Lanes}); err != nil {
		t.Fatal(err)
	}
	members := program.Job{ID: job.ID, Parent: true, In: 90 * olaf.Mbps}
	for k := range job.Workers {
		members.Members = append(members.Members, program.Member{Worker: olaf.WorkerID(k), Port: program.Port(k)})
	}
	if err := errors.Join(g.adds.SetGroup(16), g.adds.Configure(members)); err != nil {
		t.Fatal(err)
	}
	return g
}

// station returns the server between workers and root, which loses every n-th sum.
func (g *grove) station(lose int) *Station {
	sums := 0
	return &Station{
		Codec: &plain{}, Switch: g.adds, Number: 0,
		Port: func(from netip.Addr) (program.Port, bool) {
			if from == g.root.Addr() {
				return program.Uplink, true
			}
			for k, at := range g.at {
				if at.Addr() == from {
					return program.Port(k), true
				}
			}
			return 0, false
		},
		To: func(to program.Dest, p *program.Packet) []netip.AddrPort {
			switch {
			case to == program.Up && p.Kind == program.Data:
				if sums++; lose > 0 && sums%lose == 0 {
					return nil
				}
				return []netip.AddrPort{g.root}
			case to == program.Up:
				return []netip.AddrPort{g.root}
			case to >= 0:
				return g.at[to : to+1]
			}
			return g.at
		},
	}
}

// worker returns a worker with simulated faults.
func (g *grove) worker(k int, m Mishaps, line olaf.Rate) (*Player, *Sums, func(endpoint.Host) (endpoint.Endpoint, error)) {
	sums := &Sums{Job: g.job, Worker: olaf.WorkerID(k)}
	p := &Player{Codec: &plain{results: true}, Work: sums, Mishaps: m, To: func(endpoint.Peer, *program.Packet) netip.AddrPort { return g.server }}
	cfg := endpoint.Config{Job: g.job.ID, Worker: sums.Worker, Workers: g.job.Workers, Layout: g.job.Layout(), Updates: uint32(g.job.Vectors), Line: line}
	return p, sums, func(h endpoint.Host) (endpoint.Endpoint, error) {
		return endpoint.NewXAgg(cfg, endpoint.XAgg{Timeout: 20 * olaf.Millisecond, Overhead: 88, Epoch: 65533}, h)
	}
}

// TestSums runs the workers of XAgg's simulator and a server with its program over sockets, with and without rates, and
// with lost, repeated and swapped packets. It checks that every value in every sum is exact at every worker.
func TestSums(t *testing.T) {
	for name, c := range map[string]struct {
		m    Mishaps
		lose int // of the server's sums
		line olaf.Rate
	}{
		"nothing happens": {line: 50 * olaf.Mbps}, "no rates": {}, "lost": {Mishaps{Skip: 5}, 0, 50 * olaf.Mbps},
		"sums lost": {lose: 7, line: 50 * olaf.Mbps}, "twice, out of order": {m: Mishaps{Twice: 3, Swap: 2}, line: 50 * olaf.Mbps},
		"all together": {Mishaps{7, 3, 2}, 5, 50 * olaf.Mbps},
	} {
		t.Run(name, func(t *testing.T) {
			g := plant(t, Job{ID: 3, Workers: 3, Values: 1000, Lanes: 16, Vectors: 4})
			root, err := NewRoot(RootConfig{Job: g.job, Group: 16, Agent: g.server, Workers: g.at, Codec: &plain{}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			var workers, servers sync.WaitGroup
			var counts map[string]uint64
			servers.Go(func() {
				r, err := root.Run(ctx, g.rootAt)
				if counts = r.Counts; err != nil || r.Strangers > 0 {
					t.Errorf("root: %+v, %v", r, err)
				}
			})
			servers.Go(func() {
				if r, err := g.station(c.lose).Run(ctx, g.serverConn); err != nil {
					t.Errorf("server: %+v, %v", r, err)
				}
			})
			for k, conn := range g.conns {
				workers.Go(func() {
					p, sums, made := g.worker(k, c.m, c.line)
					r, err := p.Run(ctx, conn, made)
					whole := SumsReport{Report: *r}
					if err != nil || sums.Wrong > 0 || sums.Checked != 4000 || r.Counts["packets_inexact"] > 0 || r.Counts["updates_torn"] > 0 || whole.Data() < 4*63-uint64(r.Skipped) {
						t.Errorf("worker %d: %+v, %+v, %v", k, r, sums, err)
					}
					if happened := c.m.Skip == 0 || r.Skipped > 0 && r.Counts["packets_resent"] > 0; !happened || c.m.Twice > 0 && r.Doubled == 0 {
						t.Errorf("worker %d: nothing was lost, or sent twice: %+v", k, r)
					}
				})
			}
			workers.Wait()
			stop()
			servers.Wait()
			of := CountsOf(g.adds)
			if of["completed"] != 4*63 || of["consumed"] != 2*4*63 || counts["completed"] != 4*63 || c.lose > 0 && of["sums_resent"] == 0 {
				t.Errorf("the server counted %v, the root %v", of, counts)
			}
		})
	}
}

// TestUnknownSendersAreIgnored checks that a station ignores packets from unknown senders.
func TestUnknownSendersAreIgnored(t *testing.T) {
	g := plant(t, Job{ID: 3, Workers: 1, Values: 16, Lanes: 16, Vectors: 1})
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	s, heard := g.station(0), make(chan bool, 2)
	s.Accept = func(_ olaf.Time, _ program.Port, p *program.Packet, _ []uint32) bool {
		heard <- p.Seg == 9
		return false
	}
	b, err := (&plain{}).Encode(make([]byte, 100), &program.Packet{Kind: program.Data, Job: 3, Seg: 9, Count: 1}, nil, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	stranger, _ := loopback(t, 77)
	for _, c := range []*net.UDPConn{stranger, g.conns[0], g.conns[0]} {
		if _, err := c.WriteToUDPAddrPort(b, g.server); err != nil {
			t.Fatal(err)
		}
		b = append(b, 0)[:len(b)] // once more
	}
	var r *StationReport
	var all sync.WaitGroup
	all.Go(func() { r, err = s.Run(ctx, g.serverConn) })
	for range 2 {
		select {
		case <-ctx.Done():
			t.Fatal("nobody was heard")
		case ours := <-heard:
			if !ours {
				t.Error("another packet was heard")
			}
		}
	}
	stop()
	all.Wait()
	if err != nil || r.Strangers != 1 || r.Received != 3 || CountsOf(g.adds)["consumed"]+CountsOf(g.adds)["completed"] > 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestSlowWorkerContinues checks that a worker that computes for longer than its timeout sends its packets and
// continues.
func TestSlowWorkerContinues(t *testing.T) {
	job := Job{ID: 3, Workers: 1, Values: 100, Lanes: 16, Vectors: 2}
	g := plant(t, job)
	root, err := NewRoot(RootConfig{Job: job, Group: 16, Agent: g.server, Workers: g.at, Codec: &plain{}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	var servers sync.WaitGroup
	servers.Go(func() { _, _ = root.Run(ctx, g.rootAt) }) // the worker's report is checked instead
	servers.Go(func() { _, _ = g.station(0).Run(ctx, g.serverConn) })
	p, sums, made := g.worker(0, Mishaps{}, 0)
	p.Patience, sums.Every = time.Second, 1200*time.Millisecond
	if _, err := p.Run(ctx, g.conns[0], made); err != nil || sums.Checked != job.Values*job.Vectors || sums.Wrong > 0 {
		t.Errorf("%+v, %v", sums, err)
	}
	stop()
	servers.Wait()
}

func TestRefusals(t *testing.T) {
	good := Job{Workers: 1, Values: 1, Lanes: 1, Vectors: 1}
	for _, change := range []func(*RootConfig){
		func(c *RootConfig) { c.Job.Workers = 0 }, func(c *RootConfig) { c.Job.Values = 0 }, func(c *RootConfig) { c.Job.Lanes = MaxOpenLanes + 1 },
		func(c *RootConfig) { c.Job.Vectors = MaxVectors + 1 },
	} {
		c := RootConfig{Job: good}
		change(&c)
		if _, err := NewRoot(c); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for _, c := range []RootConfig{{Job: good, Group: 3}, {Job: good, Line: -1}} {
		if _, err := NewRoot(c); !errors.Is(err, program.ErrConfig) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for _, m := range []Mishaps{{Skip: 1}, {Skip: -1}, {Twice: -1}, {Swap: 1}} {
		if _, err := (&Player{Mishaps: m}).Run(t.Context(), nil, nil); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", m, err)
		}
	}
}

// TestRestartedServerRenewsEpoch ends the server between workers and root at different moments in a job and restarts it
// empty, so that the workers are notified and resend their vectors in another epoch. It checks that every sum is exact
// at every worker, in either epoch.
func TestRestartedServerRenewsEpoch(t *testing.T) {
	moments, again := 40, 0
	if testing.Short() {
		moments = 10
	}
	job := Job{ID: 3, Workers: 3, Values: 1000, Lanes: 16, Vectors: 3}
	for i := range moments {
		g := plant(t, job)
		root, err := NewRoot(RootConfig{Job: job, Group: 16, Agent: g.server, Workers: g.at, Codec: &plain{}})
		if err != nil {
			t.Fatal(err)
		}
		management, _ := loopback(t, 3)
		left := int(splitmix.MixBits(uint64(i)) % uint64(job.Vectors*job.Workers*job.Packets()))
		station := g.station(0)
		station.Accept = func(olaf.Time, program.Port, *program.Packet, []uint32) bool {
			if left--; left != 0 {
				return true
			}
			g.adds.Reset()
			b, err := (&plain{}).Encode(make([]byte, 100), &program.Packet{Kind: program.Control, Action: xagg.Renew, Job: job.ID, Value: 1}, nil, 0, 0)
			for _, at := range g.at {
				_, sent := management.WriteToUDPAddrPort(b, at)
				err = errors.Join(err, sent)
			}
			if err != nil {
				t.Error(err)
			}
			return false
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		var workers, servers sync.WaitGroup
		servers.Go(func() { _, _ = root.Run(ctx, g.rootAt) }) // the workers' reports are checked instead
		servers.Go(func() { _, _ = station.Run(ctx, g.serverConn) })
		resent := make([]uint64, job.Workers)
		for k, conn := range g.conns {
			workers.Go(func() {
				p, sums, made := g.worker(k, Mishaps{}, 50*olaf.Mbps)
				r, err := p.Run(ctx, conn, made)
				if err != nil || sums.Wrong > 0 || sums.Checked != job.Values*job.Vectors || r.Counts["packets_inexact"] > 0 {
					t.Errorf("moment %d, worker %d: %+v, %+v, %v", i, k, r, sums, err)
					return
				}
				resent[k] = r.Counts["packets_resent"]
			})
		}
		workers.Wait()
		stop()
		servers.Wait()
		if slices.Max(resent) > 0 {
			again++
		}
	}
	t.Logf("in %d of %d jobs packets were sent again", again, moments)
	if again < moments/2 {
		t.Errorf("only %d of %d ends made anybody send again", again, moments)
	}
}

// TestRootTakesOverWorkers ends the server between workers and root permanently, at different moments in a job. It
// checks that the root takes over the workers, which resend what they had sent in another epoch, one of them only after
// the second notice, that every sum is exact at every worker, and that packets from the old tree and the old epoch are
// refused and counted.
func TestRootTakesOverWorkers(t *testing.T) {
	moments := 20
	if testing.Short() {
		moments = 5
	}
	job := Job{ID: 3, Workers: 3, Values: 1000, Lanes: 16, Vectors: 3}
	for i := range moments {
		g := plant(t, job)
		root, err := NewRoot(RootConfig{Job: job, Group: 16, Agent: g.server, Workers: g.at, Codec: &plain{}, Adopt: 60 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		o := orphaned{grove: g, root: root, left: 1 + int(splitmix.MixBits(uint64(i))%uint64((job.Vectors-1)*job.Workers*job.Packets()))}
		r := o.play(ctx, t, stop)
		if late, strangers := r.Counts["late"], r.Counts["stranger"]; !r.Adopted || late == 0 || strangers == 0 || r.Strangers > 0 ||
			o.resent.Load() == 0 {
			t.Errorf("moment %d: %+v, and %d packets sent again", i, r, o.resent.Load())
		}
	}
}

// TestLoadedServerIsBypassed loads the server between workers and root from the second vector on. It checks that the
// root takes over the workers after a slow vector, that the next vectors bypass the loaded server, and that every sum
// is exact at every worker.
func TestLoadedServerIsBypassed(t *testing.T) {
	const slow = 200 * time.Millisecond
	job := Job{ID: 3, Workers: 3, Values: 640, Lanes: 16, Vectors: 12}
	g := plant(t, job)
	root, err := NewRoot(RootConfig{Job: job, Group: 16, Agent: g.server, Workers: g.at, Codec: &plain{}, Slow: slow})
	if err != nil {
		t.Fatal(err)
	}
	station, packets := g.station(0), 0
	station.Accept = func(_ olaf.Time, _ program.Port, p *program.Packet, _ []uint32) bool {
		if p.Kind != program.Data {
			return true
		}
		if packets++; packets > job.Workers*job.Packets() { // keep the processor busy
			for began := time.Now(); time.Since(began) < 4*slow/time.Duration(job.Workers*job.Packets()); {
			}
		}
		return true
	}
	var ends []time.Time // end times of vectors at the root
	hears := root.Accept
	root.Accept = func(now olaf.Time, from program.Port, p *program.Packet, lanes []uint32) bool {
		if done := int(root.server.Counts()[xagg.Completed]) / job.Packets(); done > len(ends) {
			ends = append(ends, time.Now())
		}
		return hears(now, from, p, lanes)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	var report *StationReport
	var workers, servers sync.WaitGroup
	servers.Go(func() { report, _ = root.Run(ctx, g.rootAt) }) // the workers' reports are checked instead
	servers.Go(func() { _, _ = station.Run(ctx, g.serverConn) })
	for k, conn := range g.conns {
		workers.Go(func() {
			p, sums, made := g.worker(k, Mishaps{}, 50*olaf.Mbps)
			p.Above = g.root
			r, err := p.Run(ctx, conn, made)
			if err != nil || sums.Wrong > 0 || sums.Checked != job.Values*job.Vectors || r.Counts["packets_inexact"] > 0 {
				t.Errorf("worker %d: %+v, %+v, %v", k, r, sums, err)
			}
		})
	}
	workers.Wait()
	stop()
	servers.Wait()
	if all := job.Vectors * job.Workers * job.Packets(); !report.Adopted || packets >= all {
		t.Errorf("the loaded server received %d packets of %d; report %+v", packets, all, report)
	}
	for i := 1; i < len(ends); i++ {
		t.Logf("vector %d took %v", i+1, ends[i].Sub(ends[i-1]).Round(time.Millisecond))
	}
}

// orphaned is a tree whose server between workers and root stops after a number of packets.
type orphaned struct {
	*grove
	root *Root
	left int
	late bool // a late frame with the old tree and epoch was sent

	heard atomic.Bool // the root has received packets of the server
	ended atomic.Bool // the server has stopped

	resent atomic.Uint64 // packets that workers sent again
}

// play runs the job to its end.
func (o *orphaned) play(ctx context.Context, t *testing.T, stop func()) (report *StationReport) {
	t.Helper()
	station := o.station(0)
	station.Accept = func(olaf.Time, program.Port, *program.Packet, []uint32) bool {
		if o.heard.Load() {
			o.left--
		}
		o.ended.Store(o.left <= 0)
		return o.left > 0
	}
	beside := o.root.BeforeWait
	o.root.BeforeWait = func(out program.Out) error {
		if !o.ended.Load() { // a busy machine does not count as silence
			o.root.lastPacket = time.Now()
		}
		return beside(out)
	}
	to, told := o.root.To, 0
	o.root.To = func(d program.Dest, p *program.Packet) []netip.AddrPort {
		if p.Action == xagg.Renew && d == 1 {
			if told++; told == 1 { // lose the first notification
				return nil
			}
		}
		return to(d, p)
	}
	hears := o.root.Accept
	o.root.Accept = func(now olaf.Time, from program.Port, p *program.Packet, lanes []uint32) bool {
		o.heard.Store(true)
		if o.root.adopted && p.Kind == program.Data && int(from) < o.job.Workers && !o.late { // a packet of the new tree and epoch
			o.late = true
			o.old(t, p)
		}
		return hears(now, from, p, lanes)
	}
	var workers, servers sync.WaitGroup
	servers.Go(func() { report, _ = o.root.Run(ctx, o.rootAt) }) // the workers' reports are checked instead
	servers.Go(func() { _, _ = station.Run(ctx, o.serverConn) })
	for k, conn := range o.conns {
		workers.Go(func() {
			p, sums, made := o.worker(k, Mishaps{}, 50*olaf.Mbps)
			p.Above = o.grove.root
			r, err := p.Run(ctx, conn, made)
			if err != nil || sums.Wrong > 0 || sums.Checked != o.job.Values*o.job.Vectors || r.Counts["packets_inexact"] > 0 {
				t.Errorf("worker %d: %+v, %+v, %v", k, r, sums, err)
			}
			o.resent.Add(r.Counts["packets_resent"])
		})
	}
	workers.Wait()
	stop()
	servers.Wait()
	return report
}

// old sends late packets: a sum from the server that is gone, and a worker's packet from the previous epoch, for a
// fragment that exists in the new one.
func (o *orphaned) old(t *testing.T, p *program.Packet) {
	before := *p
	before.Round -= 2
	for _, from := range []*net.UDPConn{o.serverConn, o.conns[2]} {
		b, err := (&plain{}).Encode(make([]byte, 200), &before, make([]uint32, p.Lanes), 0, 0)
		if err == nil {
			_, err = from.WriteToUDPAddrPort(b, o.grove.root)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// TestTreeChangeOfOtherHostIsIgnored checks that a worker stays with its server if another host announces a changed
// tree.
func TestTreeChangeOfOtherHostIsIgnored(t *testing.T) {
	above := netip.MustParseAddrPort("127.7.7.2:5")
	for _, c := range []struct {
		from  string
		kind  program.Kind
		moved bool
	}{{"127.7.7.2:5", program.Control, true}, {"127.7.7.3:5", program.Control, false}, {"127.7.7.2:6", program.Control, false}, {"127.7.7.2:5", program.Result, false}} {
		k := &playing{Player: &Player{Above: above}}
		k.follow(&program.Packet{Kind: c.kind, Action: xagg.Renew, Worker: 4}, netip.MustParseAddrPort(c.from))
		if k.moved != c.moved || c.moved && *k.child != 4 {
			t.Errorf("%+v: %t", c, k.moved)
		}
	}
	if _, err := NewRoot(RootConfig{Job: Job{Workers: 1, Values: 1, Lanes: 1, Vectors: 1}, Adopt: -1}); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
}
