package xdp

import (
	"encoding/binary"
	"runtime"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// isolate gives the test a network namespace of its own, which ends with its thread: the thread is never unlocked.
func isolate(t *testing.T) {
	t.Helper()
	if err := Missing(append(append(LoadRights[:len(LoadRights):len(LoadRights)], NamespaceRights...), PacketRights...)...); err != nil {
		t.Skip(err)
	}
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
}

// pair makes two ends of a cable and says their indices.
func pair(t *testing.T) (worker, queue int) {
	t.Helper()
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "worker"}, PeerName: "queue"}); err != nil {
		t.Fatal(err)
	}
	index := func(name string) int {
		l, err := netlink.LinkByName(name)
		if err == nil {
			err = netlink.LinkSetUp(l)
		}
		if err != nil {
			t.Fatal(err)
		}
		return l.Attrs().Index
	}
	return index("worker"), index("queue")
}

// TestRealFrames sends frames through a pair of interfaces, at whose other end the kernel merges them, and holds every sum.
func TestRealFrames(t *testing.T) {
	for _, mode := range []Mode{Native, Generic} {
		t.Run(string(mode), func(t *testing.T) {
			isolate(t)
			worker, queue := pair(t)
			const workers, lanes, rounds = 8, 48, 500
			k := load(t, "olaf", Build{Slots: 4, Clusters: 4, Lanes: lanes, FrameLanes: lanes, Senders: workers, LogBytes: 1 << 20})
			defer k.Close()
			open(t, k, workers)
			l, err := k.Attach(queue, mode)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			r, err := NewReplayer("olaf", engine.Config{Slots: 4, Clusters: 4})
			if err != nil {
				t.Fatal(err)
			}
			socket := packetSocket(t)
			defer unix.Close(socket)
			out := make([]byte, olaf.FrameSize(lanes))
			for round := range rounds {
				for w := range workers {
					send(t, socket, worker, w, lanes, uint32(round))
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
			if c := r.Compare(x.Number); c.Void != "" || c.Equal != c.Checked || sums["appended"] != 4*rounds || sums["aggregated"] != (workers-4)*rounds {
				t.Fatalf("%+v, %v", c, sums)
			}
		})
	}
}

// open makes workers known, each in cluster number modulo 4, and admits updates.
func open(t *testing.T, k *Queue, workers int) {
	t.Helper()
	var senders []Sender
	for i := range workers {
		senders = append(senders, Sender{addressOf(i), olaf.ClusterID(i % 4), olaf.WorkerID(i)})
	}
	for _, err := range []error{k.SetSenders(senders), k.Configure(Settings{Depth: 4}), k.Run(true)} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func packetSocket(t *testing.T) int {
	t.Helper()
	s, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// send sends one worker's update: lane i is its number times a hundred, plus the round and i.
func send(t *testing.T, socket, ifindex, w, lanes int, round uint32) {
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
	if err := unix.Sendto(socket, frame, 0, &unix.SockaddrLinklayer{Ifindex: ifindex, Halen: 6}); err != nil {
		t.Fatal(err)
	}
}

// expectSum serves the next frame, once both of its cluster's workers are inside, and holds its lanes against what they sent.
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
		first := int32(x.Update.Cluster) // the other is worker first + 4
		want := 100*(2*first+4) + 2*int32(round) + 2*int32(i)
		if got := int32(binary.BigEndian.Uint32(frame[olaf.HeaderBytes+olaf.LaneBytes*i:])); got != want {
			t.Fatalf("round %d, cluster %d, lane %d: %d, want %d", round, first, i, got, want)
		}
	}
	if _, _, err := k.Turn(true, false, nil); err != nil {
		t.Fatal(err)
	}
}
