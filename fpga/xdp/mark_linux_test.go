package xdp

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/dataplane"
)

// TestMarkStatus sends ACKs past a queue that contains updates of two clusters in three slots, one of them on the wire.
// It checks that the written status equals that of package olaf, and that it is written only if the queue is the
// busiest on the path.
func TestMarkStatus(t *testing.T) {
	k := load(t, "olaf", dataplane.Build{Slots: 4, Clusters: 4, Lanes: 8, FrameLanes: 8, Senders: 4})
	defer k.Close()
	open(t, k, 4)
	if err := k.Configure(dataplane.Settings{Depth: 3}); err != nil {
		t.Fatal(err)
	}
	arrive := func(w int) {
		u := olaf.Update{Cluster: olaf.ClusterID(w), Worker: olaf.WorkerID(w), Count: 1, Lanes: 8}
		frame := make([]byte, u.Size())
		a := olaf.Addresses{SrcIP: addressOf(w).As4(), DstIP: [4]byte{10, 255, 0, 1}}
		if _, err := olaf.EncodeUpdate(frame, &a, &u, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := k.Arrive(frame); err != nil {
			t.Fatal(err)
		}
	}
	arrive(0)
	arrive(1)
	if _, _, err := k.Turn(false, true, make([]byte, olaf.FrameSize(8))); err != nil {
		t.Fatal(err)
	}
	own := olaf.QueueStatus{Occupancy: 2, ActiveClusters: 2, Slots: 3}
	full := olaf.QueueStatus{Occupancy: 9, ActiveClusters: 9, Slots: 3, Full: true}
	for _, c := range []struct {
		name        string
		brings, say olaf.QueueStatus
	}{
		{"nothing", olaf.QueueStatus{}, own},
		{"a hop less busy", olaf.QueueStatus{Occupancy: 9, ActiveClusters: 1, Slots: 2}, own},
		{"a hop as busy", olaf.QueueStatus{Occupancy: 9, ActiveClusters: 4, Slots: 6},
			olaf.QueueStatus{Occupancy: 9, ActiveClusters: 4, Slots: 6}},
		{"a busier hop that is full", full, full},
		{"fullness", olaf.QueueStatus{}, olaf.QueueStatus{Occupancy: 3, ActiveClusters: 3, Slots: 3, Full: true}},
	} {
		if c.name == "fullness" {
			arrive(2)
		}
		u := olaf.Update{Cluster: 1, Worker: 2, Seq: 3, Count: 1, Lanes: 2}
		frame := make([]byte, olaf.AckSize(2))
		if _, err := olaf.EncodeAck(frame, &olaf.Addresses{}, &u, c.brings, []int32{7, -7}); err != nil {
			t.Fatal(err)
		}
		frame = marked(t, k, frame)
		f, err := olaf.ParseFrame(frame)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var lanes [2]int32
		if f.Lanes(lanes[:]); f.QueueStatus() != c.say || lanes != [2]int32{7, -7} {
			t.Errorf("%s: %+v with lanes %v, want %+v", c.name, f.QueueStatus(), lanes, c.say)
		}
	}
	update := make([]byte, olaf.FrameSize(8))
	if _, err := olaf.EncodeUpdate(update, &olaf.Addresses{}, &olaf.Update{Count: 1, Lanes: 8}, nil); err != nil {
		t.Fatal(err)
	}
	if got := marked(t, k, update); string(got) != string(update) {
		t.Error("an update was changed")
	}
}

func marked(t *testing.T, k *Queue, frame []byte) []byte {
	t.Helper()
	out := make([]byte, len(frame))
	v, err := k.collection.Programs["mark"].Run(&ebpf.RunOptions{Data: frame, DataOut: out})
	if err != nil || Verdict(v) != Pass {
		t.Fatalf("%d, %v", v, err)
	}
	return out
}
