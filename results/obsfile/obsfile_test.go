package obsfile

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/olafctl/olaf"
	"pgregory.net/rapid"
)

func observation(t *rapid.T) olaf.Observation {
	o := olaf.Observation{At: olaf.Time(rapid.Int64().Draw(t, "at")),
		Queued: olaf.Duration(rapid.Int64().Draw(t, "queued")), Update: olaf.Update{
			GenNS: rapid.Uint64Max(olaf.GenModulus-1).Draw(t, "gen"), Seq: rapid.Uint32().Draw(t, "seq"),
			Reward:  rapid.Int32().Draw(t, "reward"),
			Cluster: olaf.ClusterID(rapid.Uint16().Draw(t, "cluster")), Worker: olaf.WorkerID(rapid.Uint16().Draw(t, "worker")),
			Count: rapid.Uint16().Draw(t, "count"), Lanes: rapid.Uint16().Draw(t, "lanes"),
			Flags: olaf.Flags(rapid.Uint8().Draw(t, "flags"))}}
	if n := rapid.IntRange(-1, 4).Draw(t, "inside"); n >= 0 {
		o.Contributors = make([]olaf.Contributor, n)
		for i := range o.Contributors {
			o.Contributors[i] = olaf.Contributor{GenNS: rapid.Uint64Max(olaf.GenModulus-1).Draw(t, "gen"),
				Seq: rapid.Uint32().Draw(t, "seq"), Worker: olaf.WorkerID(rapid.Uint16().Draw(t, "worker"))}
		}
	}
	return o
}

type kept struct {
	Run uint32
	Obs olaf.Observation
}

func readAll(raw []byte) (out []kept, err error) {
	r := NewReader(bytes.NewReader(raw))
	for {
		var o olaf.Observation
		run, err := r.Next(&o)
		if err == io.EOF && run == 0 {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		if o.Contributors != nil {
			o.Contributors = append([]olaf.Contributor{}, o.Contributors...)
		}
		out = append(out, kept{run, o})
	}
}

func TestRoundTrip(t *testing.T) {
	e := new(Encoder)
	rapid.Check(t, func(t *rapid.T) {
		var file []byte
		var want []kept
		for run := range uint32(rapid.IntRange(0, 3).Draw(t, "runs")) {
			e.Begin(run)
			for _, o := range rapid.SliceOfN(rapid.Custom(observation), 0, 20).Draw(t, "observations") {
				e.Append(&o)
				want = append(want, kept{run, o})
			}
			file = append(file, e.End()...)
		}
		got, err := readAll(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

// sample encodes n plausible deliveries with three contributors each.
func sample(e *Encoder, n int) []byte {
	e.Begin(7)
	o := olaf.Observation{Queued: 400 * olaf.Nanosecond, Contributors: make([]olaf.Contributor, 3)}
	for i := range n {
		o.At += olaf.Time(51200 + i%7*4000)
		u := i * 7919 % 9
		o.Update = olaf.Update{GenNS: uint64(o.At.NS()) - 400 - uint64(i%31), Seq: uint32(i / 27),
			Cluster: olaf.ClusterID(u), Worker: olaf.WorkerID(3 * u), Count: 3, Lanes: 48, Reward: int32(i % 500)}
		for k := range o.Contributors {
			o.Contributors[k] = olaf.Contributor{GenNS: o.Update.GenNS - uint64(i%13), Seq: o.Update.Seq,
				Worker: o.Update.Worker + olaf.WorkerID(k)}
		}
		e.Append(&o)
	}
	return e.End()
}

func TestBlocksAreBounded(t *testing.T) {
	e := new(Encoder)
	raw := slices.Clone(sample(e, 3*maxObservations/2))
	got, err := readAll(raw)
	if err != nil || len(got) != 3*maxObservations/2 {
		t.Fatalf("%d observations, %v", len(got), err)
	}
	t.Logf("%.1f bytes an observation", float64(len(raw))/float64(len(got)))
}

func TestDamageIsFound(t *testing.T) {
	e := new(Encoder)
	raw := slices.Clone(sample(e, 1000))
	for cut := 1; cut < len(raw); cut += 97 {
		if _, err := readAll(raw[:cut]); !errors.Is(err, ErrFormat) {
			t.Fatalf("cut at %d of %d: %v", cut, len(raw), err)
		}
	}
	for i := headerBytes; i < len(raw); i += 13 {
		bad := slices.Clone(raw)
		bad[i] ^= 0x10
		if got, err := readAll(bad); err == nil {
			t.Fatalf("a flipped bit in byte %d goes unnoticed (%d observations)", i, len(got))
		}
	}
}

func FuzzReader(f *testing.F) {
	e := new(Encoder)
	f.Add(slices.Clone(sample(e, 3)))
	f.Add([]byte("OLB1"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if _, err := readAll(raw); err != nil && !errors.Is(err, ErrFormat) {
			t.Fatal(err)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	e := new(Encoder)
	const n = 4800
	b.ReportAllocs()
	for b.Loop() {
		b.SetBytes(int64(len(sample(e, n))))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/obs")
}

func BenchmarkRead(b *testing.B) {
	e := new(Encoder)
	const n = 50_000
	raw := slices.Clone(sample(e, n))
	b.ReportAllocs()
	for b.Loop() {
		r := NewReader(bytes.NewReader(raw))
		var o olaf.Observation
		for {
			if _, err := r.Next(&o); err != nil {
				break
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/obs")
}
