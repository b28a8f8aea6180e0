package atp

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/programtest"
)

func TestVectors(t *testing.T) { programtest.RunVectors(t, Describe(), 19) }

func TestRefusals(t *testing.T) {
	configs := []program.Config{{Slots: -1}, {Slots: MaxSlots + 1}, {LaneMemory: -1}, {Profile: "p5"}, {Wrap: true}}
	programtest.CheckRefusals(t, Describe(), configs, nil, map[string]program.Job{
		"a fan beyond the bitmap": {Fan: MaxMembers + 1}, "more than the table": {Base: 1, Slots: 8},
		"a part without a length": {Base: 1}, "another level": {Level: 1},
		"a part before the table": {Base: -1, Slots: 2}, "a part of less than nothing": {Base: 1, Slots: -1},
	})
}

// reference is a slow, simple table. It stores, for every aggregator, its owner and the packets inside.
type reference struct {
	fan   int
	owner map[int][2]int // job and sequence
	parts map[int]map[int]int64
	out   []string
}

func (r *reference) line(to string, key [2]int, bitmap int, mark string, value int64) string {
	return fmt.Sprintf("%s %d/%d %b%s %d", to, key[0], key[1], bitmap, mark, value)
}

// sum adds in the order of bits. The order does not matter as long as nothing saturates.
func (r *reference) sum(index int) (bitmap int, value int64) {
	for bit, v := range r.parts[index] {
		bitmap |= 1 << bit
		value += v
	}
	return bitmap, value
}

func (r *reference) data(index int, key [2]int, bit int, value int64, resend bool) string {
	owner, held := r.owner[index]
	mine := held && owner == key
	_, inside := r.parts[index][bit]
	switch {
	case resend && !mine:
		r.out = append(r.out, r.line("up", key, 0, "r", value))
		return "forwarded"
	case resend:
		if !inside { // otherwise the first value counts
			r.parts[index][bit] = value
		}
		bitmap, sum := r.sum(index)
		r.out = append(r.out, r.line("up", key, bitmap, "r", sum))
		delete(r.owner, index)
		delete(r.parts, index)
		return "flushed_by_resend"
	case held && !mine:
		r.out = append(r.out, r.line("up", key, 0, "c", value))
		return "collided"
	case inside && len(r.parts[index]) < r.fan:
		return "duplicate_dropped"
	}
	class := "duplicate_answered"
	if !inside {
		if !held {
			r.owner[index], r.parts[index] = key, map[int]int64{}
		}
		r.parts[index][bit] = value
		if len(r.parts[index]) < r.fan {
			return "consumed"
		}
		class = "completed"
	}
	bitmap, sum := r.sum(index)
	r.out = append(r.out, r.line("up", key, bitmap, "", sum))
	return class
}

type recorder struct{ lines []string }

func (r *recorder) Emit(to program.Dest, p *program.Packet, lanes []uint32) {
	if p.Kind == program.Ack {
		return
	}
	mark := ""
	if p.Flags&program.Resend != 0 {
		mark += "r"
	}
	if p.Flags&program.Collision != 0 {
		mark += "c"
	}
	r.lines = append(r.lines, fmt.Sprintf("%s %d/%d %b%s %d", to, p.Job, p.Seg, p.Bitmap, mark, int32(lanes[0])))
}

// TestAgainstReference checks that any order of packets, repeats and acknowledgements has the same effect as on the
// reference.
func TestAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workers := rapid.IntRange(1, 5).Draw(t, "workers")
		r := &reference{fan: workers, owner: map[int][2]int{}, parts: map[int]map[int]int64{}}
		s, err := New(program.Config{Slots: 2, LaneMemory: 1})
		if err != nil {
			t.Fatal(err)
		}
		j := program.Job{}
		for w := range workers {
			j.Members = append(j.Members, program.Member{Worker: olaf.WorkerID(w), Port: program.Port(w)})
		}
		if err := s.Configure(j); err != nil {
			t.Fatal(err)
		}
		d := Describe()
		out := &recorder{}
		packets := rapid.IntRange(1, 150).Draw(t, "packets")
		for range packets {
			index, key := rapid.IntRange(0, 1).Draw(t, "index"),
				[2]int{rapid.IntRange(1, 2).Draw(t, "job"), rapid.IntRange(1, 2).Draw(t, "seq")}
			p := &program.Packet{Job: olaf.ClusterID(key[0]), Seg: uint64(key[1]), Index: uint32(index), Lanes: 1}
			if rapid.IntRange(0, 5).Draw(t, "what") == 0 {
				p.Kind = program.Ack
				want := "forwarded"
				if owner, held := r.owner[index]; held && owner == key {
					want = "released"
					delete(r.owner, index)
					delete(r.parts, index)
				}
				if have := d.ClassName(s.Receive(0, program.Uplink, p, nil, out)); have != want {
					t.Fatalf("an acknowledgement of %v at %d is %s, want %s", key, index, have, want)
				}
				continue
			}
			bit, value := rapid.IntRange(0, workers-1).Draw(t, "bit"), rapid.Int64Range(-1000, 1000).Draw(t, "value")
			resend := rapid.IntRange(0, 4).Draw(t, "resend") == 0
			p.Kind, p.Trace = program.Data, program.NewTrace(olaf.WorkerID(bit), uint32(key[1]), 1)
			if resend {
				p.Flags = program.Resend
			}
			have := d.ClassName(s.Receive(0, program.Port(bit), p, []uint32{uint32(int32(value))}, out))
			if want := r.data(index, key, bit, value, resend); have != want {
				t.Fatalf("%v of %d at %d is %s, the reference says %s", key, bit, index, have, want)
			}
		}
		if !slices.Equal(out.lines, r.out) {
			t.Fatalf("left %q, the reference %q", out.lines, r.out)
		}
		programtest.CheckAccount(t, &d, s, uint64(packets))
		if s.CountOccupied() != len(r.owner) {
			t.Fatalf("%d aggregators are held, the reference holds %d", s.CountOccupied(), len(r.owner))
		}
	})
}

type nobody struct{}

func (nobody) Emit(program.Dest, *program.Packet, []uint32) {}

func BenchmarkReceive(b *testing.B) {
	for _, lanes := range []int{0, Lanes} {
		for _, slots := range []int{450, DefaultSlots} {
			b.Run(fmt.Sprintf("lanes=%d/aggregators=%d", lanes, slots), func(b *testing.B) {
				s, err := New(program.Config{Slots: slots, LaneMemory: lanes})
				if err != nil {
					b.Fatal(err)
				}
				j := program.Job{}
				for w := range 8 {
					j.Members = append(j.Members, program.Member{Worker: olaf.WorkerID(w), Port: program.Port(w)})
				}
				if err := s.Configure(j); err != nil {
					b.Fatal(err)
				}
				data := make([]uint32, lanes)
				p := &program.Packet{Kind: program.Data, Seg: 1, Lanes: uint16(lanes), Count: 1, Trace: program.NewTrace(1, 1, 1)}
				ack := &program.Packet{Kind: program.Ack}
				b.ReportAllocs()
				for b.Loop() {
					for port := range program.Port(8) {
						s.Receive(0, port, p, data, nobody{})
					}
					ack.Seg, ack.Index = p.Seg, p.Index
					s.Receive(0, program.Uplink, ack, nil, nobody{})
					p.Seg++
					p.Index = uint32(p.Seg) % uint32(slots)
				}
				programtest.PerDecision(b, 8)
			})
		}
	}
}
