package trace

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/pktgen"
	"pgregory.net/rapid"
)

// list is a Source in memory.
type list struct {
	header  Header
	updates []Update
}

func (l *list) Header() *Header { return &l.header }

func (l *list) Next(u *Update) error {
	if len(l.updates) == 0 {
		return io.EOF
	}
	*u = l.updates[0]
	l.updates = l.updates[1:]
	return nil
}

// sample returns a small trace with exponential intervals.
func sample(workers, each int) *list {
	random := rand.New(rand.NewPCG(1, 2))
	l := &list{header: Header{Tool: "test", Clock: Virtual, Workers: workers, Clusters: max(1, workers/3), Lanes: 2}}
	next := make([]float64, workers)
	seq := make([]uint32, workers)
	for range workers * each {
		w := 0
		for i, t := range next {
			if t < next[w] {
				w = i
			}
		}
		next[w] += 1e6 * (0.5 + random.ExpFloat64())
		l.updates = append(l.updates, Update{Worker: olaf.WorkerID(w), Cluster: olaf.ClusterID(w * l.header.Clusters / workers),
			Seq:    seq[w],
			Reward: random.NormFloat64() * 100, Episodes: 3, EnvSteps: 500 + uint32(random.IntN(100)), CostNS: 12345, GradNorm: 0.5,
			BaseVersion: uint64(len(l.updates)), Digest: random.Uint64()})
		seq[w]++
	}
	// generation times in order
	t := int64(0)
	for i := range l.updates {
		t += int64(random.ExpFloat64() * 1e5)
		l.updates[i].GenNS = t
	}
	return l
}

func encode(t testing.TB, l *list) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, l.header)
	if err != nil {
		t.Fatal(err)
	}
	for i := range l.updates {
		if err := w.Write(&l.updates[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func decode(in io.Reader) ([]Update, error) {
	r, err := newReader(in)
	if err != nil {
		return nil, err
	}
	var all []Update
	for {
		var u Update
		if err := r.Next(&u); err == io.EOF {
			return all, nil
		} else if err != nil {
			return all, err
		}
		all = append(all, u)
	}
}

func TestFileRoundTrip(t *testing.T) {
	for _, each := range []int{0, 1, 7, 3000} { // 3000 updates fill several blocks
		l := sample(9, each)
		got, err := decode(bytes.NewReader(encode(t, l)))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(l.updates, got); len(l.updates) > 0 && d != "" {
			t.Errorf("%d each: %s", each, d)
		}
	}
}

func TestUpdateRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := Update{GenNS: rapid.Int64Range(0, math.MaxInt64).Draw(t, "gen"),
			CostNS:      rapid.Int64Range(0, math.MaxInt64).Draw(t, "cost"),
			BaseVersion: rapid.Uint64().Draw(t, "base"), Digest: rapid.Uint64().Draw(t, "digest"),
			Reward: rapid.Float64().Draw(t, "reward"),
			Seq:    rapid.Uint32().Draw(t, "seq"), Episodes: rapid.Uint32().Draw(t, "episodes"),
			EnvSteps: rapid.Uint32().Draw(t, "steps"),
			GradNorm: rapid.Float32().Draw(t, "norm"), Worker: olaf.WorkerID(rapid.Uint16().Draw(t, "worker")),
			Cluster: olaf.ClusterID(rapid.Uint16().Draw(t, "cluster"))}
		last := rapid.Int64Range(0, u.GenNS).Draw(t, "last")
		var got Update
		rest := parseRow(append(appendRow(nil, &u, last), 99), &got, last)
		if got != u || len(rest) != 1 {
			t.Fatalf("%+v became %+v, %d bytes left", u, got, len(rest))
		}
	})
}

func TestBadFilesAreRefused(t *testing.T) {
	good := encode(t, sample(4, 50))
	change := func(at int, to byte) []byte {
		b := bytes.Clone(good)
		b[at] = to
		return b
	}
	for _, c := range []struct {
		name string
		data []byte
		want error
		say  string
	}{
		{"empty", nil, ErrFormat, "does not begin"},
		{"something else", []byte("PK\x03\x04 not a trace at all"), ErrFormat, "does not begin"},
		{"newer version", bytes.Replace(good, []byte("olaftrace/1"), []byte("olaftrace/2"), 1), ErrVersion, "update olafctl"},
		{"cut in the header", good[:40], ErrTruncated, "header"},
		{"cut in a block", good[:len(good)-100], ErrTruncated, "after 0 good updates"},
		{"cut before the end mark", good[:len(good)-blockHeader-endBytes], ErrTruncated, "after 200 good updates"},
		{"flipped bit", change(len(good)-200, good[len(good)-200]^4), ErrFormat, "checksum"},
		{"more behind the end", append(bytes.Clone(good), 1), ErrFormat, "behind the end mark"},
		{"no JSON", bytes.Replace(good, []byte(`{"tool"`), []byte(`["tool"`), 1), ErrFormat, "JSON"},
		{"no workers", bytes.Replace(good, []byte(`"workers":4`), []byte(`"workers":0`), 1), ErrFormat, "0 workers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := decode(bytes.NewReader(c.data))
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.say) {
				t.Errorf("error %v, want %v with %q", err, c.want, c.say)
			}
		})
	}
}

func TestBadUpdatesAreRefusedAndNotWritten(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*Update)
		say   string
	}{
		{"time goes back", func(u *Update) { u.GenNS = 99 }, "before its predecessor"},
		{"unknown worker", func(u *Update) { u.Worker = 4 }, "worker 4 is unknown"},
		{"unknown cluster", func(u *Update) { u.Cluster = 2 }, "cluster 2 is unknown"},
		{"gap in the sequence", func(u *Update) { u.Seq = 5 }, "sequence 5 where 1 is due"},
		{"worker changes cluster", func(u *Update) { u.Cluster = 1 }, "was in 0"},
		{"NaN reward", func(u *Update) { u.Reward = math.NaN() }, "reward is NaN"},
		{"infinite reward", func(u *Update) { u.Reward = math.Inf(1) }, "reward is +Inf"},
		{"negative cost", func(u *Update) { u.CostNS = -1 }, "cost"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			w, err := NewWriter(&b, Header{Clock: Virtual, Workers: 4, Clusters: 2})
			if err != nil {
				t.Fatal(err)
			}
			first, bad := Update{GenNS: 100}, Update{GenNS: 200, Seq: 1}
			c.spoil(&bad)
			if err := w.Write(&first); err != nil {
				t.Fatal(err)
			}
			if err := w.Write(&bad); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.say) ||
				!strings.Contains(err.Error(), "update 2") {
				t.Errorf("error %v, want ErrInvalid with %q", err, c.say)
			}
			if err := w.Write(&Update{GenNS: 300, Seq: 1}); err != nil {
				t.Errorf("a good update after the bad one: %v", err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if all, err := decode(&b); err != nil || len(all) != 2 {
				t.Errorf("read %d updates, %v", len(all), err)
			}
		})
	}
}

// TestKilledRecordingIsReadable checks that a killed recording leaves a file that is readable up to the last flush, and
// does not change an earlier file with its name.
func TestKilledRecordingIsReadable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.trace")
	if err := os.WriteFile(path, []byte("older"), 0o644); err != nil {
		t.Fatal(err)
	}
	l := sample(4, 10)
	f, err := CreateFile(path, l.header)
	if err != nil {
		t.Fatal(err)
	}
	for i := range l.updates {
		if err := f.Append(&l.updates[i], nil); err != nil {
			t.Fatal(err)
		}
		if i == 29 {
			if err := f.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := CreateFile(path, l.header); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), "convert it to a trace") {
		t.Errorf("a second recording of the same name: %v", err)
	}
	part, err := os.Open(path + partialSuffix)
	if err != nil {
		t.Fatal(err)
	}
	all, err := decode(part)
	if !errors.Is(err, ErrTruncated) || len(all) != 30 {
		t.Errorf("the part holds %d updates, %v", len(all), err)
	}
	if old, _ := os.ReadFile(path); string(old) != "older" {
		t.Errorf("the old file now holds %q", old)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	r, closer, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	if s, err := MeasureSource(r); err != nil || s.Updates != 40 {
		t.Errorf("the whole holds %d updates, %v", s.Updates, err)
	}
}

// TestForeignPayloadPartStays checks that if another file has the name of the payload's temporary file, no part of the
// trace is left behind.
func TestForeignPayloadPartStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.trace")
	part := path + PayloadSuffix + partialSuffix
	if err := os.WriteFile(part, []byte("another's"), 0o644); err != nil {
		t.Fatal(err)
	}
	h := Header{Clock: Virtual, Workers: 1, Clusters: 1, Lanes: 3, Payload: true}
	if _, err := CreateFile(path, h); !errors.Is(err, fs.ErrExist) {
		t.Errorf("error %v", err)
	}
	if kept, _ := os.ReadFile(part); string(kept) != "another's" {
		t.Errorf("the part holds %q", kept)
	}
	if _, err := os.Stat(path + partialSuffix); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the trace's own part is left: %v", err)
	}
}

func TestOpenRejectsFolder(t *testing.T) {
	if _, _, err := Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("error %v", err)
	}
}

func TestPayloadMustMatch(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "run.trace")
	h := Header{Clock: Virtual, Workers: 1, Clusters: 1, Lanes: 3, Payload: true}
	f, err := CreateFile(path, h)
	if err != nil {
		t.Fatal(err)
	}
	var updates []Update
	for i := range 4 {
		g := []float32{float32(i), -1, 0.5}
		u := Update{GenNS: int64(i), Seq: uint32(i), Digest: GradientDigest(g)}
		if err := f.Append(&u, g); err != nil {
			t.Fatal(err)
		}
		updates = append(updates, u)
	}
	if err := f.Append(&Update{GenNS: 9, Seq: 4}, []float32{1}); !errors.Is(err, ErrPayload) {
		t.Errorf("one gradient for three lanes: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path + PayloadSuffix)
	if err != nil {
		t.Fatal(err)
	}
	read := func(data []byte) error {
		p := NewPayload(bytes.NewReader(data), &h)
		for i := range updates {
			if _, err := p.Next(&updates[i]); err != nil {
				return err
			}
		}
		return p.End()
	}
	if err := read(data); err != nil {
		t.Error(err)
	}
	changed := bytes.Clone(data)
	changed[20] ^= 1
	for name, bad := range map[string][]byte{"short": data[:40], "changed": changed, "long": append(bytes.Clone(data), 0)} {
		if err := read(bad); !errors.Is(err, ErrPayload) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCSVRoundTrip(t *testing.T) {
	l := sample(6, 40)
	want := append([]Update(nil), l.updates...)
	var b bytes.Buffer
	if err := WriteCSV(&b, l); err != nil {
		t.Fatal(err)
	}
	s, err := NewCSVSource(&b, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(l.header, *s.Header()); d != "" {
		t.Error(d)
	}
	for i := range want {
		var u Update
		if err := s.Next(&u); err != nil {
			t.Fatal(err)
		}
		if u != want[i] {
			t.Fatalf("row %d: %+v, want %+v", i, u, want[i])
		}
	}
}

func TestForeignCSV(t *testing.T) {
	const text = "# exported by hand\nworker,reward,gen_ns,cluster\n0,-12.5,100,0\n1,3,150,1\n0,1e2,200,0\n"
	s, err := NewCSVSource(strings.NewReader(text), 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	var u Update
	for range 3 {
		if err := s.Next(&u); err != nil {
			t.Fatal(err)
		}
	}
	if u.Seq != 1 || u.Reward != 100 || u.GenNS != 200 {
		t.Errorf("the last update is %+v", u)
	}
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"missing column": {"worker,reward,gen_ns\n0,1,2\n", ErrFormat},
		"not a number":   {"worker,reward,gen_ns,cluster\n0,high,2,0\n", ErrFormat},
		"NaN":            {"worker,reward,gen_ns,cluster\n0,NaN,2,0\n", ErrFormat},
		"infinite":       {"worker,reward,gen_ns,cluster\n0,Inf,2,0\n", ErrFormat},
		"hexadecimal":    {"worker,reward,gen_ns,cluster\n0,0x1p3,2,0\n", ErrFormat},
		"time goes back": {"worker,reward,gen_ns,cluster\n0,1,5,0\n0,1,4,0\n", ErrInvalid},
		"short line":     {"worker,reward,gen_ns,cluster\n0,1\n", ErrFormat},
		"huge worker":    {"worker,reward,gen_ns,cluster\n70000,1,1,0\n", ErrFormat},
	} {
		s, err := NewCSVSource(strings.NewReader(c.text), 2, 2)
		for err == nil {
			err = s.Next(&u)
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// slowMoments is the reference for the one-pass statistics. It makes two passes over a slice.
func slowMoments(d []float64) Moments {
	m := Moments{Count: len(d)}
	for _, v := range d {
		m.MeanNS += v / float64(len(d))
	}
	var square, lag, largest float64
	for i, v := range d {
		square += (v - m.MeanNS) * (v - m.MeanNS)
		if i > 0 {
			lag += (d[i-1] - m.MeanNS) * (v - m.MeanNS)
		}
		largest = max(largest, v)
	}
	sd := math.Sqrt(square / float64(len(d)))
	m.CV, m.Lag1, m.MaxOverAvg = sd/m.MeanNS, lag/square, largest/m.MeanNS
	m.Burstiness = (sd - m.MeanNS) / (sd + m.MeanNS)
	return m
}

func TestMomentsAgreeWithTwoPasses(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var s series
	var d []float64
	v := 0.0
	for range 1000 {
		v = 0.7*v + random.NormFloat64()
		d = append(d, 1e9+1e5*v)
		s.add(d[len(d)-1])
	}
	got, want := s.moments(), slowMoments(d)
	for name, pair := range map[string][2]float64{"mean": {got.MeanNS, want.MeanNS}, "CV": {got.CV, want.CV},
		"lag 1":      {got.Lag1, want.Lag1},
		"burstiness": {got.Burstiness, want.Burstiness}, "max": {got.MaxOverAvg, want.MaxOverAvg}} {
		if math.Abs(pair[0]/pair[1]-1) > 1e-6 {
			t.Errorf("%s: %v, want %v", name, pair[0], pair[1])
		}
	}
}

func TestFlattenerAgreesWithWindows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SliceOfN(rapid.Float64Range(0.01, 100), 1, 80).Draw(t, "d")
		var got []float64
		f := flattener{out: func(v float64) { got = append(got, v) }}
		for _, v := range d {
			f.addValue(v)
		}
		f.flushRest()
		if len(got) != len(d) {
			t.Fatalf("%d values became %d", len(d), len(got))
		}
		for i := range d {
			window := d[max(0, i-trendHalf):min(len(d), i+trendHalf+1)]
			if want := d[i] / meanOf(window); math.Abs(got[i]-want) > 1e-9 {
				t.Fatalf("value %d: %v, want %v", i, got[i], want)
			}
		}
	})
}

func recording(t testing.TB) *Recording {
	t.Helper()
	r, err := LoadRecording(sample(8, 300))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestScalingKeepsTheOrderAndMeetsTheRate(t *testing.T) {
	r := recording(t)
	for _, c := range []struct {
		name string
		set  func(*Scaling)
	}{
		{"stationary", func(*Scaling) {}},
		{"whole run", func(s *Scaling) { s.Averaging, s.Spread = WholeRun, 7 }},
		{"drift", func(s *Scaling) { s.Drift, s.Block = true, 100 }},
		{"many", func(s *Scaling) { s.Workers, s.Clusters, s.Updates = 300, 100, 50 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := DefaultScaling()
			c.set(&s)
			sc, err := NewScaler(r, s)
			if err != nil {
				t.Fatal(err)
			}
			check := newOrder(sc.Header())
			stat := NewStatistic(s.Workers)
			var u Update
			for sc.Next(&u) == nil {
				if err := check.checkNext(&u); err != nil {
					t.Fatal(err)
				}
				stat.Add(&u)
			}
			report := sc.Report(Statistics{}, stat.Result())
			if report.Updates != uint64(s.Workers*s.Updates) {
				t.Errorf("%d updates", report.Updates)
			}
			if off := float64(report.Achieved)/float64(s.Rate) - 1; math.Abs(off) > 0.01 {
				t.Errorf("achieved %v of %v", report.Achieved, s.Rate)
			}
		})
	}
}

func TestScalingKeepsShape(t *testing.T) {
	l := sample(8, 400)
	source, err := MeasureSource(&list{l.header, l.updates})
	if err != nil {
		t.Fatal(err)
	}
	r, err := LoadRecording(l)
	if err != nil {
		t.Fatal(err)
	}
	s := DefaultScaling()
	s.Jitter = 0
	s.Frame = 9036 // long gaps, so that whole nanoseconds do not matter
	sc, err := NewScaler(r, s)
	if err != nil {
		t.Fatal(err)
	}
	scaled, err := MeasureSource(sc)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range sc.Report(source, scaled).Kept[:3] {
		if math.Abs(k.Source-k.Scaled) > 0.06 {
			t.Errorf("%s was %.3f and is %.3f", k.Name, k.Source, k.Scaled)
		}
	}
}

// TestActiveClustersTakeTurns checks that if clusters take turns, only the active clusters send in a turn.
func TestActiveClustersTakeTurns(t *testing.T) {
	s := DefaultScaling()
	s.Workers, s.Clusters, s.ActiveClusters, s.Updates = 300, 100, 10, 40
	sc, err := NewScaler(recording(t), s)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int64]map[olaf.ClusterID]bool{}
	stat := NewStatistic(s.Workers)
	var u Update
	for sc.Next(&u) == nil {
		turn := int64(float64(u.GenNS) / sc.turnNS)
		if seen[turn] == nil {
			seen[turn] = map[olaf.ClusterID]bool{}
		}
		seen[turn][u.Cluster] = true
		stat.Add(&u)
	}
	over := 0
	for _, clusters := range seen {
		if len(clusters) > s.ActiveClusters+1 { // rounding to whole ns may move an update into a neighbouring window
			over++
		}
	}
	if over > 0 || len(seen) < 20 {
		t.Errorf("%d of %d turns have more than %d clusters", over, len(seen), s.ActiveClusters)
	}
	if off := float64(sc.Report(Statistics{}, stat.Result()).Achieved)/float64(s.Rate) - 1; math.Abs(off) > 0.1 {
		t.Errorf("the rate is off by %.3f", off)
	}
}

func TestBadScalingsAreRefused(t *testing.T) {
	r := recording(t)
	for _, c := range []struct {
		set func(*Scaling)
		say string
	}{
		{func(s *Scaling) { s.Rate = 200 * olaf.Gbps }, "200Gbps is more than the link's 100Gbps"},
		{func(s *Scaling) { s.Workers = 0 }, "0 workers"},
		{func(s *Scaling) { s.Clusters = 28 }, "28 clusters"},
		{func(s *Scaling) { s.Frame = 20000 }, "9036B"},
		{func(s *Scaling) { s.Averaging = "mean" }, "unknown averaging"},
		{func(s *Scaling) { s.Block = 0 }, "blocks"},
		{func(s *Scaling) { s.Spread = math.NaN() }, "spread"},
		{func(s *Scaling) { s.Averaging, s.Updates = WholeRun, 0 }, "number of updates"},
		{func(s *Scaling) { s.ActiveClusters = 10 }, "active"},
	} {
		s := DefaultScaling()
		c.set(&s)
		if _, err := NewScaler(r, s); !errors.Is(err, ErrScaling) || !strings.Contains(err.Error(), c.say) {
			t.Errorf("error %v, want %q", err, c.say)
		}
	}
}

var _ pktgen.Source = (*Schedule)(nil)

func TestScheduleKeepsTimesAndCountsWhatItMoved(t *testing.T) {
	l := &list{header: Header{Clock: Virtual, Workers: 3, Clusters: 1}, updates: []Update{
		{GenNS: 0, Worker: 0, Reward: 1.5}, {GenNS: 0, Worker: 1, Reward: -1}, {GenNS: 1001, Worker: 2, Reward: 1e9}}}
	s, err := NewSchedule(l, 3, 100*olaf.Gbps, 256)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]regmap.Descriptor, 5)
	got = got[:s.Fill(got)]
	want := []regmap.Descriptor{{Time: 0, Flow: 0, Reward: 384}, {Time: 5, Flow: 1, Reward: -256},
		{Time: 250, Flow: 2, Reward: math.MaxInt32}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	// 256 B take 20.48 ns on the line: the second frame waits for the first and starts at cycle 5, the third is 1 ns early.
	e := s.Departures()
	if e.Updates != 3 || e.Max != 20*olaf.Nanosecond || e.Late != 0 || e.Mean != 7*olaf.Nanosecond {
		t.Errorf("departures %+v", e)
	}
	if err := e.Check(10 * olaf.Nanosecond); !errors.Is(err, ErrDeparture) {
		t.Errorf("a limit of 10 ns: %v", err)
	}
	if err := s.Err(); err != nil {
		t.Error(err)
	}
}

func FuzzReader(f *testing.F) {
	good := encode(f, sample(3, 5))
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add([]byte("olaftrace/1\n{}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		decode(bytes.NewReader(data))
	})
}

func FuzzCSV(f *testing.F) {
	f.Add("worker,reward,gen_ns,cluster\n0,1,2,0\n")
	f.Add("# olaftrace/1\n# {\"workers\":2,\"clusters\":1,\"clock\":\"wall\"}\ngen_ns,worker,cluster,reward,seq\n1,1,0,1,0\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := NewCSVSource(strings.NewReader(text), 2, 1)
		var u Update
		for err == nil {
			err = s.Next(&u)
		}
	})
}

func BenchmarkWrite(b *testing.B) {
	sc := endless(b)
	w, _ := NewWriter(io.Discard, *sc.Header())
	var u Update
	b.ReportAllocs()
	for b.Loop() {
		sc.Next(&u)
		if err := w.Write(&u); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "updates/s")
}

func BenchmarkRead(b *testing.B) {
	data := encode(b, sample(8, 2000))
	b.ReportAllocs()
	var u Update
	r, _ := newReader(bytes.NewReader(data))
	for b.Loop() {
		if r.Next(&u) != nil {
			r, _ = newReader(bytes.NewReader(data))
		}
	}
}

func endless(b *testing.B) *Scaler {
	s := DefaultScaling()
	s.Workers, s.Clusters, s.Updates = 300, 100, 0
	sc, err := NewScaler(recording(b), s)
	if err != nil {
		b.Fatal(err)
	}
	return sc
}

// BenchmarkScaleAndSchedule measures the cost of a replay per update before the generator: bootstrap, merge of 300
// workers, descriptor.
func BenchmarkScaleAndSchedule(b *testing.B) {
	s, _ := NewSchedule(endless(b), 0, 100*olaf.Gbps, 256)
	var d regmap.Descriptor
	b.ReportAllocs()
	for b.Loop() {
		s.Next(&d)
	}
}

func TestCollectorSortsAndRenumbers(t *testing.T) {
	var c Collector
	for _, u := range []olaf.Update{
		{Worker: 1, Seq: 7, Reward: 512, Count: 1, Lanes: 48},
		{Worker: 0, Seq: 3, Cluster: 0, Count: 1, Lanes: 48},
		{Worker: 1, Seq: 9, Count: 1, Flags: olaf.Retransmission},
		{Worker: 1, Seq: 9, Count: 1},
	} {
		if err := c.Add(1000-int64(u.Seq), &u); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Add(5, &olaf.Update{Count: 2}); !errors.Is(err, ErrMerged) {
		t.Errorf("a merged update: %v", err)
	}
	s, err := c.Source()
	if err != nil {
		t.Fatal(err)
	}
	want := []Update{{GenNS: 0, Worker: 1, Seq: 0}, {GenNS: 2, Worker: 1, Seq: 1, Reward: 2}, {GenNS: 6, Worker: 0}}
	for i := range want {
		var u Update
		if err := s.Next(&u); err != nil || u != want[i] {
			t.Errorf("%d: %+v, %v", i, u, err)
		}
	}
	if h := s.Header(); h.Workers != 2 || h.Clusters != 1 || h.Lanes != 48 {
		t.Errorf("%+v", h)
	}
	if err := s.Next(new(Update)); err != io.EOF {
		t.Errorf("after the last one, where a retransmission was left out: %v", err)
	}
	if _, err := new(Collector).Source(); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "no update in it") {
		t.Errorf("nothing collected: %v", err)
	}
	var same Collector
	for _, u := range []olaf.Update{{Worker: 1, Seq: 0, Count: 1}, {Worker: 0, Seq: 5, Reward: 256, Count: 1},
		{Worker: 0, Seq: 4, Count: 1}} {
		if err := same.Add(7, &u); err != nil {
			t.Fatal(err)
		}
	}
	if s, err = same.Source(); err != nil {
		t.Fatal(err)
	}
	for i, want := range []Update{{Worker: 0, Seq: 0}, {Worker: 0, Seq: 1, Reward: 1}, {Worker: 1}} { // simultaneous: by worker, then by sequence
		var u Update
		if err := s.Next(&u); err != nil || u != want {
			t.Errorf("%d at one time: %+v, %v", i, u, err)
		}
	}
}
