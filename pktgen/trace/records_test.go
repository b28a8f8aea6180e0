package trace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// writeRecords writes a worker's record file for a test.
func writeRecords(t *testing.T, path string, h recordHeader, rows ...record) {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(RecordMagic)
	copy(h.Name[:], "mlp")
	parts := []any{h}
	for _, one := range rows {
		parts = append(parts, one, []float32{3, 4})
	}
	for _, part := range parts {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestRecordsOfAllWorkers checks that the updates from two workers' files are in the order of their times, which begin
// at 0.
func TestRecordsOfAllWorkers(t *testing.T) {
	base := filepath.Join(t.TempDir(), "mlp")
	writeRecords(t, base+".0.olafrec", recordHeader{Workers: 2, Lanes: 2}, record{AtNS: 1000, CostNS: 5, Reward: 1,
		Version: 7}, record{AtNS: 1300})
	writeRecords(t, base+".1.olafrec", recordHeader{Worker: 1, Workers: 2, Cluster: 1, Lanes: 2}, record{AtNS: 1200})
	r, err := OpenRecords(base + ".0.olafrec")
	if err != nil {
		t.Fatal(err)
	}
	if h := r.Header(); h.Env != "mlp" || h.Workers != 2 || h.Clusters != 2 || h.Lanes != 2 || h.Clock != Wall {
		t.Errorf("the header is %+v", h)
	}
	for i, want := range []Update{{GenNS: 0, CostNS: 5, Reward: 1, BaseVersion: 7}, {GenNS: 200, Worker: 1, Cluster: 1},
		{GenNS: 300, Seq: 1}} {
		want.Digest, want.GradNorm = GradientDigest([]float32{3, 4}), 5
		var u Update
		if err := r.Next(&u); err != nil || u != want {
			t.Errorf("update %d is %+v, %v; want %+v", i, u, err, want)
		}
	}
	if err := r.Next(new(Update)); err != io.EOF {
		t.Errorf("behind the last update: %v", err)
	}
}

// TestDamagedRecords checks the errors for files that do not make a trace together.
func TestDamagedRecords(t *testing.T) {
	for name, write := range map[string]func(base string){
		"another worker's": func(base string) {
			writeRecords(t, base+".0.olafrec", recordHeader{Worker: 1, Workers: 2,
				Lanes: 2})
		},
		"one missing": func(base string) { writeRecords(t, base+".0.olafrec", recordHeader{Workers: 2, Lanes: 2}) },
		"two lengths": func(base string) {
			writeRecords(t, base+".0.olafrec", recordHeader{Workers: 2, Lanes: 2})
			writeRecords(t, base+".1.olafrec", recordHeader{Worker: 1, Workers: 2, Lanes: 3})
		},
		"too many workers": func(base string) {
			writeRecords(t, base+".0.olafrec", recordHeader{Workers: math.MaxUint32,
				Lanes: 2})
		},
		"cut":            func(base string) { _ = os.WriteFile(base+".0.olafrec", []byte(RecordMagic+"12"), 0o600) },
		"something else": func(base string) { _ = os.WriteFile(base+".0.olafrec", []byte("PK"), 0o600) },
	} {
		base := filepath.Join(t.TempDir(), "x")
		write(base)
		if _, err := OpenRecords(base + ".0.olafrec"); !errors.Is(err, ErrFormat) && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
