package saturate

import (
	"errors"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/testbed/lab"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/results"
)

// TestWires checks that a testbed whose cables join interfaces of this machine can be fed like one with virtual cables,
// and that the cables are listed. A testbed with a worker elsewhere cannot be fed.
func TestWires(t *testing.T) {
	if err := netlab.CheckRights(append(lab.Rights(), netlab.PacketRights...)...); err != nil {
		t.Skip(err)
	}
	ground, err := netlab.New()
	if err != nil {
		t.Fatal(err)
	}
	defer ground.Close()
	here, err := ground.Node("here")
	if err != nil {
		t.Fatal(err)
	}
	for _, ends := range [][2]string{{"eth0", "eth1"}, {"eth2", "eth3"}, {"eth4", "eth5"}} {
		if _, err := netlab.ConnectNodes(netlab.End{Node: here, Name: ends[0]}, netlab.End{Node: here, Name: ends[1]}, 1500); err != nil {
			t.Fatal(err)
		}
	}
	on := func(text string) (f *Feeder, err error) {
		file, err := lab.Parse("test", []byte(text+"\njob: {lanes: 8, fragments: 50}\n"))
		if err != nil {
			t.Fatal(err)
		}
		p, err := file.Resolve()
		if err != nil {
			t.Fatal(err)
		}
		var l *lab.Lab
		if err := here.Do(func() (err error) { l, err = lab.Up(p, lab.Options{LogBytes: LogBytes}); return err }); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
		return NewFeeder(l)
	}
	f, err := on(`nodes: [{name: a, role: worker}, {name: b, role: worker}, {name: s, role: aggregator}, {name: ps, role: server}]
links: [{child: a, parent: s}, {child: b, parent: s, interfaces: [eth0, eth1], virtual: true}, {child: s, parent: ps, interfaces: [eth2, eth3], virtual: true}]`)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := f.Run(t.Context(), Config{Vectors: 2, Line: 50 * olaf.Mbps}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Valid() || r.Decisions.Differ() || r.Decisions.Void != "" {
		t.Errorf("%+v", r)
	}
	said := (&Report{Plan: f.lab.Plan}).Result(results.Provenance{}).Statements
	if len(said) != 3 || said[1] != "the cable from b to s is that of interfaces eth0 and eth1" ||
		said[2] != "the cable from s to ps is that of interfaces eth2 and eth3" {
		t.Errorf("%q", said)
	}
	_, err = on(`nodes: [{name: a, role: worker, interface: eth4, virtual: true, address: 192.0.2.1}, {name: s, role: aggregator}, {name: ps, role: server}]
links: [{child: a, parent: s}, {child: s, parent: ps}]`)
	if !errors.Is(err, ErrConfig) {
		t.Errorf("a worker elsewhere: %v", err)
	}
}
