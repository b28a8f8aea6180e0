package xdp

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/dataplane"
)

// mutate breaks a frame in up to three of the ways in which frames can be broken, or not at all.
func mutate(rng *rand.Rand, frame []byte) []byte {
	b := append([]byte(nil), frame...)
	if rng.IntN(3) == 0 {
		fillUDPChecksum(b)
	}
	for range rng.IntN(4) {
		switch rng.IntN(6) {
		case 0:
			b[rng.IntN(min(len(b), olaf.HeaderBytes+olaf.AckStatusBytes))] ^= 1 << rng.IntN(8)
		case 1:
			b[rng.IntN(len(b))] = byte(rng.Uint32())
		case 2:
			b = b[:max(14, len(b)-rng.IntN(80))]
		case 3:
			b = append(b, make([]byte, rng.IntN(9))...)
		case 4: // change both lengths consistently, with a correct checksum
			if len(b) > 42 {
				delta := uint16(rng.IntN(17)) - 8
				for _, at := range []int{16, 38} {
					binary.BigEndian.PutUint16(b[at:], binary.BigEndian.Uint16(b[at:])+delta)
				}
				fixIPChecksum(b)
				b = append(b, make([]byte, 16)...)[:max(14, min(len(b)+16, len(b)+int(int16(delta))))]
			}
		case 5:
			if len(b) > 34 {
				b[14+rng.IntN(20)] ^= 1 << rng.IntN(8)
				fixIPChecksum(b)
			}
		}
	}
	return b
}

func fixIPChecksum(b []byte) {
	binary.BigEndian.PutUint16(b[24:], 0)
	binary.BigEndian.PutUint16(b[24:], ^onesComplement(0, b[14:34]))
}

// fillUDPChecksum writes the checksum of a frame that has none.
func fillUDPChecksum(b []byte) {
	sum := uint32(17) + uint32(binary.BigEndian.Uint16(b[38:]))
	binary.BigEndian.PutUint16(b[40:], 0)
	pseudo := append(append([]byte(nil), b[26:34]...), b[34:]...)
	c := ^onesComplement(sum, pseudo)
	if c == 0 {
		c = 0xffff
	}
	binary.BigEndian.PutUint16(b[40:], c)
}

func onesComplement(sum uint32, b []byte) uint16 {
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	if len(b)%2 == 1 {
		sum += uint32(b[len(b)-1]) << 8
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return uint16(sum)
}

// TestKernelVerdicts checks the kernel's verdicts on broken frames against the parser in package olaf.
func TestKernelVerdicts(t *testing.T) {
	k := load(t, "fifo", dataplane.Build{Slots: 4, Clusters: 4, Lanes: 4, FrameLanes: olaf.MaxLanes, Senders: 4})
	defer k.Close()
	known := [4]byte{10, 0, 0, 1}
	if err := errors.Join(k.SetSenders([]dataplane.Sender{{Address: addressOf(0), Cluster: 1, Worker: 1}}), k.Run(true)); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(7, 7))
	a := olaf.Addresses{SrcIP: known, DstIP: [4]byte{10, 255, 0, 1}, SrcPort: 4242}
	seen, want := map[string]int{}, map[string]uint64{}
	for range *events {
		u := olaf.Update{Cluster: 1, Worker: 1, Count: uint16(1 + rng.IntN(2)), Lanes: uint16(rng.IntN(60)),
			GenNS: rng.Uint64() % olaf.GenModulus}
		frame := make([]byte, u.Size()+olaf.AckStatusBytes)
		var n int
		var err error
		if rng.IntN(4) == 0 {
			n, err = olaf.EncodeAck(frame, &a, &u, olaf.QueueStatus{}, nil)
		} else {
			n, err = olaf.EncodeUpdate(frame, &a, &u, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		b := mutate(rng, frame[:n])
		verdict, err := k.Arrive(append([]byte(nil), b...))
		if err != nil {
			t.Fatal(err)
		}
		f, fault := olaf.ParseFrame(b)
		class, wanted := "update", Drop
		switch {
		case errors.Is(fault, olaf.ErrNotOLAF):
			class, wanted = "bypassed", Pass
			want["foreign"]++
		case fault != nil:
			class = "malformed"
		case f.Kind() == olaf.KindAck || f.Addresses().SrcIP != known:
			class, wanted = "bypassed", Pass
		}
		seen[class]++
		if class != "update" {
			want[class]++
		}
		if verdict != wanted {
			t.Fatalf("%x: verdict %d, and the parser says %v", b, verdict, fault)
		}
	}
	_, got, err := k.Latch(false)
	if err != nil {
		t.Fatal(err)
	}
	if got["bypassed"] != want["bypassed"] || got["foreign"] != want["foreign"] || got["malformed"] != want["malformed"] ||
		got["appended"]+got["dropped_full"] != uint64(seen["update"]) {
		t.Errorf("counted %v, want %v of %v", got, want, seen)
	}
	t.Log(seen)
}
