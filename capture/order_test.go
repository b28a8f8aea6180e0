package capture

import (
	"encoding/binary"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestOrder checks that packets that are late by less than a window are sorted and that no packet is lost or changed.
func TestOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const window = 100
		n := rapid.IntRange(0, 300).Draw(t, "packets")
		at := make([]int64, n) // by number
		arrival := make([]int, n)
		for i := range n {
			at[i] = 1000 + int64(i*rapid.IntRange(0, 40).Draw(t, "gap"))
			arrival[i] = i
		}
		slices.Sort(at)
		late := make([]int64, n)
		for i := range n {
			late[i] = at[i] + rapid.Int64Range(0, window-1).Draw(t, "late")
		}
		slices.SortStableFunc(arrival, func(a, b int) int { return int(late[a] - late[b]) })

		o := Order{WindowNS: window}
		var got []int64
		var p Packet
		pop := func(all bool) {
			for o.Pop(&p, all) {
				if number := binary.BigEndian.Uint64(p.Data); at[number] != p.UnixNS || p.Number != int(number) || p.Wire != 8 {
					t.Fatalf("%+v", p)
				}
				got = append(got, p.UnixNS)
			}
		}
		buffer := make([]byte, 8)
		for _, i := range arrival {
			binary.BigEndian.PutUint64(buffer, uint64(i))
			o.Push(&Packet{Number: i, UnixNS: at[i], Data: buffer, Wire: 8})
			pop(false)
		}
		pop(true)
		if !slices.Equal(got, at) {
			t.Fatalf("%v, want %v", got, at)
		}
	})
}

func TestOrderIsBounded(t *testing.T) {
	o := Order{WindowNS: 1 << 40}
	var p Packet
	for i := range maxHeld {
		o.Push(&Packet{UnixNS: int64(i)})
		if full := i == maxHeld-1; o.Pop(&p, false) != full {
			t.Fatalf("packet %d: passed on %v", i, !full)
		}
	}
}

func BenchmarkOrder(b *testing.B) {
	o := Order{WindowNS: 100_000}
	var p Packet
	data := make([]byte, 256)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		o.Push(&Packet{UnixNS: int64(i*1000 + i%7*300), Data: data, Wire: 256})
		o.Pop(&p, false)
	}
}
