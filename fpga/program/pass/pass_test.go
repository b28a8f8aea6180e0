package pass

import (
	"testing"

	"github.com/olafctl/olaf/fpga/program"
)

type last struct{ to program.Dest }

func (l *last) Emit(to program.Dest, _ *program.Packet, _ []uint32) { l.to = to }

func TestForwards(t *testing.T) {
	d := Describe()
	p, err := d.New(program.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from program.Port
		want program.Dest
	}{{0, program.Up}, {3, program.Up}, {program.Uplink, program.Down}} {
		var out last
		if class := p.Receive(0, c.from, &program.Packet{Kind: program.Data}, nil, &out); d.ClassName(class) != "forwarded" ||
			out.to != c.want {
			t.Errorf("from %d: %s to %v, want %v", c.from, d.ClassName(class), out.to, c.want)
		}
	}
	if n := p.Counts()[forwarded]; n != 3 {
		t.Errorf("%d forwarded, want 3", n)
	}
}
