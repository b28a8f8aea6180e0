package capture

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
)

// TestKindsOfErrors checks that all faults in a file are usage errors.
func TestKindsOfErrors(t *testing.T) {
	for _, err := range []error{ErrFormat, ErrCut, ErrLink, ErrTime, ErrTimeBackwards, ErrNoOLAF, ErrExists} {
		if kind, declared := olaf.KindOf(err); !declared || kind != olaf.Usage {
			t.Errorf("%v is of kind %v", err, kind)
		}
	}
}

// TestGzippedFiles checks that both formats are read through gzip and that files that only begin like gzip are
// rejected.
func TestGzippedFiles(t *testing.T) {
	for _, format := range []Format{PCAP, PCAPNG} {
		got, _, err := decodeAll(zip(t, sample(t, format, 4)))
		if err != nil || len(got) != 4 {
			t.Errorf("%v: %d updates, %v", format, len(got), err)
		}
	}
	if _, err := NewReader(bytes.NewReader(append([]byte{0x1f}, make([]byte, 40)...)), "in"); !errors.Is(err,
		ErrFormat) || !strings.Contains(err.Error(), "magic") {
		t.Errorf("half of the mark: %v", err)
	}
}

// TestCloseClosesTheFile checks that a reader closes the file that it opened.
func TestCloseClosesTheFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "in.pcap")
	if err := os.WriteFile(name, sample(t, PCAP, 1), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if err := r.Close(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a second time: %v", err)
	}
}

// TestLongestPacket checks packets at the length limit and one byte above it.
func TestLongestPacket(t *testing.T) {
	header := bytes.Clone(sample(t, PCAP, 1)[:24])
	copy(header[16:20], []byte{0, 0, 8, 0}) // half a MiB
	for n, want := range map[uint32]error{maxPacket: nil, maxPacket + 1: ErrFormat} {
		r, err := NewReader(bytes.NewReader(append(bytes.Clone(header), record(1, 0, n, n, make([]byte, n))...)), "in")
		if err != nil {
			t.Fatal(err)
		}
		var p Packet
		if err := r.Next(&p); !errors.Is(err, want) {
			t.Errorf("%d bytes: %v, want %v", n, err, want)
		}
	}
}

// TestTheFirstOfEqualFaultsIsNamed checks that the first of two faults with the same number of packets is named.
func TestTheFirstOfEqualFaultsIsNamed(t *testing.T) {
	pcap := sample(t, PCAP, 1)
	frame := pcap[24+16 : 24+16+256]
	foreign, broken := bytes.Clone(frame), bytes.Clone(frame)
	foreign[36] = 0
	broken[24]++
	file := append(append(bytes.Clone(pcap[:24]), record(0, 0, 256, 256, foreign)...), record(0, 0, 256, 256, broken)...)
	_, _, err := decodeAll(file)
	r, openErr := NewReader(bytes.NewReader(file), "in")
	if openErr != nil {
		t.Fatal(openErr)
	}
	d := NewDecoder(r)
	for d.Next(new(Arrival)) == nil {
	}
	first := d.account.Faults()[0].Fault
	if err == nil || !strings.HasSuffix(err.Error(), "2 packets, mostly "+first.Error()) {
		t.Errorf("%v, want %v", err, first)
	}
}

// TestRecordingIsWritten checks that a recording can be read back from its file.
func TestRecordingIsWritten(t *testing.T) {
	name := filepath.Join(t.TempDir(), "out.pcapng")
	f, err := CreateFrom(name, false, Interface{Name: "eth9", SnapBytes: 64})
	if err != nil {
		t.Fatal(err)
	}
	source := liveStamps{20, 10, 30}
	r := Recording{Source: &source, Order: Order{WindowNS: 25}, File: f}
	if _, err := r.Take(3); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Flush(), f.WriteFrame(50*olaf.Time(olaf.Nanosecond), []byte{9}), f.Commit()); err != nil {
		t.Fatal(err)
	}
	in, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	got := ""
	for {
		var p Packet
		if err := in.Next(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		got += fmt.Sprintf("%d:%x ", p.UnixNS, p.Data)
	}
	if got != "10:0a 20:14 30:1e 50:09 " {
		t.Errorf("the file holds %s", got)
	}
}

// TestFilesAreCompleteOrRemoved completes and abandons files under various conditions. It checks that a file that
// exists afterwards is complete, that no temporary file is left, and that an error names the file.
func TestFilesAreCompleteOrRemoved(t *testing.T) {
	const old = "what was there"
	for what, c := range map[string]struct {
		force     bool
		meanwhile func(f *File) error
		says      string // empty if the file is in place
		kind      error
	}{
		"a new one": {}, "one by force": {force: true},
		"one in another's place": {true, func(f *File) error { return os.WriteFile(f.path, []byte(old), 0o600) }, "", nil},
		"one that was closed": {false, func(f *File) error { return f.pending.File.Close() },
			"file already closed", fs.ErrClosed},
		"one that was closed, by force": {true, func(f *File) error { return f.pending.File.Close() },
			"file already closed", fs.ErrClosed},
		"one that was written and closed": {false, func(f *File) error {
			return errors.Join(f.Finish(),
				f.pending.File.Close())
		}, "file already closed", fs.ErrClosed},
		"one that was removed": {false, func(f *File) error { return os.Remove(f.pending.Name()) },
			"no such file or directory", fs.ErrNotExist},
		"one that was removed, by force": {true, func(f *File) error { return os.Remove(f.pending.Name()) },
			"no such file or directory", fs.ErrNotExist},
		"one whose folder was removed, by force": {true,
			func(f *File) error { return os.RemoveAll(filepath.Dir(f.path)) }, "no such file or directory", fs.ErrNotExist},
		"one in a folder's place, by force": {true, func(f *File) error { return os.Mkdir(f.path, 0o700) },
			"file exists", fs.ErrExist},
	} {
		for _, name := range []string{"run.pcap", "run.pcapng"} {
			folder := filepath.Join(t.TempDir(), "runs")
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			begin := func() *File {
				t.Helper()
				f, err := Create(filepath.Join(folder, name), c.force, 0)
				if err == nil {
					err = f.WriteUpdate(4000, addresses(0), update(0, 1), nil)
				}
				if err == nil && c.meanwhile != nil {
					err = c.meanwhile(f)
				}
				if err != nil {
					t.Fatal(err)
				}
				return f
			}
			left := func() (names []string) {
				entries, _ := os.ReadDir(folder)
				for _, e := range entries {
					names = append(names, e.Name())
				}
				return names
			}
			f := begin()
			before := left()
			err := f.Commit()
			first, _, _ := strings.Cut(fmt.Sprint(err), "\n")
			switch {
			case c.says == "" && (err != nil || f.Abandon() != nil || fmt.Sprint(left()) != "["+name+"]"):
				t.Errorf("%s: %v, left is %v", what, err, left())
			case c.says != "" && (!errors.Is(err, c.kind) || first != "write "+f.path+": "+c.says):
				t.Errorf("%s: %v, want %s", what, err, c.says)
			}
			for _, n := range left() {
				if strings.HasPrefix(n, ".") {
					t.Errorf("%s: of %v there is %v", what, before, left())
				}
			}
			if c.says == "" {
				if got, _, err := decodeFile(f.path); err != nil || len(got) != 1 {
					t.Errorf("%s: %d updates, %v", what, len(got), err)
				}
			}
		}
	}
}

// TestAbandonedFiles checks that abandoned files are removed, that earlier files stay, and that failures are reported.
func TestAbandonedFiles(t *testing.T) {
	for what, c := range map[string]struct {
		meanwhile func(f *File) error
		want      error
	}{
		"as it is": {func(*File) error { return nil }, nil},
		"closed":   {func(f *File) error { return f.pending.File.Close() }, fs.ErrClosed},
		"removed":  {func(f *File) error { return os.Remove(f.pending.Name()) }, fs.ErrNotExist},
	} {
		folder := t.TempDir()
		path := filepath.Join(folder, "run.pcap")
		if err := os.WriteFile(path, []byte("there"), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Create(path, true, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.meanwhile(f); err != nil {
			t.Fatal(err)
		}
		if err := f.Abandon(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
		there, err := os.ReadFile(path)
		if left, _ := os.ReadDir(folder); err != nil || string(there) != "there" || len(left) != 1 {
			t.Errorf("%s: %q, %d files, %v", what, there, len(left), err)
		}
	}
}

// TestTakenNamesGetANumber checks the name of a file next to 1 or 98 others with its name, and the error next to 99.
func TestTakenNamesGetANumber(t *testing.T) {
	for taken, named := range map[int]string{1: "run-2.pcap", 98: "run-99.pcap", 99: ""} {
		folder := t.TempDir()
		f, err := Create(filepath.Join(folder, "run.pcap"), false, 0)
		if err != nil {
			t.Fatal(err)
		}
		names := []string{"run.pcap"}
		for n := 2; n <= taken; n++ {
			names = append(names, fmt.Sprintf("run-%d.pcap", n))
		}
		for _, name := range names {
			if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want := taken
		if named != "" {
			want, named = taken+1, filepath.Join(folder, named)
		}
		err = f.Commit()
		if _, now, _ := strings.Cut(fmt.Sprint(err), "this one is now "); !errors.Is(err, ErrExists) ||
			errors.Is(err, fs.ErrExist) != (named == "") || now != named {
			t.Errorf("beside %d: %v", taken, err)
		}
		if left, err := os.ReadDir(folder); err != nil || len(left) != want {
			t.Errorf("%d files of %d, %v", len(left), want, err)
		}
	}
}

// TestOrderAllocatesNothing checks that packets through a full window cause no allocations after a warm-up.
func TestOrderAllocatesNothing(t *testing.T) {
	o := Order{WindowNS: 100}
	data := make([]byte, 64)
	var p Packet
	at := int64(0)
	run := func() {
		for range 1000 {
			at += 3
			o.Push(&Packet{UnixNS: at, Data: data})
			o.Pop(&p, false)
		}
	}
	run()
	if n := testing.AllocsPerRun(10, run); n > 0 {
		t.Errorf("%v allocations in 1,000 packets", n)
	}
}
