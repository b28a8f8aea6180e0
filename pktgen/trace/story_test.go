package trace

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/internal/test/golden"
)

// TestScalingStories checks that scaled recordings, their statistics and schedules are unchanged.
func TestScalingStories(t *testing.T) {
	var b bytes.Buffer
	source, err := MeasureSource(sample(5, 40))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&b, "source %+v\n", source)
	for i, change := range []func(*Scaling){
		func(*Scaling) {},
		func(s *Scaling) { s.Averaging = WholeRun },
		func(s *Scaling) { s.Drift, s.Block = true, 3 },
		func(s *Scaling) { s.Spread, s.Jitter = 4, 0.5 },
		func(s *Scaling) { s.ActiveClusters, s.TurnUpdates = 2, 3 },
		func(s *Scaling) { s.ActiveClusters, s.TurnUpdates, s.Spread = 1, 2.5, 2 },
		func(s *Scaling) { s.Workers, s.Clusters, s.Seed, s.Block = 1, 1, 7, 1000 },
		func(s *Scaling) { s.Rate, s.Line, s.Frame = olaf.Gbps, olaf.Gbps, 1024 },
	} {
		recording, err := LoadRecording(sample(5, 40))
		if err != nil {
			t.Fatal(err)
		}
		s := DefaultScaling()
		s.Workers, s.Clusters, s.Updates = 9, 4, 30
		change(&s)
		sc, err := NewScaler(recording, s)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "== %d: %+v, %d updates\n", i, *sc.Header().Scaled, sc.Total())
		var kept list
		kept.header = *sc.Header()
		var u Update
		for sc.Next(&u) == nil {
			kept.updates = append(kept.updates, u)
		}
		for k := range kept.updates {
			if k%25 < 3 {
				fmt.Fprintf(&b, "%+v\n", kept.updates[k])
			}
		}
		again := list{kept.header, kept.updates}
		scaled, err := MeasureSource(&again)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%+v\n", sc.Report(source, scaled))
		again = list{kept.header, kept.updates}
		plan, err := NewSchedule(&again, len(kept.updates), s.Line, s.Frame)
		if err != nil {
			t.Fatal(err)
		}
		descriptors := make([]regmap.Descriptor, 400)
		n := plan.Fill(descriptors)
		fmt.Fprintf(&b, "%d of %d descriptors, %+v, %v\n", n, plan.Total(), plan.Departures(), plan.Err())
		for k := 0; k < n; k += 40 {
			fmt.Fprintf(&b, "%+v\n", descriptors[k])
		}
		endless := s
		if endless.Averaging == Stationary {
			endless.Updates = 0
			if sc, err = NewScaler(recording, endless); err != nil {
				t.Fatal(err)
			}
			for w := range endless.Workers {
				fmt.Fprintf(&b, " %d", sc.Interval(w))
			}
			b.WriteByte('\n')
		}
	}
	golden.Equal(t, "scalings.txt", b.Bytes())
}

// TestLimits checks that every limit on a scaling, a header and an update accepts the last valid value and rejects the
// next one.
func TestLimits(t *testing.T) {
	var b bytes.Buffer
	for _, c := range []struct {
		what string
		set  func(*Scaling, float64)
		at   []float64
	}{
		{"workers", func(s *Scaling, v float64) { s.Workers = int(v) }, []float64{0, 9, 1 << 16, 1<<16 + 1}},
		{"clusters", func(s *Scaling, v float64) { s.Clusters = int(v) }, []float64{0, 1, 27, 28}},
		{"updates", func(s *Scaling, v float64) { s.Updates = int(v) }, []float64{-1, 0, math.MaxUint32, math.MaxUint32 + 1}},
		{"frame", func(s *Scaling, v float64) { s.Frame = olaf.Size(v) },
			[]float64{60, 64, 66, 68, float64(olaf.MaxFrame), float64(olaf.MaxFrame) + 4}},
		{"rate", func(s *Scaling, v float64) { s.Rate = olaf.Rate(v) }, []float64{-1, 0, 1, 100e9, 100e9 + 1}},
		{"block", func(s *Scaling, v float64) { s.Block = int(v) }, []float64{0, 1}},
		{"spread", func(s *Scaling, v float64) { s.Spread = v }, []float64{0.99, 1, 1000, 1000.5, math.NaN()}},
		{"jitter", func(s *Scaling, v float64) { s.Jitter = v }, []float64{-0.01, 0, 2, 2.01, math.NaN()}},
		{"active", func(s *Scaling, v float64) { s.ActiveClusters = int(v) }, []float64{-1, 0, 9, 10}},
		{"turn", func(s *Scaling, v float64) { s.ActiveClusters, s.TurnUpdates = 1, v }, []float64{-1, 0, 0.5, math.NaN()}},
		{"turn of nobody", func(s *Scaling, v float64) { s.TurnUpdates = v }, []float64{-1}},
		{"endless whole run", func(s *Scaling, v float64) { s.Averaging, s.Updates = WholeRun, int(v) }, []float64{0, 1}},
	} {
		for _, v := range c.at {
			s := DefaultScaling()
			c.set(&s, v)
			fmt.Fprintf(&b, "%s %v: %v\n", c.what, v, s.Check())
		}
	}
	s := DefaultScaling()
	s.Averaging = "weekly"
	fmt.Fprintf(&b, "%v\n", s.Check())
	for _, h := range []Header{
		{Workers: 0, Clusters: 1, Clock: Wall}, {Workers: 1, Clusters: 1, Clock: Wall},
		{Workers: 1 << 16, Clusters: 1 << 16, Clock: Virtual}, {Workers: 1<<16 + 1, Clusters: 1, Clock: Wall},
		{Workers: 2, Clusters: 0, Clock: Wall},
		{Workers: 2, Clusters: 3, Clock: Wall}, {Workers: 2, Clusters: 2, Clock: "sun"},
		{Workers: 2, Clusters: 2, Clock: Wall, Lanes: -1}, {Workers: 2, Clusters: 2, Clock: Wall, Lanes: olaf.MaxLanes},
		{Workers: 2, Clusters: 2, Clock: Wall, Lanes: olaf.MaxLanes + 1},
	} {
		fmt.Fprintf(&b, "%d workers, %d clusters, %d lanes, %s: %v\n", h.Workers, h.Clusters, h.Lanes, h.Clock, h.Check())
	}
	good := Update{GenNS: 5, Worker: 1, Cluster: 1, Seq: 1, Reward: 1}
	for _, change := range []func(*Update){
		func(*Update) {}, func(u *Update) { u.GenNS = 4 }, func(u *Update) { u.GenNS = 3 }, func(u *Update) { u.Worker = 2 },
		func(u *Update) { u.Cluster = 2 }, func(u *Update) { u.Cluster = 0 }, func(u *Update) { u.Seq = 0 },
		func(u *Update) { u.Seq = 2 },
		func(u *Update) { u.Worker, u.Seq = 0, 0 }, func(u *Update) { u.Reward = math.NaN() },
		func(u *Update) { u.Reward = math.Inf(1) }, func(u *Update) { u.Reward = math.Inf(-1) }, func(u *Update) { u.CostNS = -1 },
	} {
		o := newOrder(&Header{Workers: 2, Clusters: 2})
		if err := o.checkNext(&Update{GenNS: 4, Worker: 1, Cluster: 1}); err != nil {
			t.Fatal(err)
		}
		u := good
		change(&u)
		fmt.Fprintf(&b, "%+v: %v, %d rows\n", u, o.checkNext(&u), o.rows)
	}
	for _, reward := range []float64{0, 1, -1, 0.001, 0.002, -0.002, 8388607.99, 8388608, 1e300, -8388608, -8388609, -1e300} {
		fmt.Fprintf(&b, "a reward of %g is %d\n", reward, (&Update{Reward: reward}).RewardQ248())
	}
	for _, c := range []struct {
		line  olaf.Rate
		frame olaf.Size
	}{{0, 64}, {-1, 64}, {1, 64}, {1, 63}, {1, olaf.MaxFrame}, {1, olaf.MaxFrame + 1}} {
		_, err := NewSchedule(&list{}, 1, c.line, c.frame)
		fmt.Fprintf(&b, "a schedule of frames of %d at %d: %v\n", c.frame, c.line, err)
	}
	last := int64(math.MaxInt64 / int64(olaf.Nanosecond) / 2)
	for _, at := range []int64{last, last + 1} {
		plan, err := NewSchedule(&list{updates: []Update{{GenNS: at}}}, 1, olaf.Gbps, 64)
		if err != nil {
			t.Fatal(err)
		}
		var d regmap.Descriptor
		fmt.Fprintf(&b, "an update at %d ns: %t, %v\n", at, plan.Next(&d), plan.Err())
		fmt.Fprintf(&b, "and then: %t, %v\n", plan.Next(&d), plan.Err())
	}
	e := DepartureError{}
	for _, c := range []struct{ intended, actual olaf.Time }{{10, 10}, {10, 15}, {20, 10}, {20, 30}, {20, 31}} {
		e.Add(c.intended, c.actual, 10)
		fmt.Fprintf(&b, "%+v: %v, %v\n", e, e.Check(e.Max), e.Check(e.Max-1))
	}
	golden.Equal(t, "limits.txt", b.Bytes())
}

// TestCSVStories checks what is read from CSV of every kind, and which line an error names.
func TestCSVStories(t *testing.T) {
	var b bytes.Buffer
	const head = "gen_ns,worker,cluster,reward"
	for _, text := range []string{
		"", "\n", "# a comment\n", head, head + "\n1,0,0,2.5\n", "# c\n# d\n" + head + "\n1,0,0,2.5\n# e\n2,1,0,3\n",
		" reward , cluster,worker,gen_ns\n 2.5, 0,0, 7\n", "gen_ns,worker,cluster\n", head + ",seq\n1,0,0,1,0\n1,0,0,1,1\n1,0,0,1,3\n",
		head + ",base_version,episodes,env_steps,cost_ns,grad_norm,digest\n1,0,0,1,2,3,4,5,0.5,ff\n", head + "\n-1,0,0,1\n",
		head + "\nx,0,0,1\n", head + "\n1,65536,0,1\n", head + "\n1,9,0,1\n", head + "\n1,0,9,1\n", head + "\n1,0,0,x\n",
		head + "\n1,0,0,NaN\n",
		head + "\n9223372036854775807,0,0,1\n", head + "\n9223372036854775808,0,0,1\n", head + ",episodes\n1,0,0,1,4294967295\n",
		head + ",episodes\n1,0,0,1,4294967296\n", head + ",digest\n1,0,0,1,xyz\n", head + ",digest\n1,0,0,1,ffffffffffffffff\n",
		head + "\n1,0,0\n", head + "\n1,0,0,1,5\n",
		head + "\n2,0,0,1\n1,1,0,1\n", head + "\n1,0,0,1\n\n2,1,0,1\n",
		csvHeader + "1\n# {\"tool\":\"x\",\"clock\":\"virtual\",\"workers\":3,\"clusters\":2}\n" + head + "\n1,2,1,0\n",
		csvHeader + "2\n# {}\n" + head + "\n", csvHeader + "x\n# {}\n" + head + "\n",
		csvHeader + "1\n# {\n" + head + "\n", csvHeader + "1\n# {\"workers\":0,\"clock\":\"wall\"}\n" + head + "\n", "\"",
		head + "\n\"", head + ",cost_ns\n1,0,0,1,-5\n", head + ",grad_norm\n1,0,0,1,1e39\n",
		"# " + strings.Repeat("x", 100) + "\n" + head + "\n1,0,0,1\n",
	} {
		fmt.Fprintf(&b, "%q\n", text)
		s, err := NewCSVSource(strings.NewReader(text), 2, 1)
		if err != nil {
			fmt.Fprintf(&b, "  %v\n", err)
			continue
		}
		h := s.Header()
		fmt.Fprintf(&b, "  %d workers, %d clusters, %s, %s\n", h.Workers, h.Clusters, h.Clock, h.Tool)
		var u Update
		for range 5 {
			if err = s.Next(&u); err != nil {
				fmt.Fprintf(&b, "  %v\n", err)
				break
			}
			fmt.Fprintf(&b, "  %+v\n", u)
		}
	}
	if err := WriteCSV(&b, sample(2, 3)); err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "csv.txt", b.Bytes())
	if err := WriteCSV(&limited{}, sample(2, 3)); !errors.Is(err, errFull) {
		t.Errorf("no room: %v", err)
	}
	if err := WriteCSV(&limited{left: 70_000}, sample(2, 2000)); !errors.Is(err, errFull) {
		t.Errorf("little room: %v", err)
	}
	if err := WriteCSV(io.Discard, &cut{sample(2, 3)}); !errors.Is(err, ErrTruncated) {
		t.Errorf("a source that ends early: %v", err)
	}
}

// limited is a writer with room for a limited number of bytes.
type limited struct{ left int }

var errFull = errors.New("no room")

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// cut is a source that ends before its announced end.
type cut struct{ *list }

func (c *cut) Next(u *Update) error {
	if err := c.list.Next(u); err == nil {
		return nil
	}
	return ErrTruncated
}

// torn is a cut source whose error also wraps io.EOF.
type torn struct{ cut }

func (c *torn) Next(u *Update) error {
	if err := c.cut.Next(u); err != nil {
		return fmt.Errorf("%w: %w", err, io.EOF)
	}
	return nil
}

// TestCSVIsDecimal checks that every number of an update is written in decimal, except for the digest.
func TestCSVIsDecimal(t *testing.T) {
	var b bytes.Buffer
	l := &list{header: Header{Clock: Wall, Workers: 99, Clusters: 50},
		updates: []Update{{GenNS: 10, Worker: 98, Cluster: 11, Reward: 12.5, Seq: 13, BaseVersion: 14, Episodes: 15, EnvSteps: 16,
			CostNS: 17, GradNorm: 18.5, Digest: 19}}}
	if err := WriteCSV(&b, l); err != nil {
		t.Fatal(err)
	}
	if want := "\n10,98,11,12.5,13,14,15,16,17,18.5,0000000000000013\n"; !strings.HasSuffix(b.String(), want) {
		t.Errorf("%s ends otherwise than %s", b.String(), want)
	}
}

// TestWritersThatFail checks that any failure to write is reported with its kind, and again by later calls.
func TestWritersThatFail(t *testing.T) {
	for _, err := range []error{ErrFormat, ErrVersion, ErrTruncated, ErrInvalid, ErrPayload, ErrScaling} {
		if kind, declared := olaf.KindOf(err); kind != olaf.Usage || !declared {
			t.Errorf("%v is of kind %v", err, kind)
		}
	}
	if _, err := NewWriter(io.Discard, Header{}); !errors.Is(err, ErrFormat) {
		t.Errorf("a header of nothing: %v", err)
	}
	l := sample(1, 1)
	var head bytes.Buffer
	if _, err := NewWriter(&head, l.header); err != nil {
		t.Fatal(err)
	}
	w, err := NewWriter(&limited{head.Len()}, l.header)
	if err := errors.Join(err, w.Write(&l.updates[0])); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.Flush(); !errors.Is(err, errFull) {
			t.Errorf("no room for a block: %v", err)
		}
		if err := w.Write(&Update{GenNS: math.MaxInt64, Seq: 1}); !errors.Is(err, errFull) {
			t.Errorf("written after there was no room: %v", err)
		}
	}
	long := "olaftrace/1\n{\"tool\":\"" + strings.Repeat("x", maxHeaderJSON+1<<17) + "\"}\n"
	if _, err := newReader(strings.NewReader(long)); !errors.Is(err, ErrFormat) ||
		!strings.HasSuffix(err.Error(), "its header is longer than 16777216 bytes") {
		t.Errorf("a header of %d bytes: %.200v", len(long), err)
	}
}

// TestUnusableFilesAreReported checks that a file that cannot be opened, created or named is reported and that nothing
// is left behind.
func TestUnusableFilesAreReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("no trace"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, _, err := Open(path); r != nil || !errors.Is(err, ErrFormat) || !strings.HasPrefix(err.Error(), path+": ") {
		t.Errorf("%v, %v", r, err)
	}
	if _, _, err := Open(path + ".gone"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a trace that is not there: %v", err)
	}
	if _, err := CreateFile(filepath.Join(path, "gone", "x"), sample(1, 1).header); err == nil {
		t.Error("a folder that is not there is no error")
	}
	if f, err := CreateFile(path+".new", Header{}); f != nil || !errors.Is(err, ErrFormat) {
		t.Errorf("a file with a header of nothing: %v, %v", f, err)
	}
	if left, err := filepath.Glob(path + ".new*"); err != nil || len(left) > 0 {
		t.Errorf("it leaves %q, %v", left, err)
	}
}

// TestPayloadsThatFail checks that a trace is not finished if its gradients do not fit on the disk or its payload file
// cannot get its name.
func TestPayloadsThatFail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	header := sample(1, 1).header
	header.Payload = true
	f, err := CreateFile(path, header)
	if err != nil {
		t.Fatal(err)
	}
	disk := f.pay
	f.pay = bufio.NewWriterSize(&limited{}, 16)
	if err := f.Append(&Update{}, []float32{1, 2}); err != nil {
		t.Errorf("as much as is held back: %v", err)
	}
	for name, full := range map[string]func() error{"written": func() error { return f.Append(&Update{Seq: 1}, make([]float32, 2)) },
		"flushed": f.Flush} {
		f.pay.Reset(&limited{})
		if _, err := f.pay.Write(make([]byte, 12)); err != nil {
			t.Fatal(err)
		}
		if err := full(); !errors.Is(err, errFull) {
			t.Errorf("no room for gradients that are %s: %v", name, err)
		}
	}
	f.pay = disk
	if err := os.MkdirAll(filepath.Join(path+PayloadSuffix, "taken"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err == nil {
		t.Error("a payload file that could not get its name is no error")
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the trace has its name: %v", err)
	}
}

// TestNumbersOfCSV checks that the error names lines whose numbers do not fit.
func TestNumbersOfCSV(t *testing.T) {
	for _, seq := range []string{"4294967296", "18446744073709551616", "-1"} {
		s, err := NewCSVSource(strings.NewReader("gen_ns,worker,cluster,reward,seq\n1,0,0,1,"+seq+"\n"), 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Next(new(Update)); !errors.Is(err, ErrFormat) {
			t.Errorf("sequence %s: %v", seq, err)
		}
	}
	s, err := NewCSVSource(strings.NewReader("gen_ns,worker,cluster,reward\n\"x\n\",0,0,1\n"), 1, 1)
	if err == nil {
		err = s.Next(new(Update))
	}
	if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "line 2: ") {
		t.Errorf("what is no number, over two lines: %v", err)
	}
}

// TestPayloadsByDigest checks that gradients are identified by the FNV-1a of their bytes, and that a payload file is
// checked against it, update by update.
func TestPayloadsByDigest(t *testing.T) {
	gradients := [][]float32{{1, -2.5e-7}, {float32(math.Pi), -3e30}, {0, 1e-40}}
	var file bytes.Buffer
	var digests []uint64
	for _, g := range gradients {
		h := fnv.New64a()
		if err := errors.Join(binary.Write(h, binary.LittleEndian, g), writeGradients(&file, g)); err != nil {
			t.Fatal(err)
		}
		digests = append(digests, h.Sum64())
		if got := GradientDigest(g); got != h.Sum64() {
			t.Errorf("%v: %016x, want %016x", g, got, h.Sum64())
		}
	}
	for _, c := range []struct {
		file    []byte
		updates []uint64
		want    string // expected error of the last request; empty for success
	}{
		{file.Bytes(), digests, ""},
		{file.Bytes()[:23], digests, "it ends after 2 updates"},
		{file.Bytes(), digests[:2], "it goes on after 2 updates"},
		{file.Bytes(), []uint64{digests[0], digests[2]},
			fmt.Sprintf("update 2 has digest %016x and its gradients %016x", digests[2], digests[1])},
	} {
		p := NewPayload(bytes.NewReader(c.file), &Header{Lanes: 2})
		var err error
		for i, d := range c.updates {
			var got []float32
			if got, err = p.Next(&Update{Digest: d}); err != nil {
				break
			}
			if !slices.Equal(got, gradients[i]) {
				t.Errorf("update %d: %v", i, got)
			}
		}
		if err == nil {
			err = p.End()
		}
		if (err == nil) != (c.want == "") || err != nil && !(errors.Is(err, ErrPayload) && strings.HasSuffix(err.Error(), c.want)) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// TestStatisticsOfNothing checks that a worker without updates has no statistics, and that updates at the same time
// have no dispersion.
func TestStatisticsOfNothing(t *testing.T) {
	l := &list{header: Header{Clock: Wall, Workers: 4, Clusters: 1}}
	for i := range uint32(100) {
		l.updates = append(l.updates, Update{Worker: olaf.WorkerID(1 + i%2), Seq: i / 2, GenNS: 7})
	}
	again := &list{header: l.header}
	for i := range uint32(200) {
		again.updates = append(again.updates, Update{Seq: i, GenNS: int64(i), Reward: float64(i + 1)})
	}
	for _, c := range []struct {
		n           int
		early, late float64
		dispersed   bool
	}{{1, 1, 1, false}, {2, 1, 2, false}, {3, 1, 3, false}, {5, 1, 5, false}, {19, 1, 19, false}, {20, 1.5, 19.5, false},
		{200, 10.5, 190.5, true}} {
		whole := &list{header: again.header, updates: again.updates[:c.n]}
		got, err := MeasureSource(whole)
		if err != nil || got.EarlyMean != c.early || got.LateMean != c.late || c.dispersed && len(got.Dispersion) == 0 {
			t.Errorf("%d updates, one a nanosecond: early %v, late %v, %v, %v", c.n, got.EarlyMean, got.LateMean, got.Dispersion, err)
		}
		if _, windows := got.Dispersion[4]; windows != (c.n > 8) { // needs at least two sums of four gaps
			t.Errorf("%d updates have a dispersion over four: %t", c.n, windows)
		}
		if many := c.n > 2; (got.Mean.Count > 0) != many || many && (got.Mean.Count != c.n-1 || got.Mean.MeanNS != 1) {
			t.Errorf("%d updates: %+v over workers", c.n, got.Mean)
		}
		if _, n, err := identifySource(&list{header: again.header, updates: again.updates[:c.n]}); err != nil || n != uint64(c.n) {
			t.Errorf("%d updates are %d, %v", c.n, n, err)
		}
	}
	recording, err := LoadRecording(sample(5, 40))
	if err != nil {
		t.Fatal(err)
	}
	sc, err := NewScaler(recording, DefaultScaling())
	if err != nil {
		t.Fatal(err)
	}
	each := []WorkerStatistics{{Intervals: Moments{MeanNS: 0.5}}, {}, {Intervals: Moments{MeanNS: 2}}}
	if got := sc.Report(Statistics{}, Statistics{PerWork: each}).Achieved; got != 2_500*256*8*olaf.Mbps { // 2.5 frames of 256 bytes per nanosecond
		t.Errorf("2.5 frames a nanosecond are %v", got)
	}
	s, err := MeasureSource(l)
	if err != nil || len(s.PerWork) != 2 || s.PerWork[0].Worker != 1 || s.PerWork[1].Worker != 2 || len(s.Dispersion) > 0 ||
		s.Updates != 100 {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestRewardsAreThinned checks that of too many rewards every second one is stored, then every fourth.
func TestRewardsAreThinned(t *testing.T) {
	s := NewStatistic(1)
	for i := range uint32(1 << 15) {
		s.Add(&Update{Seq: i, GenNS: int64(i), Reward: float64(i)})
	}
	for i, r := range s.rewards {
		if r != float64(uint64(i)*s.stride) {
			t.Fatalf("place %d has %v, every %d is kept", i, r, s.stride)
		}
	}
	if s.stride != 4 || len(s.rewards) != 1<<13 {
		t.Errorf("%d rewards, every %d", len(s.rewards), s.stride)
	}
}

// TestEarlyAndLateDeparturesDeviateAlike checks that early and late departures have the same deviation, to the
// picosecond.
func TestEarlyAndLateDeparturesDeviateAlike(t *testing.T) {
	for _, actual := range []olaf.Time{99, 101} {
		var e DepartureError
		e.Add(100, actual, 1)
		e.Add(100, 100, 1)
		if e != (DepartureError{Updates: 2, Max: 1, Sum: 1}) {
			t.Errorf("%d for 100: %+v", actual, e)
		}
	}
}

// TestIntervalsWithoutSpread checks that intervals without spread have no autocorrelation, which would be 0/0.
func TestIntervalsWithoutSpread(t *testing.T) {
	s := new(series)
	for n := range 4 {
		if m := s.moments(); m.Lag1 != 0 || m.CV != 0 || m.Count != n {
			t.Errorf("of %d: %+v", n, m)
		}
		s.add(5)
	}
}

// TestBlockSizesAreLimited checks that a block declares at most 16 MiB, both compressed and raw.
func TestBlockSizesAreLimited(t *testing.T) {
	const most = 1 << 24
	head := encode(t, &list{header: Header{Clock: Wall, Workers: 1, Clusters: 1}})
	head = head[:len(head)-blockHeader-endBytes]
	for _, c := range []struct {
		rows, packed, raw uint32
		want              error
	}{
		{1, most, 1, ErrTruncated}, {1, most + 1, 1, ErrFormat}, {1, 1, most, ErrTruncated}, {1, 1, most + 1, ErrFormat},
		{most, 1, most, ErrTruncated}, {2, 1, 1, ErrFormat},
	} {
		block := bytes.Clone(head)
		for _, word := range []uint32{c.rows, c.packed, c.raw, 0} {
			block = binary.LittleEndian.AppendUint32(block, word)
		}
		if _, err := decode(bytes.NewReader(block)); !errors.Is(err, c.want) {
			t.Errorf("%d updates of %d bytes, packed in %d: %v", c.rows, c.raw, c.packed, err)
		}
	}
}

// TestTurnsWithAllClusters checks that the length of turns has no effect if all clusters send at the same time.
func TestTurnsWithAllClusters(t *testing.T) {
	var first []Update
	for _, change := range []func(*Scaling){func(*Scaling) {}, func(s *Scaling) { s.TurnUpdates = 0 },
		func(s *Scaling) { s.ActiveClusters = s.Clusters }, func(s *Scaling) { s.TurnUpdates = -1 }} {
		recording, err := LoadRecording(sample(5, 40))
		if err != nil {
			t.Fatal(err)
		}
		s := DefaultScaling()
		s.Updates = 20
		change(&s)
		sc, err := NewScaler(recording, s)
		if err != nil {
			t.Fatal(err)
		}
		var all []Update
		for u := (Update{}); sc.Next(&u) == nil; {
			all = append(all, u)
		}
		if first == nil {
			first = all
		}
		if len(all) != sc.Total() || !slices.Equal(all, first) {
			t.Errorf("turns of %v updates for %d clusters: %d updates, not those of all at once", s.TurnUpdates, s.ActiveClusters,
				len(all))
		}
	}
}

// TestFileStories checks that files with different block sizes are unchanged byte by byte, and that the error for each
// kind of damage names the valid part before it.
func TestFileStories(t *testing.T) {
	var b bytes.Buffer
	whole := encode(t, sample(3, 4))
	fmt.Fprintf(&b, "%d bytes\n", len(whole))
	header := bytes.IndexByte(whole, '\n')
	body := header + 1 + bytes.IndexByte(whole[header+1:], '\n') + 1
	fmt.Fprintf(&b, "%s", whole[:body])
	for at := 0; at < len(whole); at++ {
		if at > body+24 && at < len(whole)-30 && at%16 > 0 {
			continue
		}
		flipped := bytes.Clone(whole)
		flipped[at] ^= 0x10
		_, flip := decode(bytes.NewReader(flipped))
		good, short := decode(bytes.NewReader(whole[:at]))
		fmt.Fprintf(&b, "%d: flipped %v | cut %d updates, %v\n", at-body, flip, len(good), short)
	}
	_, err := decode(bytes.NewReader(append(bytes.Clone(whole), 0)))
	fmt.Fprintf(&b, "one byte more: %v\n", err)
	for _, text := range []string{"olaftrace/", "olaftrace/\n", "olaftrace/0\n{}\n", "olaftrace/2\n{}\n", "olaftrace/x\n",
		"olaftrace/1\n{}\n", "olaftrace/1\n{\"workers\":1,\"clusters\":1,\"clock\":\"wall\"}\n", "olaftrace/1\n[]\n", "olaftrace/1\n{",
		"olaftrac", ""} {
		_, err := newReader(strings.NewReader(text))
		fmt.Fprintf(&b, "%q: %v\n", text, err)
	}
	long := "olaftrace/1\n{\"tool\":\"" + strings.Repeat("x", maxHeaderJSON) + "\"}\n"
	_, err = newReader(strings.NewReader(long))
	fmt.Fprintf(&b, "a header of %d bytes: %v\n", len(long), err)
	for _, n := range []int{blockUpdates - 1, blockUpdates, blockUpdates + 1} {
		raw := encode(t, sample(1, n))
		updates, err := decode(bytes.NewReader(raw))
		fmt.Fprintf(&b, "%d updates: %d bytes, %d read, %v\n", n, len(raw), len(updates), err)
	}
	golden.Equal(t, "files.txt", b.Bytes())
	for room := 0; room < len(whole); room += 40 {
		w, err := NewWriter(&limited{room}, sample(3, 4).header)
		if err == nil {
			for l := sample(3, 4); err == nil && len(l.updates) > 0; l.updates = l.updates[1:] {
				err = w.Write(&l.updates[0])
			}
			err = errors.Join(err, w.Close())
		}
		if !errors.Is(err, errFull) {
			t.Errorf("room for %d of %d bytes: %v", room, len(whole), err)
		}
	}
}

// TestRowLimitsRoundTrip checks that the limits of every number in a row survive a round trip, and that values beyond
// them are rejected.
func TestRowLimitsRoundTrip(t *testing.T) {
	for _, u := range []Update{
		{}, {GenNS: math.MaxInt64, Worker: math.MaxUint16, Cluster: math.MaxUint16, Seq: math.MaxUint32, BaseVersion: math.MaxUint64,
			Episodes: math.MaxUint32, EnvSteps: math.MaxUint32, CostNS: math.MaxInt64,
			Reward: -math.MaxFloat64, GradNorm: math.MaxFloat32, Digest: math.MaxUint64},
	} {
		row := appendRow(nil, &u, 0)
		var back Update
		if rest := parseRow(append(row, 7), &back, 0); len(rest) != 1 || back != u {
			t.Errorf("%+v came back as %+v with %d bytes left", u, back, len(rest))
		}
		for n := range row {
			if parseRow(row[:n], &back, 0) != nil {
				t.Errorf("%d of %d bytes are taken", n, len(row))
			}
		}
		if u.GenNS > 0 && parseRow(row, &back, 1) != nil {
			t.Error("a time beyond 63 bits is taken")
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	fields := []uint64{math.MaxInt64, math.MaxUint16, math.MaxUint16, math.MaxUint32, math.MaxUint64, math.MaxUint32, math.MaxUint32,
		math.MaxInt64}
	for i, most := range fields {
		for _, more := range []uint64{0, 1} {
			if most == math.MaxUint64 && more == 1 {
				continue
			}
			var row []byte
			for k := range fields {
				v := uint64(r.IntN(100))
				if k == i {
					v = most + more
				}
				for ; v >= 0x80; v >>= 7 {
					row = append(row, byte(v)|0x80)
				}
				row = append(row, byte(v))
			}
			row = append(row, make([]byte, fixedBytes)...)
			var u Update
			if rest := parseRow(row, &u, 0); (rest != nil) != (more == 0) {
				t.Errorf("field %d of %d: taken %t", i, most+more, rest != nil)
			}
		}
	}
}

// TestManyRewards checks that rewards are thinned evenly if there are too many, so that the first tenth stays the first
// tenth.
func TestManyRewards(t *testing.T) {
	s := NewStatistic(1)
	const n = 100_000
	for i := range n {
		s.Add(&Update{GenNS: int64(i) * 1000, Seq: uint32(i), Reward: float64(i + 1)})
	}
	out := s.Result()
	if math.Abs(out.EarlyMean-n/20) > n/200 || math.Abs(out.LateMean-19*n/20) > n/200 || len(s.rewards) > 1<<14 || s.stride != 8 {
		t.Errorf("early %v, late %v, %d kept, every %d", out.EarlyMean, out.LateMean, len(s.rewards), s.stride)
	}
}

// TestFewIntervals checks that a single interval has only a mean, and that intervals of length 0 are perfectly regular.
func TestFewIntervals(t *testing.T) {
	var s series
	if m := s.moments(); m != (Moments{}) {
		t.Errorf("of none: %+v", m)
	}
	s.add(7)
	if m := s.moments(); m != (Moments{Count: 1, MeanNS: 7, MaxOverAvg: 1, Burstiness: -1}) {
		t.Errorf("of one: %+v", m)
	}
	var flat []float64
	f := flattener{out: func(v float64) { flat = append(flat, v) }}
	for range 40 {
		f.addValue(0)
	}
	f.flushRest()
	for i, v := range flat {
		if v != 1 || len(flat) != 40 {
			t.Fatalf("value %d of %d is %v", i, len(flat), v)
		}
	}
}

// TestSourcesThatFail checks that a source that fails is not mistaken for a short one.
func TestSourcesThatFail(t *testing.T) {
	if r, err := LoadRecording(&cut{sample(3, 5)}); !errors.Is(err, ErrTruncated) || r != nil {
		t.Errorf("%v, %v", r, err)
	}
	if _, _, err := identifySource(&cut{sample(3, 5)}); !errors.Is(err, ErrTruncated) {
		t.Errorf("%v", err)
	}
	for _, source := range []Source{&cut{sample(3, 5)}, &torn{cut{sample(3, 5)}}} {
		if s, err := MeasureSource(source); !errors.Is(err, ErrTruncated) || s.Updates != 15 {
			t.Errorf("%T: %d updates, %v", source, s.Updates, err)
		}
	}
	unwritable := &list{header: Header{Workers: 1, Clusters: 1, Clock: Wall, Speeds: []float64{math.NaN()}}}
	if digest, _, err := identifySource(unwritable); err == nil || digest != "" || !strings.Contains(err.Error(), "trace header") {
		t.Errorf("a header that can't be written has the digest %q, %v", digest, err)
	}
	whole := encode(t, sample(2, 3))
	for _, n := range []int{0, 5, 15, 40, len(whole) - 3} {
		_, err := decode(io.MultiReader(bytes.NewReader(whole[:n]), iotest.ErrReader(errFull)))
		if n > 12 && !errors.Is(err, errFull) || err == nil {
			t.Errorf("a disk that fails after %d bytes: %v", n, err)
		}
	}
}
