package regmap

import (
	"fmt"
	"math/bits"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// validateMap returns an error if registers overlap or are misaligned, or if documentation is missing.
func validateMap() error {
	for i := range blocks {
		b := &blocks[i]
		if bits.OnesCount32(b.Size) != 1 || b.Base%b.Size != 0 {
			return fmt.Errorf("block %s: window %#x+%#x is not a natural power of two", b.Name, b.Base, b.Size)
		}
		end := uint32(0)
		for j := range b.Registers {
			r := &b.Registers[j]
			if r.Offset%r.Bytes() != 0 || r.Offset < end {
				return fmt.Errorf("%s.%s at %#x overlaps or is misaligned", b.Name, r.Name, r.Offset)
			}
			if end = r.Offset + r.Bytes(); end > b.Size {
				return fmt.Errorf("%s.%s lies outside its block", b.Name, r.Name)
			}
			if r.Doc == "" {
				return fmt.Errorf("%s.%s has no description", b.Name, r.Name)
			}
			var seen uint32
			for _, f := range r.Fields {
				if f.Hi < f.Lo || f.Hi > 31 || seen&f.Mask() != 0 {
					return fmt.Errorf("%s.%s.%s overlaps or is reversed", b.Name, r.Name, f.Name)
				}
				seen |= f.Mask()
			}
		}
	}
	return nil
}

func TestMapIsConsistent(t *testing.T) {
	if err := validateMap(); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, b := range AllBlocks() {
		if seen[b.Name] {
			t.Errorf("block %s twice", b.Name)
		}
		seen[b.Name] = true
	}
}

func TestBlocksFormAList(t *testing.T) {
	all := AllBlocks()
	for i, b := range all {
		next := uint64(0)
		if i+1 < len(all) {
			next = uint64(all[i+1].Base)
		}
		ref, err := FindRegister(b.Name + ".next")
		if err != nil || ref.Register.Reset != next {
			t.Errorf("%s.next = %#x, want %#x (%v)", b.Name, ref.Register.Reset, next, err)
		}
	}
}

func TestLookup(t *testing.T) {
	ref, err := FindRegister("queue.control")
	if err != nil || ref.Address() != QueueControl || ref.Name() != "queue.control" {
		t.Fatalf("got %v %v", ref, err)
	}
	if _, err := FindRegister("dropped"); err == nil || !strings.Contains(err.Error(), "queue.cluster_dropped_full") {
		t.Errorf("no proposal in %v", err)
	}
	if _, err := FindRegister("nothing.like.it"); err == nil {
		t.Error("found what is not there")
	}
}

func TestAt(t *testing.T) {
	cases := []struct {
		addr uint32
		name string
		high bool
	}{
		{CommonMagic, "common.magic", false},
		{QueueIn, "queue.in", false},
		{QueueIn + 4, "queue.in", true},
		{QueueIn + 2, "", false},
		{CommonBase + 0xFFC, "", false},
		{0, "", false},
		{0xFFFFFFFC, "", false},
	}
	for _, c := range cases {
		ref, high, ok := RegisterAt(c.addr)
		if ok != (c.name != "") || high != c.high || ok && ref.Name() != c.name {
			t.Errorf("At(%#x) = %v %v %v, want %q", c.addr, ref, high, ok, c.name)
		}
	}
}

func TestDecodeNamesValues(t *testing.T) {
	ref, _ := FindRegister("queue.mode")
	got := map[string]string{}
	for _, f := range ref.Register.Decode(QueueModeDisciplineOlaf | QueueModeProvenance) {
		got[f.Field.Name] = f.Text
	}
	want := map[string]string{"discipline": "olaf", "reward_filter": "0", "free_on_start": "0", "provenance": "1"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// field reads one described field from the words of a record.
func field(t interface{ Fatalf(string, ...any) }, record, name string, words []uint32) uint32 {
	for _, r := range AllRecords() {
		for _, f := range r.Fields {
			if r.Name == record && f.Name == name {
				return words[f.Word] & f.Mask() >> f.Lo
			}
		}
	}
	t.Fatalf("no field %s.%s", record, name)
	return 0
}

func TestDescriptorFollowsItsDescription(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := Descriptor{
			Time: rapid.Uint64Range(0, MaxDescriptorTime).Draw(t, "time"), Flow: rapid.Uint16().Draw(t, "flow"),
			Length: rapid.Uint16().Draw(t, "length"), Flags: rapid.Uint16().Draw(t, "flags"),
			Sequence: rapid.Uint32().Draw(t, "sequence"), Reward: rapid.Int32().Draw(t, "reward"),
		}
		w := make([]uint32, DescriptorWords)
		d.Put(w)
		var back Descriptor
		back.Get(w)
		if back != d {
			t.Fatalf("%+v came back as %+v", d, back)
		}
		get := func(name string) uint32 { return field(t, "descriptor", name, w) }
		byDescription := Descriptor{
			Time: uint64(get("time_high"))<<32 | uint64(get("time_low")), Flow: uint16(get("flow")), Length: uint16(get("length")),
			Flags: uint16(get("flags")), Sequence: get("sequence"), Reward: int32(get("reward")),
		}
		if byDescription != d {
			t.Fatalf("the description reads %+v from %+v", byDescription, d)
		}
	})
}

func TestFlowFollowsItsDescription(t *testing.T) {
	f := Flow{
		SourceIP: [4]byte{10, 1, 2, 3}, DestIP: [4]byte{10, 0, 0, 254}, SourceMAC: [6]byte{2, 0x11, 0x22, 0x33, 0x44, 0x55},
		DestMAC: [6]byte{2, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE}, SourcePort: 4001, DestPort: 20300, Cluster: 65535, Worker: 513,
		Length: 256, Template: 3, Enable: true, Format: 1, ToS: 0x1c, Seg: 0x0102030405060708,
	}
	w := make([]uint32, FlowWords)
	for i := range w {
		w[i] = ^uint32(0)
	}
	f.Put(w)
	var back Flow
	back.Get(w)
	if back != f {
		t.Fatalf("%+v came back as %+v", f, back)
	}
	want := map[string]uint32{
		"source_ip": 0x0A010203, "dest_ip": 0x0A0000FE, "dest_port": 20300, "source_port": 4001, "worker": 513, "cluster": 65535,
		"length": 256, "template": 3, "source_mac_high": 0x02112233, "source_mac_low": 0x4455, "dest_mac_high": 0x02AA,
		"dest_mac_low": 0xBBCCDDEE, "enable": 1, "format": 1, "tos": 0x1c, "seg_low": 0x05060708, "seg_high": 0x01020304,
	}
	for name, v := range want {
		if got := field(t, "flow", name, w); got != v {
			t.Errorf("%s = %#x, want %#x", name, got, v)
		}
	}
}

func TestRecordsCostNothing(t *testing.T) {
	d, f := Descriptor{Time: 7}, Flow{Enable: true}
	w := make([]uint32, FlowWords)
	if n := testing.AllocsPerRun(100, func() { d.Put(w); d.Get(w); f.Put(w); f.Get(w) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// bankReader returns the address of each word as its value.
type bankReader struct{}

func (bankReader) Read32(addr uint32) (uint32, error) { return addr, nil }

func TestReadCounters(t *testing.T) {
	c, err := ReadQueueCounters(bankReader{})
	if err != nil {
		t.Fatal(err)
	}
	if want := uint64(QueueAcksNoGroup+4)<<32 | uint64(QueueAcksNoGroup); c.AcksNoGroup != want {
		t.Errorf("acks_no_group = %#x, want %#x", c.AcksNoGroup, want)
	}
	if c.At(QueueIn) != &c.In || c.At(QueueIn+4) != nil || c.At(QueueAcksNoGroup+8) != nil || c.At(QueueSnapshotCycle-8) != nil {
		t.Error("At finds the wrong counter")
	}
}

func BenchmarkDescriptorPut(b *testing.B) {
	d, w := Descriptor{Time: 1 << 40, Flow: 3}, make([]uint32, DescriptorWords)
	for b.Loop() {
		d.Put(w)
	}
}

func TestCountersAddAndSubtract(t *testing.T) {
	c := QueueCounters{In: 5, AcksNoGroup: 1}
	c.Sub(QueueCounters{In: 7})
	c.Add(QueueCounters{In: 4, AcksNoGroup: 2})
	if c.In != 2 || c.AcksNoGroup != 3 || c.Bypassed != 0 {
		t.Errorf("got %+v", c)
	}
}
