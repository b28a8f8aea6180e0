package xdp

import (
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/engine"
)

// contend makes two threads send to a queue while a third serves its output, and calls visit for every decision.
func contend(t *testing.T, k *Queue, n int, visit func(*dataplane.Decision)) {
	t.Helper()
	var senders []dataplane.Sender
	for i := range 12 {
		senders = append(senders, dataplane.Sender{Address: addressOf(i), Cluster: olaf.ClusterID(i % 4), Worker: olaf.WorkerID(i)})
	}
	for _, err := range []error{k.SetSenders(senders), k.Configure(dataplane.Settings{Depth: 3}), k.Run(true)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var sending sync.WaitGroup
	for half := range 2 {
		sending.Go(func() { flood(t, k, senders[6*half:6*half+6], n) })
	}
	done := make(chan struct{})
	go func() { sending.Wait(); close(done) }()
	out := make([]byte, 64+4*48)
	for {
		if _, _, err := k.Turn(true, true, out); err != nil {
			t.Fatal(err)
		}
		if err := k.Decisions(visit); err != nil {
			t.Fatal(err)
		}
		select {
		case <-done:
			if err := k.Decisions(visit); err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
	}
}

// flood sends n updates of some workers in turn, on a separate thread.
func flood(t *testing.T, k *Queue, senders []dataplane.Sender, n int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	frame := make([]byte, olaf.FrameSize(48))
	for i := range n {
		s := senders[i%len(senders)]
		u := olaf.Update{Cluster: s.Cluster, Worker: s.Worker, Seq: uint32(i / len(senders)), GenNS: uint64(i), Count: 1, Lanes: 48}
		a := olaf.Addresses{SrcIP: s.Address.As4(), DstIP: [4]byte{10, 255, 0, 1}}
		_, err := olaf.EncodeUpdate(frame, &a, &u, nil)
		if err == nil {
			_, err = k.Arrive(frame)
		}
		if err != nil {
			t.Error(err)
			return
		}
	}
}

// TestReplay compares every decision that the kernel made while several threads used the queue with the engine's.
func TestReplay(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(disciplines)) {
		t.Run(name, func(t *testing.T) {
			k := load(t, name, dataplane.Build{Slots: 3, Clusters: 4, Lanes: 48, FrameLanes: 48, Senders: 12, LogBytes: 1 << 22})
			defer k.Close()
			r, err := dataplane.NewReplayer(name, engine.Config{Slots: 3, Clusters: 4})
			if err != nil {
				t.Fatal(err)
			}
			n := *events / 4
			contend(t, k, n, r.Add)
			x, sums, err := k.Latch(false)
			if err != nil {
				t.Fatal(err)
			}
			c := r.Compare(x.Number)
			if c.Void != "" || c.First != "" || c.Equal != c.Checked || c.Checked < 2*n || sums["unlogged"] != 0 {
				t.Fatalf("%+v, %v", c, sums)
			}
			t.Logf("%d of %d decisions as the engine's", c.Equal, c.Checked)
		})
	}
}

// TestReplayOfOverflow fills a log that is not read. It checks that missing entries are counted, and that the
// comparison is void.
func TestReplayOfOverflow(t *testing.T) {
	k := load(t, "olaf", dataplane.Build{Slots: 3, Clusters: 4, Lanes: 48, FrameLanes: 48, Senders: 12, LogBytes: 4096})
	defer k.Close()
	senders := []dataplane.Sender{{Address: addressOf(0), Cluster: 1, Worker: 1}}
	for _, err := range []error{k.SetSenders(senders), k.Run(true)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	const sent = 200
	flood(t, k, senders, sent)
	r, err := dataplane.NewReplayer("olaf", engine.Config{Slots: 1, Clusters: 4})
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Decisions(r.Add); err != nil {
		t.Fatal(err)
	}
	x, sums, err := k.Latch(false)
	if err != nil {
		t.Fatal(err)
	}
	c := r.Compare(x.Number)
	if x.Number != sent || sums["unlogged"] == 0 || uint64(c.Checked)+sums["unlogged"] != sent || c.Void == "" {
		t.Fatalf("%+v of %d, %d not logged", c, x.Number, sums["unlogged"])
	}
}

// TestReplayFindsDifferences checks that changed decisions are found.
func TestReplayFindsDifferences(t *testing.T) {
	u := olaf.Update{Cluster: 1, Worker: 1, Count: 1, Lanes: 48}
	right := []dataplane.Decision{
		{Number: 0, Class: engine.Appended, Slot: 0, Update: u},
		{Number: 1, Kind: dataplane.Start, Slot: 0, Update: olaf.Update{Cluster: 1, Count: 1, Lanes: 48}},
		{Number: 2, Class: engine.Appended, Slot: 1, Update: u},
		{Number: 3, Kind: dataplane.Release, Slot: 0},
		{Number: 4, Class: engine.Replaced, Slot: 1, Update: u},
		{Number: 5, Kind: dataplane.Flush, Slot: engine.NoSlot},
	}
	for _, c := range []struct {
		name string
		edit func([]dataplane.Decision)
		want string
	}{
		{"nothing", func([]dataplane.Decision) {}, ""},
		{"out of order", func(d []dataplane.Decision) { d[0], d[5] = d[5], d[0] }, ""},
		{"class", func(d []dataplane.Decision) { d[4].Class = engine.Aggregated },
			"decision 4: aggregated in slot 1, but the engine has replaced in slot 1"},
		{"slot", func(d []dataplane.Decision) { d[2].Slot = 0 }, "decision 2: appended in slot 0, but the engine has appended " +
			"in slot 1"},
		{"frame", func(d []dataplane.Decision) { d[1].Update.Count = 2 }, "decision 1: slot 0 starts with"},
		{"release", func(d []dataplane.Decision) { d[3].Slot = 1 }, "decision 3: slot 1 is released, but the engine releases " +
			"slot 0"},
		{"start twice", func(d []dataplane.Decision) { d[2] = d[1]; d[2].Number = 2 }, "decision 2: slot 0 starts, but the " +
			"engine's output can't start"},
		{"cluster", func(d []dataplane.Decision) { d[0].Update.Cluster = 9 }, "decision 0: the update is invalid"},
		{"kind", func(d []dataplane.Decision) { d[5].Kind = 9 }, "decision 5: unknown kind 9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := dataplane.NewReplayer("olaf", engine.Config{Slots: 2, Clusters: 4})
			if err != nil {
				t.Fatal(err)
			}
			log := append([]dataplane.Decision(nil), right...)
			c.edit(log)
			for i := range log {
				r.Add(&log[i])
			}
			got := r.Compare(uint64(len(log)))
			if got.Void != "" || got.Checked != len(log) || !strings.HasPrefix(got.First, c.want) ||
				(c.want == "") != (got.Equal == got.Checked) {
				t.Errorf("%+v, want %q", got, c.want)
			}
		})
	}
}
