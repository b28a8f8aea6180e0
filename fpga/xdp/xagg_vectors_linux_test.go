package xdp

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/vector"
	"github.com/olafctl/olaf/fpga/program/xagg"
)

// elsewhere lists, by file, lines of golden vectors that differ if the kernel aggregates, with their replacements. A
// missed result is stored by the server above, which is asked once for everything that is missing below. The result
// comes back to all children, and for those that already have it, it is a duplicate.
var elsewhere = map[string][2]string{
	"xagg-12-ask.txt": {`
out 30 to=port:1 kind=result seg=0 round=0 data=3
out 30 to=port:1 kind=control action=lost seg=0 bitmap=0x2
`, `
out 30 to=port:1 kind=control action=lost seg=0 bitmap=0x2
out 30 to=down kind=result seg=0 round=0 data=3
`},
}

// TestSumVectors runs the golden vectors of XAgg through the kernel's program, with its agents and a server above, as
// in a testbed. It checks that classes, sums, departing packets, fragments and counts are equal.
func TestSumVectors(t *testing.T) {
	files, err := filepath.Glob("../program/xagg/testdata/vectors/*.txt")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d vectors, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if lines, ok := elsewhere[filepath.Base(file)]; ok {
				if bytes.Count(text, []byte(lines[0])) != 1 {
					t.Fatalf("it has not the lines%s", lines[0])
				}
				text = bytes.Replace(text, []byte(lines[0]), []byte(lines[1]), 1)
			}
			v, err := vector.ParseVector(bytes.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			described := xagg.Describe()
			described.New = func(cfg program.Config) (program.Program, error) {
				return &station{T: t, cfg: cfg, totals: map[string]uint64{}}, nil
			}
			subject, err := v.Build([]program.Description{described})
			if err != nil {
				t.Fatal(err)
			}
			if err := vector.PlayVector(v, subject); err != nil {
				t.Error(err)
			}
		})
	}
}

// station is a node of a testbed as its neighbours see it. The kernel aggregates and agents read its state. If the node
// is the root of a vector, the server above every kernel's aggregator sends results back. It implements
// program.Program.
type station struct {
	*testing.T
	cfg    program.Config
	job    program.Job
	kernel *Aggregator
	agent  *xagg.Server
	above  *xagg.Server // nil if there is a parent
	out    program.Out
	counts []uint64
	totals map[string]uint64 // the kernel's counts
}

func (s *station) Configure(j program.Job) error {
	s.kernel = loadAggregator(s.T, AggregatorBuild{Fragments: s.cfg.Slots, Lanes: s.cfg.LaneMemory,
		Wrapping: s.cfg.Profile == xagg.Wrapping, Senders: len(j.Members), LogBytes: 1 << 16}, 1)
	var senders []dataplane.Sender
	for i, m := range j.Members {
		senders = append(senders, dataplane.Sender{Address: childAt(j.ID, m.Port), Cluster: j.ID, Worker: olaf.WorkerID(i)})
	}
	s.must(s.kernel.SetSenders(senders))
	s.must(s.kernel.Configure(Parent{Job: j.ID, Children: len(j.Members)}))
	s.job = j
	var err error
	s.agent, err = xagg.NewAgent(s.cfg, s)
	s.must(err)
	below := j
	below.Parent = true // the kernel always sends sums up
	s.must(s.agent.Configure(below))
	if !j.Parent {
		s.above, err = xagg.New(s.cfg)
		s.must(err)
		j.Members = []program.Member{{Port: 0}}
		s.must(s.above.Configure(j))
	}
	return nil
}

func (s *station) must(err error) {
	if err != nil {
		s.Helper()
		s.Fatal(err)
	}
}

// childAt returns the address of a child of a job. Children of another job have other addresses, by which the kernel
// distinguishes them.
func childAt(job olaf.ClusterID, port program.Port) netip.Addr {
	return addressOf(int(job)<<8 | int(port))
}

// Receive passes a child's packet to the kernel as a frame, and what the kernel passes on to the agent. Packets from
// above go to the agent.
func (s *station) Receive(now olaf.Time, from program.Port, p *program.Packet, lanes []uint32, out program.Out) program.Class {
	s.out = out
	if from == program.Uplink {
		return s.agent.Receive(now, from, p, lanes, s)
	}
	bytes := make([]byte, frame.XAgg.Size(int(p.Lanes))+frame.Least)
	n := s.encode(bytes, from, p, lanes)
	verdict, err := s.kernel.Arrive(bytes[:n])
	s.must(err)
	if verdict == Pass {
		return s.agent.Receive(now, from, p, lanes, s) // the agent forwards other traffic, as the network stack does
	}
	class := s.decision()
	if (class == xagg.Completed) != (verdict == Send) {
		s.Fatalf("verdict %d of class %d", verdict, class)
	}
	if verdict == Send {
		s.sum(bytes[:n])
	}
	for {
		c, ok, err := s.kernel.NextCheck()
		s.must(err)
		if !ok {
			return class
		}
		s.agent.CheckGroup(s.job.ID, int(c.Child), c.Epoch, int(c.Fragment), s)
	}
}

// encode writes a packet's frame. Other traffic becomes a frame of OLAF.
func (s *station) encode(b []byte, from program.Port, p *program.Packet, lanes []uint32) int {
	to := frame.Outer{Addresses: olaf.Addresses{SrcIP: childAt(p.Job, from).As4(), DstIP: [4]byte{10, 255, 0, 1}}}
	if p.Kind == program.Other {
		u := olaf.Update{Count: 1}
		n, err := olaf.EncodeUpdate(b, &to.Addresses, &u, nil)
		s.must(err)
		return n
	}
	child := *p
	child.Worker = olaf.WorkerID(from)
	n, err := frame.XAgg.Encode(b, &to, &child, lanes)
	s.must(err)
	return n
}

// decision returns the decision that the kernel logged for the current packet.
func (s *station) decision() program.Class {
	var log []dataplane.Decision
	s.must(s.kernel.Decisions(func(d *dataplane.Decision) { log = append(log, *d) }))
	if len(log) != 1 {
		s.Fatalf("%d decisions of a packet", len(log))
	}
	return decided[log[0].Class]
}

// sum sends a frame that the kernel made from the last packet. The frame does not list contributors, but the fragment
// does.
func (s *station) sum(b []byte) {
	v, err := frame.XAgg.Decode(b)
	s.must(err)
	var p program.Packet
	v.Packet(&p)
	lanes := make([]uint32, p.Lanes)
	v.Lanes(lanes)
	p.Bitmap = s.Fragment(int(p.Seg), nil).Bitmap
	s.Emit(program.Up, &p, lanes)
}

// Emit handles departing packets. If the vector has no parent, packets to above go to the server, and its answers go to
// the agent.
func (s *station) Emit(to program.Dest, p *program.Packet, lanes []uint32) {
	if s.above == nil || to != program.Up || p.Kind == program.Other {
		s.out.Emit(to, p, lanes)
		return
	}
	up := *p
	s.above.Receive(0, 0, &up, lanes, fromAbove{s})
}

// fromAbove is the path from the server down to the agent.
type fromAbove struct{ *station }

func (s fromAbove) Emit(_ program.Dest, p *program.Packet, lanes []uint32) {
	down := *p
	s.agent.Receive(0, program.Uplink, &down, lanes, s.station)
}

// Fragment implements xagg.Model.
func (s *station) Fragment(i int, lanes []uint32) xagg.Fragment {
	f, err := s.kernel.Fragment(i, lanes)
	s.must(err)
	return f
}

// Fragments implements xagg.Model.
func (s *station) Fragments(n int) []xagg.Fragment {
	all, err := s.kernel.Fragments(n)
	s.must(err)
	return all
}

// Counts returns the agent's counts, with the kernel's counts for what the kernel decided.
func (s *station) Counts() []uint64 {
	now, err := s.kernel.Latch()
	s.must(err)
	for name, n := range now {
		s.totals[name] += n
	}
	d := xagg.Describe()
	s.counts = append(s.counts[:0], s.agent.Counts()...)
	put := func(name string, n uint64) { s.counts[d.Ledger.Index(name)] += n }
	for i, name := range s.kernel.CounterNames()[:len(decided)] {
		s.counts[decided[i]] += s.totals[name]
	}
	put("lane_saturations", s.totals["lane_saturations"])
	put("vectors_cleared", s.totals["abandoned"]) // in all test vectors, each abandoned sum has one vector
	for i := range s.cfg.Slots {
		if v := s.Slot(i); v.Occupied && v.Count < len(s.job.Members) {
			put("vectors_held", uint64(v.Trace.Vectors))
		}
	}
	return s.counts
}

func (s *station) Slot(i int) program.Slot {
	lanes := make([]uint32, s.cfg.LaneMemory)
	f := s.Fragment(i, lanes)
	return program.Slot{Occupied: f.Inside > 0, Seg: uint64(i), Bitmap: f.Bitmap, Count: f.Inside,
		Trace: program.Trace{Vectors: uint32(f.Count)}, Lanes: lanes[:f.Lanes]}
}

func (s *station) Slots() int            { return s.cfg.Slots }
func (s *station) CountOccupied() int    { return 0 }
func (s *station) Memory() olaf.Size     { return 0 }
func (s *station) Remove(olaf.ClusterID) {}
func (s *station) Reset()                {}
