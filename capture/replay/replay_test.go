package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/results"
)

// arrival is one line of a test capture.
type arrival struct {
	atNS            int64
	cluster, worker int
	seq             int
	count           int
	lane            int32 // value of all four lanes
	raw             []byte
	ack             bool
}

// written returns the JSON document for a replay.
func written(t fataler, r *Result) string {
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func address(worker int) olaf.Addresses {
	return olaf.Addresses{SrcIP: [4]byte{10, 1, byte(worker >> 8), byte(worker)}, DstIP: [4]byte{10, 0, 0, 1},
		SrcPort: 49152}
}

func (a arrival) update() olaf.Update {
	return olaf.Update{
		GenNS: uint64(a.atNS), Seq: uint32(a.seq), Reward: 256, Count: uint16(max(1, a.count)), Lanes: 4,
		Cluster: olaf.ClusterID(a.cluster), Worker: olaf.WorkerID(a.worker),
	}
}

func (a arrival) lanes() []int32 { return []int32{a.lane, a.lane, a.lane, a.lane} }

func file(t fataler, arrivals []arrival) []byte {
	var b bytes.Buffer
	w, err := capture.NewWriter(&b, capture.PCAPNG, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range arrivals {
		at, addr, u := olaf.Time(a.atNS*1000), address(a.worker), a.update()
		switch {
		case a.raw != nil:
			err = w.WriteFrame(at, a.raw)
		case a.ack:
			err = w.WriteAck(at, &addr, &u, olaf.QueueStatus{}, nil)
		default:
			err = w.WriteUpdate(at, &addr, &u, a.lanes())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type fataler interface{ Fatal(...any) }

func decoder(t fataler, b []byte) *capture.Decoder {
	r, err := capture.NewReader(bytes.NewReader(b), "in.pcapng")
	if err != nil {
		t.Fatal(err)
	}
	return capture.NewDecoder(r)
}

// gathered collects copies of deliveries.
type gathered []Delivery

func (g *gathered) Deliver(d *Delivery) error {
	c := *d
	c.Lanes = append([]int32(nil), d.Lanes...)
	*g = append(*g, c)
	return nil
}

func olafQueue(slots int) Config {
	// 20G
	return Config{Queue: "olaf", Engine: engine.Config{Slots: slots}, Output: engine.Output{Rate: 10 << 24}, Lanes: true}
}

// TestReplay sends five updates of 80 B at 20G, 8 cycles each, and checks which frames leave, when, from which worker,
// and with which content.
func TestReplay(t *testing.T) {
	broken := make([]byte, 80)
	u, addr := arrival{}.update(), address(1)
	if _, err := olaf.EncodeUpdate(broken, &addr, &u, nil); err != nil {
		t.Fatal(err)
	}
	broken[24]++
	in := file(t, []arrival{
		{atNS: 0, cluster: 65535, worker: 300, seq: 0, lane: 1}, // leaves at once, done at 32 ns
		{atNS: 4, cluster: 7, worker: 1, seq: 0, lane: 10},      // waits
		{atNS: 8, cluster: 7, worker: 2, seq: 0, lane: 20},      // merges
		{atNS: 8, raw: []byte("a frame that has nothing to do with this")},
		{atNS: 12, cluster: 9, worker: 3, seq: 5, lane: 5}, // cluster 7 has the second slot
		{atNS: 12, raw: broken},
		{atNS: 13, ack: true},
		{atNS: 100, cluster: 9, worker: 3, seq: 6, lane: 6},
	})
	var got gathered
	res, err := Run(context.Background(), decoder(t, in), olafQueue(2), &got)
	if err != nil {
		t.Fatal(err)
	}
	type line struct {
		atNS, queuedNS  int64
		cluster, worker int
		count           uint16
		lane            int32
		from            byte
	}
	want := []line{
		{32, 32, 65535, 300, 1, 1, 44},
		{64, 60, 7, 2, 2, 30, 2},
		{132, 32, 9, 3, 1, 6, 3},
	}
	var lines []line
	for _, d := range got {
		lines = append(lines, line{d.At.NS(), int64(d.Queued.NS()), int(d.Update.Cluster), int(d.Update.Worker),
			d.Update.Count, d.Lanes[3], d.Addresses.SrcIP[3]})
	}
	if diff := cmp.Diff(want, lines, cmp.AllowUnexported(line{})); diff != "" {
		t.Errorf("deliveries (-want +got):\n%s", diff)
	}
	wantCounts := map[string]int64{"sent": 8, "bypassed": 2, "malformed": 1, "in": 5, "appended": 3,
		"aggregated": 1, "dropped_full": 1,
		"delivered": 3, "received": 3, "count_delivered": 4}
	for _, name := range res.Counts.Names() {
		if got := res.Counts.Of(name); got != wantCounts[name] {
			t.Errorf("%s = %d, want %d", name, got, wantCounts[name])
		}
	}
	if !res.Valid || res.Partial || !res.SameClock || res.Clusters != 3 || res.Workers != 4 || res.Lost != 4 ||
		res.OutRateBPS != 20e9 {
		t.Errorf("%+v", res)
	}
	if diff := cmp.Diff([]float64{2.0 / 3, 1}, res.AggregationsCDF); diff != "" {
		t.Error(diff)
	}
	if want := results.Float(96.0 / 132); res.Utilisation != want {
		t.Errorf("utilisation %v, want %v", res.Utilisation, want)
	}
}

func TestJSONNames(t *testing.T) {
	res, err := Run(context.Background(), decoder(t, file(t, []arrival{{}})), olafQueue(2), nil)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"schema", "queue", "out_rate_bps", "sent", "received", "aggregated", "replaced",
		"replaced_reward",
		"dropped_full", "dropped_reward", "dropped_mismatch", "bypassed", "malformed", "lost_pct", "utilisation",
		"aggregations_cdf", "valid"} {
		if !strings.Contains(string(doc), `"`+name+`":`) {
			t.Errorf("%q is not in %s", name, doc)
		}
	}
}

func genArrivals(t *rapid.T) []arrival {
	clusters := rapid.SampledFrom([]int{1, 3, 20}).Draw(t, "clusters")
	merged := rapid.Bool().Draw(t, "merged")
	at := int64(0)
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) arrival {
		at += rapid.Int64Range(0, 40).Draw(t, "gap")
		a := arrival{atNS: at, worker: rapid.IntRange(0, 40).Draw(t, "worker"), lane: rapid.Int32Range(-9, 9).Draw(t, "lane")}
		a.cluster = a.worker % clusters * 3000
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			a.raw = make([]byte, 60)
		case 1:
			a.ack = true
		case 2:
			if merged {
				a.count = rapid.IntRange(1, olaf.MaxCount).Draw(t, "count")
			}
		}
		return a
	}), 1, 120).Draw(t, "arrivals")
}

// TestReplayInvariants checks, for any traffic and discipline, that counters balance, gradients are neither lost nor
// invented, and time does not go back, that a second replay gives the same result, and that replaying the deliveries
// through an idle queue changes nothing.
func TestReplayInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := file(t, append(genArrivals(t), arrival{atNS: 1 << 20}))
		cfg := olafQueue(rapid.IntRange(1, 9).Draw(t, "slots"))
		cfg.Queue = rapid.SampledFrom(engine.DisciplineNames()).Draw(t, "queue")
		cfg.Engine.RewardFilter = rapid.Bool().Draw(t, "filter")
		cfg.Engine.FreeSlotOnStart = rapid.Bool().Draw(t, "free")
		cfg.Output.MergeCycles = rapid.IntRange(0, 3).Draw(t, "merge")
		var got, again gathered
		res, err := Run(context.Background(), decoder(t, in), cfg, &got)
		if err != nil || !res.Valid {
			t.Fatalf("%v: %+v", err, res)
		}
		second, err := Run(context.Background(), decoder(t, in), cfg, &again)
		if err != nil || written(t, res) != written(t, second) || !cmp.Equal(got, again) {
			t.Fatal("a second replay differs")
		}
		var out bytes.Buffer
		w, err := capture.NewWriter(&out, capture.PCAP, 0)
		if err != nil {
			t.Fatal(err)
		}
		last := olaf.Time(0)
		for _, d := range got {
			if d.At < last || d.Queued < 0 || d.Addresses != address(int(d.Update.Worker)) {
				t.Fatalf("%+v after %v", d, last)
			}
			last = d.At
			if err := w.WriteUpdate(d.At, &d.Addresses, &d.Update, d.Lanes); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Finish(); err != nil {
			t.Fatal(err)
		}
		free := Config{Queue: "fifo", Engine: engine.Config{Slots: 200}, Lanes: true}
		var passed gathered
		res, err = Run(context.Background(), decoder(t, out.Bytes()), free, &passed)
		if err != nil || int(res.Counts.Of("delivered")) != len(got) || res.Lost != 0 {
			t.Fatalf("%v: %+v", err, res)
		}
		for i := range passed {
			sent := got[i].Update
			sent.Flags &^= olaf.CountSaturated // not on the wire
			if passed[i].Update != sent || !cmp.Equal(passed[i].Lanes, got[i].Lanes) || passed[i].At < got[i].At {
				t.Fatalf("frame %d changed from %+v to %+v", i, got[i], passed[i])
			}
		}
	})
}

type brokenSink struct{ after int }

var errSink = errors.New("disk full")

func (s *brokenSink) Deliver(*Delivery) error {
	if s.after--; s.after < 0 {
		return errSink
	}
	return nil
}

func TestReplayFails(t *testing.T) {
	var many []arrival
	for i := range 20 {
		many = append(many, arrival{atNS: int64(i) * 100, cluster: i})
	}
	whole := file(t, many)
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	backwards := file(t, []arrival{{atNS: 10}, {atNS: 9}})
	tests := []struct {
		name string
		ctx  context.Context
		in   []byte
		sink Sink
		cfg  Config
		want error
		sent int64 // in the partial result; negative: no result
	}{
		{"cut", context.Background(), whole[:len(whole)-100], nil, olafQueue(8), capture.ErrCut, 19},
		{"backwards", context.Background(), backwards, nil, olafQueue(8), capture.ErrTimeBackwards, 1},
		{"no OLAF", context.Background(), file(t, []arrival{{raw: make([]byte, 60)}}), nil, olafQueue(8),
			capture.ErrNoOLAF, 1},
		{"sink", context.Background(), whole, &brokenSink{3}, olafQueue(8), errSink, 5},
		{"sink, while draining", context.Background(), whole, &brokenSink{19}, olafQueue(8), errSink, 20},
		{"cancelled", cancelled, whole, nil, olafQueue(8), context.Canceled, 0},
		{"queue", context.Background(), whole, nil, Config{Queue: "lifo"}, engine.ErrConfig, -1},
		{"slots", context.Background(), whole, nil, olafQueue(0), engine.ErrConfig, -1},
		{"output", context.Background(), whole, nil, Config{Queue: "fifo", Engine: engine.Config{Slots: 8},
			Output: engine.Output{MergeCycles: -1}}, engine.ErrConfig, -1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res, err := Run(tt.ctx, decoder(t, tt.in), tt.cfg, tt.sink)
			if !errors.Is(err, tt.want) {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
			if tt.sent < 0 {
				if res != nil {
					t.Errorf("a result after a refused configuration: %+v", res)
				}
				return
			}
			var broken *capture.Error
			if !res.Partial || res.Counts.Of("sent") != tt.sent || res.Valid == errors.As(err, &broken) {
				t.Errorf("%+v, want %d sent, and valid unless the file is broken", res, tt.sent)
			}
			if out := res.Counts.Of("received") > 0; res.Utilisation.Known() != out || (res.LastDeliveryNS > 0) != out {
				t.Errorf("%d left, the last at %d ns, utilisation %v", res.Counts.Of("received"), res.LastDeliveryNS,
					res.Utilisation)
			}
		})
	}
}

// TestFailedSinkReceivesNothingMore checks that a failed sink receives nothing more, even if several frames leave
// before the next packet is read.
func TestFailedSinkReceivesNothingMore(t *testing.T) {
	var burst []arrival
	for i := range 6 {
		burst = append(burst, arrival{atNS: int64(i), cluster: i})
	}
	for name, in := range map[string][]arrival{"while draining": burst, "before a late arrival": append(burst,
		arrival{atNS: 5000})} {
		sink := &brokenSink{1}
		if _, err := Run(context.Background(), decoder(t, file(t, in)), olafQueue(8), sink); !errors.Is(err,
			errSink) || sink.after != -1 {
			t.Errorf("%s: %v, %d deliveries after it", name, err, -1-sink.after)
		}
	}
}

// short cuts every packet of a capture to 64 bytes.
type short struct{ *capture.Reader }

func (s short) Next(p *capture.Packet) error {
	err := s.Reader.Next(p)
	if err == nil {
		p.Data = p.Data[:64]
	}
	return err
}

func TestTruncatedCapture(t *testing.T) {
	b := file(t, []arrival{{atNS: 0}, {atNS: 4}})
	for _, lanes := range []bool{false, true} {
		r, err := capture.NewReader(bytes.NewReader(b), "in.pcapng")
		if err != nil {
			t.Fatal(err)
		}
		cfg := olafQueue(8)
		cfg.Lanes = lanes
		res, err := Run(context.Background(), capture.NewDecoder(short{r}), cfg, nil)
		if lanes != errors.Is(err, ErrTruncated) || res.Partial != lanes || res.Valid == lanes {
			t.Errorf("lanes %v: %v, %+v", lanes, err, res)
		}
		if lanes && !strings.Contains(err.Error(), "in.pcapng: packet 1") {
			t.Errorf("%v does not say where", err)
		}
		if kind, _ := olaf.KindOf(err); lanes && kind != olaf.Usage {
			t.Errorf("%v is of kind %v", err, kind)
		}
	}
}

// TestProvenance checks that contributors are delivered as long as they are known.
func TestProvenance(t *testing.T) {
	cfg := olafQueue(8)
	cfg.Engine.Provenance = true
	in := []arrival{{atNS: 0, cluster: 1}, {atNS: 4, cluster: 1, worker: 1}, {atNS: 8, cluster: 1, worker: 2}}
	inside := func(arrivals []arrival) (n []int) {
		var got gathered
		if _, err := Run(context.Background(), decoder(t, file(t, arrivals)), cfg, &got); err != nil {
			t.Fatal(err)
		}
		for _, d := range got {
			n = append(n, len(d.Contributors))
		}
		return n
	}
	if got := inside(in); !cmp.Equal(got, []int{1, 2}) {
		t.Errorf("contributors %v", got)
	}
	in[0].count = 5
	if got := inside(in); !cmp.Equal(got, []int{0, 0}) {
		t.Errorf("contributors of merged arrivals %v", got)
	}
}

type discard struct{}

func (discard) Deliver(*Delivery) error { return nil }

func BenchmarkReplay(b *testing.B) {
	var arrivals []arrival
	for i := range 13_500 {
		arrivals = append(arrivals, arrival{atNS: int64(i) * 8, cluster: i * 7 % 9, worker: i % 27, seq: i / 27})
	}
	in := file(b, arrivals)
	for _, lanes := range []bool{false, true} {
		name := "decisions"
		if lanes {
			name = "lanes"
		}
		b.Run(name, func(b *testing.B) {
			cfg := olafQueue(8)
			cfg.Lanes = lanes
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Run(context.Background(), decoder(b, in), cfg, discard{}); err != nil && err != io.EOF {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/13_500, "ns/packet")
		})
	}
}
