package process

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"testing"

	"github.com/olafctl/olaf"
)

// adder is the slowest aggregator: it keeps what every worker sent of a fragment, over a socket of its own.
type adder struct {
	job    *Job
	conn   *net.UDPConn
	server netip.AddrPort
	parts  map[[2]int]map[olaf.WorkerID][]int32
	drop   int // of its sums, every so-many-th
	sent   int
}

func (a *adder) run() {
	in := make([]byte, room)
	for {
		n, from, err := a.conn.ReadFromUDPAddrPort(in)
		if err != nil {
			return
		}
		if epoch, fragment, ok := DecodeAsk(in[:n]); ok && from == a.server {
			a.pass(int(epoch), fragment)
			continue
		}
		p, ok := decode(in[:n])
		if !ok {
			continue
		}
		at := [2]int{int(p.epoch), p.fragment}
		if a.parts[at] == nil {
			a.parts[at] = map[olaf.WorkerID][]int32{}
		}
		if _, inside := a.parts[at][p.worker]; inside {
			continue
		}
		var lanes []int32
		for i := range p.length() {
			lanes = append(lanes, p.lane(i))
		}
		a.parts[at][p.worker] = lanes
		if len(a.parts[at]) == a.job.Workers {
			a.pass(int(p.epoch), p.fragment)
		}
	}
}

func (a *adder) pass(epoch, fragment int) {
	parts := a.parts[[2]int{epoch, fragment}]
	if a.sent++; len(parts) < a.job.Workers || a.drop > 0 && a.sent%a.drop == 0 {
		return
	}
	sum := make([]int32, a.job.lanes(fragment))
	for _, lanes := range parts {
		for i, v := range lanes {
			sum[i] += v
		}
	}
	if b, err := EncodeSum(make([]byte, room), a.job, uint16(epoch), fragment, len(parts), sum); err == nil {
		_, _ = a.conn.WriteToUDPAddrPort(b, a.server)
	}
}

func socket(t *testing.T) (*net.UDPConn, netip.AddrPort) {
	t.Helper()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, c.LocalAddr().(*net.UDPAddr).AddrPort()
}

// Workers leave out packets, the aggregator loses sums, and everybody ends with every sum exact.
func TestJob(t *testing.T) {
	job := Job{ID: 1, Workers: 3, Values: 1000, Lanes: 16, Epochs: 3}
	a := &adder{job: &job, parts: map[[2]int]map[olaf.WorkerID][]int32{}, drop: 11}
	conn, aggregator := socket(t)
	a.conn = conn
	serves, server := socket(t)
	a.server = server
	s := &Server{Job: job, Agent: aggregator}
	var sockets []*net.UDPConn
	for range job.Workers {
		c, at := socket(t)
		sockets, s.Workers = append(sockets, c), append(s.Workers, at)
	}
	go a.run()
	ctx, stop := context.WithCancel(context.Background())
	var workers, all sync.WaitGroup
	all.Go(func() {
		if r, err := s.Run(ctx, serves); err != nil || r.Sums != job.Fragments()*job.Epochs || r.Asked == 0 {
			t.Errorf("server: %+v, %v", r, err)
		}
	})
	for i, c := range sockets {
		workers.Go(func() {
			w := &Worker{Job: job, Worker: olaf.WorkerID(i), Aggregator: aggregator, Server: server, Skip: 7}
			r, err := w.Run(ctx, c)
			if err != nil || r.Wrong > 0 || r.Checked != job.Values*job.Epochs || r.Skipped == 0 || r.Resent == 0 {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	workers.Wait()
	stop()
	all.Wait()
}

// own is a worker's vectors of its own, and what their sums must be.
type own struct {
	t      *testing.T
	worker int
	epochs int
	vector []int32
}

func (o *own) Vector(epoch int) []int32 {
	for i := range o.vector {
		o.vector[i] = int32((o.worker + 1) * (epoch + i))
	}
	return o.vector
}

func (o *own) Sum(epoch int, sum []int32) {
	o.epochs++
	for i, v := range sum {
		if v != int32(6*(epoch+i)) { // of workers 1, 2 and 3
			o.t.Errorf("worker %d, epoch %d: value %d is %d", o.worker, epoch, i, v)
			return
		}
	}
}

// Workers with vectors of their own get the sum of all of each.
func TestVectors(t *testing.T) {
	job := Job{ID: 1, Workers: 3, Values: 100, Lanes: 16, Epochs: 4}
	a := &adder{job: &job, parts: map[[2]int]map[olaf.WorkerID][]int32{}}
	conn, aggregator := socket(t)
	a.conn = conn
	serves, server := socket(t)
	a.server = server
	s := &Server{Job: job, Agent: aggregator}
	var sockets []*net.UDPConn
	for range job.Workers {
		c, at := socket(t)
		sockets, s.Workers = append(sockets, c), append(s.Workers, at)
	}
	go a.run()
	ctx, stop := context.WithCancel(t.Context())
	var workers, all sync.WaitGroup
	all.Go(func() { _, _ = s.Run(ctx, serves) })
	vectors := make([]own, job.Workers)
	for i, c := range sockets {
		vectors[i] = own{t: t, worker: i, vector: make([]int32, job.Values)}
		workers.Go(func() {
			w := &Worker{Job: job, Worker: olaf.WorkerID(i), Aggregator: aggregator, Server: server, Vectors: &vectors[i]}
			if r, err := w.Run(ctx, c); err != nil || r.Wrong > 0 || vectors[i].epochs != job.Epochs {
				t.Errorf("%+v, %v, %d sums", r, err, vectors[i].epochs)
			}
		})
	}
	workers.Wait()
	stop()
	all.Wait()
	short := &own{t: t, vector: make([]int32, 3)}
	if _, err := (&Worker{Job: job, Vectors: short}).Run(t.Context(), nil); !errors.Is(err, ErrConfig) {
		t.Errorf("a vector that is too short: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	good := Job{Workers: 1, Values: 1, Lanes: 1, Epochs: 1}
	for _, w := range []Worker{{}, {Job: good, Worker: 1}, {Job: good, Skip: 1}, {Job: Job{Workers: 1, Values: 1, Lanes: MaxLanes + 1, Epochs: 1}}} {
		if _, err := w.Run(context.Background(), nil); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", w, err)
		}
	}
	if _, err := (&Server{Job: good}).Run(context.Background(), nil); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
}
