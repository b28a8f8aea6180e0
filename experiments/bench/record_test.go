package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gopacket/gopacket/pcapgo"

	"github.com/olafctl/olaf/backends/backendstest"
	"github.com/olafctl/olaf/experiments/testbed"
)

// TestRecordingChangesNoNumber checks that a capture is written during the runs, next to parallel ones, that it changes
// no number, and that it contains exactly the frames of the first run.
func TestRecordingChangesNoNumber(t *testing.T) {
	plain, err := json.Marshal(mustBench(t, smallSpecOf(t), Options{}).Document())
	must(t, err)
	var first []byte
	for cards, runs := range map[int]int{1: 1, 2: 5, 5: 5} {
		path := filepath.Join(t.TempDir(), "run.pcapng")
		s := smallSpecOf(t)
		s.Runs = runs
		r, err := s.Record(path, false)
		must(t, err)
		m := mustBench(t, s, Options{Cards: cards, Stream: NewStream(r)})
		if got, want := int64(r.Frames()), m.Outcome.Runs[0][0].Counters.Of("received"); got != want || got == 0 {
			t.Errorf("%d cards: %d frames, %d were received", cards, got, want)
		}
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the file is there before it is whole: %v", err)
		}
		must(t, errors.Join(r.Commit(), r.Abandon()))
		file, err := os.ReadFile(path)
		must(t, err)
		if first == nil {
			first = file
		}
		if !bytes.Equal(file, first) {
			t.Errorf("%d cards, %d runs: other bytes", cards, runs)
		}
		doc, err := json.Marshal(m.Document())
		must(t, err)
		if runs == 5 && !bytes.Equal(doc, plain) {
			t.Errorf("%d cards: recording changes the numbers", cards)
		}
	}
}

// TestRecordingNeedsADeviceThatRecords checks that nothing runs on a device that does not provide frames.
func TestRecordingNeedsADeviceThatRecords(t *testing.T) {
	s := smallSpecOf(t)
	r, err := s.Record(filepath.Join(t.TempDir(), "run.pcapng"), false)
	must(t, err)
	defer r.Abandon()
	address := backendstest.ServeTwin(t, testbed.ServeOptions{})
	if _, err := MeasureSpec(t.Context(), s, Options{Device: address, Access: backendstest.TestAccess(),
		Stream: NewStream(r)}); !errors.Is(err,
		testbed.ErrUnsupported) {
		t.Errorf("%v", err)
	}
}

// TestRecordingOfAnotherSystem checks that a system's own frames are written, with their contributors as comments.
func TestRecordingOfAnotherSystem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.pcapng")
	s := smallSpecOf(t)
	s.Queue, s.Versus, s.H = "iswitch", "", new(3)
	r, err := s.Record(path, false)
	must(t, err)
	mustBench(t, s, Options{Stream: NewStream(r)})
	must(t, errors.Join(r.Commit(), r.Abandon()))
	frames, format := uint64(0), s.Frame()
	eachFrame(t, path, func(data []byte, length int, comments []string) {
		frames++
		v, err := format.Decode(data)
		if err != nil || v.Message.Name != "data" || length != int(format.Size(48)) {
			t.Fatalf("frame %d of %d bytes: %v", frames, length, err)
		}
		if len(comments) != 1 || !strings.HasPrefix(comments[0], "merged 3: w") {
			t.Fatalf("frame %d says %q", frames, comments)
		}
	})
	if frames == 0 || frames != r.Frames() {
		t.Errorf("%d frames, %d were written", frames, r.Frames())
	}
}

// recordBench captures a bench and returns the path.
func recordBench(t *testing.T, s Spec) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "run.pcapng")
	r, err := s.Record(path, false)
	must(t, err)
	mustBench(t, s, Options{Stream: NewStream(r)})
	must(t, errors.Join(r.Commit(), r.Abandon()))
	return path
}

// eachFrame reads a capture: the bytes of every frame, its length on the wire, and its comments.
func eachFrame(t *testing.T, path string, take func(data []byte, length int, comments []string)) {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	reader, err := pcapgo.NewNgReader(f, pcapgo.DefaultNgReaderOptions)
	must(t, err)
	for {
		data, info, options, err := reader.ReadPacketDataWithOptions()
		if errors.Is(err, io.EOF) {
			return
		}
		must(t, err)
		take(data, info.Length, options.Comments)
	}
}

// TestRecordingOfJoinedTwins checks that the frames behind two joined twins equal those behind one, gradients included,
// also for another system.
func TestRecordingOfJoinedTwins(t *testing.T) {
	for _, queue := range []string{"", "iswitch"} {
		record := func(generator string) []byte {
			path := filepath.Join(t.TempDir(), "run.pcapng")
			s := smallSpecOf(t)
			if queue != "" {
				s.Queue, s.Versus, s.H = queue, "", new(3)
			}
			r, err := s.Record(path, false)
			must(t, err)
			access := backendstest.TestAccess()
			access.Devices, access.Generator = nil, generator
			mustBench(t, s, Options{Access: access, Stream: NewStream(r)})
			must(t, errors.Join(r.Commit(), r.Abandon()))
			file, err := os.ReadFile(path)
			must(t, err)
			return file
		}
		if one, two := record(""), record("twin:"); !bytes.Equal(one, two) || len(one) < 1000 {
			t.Errorf("queue %q: %d bytes behind one twin, other %d behind two", queue, len(one), len(two))
		}
	}
}
