package aggregator

import (
	"testing"

	"github.com/olafctl/olaf"
)

// TestInlet checks that a frame waits for the frames before it, and that frames beyond the room are lost until the
// first frame has passed.
func TestInlet(t *testing.T) {
	u := Unit{BusBytes: 32, Beat: 5 * olaf.Nanosecond, Pipeline: 16, Room: 3}
	if u.Rate() != 51_200*olaf.Mbps || u.TransferTime(256) != 40*olaf.Nanosecond || u.TransferTime(257) != 45*olaf.Nanosecond {
		t.Fatalf("%v, a frame takes %v", u.Rate(), u.TransferTime(257))
	}
	i := NewInlet(u)
	for n := range u.Room + 1 {
		at, ok := i.Pass(0, 256)
		if want := olaf.Time(0).Add(olaf.Duration(n+1)*40*olaf.Nanosecond + 80*olaf.Nanosecond); !ok || at != want {
			t.Errorf("frame %d is through at %v, %t, want %v", n, at, ok, want)
		}
	}
	first := olaf.Time(0).Add(40 * olaf.Nanosecond)
	if _, ok := i.Pass(first-1, 256); ok {
		t.Error("one more found room")
	}
	if at, ok := i.Pass(first, 32); !ok || at != olaf.Time(0).Add((160+5+80)*olaf.Nanosecond) {
		t.Errorf("the first has left the bus: %v, %t", at, ok)
	}
	if at, ok := i.Pass(olaf.Time(olaf.Microsecond), 32); !ok || at != olaf.Time(olaf.Microsecond).Add(85*olaf.Nanosecond) {
		t.Errorf("an idle unit: %v, %t", at, ok)
	}
}
