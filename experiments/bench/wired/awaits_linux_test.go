package wired

import (
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/xagg"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// feeder is the host of a worker whose packets go to a program at once. It implements endpoint.Host.
type feeder struct {
	program program.Program
	worker  int
	now     olaf.Time
}

// Send implements endpoint.Host.
func (f *feeder) Send(_ endpoint.Peer, p *program.Packet, lanes []uint32) olaf.Time {
	own := *p
	f.program.Receive(f.now, program.Port(f.worker), &own, lanes, f)
	return f.now
}

// Emit implements program.Out. It drops what the program sends.
func (*feeder) Emit(program.Dest, *program.Packet, []uint32) {}

// Compute implements endpoint.Host.
func (*feeder) Compute(uint32) {}

// Message implements endpoint.Host.
func (*feeder) Message() {}

// Apply implements endpoint.Host.
func (*feeder) Apply(*endpoint.Aggregate) {}

// TestSwitchNamesMissingVectors lets workers 0 and 2 of 4 send a vector through the program of every system with slots.
// After a second, the report to each of them names workers 1 and 3, and there is none for the others.
func TestSwitchNamesMissingVectors(t *testing.T) {
	const workers, missing = 4, 0b1010
	for name, o := range map[string]system.Options{"switchml": {}, "atp": {}, "iswitch": {Profile: "isw-x", Timeout: olaf.Second}} {
		s, err := system.All().Find(name)
		if err != nil {
			t.Fatal(err)
		}
		o.Floats = true
		parts, err := s.Modes[0].Parts(&o)
		if err != nil {
			t.Fatal(err)
		}
		net := closedloop.Network{Jobs: 1, Workers: workers, Link: closedloop.Link{Rate: 10 * olaf.Gbps}}
		job := closedloop.Job{Layout: endpoint.Layout{Values: 3 * parts.PerPacket, PerPacket: parts.PerPacket}, Updates: 1}
		r := &run{net: &net, job: &job, parts: &parts}
		if parts.Root = parts.Program.New; r.parts.Root == nil {
			t.Fatalf("%s has no program", name)
		}
		if _, err := r.installProgram(); err != nil {
			t.Fatal(err)
		}
		for _, worker := range []int{0, 2} {
			host := &feeder{program: r.program, worker: worker, now: olaf.Time(worker)}
			w, err := parts.Worker(endpoint.Config{Job: closedloop.FirstJob, Worker: olaf.WorkerID(worker), Workers: workers,
				Layout: job.Layout, Updates: 1}, host)
			if err != nil {
				t.Fatal(err)
			}
			w.Start(host.now)
			w.OnComputed(host.now, make([]uint32, job.Layout.Values))
		}
		codec := NewHostFrames(&parts, workers, 0)
		outer := frame.Outer{Addresses: codec.own, Past: true}
		outer.DstIP = codec.own.SrcIP
		later := olaf.Time(0).Add(2 * awaitAfter)
		reports := new(awaits)
		for worker := range workers {
			early, err := reports.reportMissing(r.program, worker, workers, olaf.Time(awaitAfter/2), &outer)
			if err != nil || early != nil {
				t.Errorf("%s: half a second after the vectors, worker %d gets the report %x, %v", name, worker, early, err)
			}
			b, err := reports.reportMissing(r.program, worker, workers, later, &outer)
			if err != nil || (b != nil) != (worker%2 == 0) {
				t.Errorf("%s: worker %d gets the report %x, %v", name, worker, b, err)
			}
			if b == nil {
				continue
			}
			var p program.Packet
			_, _, ok := codec.Decode(b, 0, &p)
			if !ok || p.Kind != program.Control || p.Action != xagg.Awaits || p.Bitmap != missing {
				t.Errorf("%s: worker %d decodes %+v, %v; want that workers %b are missing", name, worker, p, ok, missing)
			}
			if again, _ := reports.reportMissing(r.program, worker, workers, later.Add(awaitAfter/2), &outer); again != nil {
				t.Errorf("%s: worker %d gets a second report within a second", name, worker)
			}
		}
	}
}
