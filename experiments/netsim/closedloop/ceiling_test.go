package closedloop

import (
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
)

// TestCeiling checks that the ceiling follows from each worker's link, averaged over workers, and that a card's time
// per frame limits it.
func TestCeiling(t *testing.T) {
	parts := &system.Parts{Header: 36, PerPacket: 16} // frames of 100 bytes, of which 64 are values
	link := Link{Rate: 10 * olaf.Gbps, Overhead: 28}
	slow, card := link, link
	slow.Rate = 5 * olaf.Gbps
	card.Frame = 512 * olaf.Nanosecond
	quick := Link{Rate: 2_000_000 * olaf.Gbps, Overhead: 28, Frame: olaf.Picosecond}
	for _, c := range []struct {
		name string
		net  Network
		want int64
	}{
		{"half of every frame", Network{Workers: 4, Link: link}, 5e9},
		{"one link of half the rate", Network{Workers: 4, Link: link, Access: []Link{slow}}, 4.375e9},
		{"all links of half the rate", Network{Workers: 2, Link: link, Access: []Link{slow, slow}}, 2.5e9},
		{"a card that takes 512 ns a frame", Network{Workers: 1, Link: card}, 1e9},
		{"a card that takes 1 ps a frame", Network{Workers: 1, Link: quick}, 512e12},
	} {
		if got := GoodputCeiling(&c.net, parts); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
