package realtime

import (
	"errors"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/netlab"
)

// cabled returns the sockets at the two ends of a cable.
func cabled(t *testing.T) (from, to *netlab.Socket) {
	t.Helper()
	lab, err := netlab.New()
	if errors.Is(err, netlab.ErrRights) {
		t.Skip(err)
	}
	must(t, err)
	t.Cleanup(func() { must(t, lab.Close()) })
	var ends [2]*netlab.Node
	for i := range ends {
		ends[i], err = lab.Node([]string{"here", "there"}[i])
		must(t, err)
	}
	cable, err := netlab.ConnectNodes(netlab.End{Node: ends[0], Name: "out"}, netlab.End{Node: ends[1], Name: "in"}, 1500)
	must(t, err)
	from, err = cable.A.Packets(false)
	must(t, err)
	to, err = cable.B.Packets(true)
	must(t, err)
	t.Cleanup(func() { must(t, errors.Join(from.Close(), to.Close())) })
	return from, to
}

// TestLinksHoldTheirRate checks that frames leave in order, none before its last bit would be sent and none closer to
// the previous one than the rate allows, and that lost frames are counted and take their time.
func TestLinksHoldTheirRate(t *testing.T) {
	from, to := cabled(t)
	l := OpenLinks()
	defer l.Close()
	const frames, size = 40, 976 // 1 ms each at 8 Mbps, with an overhead of 24 B
	link := l.AddLink(from, LinkConfig{Rate: 8 * olaf.Mbps, Overhead: 24, Delay: 5 * olaf.Millisecond, Loss: 0.25, Seed: 3})
	began := time.Now()
	for i := range frames {
		f := make([]byte, size)
		f[size-1] = byte(i)
		if left := l.Send(link, f); left < olaf.Duration(i+1)*olaf.Millisecond-olaf.Duration(time.Since(began))*olaf.Nanosecond {
			t.Errorf("frame %d is out in %v", i, left)
		}
	}
	heard, ears, last := 0, netlab.NewEars(to), -1
	buf := make([]byte, 2048)
	for l.Counts().Waits > 0 || heard < int(l.Counts().Sent) {
		ears.Wait(10*time.Millisecond, func(int) {
			for {
				n, err := to.Receive(buf)
				if err != nil {
					return
				}
				number := int(buf[n-1])
				if after := time.Since(began); n != size || number <= last || after < time.Duration(number+1+5)*time.Millisecond {
					t.Errorf("frame %d of %d bytes after %v, behind frame %d", number, n, after, last)
				}
				heard, last = heard+1, number
			}
		})
		if time.Since(began) > time.Minute {
			t.Fatalf("%d came: %+v", heard, l.Counts())
		}
	}
	c := l.Counts()
	if c.Frames != frames || c.Bytes != frames*size || c.Lost == 0 || c.Lost+c.Sent != frames || c.Unsent != 0 {
		t.Errorf("%+v", c)
	}
	if p := l.Pacing(); p.Frames != int64(c.Sent) || p.BusyNS != int64(c.Sent)*int64(time.Millisecond) {
		t.Errorf("%+v of %d", p, c.Sent)
	}
}
