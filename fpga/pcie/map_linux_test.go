package pcie

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
)

// fileCard opens a BAR2 that is a plain file: it stores what is written.
func fileCard(tb testing.TB) (path string, d *Device) {
	tb.Helper()
	path = filepath.Join(tb.TempDir(), "resource2")
	if err := os.WriteFile(path, make([]byte, barBytes), 0o600); err != nil {
		tb.Fatal(err)
	}
	w, err := mapFile(path, barBytes, true)
	if err != nil {
		tb.Fatal(err)
	}
	w.Store32(ShellCanary, canaryLive)
	w.Store32(regmap.CommonMagic, regmap.CommonMagicResetValue)
	d = &Device{window: w, ours: true, clock: hostClock{}}
	d.buildLayout()
	tb.Cleanup(func() { _ = d.Close() })
	return path, d
}

// TestAccessAfterSurpriseRemoval checks an access after the memory under the mapping disappeared, as it does on
// surprise removal.
func TestAccessAfterSurpriseRemoval(t *testing.T) {
	path, d := fileCard(t)
	if err := d.Write32(regmap.QueueDepth, 5); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	d.window.Store32(regmap.QueueDepth, 6)
	if _, err := d.Read32(regmap.QueueDepth); !errors.Is(err, fpga.ErrGone) {
		t.Errorf("read of a card that was pulled out: %v", err)
	}
}

func TestMapRefusesSmallFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none")
	if _, err := mapFile(path, barBytes, false); err == nil {
		t.Error("a file that is not there was mapped")
	}
	if err := os.WriteFile(path, nil, 0o400); err != nil {
		t.Fatal(err)
	}
	w, err := mapFile(path, barBytes, false)
	if err != nil {
		return // some kernels reject the mapping at once
	}
	defer w.Close()
	if v := w.Load32(0); v != allOnes {
		t.Errorf("beyond the end: %#x", v)
	}
}

// The benchmarks measure the overhead of this program per access: the mapped file is ordinary memory.

func BenchmarkRead32(b *testing.B) {
	_, d := fileCard(b)
	for b.Loop() {
		if _, err := d.Read32(regmap.QueueOccupancy); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWrite32 measures one store and the two reads that confirm it.
func BenchmarkWrite32(b *testing.B) {
	_, d := fileCard(b)
	for b.Loop() {
		if err := d.Write32(regmap.QueueDepth, 8); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBurstWord measures one word of a long burst.
func BenchmarkBurstWord(b *testing.B) {
	_, d := fileCard(b)
	words := make([]uint32, 4096)
	d.window.Store32(regmap.GeneratorBuiltDescriptors, 1<<20)
	for range b.N / len(words) {
		d.window.Store32(regmap.GeneratorMemAddress, 0)
		if err := d.WriteBurst(regmap.GeneratorMemData, words); err != nil {
			b.Fatal(err)
		}
	}
}
