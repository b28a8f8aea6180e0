package xdp

import (
	"encoding/binary"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/netlab"
)

// cable returns a cable from a namespace for workers to one for the queue, which is removed after the test.
func cable(t testing.TB) *netlab.Cable { return cableOf(t, 1500) }

func cableOf(t testing.TB, mtu int) *netlab.Cable {
	t.Helper()
	l, err := netlab.New()
	if errors.Is(err, netlab.ErrRights) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	var ends [2]netlab.End
	for i, name := range []string{"workers", "switch"} {
		n, err := l.Node(name)
		if err != nil {
			t.Fatal(err)
		}
		ends[i] = netlab.End{Node: n, Name: "data"}
	}
	c, err := netlab.ConnectNodes(ends[0], ends[1], mtu)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestRealFrames sends frames through a pair of interfaces at whose other end the kernel merges them, and checks every
// sum.
func TestRealFrames(t *testing.T) {
	for _, mode := range []dataplane.Mode{dataplane.Native, dataplane.Generic} {
		t.Run(string(mode), func(t *testing.T) {
			c := cable(t)
			const workers, lanes, rounds = 8, 48, 500
			k := load(t, "olaf", dataplane.Build{Slots: 4, Clusters: 4, Lanes: lanes, FrameLanes: lanes, Senders: workers, LogBytes: 1 << 20})
			defer k.Close()
			open(t, k, workers)
			l, err := k.Attach(c.B, mode)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			r, err := dataplane.NewReplayer("olaf", engine.Config{Slots: 4, Clusters: 4})
			if err != nil {
				t.Fatal(err)
			}
			socket, err := c.A.Packets(false)
			if err != nil {
				t.Fatal(err)
			}
			defer socket.Close()
			out := make([]byte, olaf.FrameSize(lanes))
			for round := range rounds {
				for w := range workers {
					send(t, socket, w, lanes, uint32(round))
				}
				for range 4 {
					expectSum(t, k, out, uint32(round))
				}
				if err := k.Decisions(r.Add); err != nil {
					t.Fatal(err)
				}
			}
			x, sums, err := k.Latch(false)
			if err != nil {
				t.Fatal(err)
			}
			if c := r.Compare(x.Number); c.Void != "" || c.Equal != c.Checked || sums["appended"] != 4*rounds ||
				sums["aggregated"] != (workers-4)*rounds {
				t.Fatalf("%+v, %v", c, sums)
			}
		})
	}
}

// open adds workers to the table, each in the cluster of its number modulo 4, and enables the queue.
func open(t *testing.T, k *Queue, workers int) {
	t.Helper()
	var senders []dataplane.Sender
	for i := range workers {
		senders = append(senders, dataplane.Sender{Address: addressOf(i), Cluster: olaf.ClusterID(i % 4), Worker: olaf.WorkerID(i)})
	}
	for _, err := range []error{k.SetSenders(senders), k.Configure(dataplane.Settings{Depth: 4}), k.Run(true)} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// send sends one worker's update. Lane i is the worker's number times a hundred, plus the round and i.
func send(t *testing.T, socket *netlab.Socket, w, lanes int, round uint32) {
	t.Helper()
	gradient := make([]int32, lanes)
	for i := range gradient {
		gradient[i] = int32(100*w) + int32(round) + int32(i)
	}
	u := olaf.Update{Cluster: olaf.ClusterID(w % 4), Worker: olaf.WorkerID(w), Seq: round, Count: 1, Lanes: uint16(lanes)}
	frame := make([]byte, u.Size())
	a := olaf.Addresses{SrcIP: addressOf(w).As4(), DstIP: [4]byte{10, 255, 0, 1}}
	if _, err := olaf.EncodeUpdate(frame, &a, &u, gradient); err != nil {
		t.Fatal(err)
	}
	if err := socket.Send(frame); err != nil {
		t.Fatal(err)
	}
}

// expectSum serves the next frame once both workers of its cluster have contributed, and checks its lanes.
func expectSum(t *testing.T, k *Queue, out []byte, round uint32) {
	t.Helper()
	for tries := 0; ; tries++ {
		x, err := k.Inspect(0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if x.Slot >= 0 && x.Update.Count == 2 {
			break
		}
		if tries == 1_000_000 {
			t.Fatalf("round %d: only %+v came", round, x)
		}
		runtime.Gosched()
	}
	x, frame, err := k.Turn(false, true, out)
	if err != nil {
		t.Fatal(err)
	}
	for i := range int(x.Update.Lanes) {
		first := int32(x.Update.Cluster) // the other contributor is worker first + 4
		want := 100*(2*first+4) + 2*int32(round) + 2*int32(i)
		if got := int32(binary.BigEndian.Uint32(frame[olaf.HeaderBytes+olaf.LaneBytes*i:])); got != want {
			t.Fatalf("round %d, cluster %d, lane %d: %d, want %d", round, first, i, got, want)
		}
	}
	if _, _, err := k.Turn(true, false, nil); err != nil {
		t.Fatal(err)
	}
}

// TestTooLargeForNative attaches to an interface whose frames do not arrive in one piece.
func TestTooLargeForNative(t *testing.T) {
	c := cableOf(t, 9000)
	k := load(t, "olaf", dataplane.Build{Slots: 4, Clusters: 4, Lanes: 8, FrameLanes: 8, Senders: 4})
	defer k.Close()
	if _, err := k.Attach(c.B, dataplane.Native); !errors.Is(err, ErrKernel) ||
		!strings.Contains(err.Error(), "an MTU of 9000 bytes is above 3000") {
		t.Errorf("%v", err)
	}
	l, err := k.Attach(c.B, dataplane.Generic)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := k.Attach(c.B, "fast"); err == nil || !strings.Contains(err.Error(), "use native or generic") {
		t.Errorf("%v", err)
	}
}

// TestRedirectWithoutProgramLosesFrames makes an aggregator send its sums over a cable without a program at the other
// end. It checks that they are lost without an error, and that the counts at the two ends show the loss.
func TestRedirectWithoutProgramLosesFrames(t *testing.T) {
	const sums = 50
	for _, listens := range []bool{true, false} {
		c, up := cable(t), cable(t)
		a := loadAggregator(t, AggregatorBuild{Fragments: sums, Lanes: 8, Senders: 2}, 1)
		// The uplink must be where the children's cable ends: both in one namespace.
		hub := netlab.End{Node: c.B.Node, Name: "up"}
		u, err := netlab.ConnectNodes(hub, netlab.End{Node: up.B.Node, Name: "down"}, 1500)
		if err != nil {
			t.Fatal(err)
		}
		if listens {
			pass, err := AttachPass(u.B)
			if err != nil {
				t.Fatal(err)
			}
			defer pass.Close()
		}
		l, err := a.Attach(c.B, dataplane.Native)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if err := a.SetUplink(u.A); err != nil {
			t.Fatal(err)
		}
		socket, err := c.A.Packets(false)
		if err != nil {
			t.Fatal(err)
		}
		defer socket.Close()
		for i := range sums {
			p := data{job: 7, fragment: uint32(i), count: 1, lanes: make([]int32, 8)}
			if err := socket.Send(p.encode(t, addressOf(0).As4())); err != nil {
				t.Fatal(err)
			}
		}
		completed := uint64(0)
		for tries := 0; completed < sums && tries < 1_000_000; tries++ {
			counts, err := a.Latch()
			if err != nil {
				t.Fatal(err)
			}
			completed += counts["completed"]
		}
		there, err := u.B.Counts()
		for tries := 0; err == nil && listens && there.Received < sums && tries < 10_000; tries++ { // frames are forwarded after counting
			there, err = u.B.Counts()
		}
		if err != nil || completed != sums || (there.Received >= sums) != listens {
			t.Errorf("listens %v: %d sums, %+v at the other end, %v", listens, completed, there, err)
		}
	}
}
