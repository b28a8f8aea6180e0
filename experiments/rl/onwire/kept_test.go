package onwire

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/archive"
	"github.com/olafctl/olaf/results/store"
)

// keep trains in the simulated network, adds other training runs, and stores them all.
func keep(t *testing.T, others ...*Training) *store.Folder {
	t.Helper()
	c := &Comparison{Training: small(), Systems: []string{"olaf", "fifo"}, Seeds: []uint64{3, 4}, Progress: t.Logf, OnUpdate: func(float64) {}}
	r, err := c.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(others) > 0 {
		r.Trainings = append(r.Trainings, others...)
		r.Result = c.figure(r.Trainings)
	}
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	k, err := archive.KeepDocument(s, "train", time.Unix(1e9, 0))
	if err != nil {
		t.Fatal(err)
	}
	id, err := k.Finish(r, results.Provenance{}, false)
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.Load(id)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// believed returns a valid training run with real packets.
func believed(t *testing.T) *Training {
	t.Helper()
	return &Training{
		System: "olaf", Seed: 3, Real: true, Curves: [][]rl.Point{{{AtNS: 1, Reward: -7}, {AtNS: 2, Reward: -5}}},
		Counts: map[string]uint64{"in": 8}, Identities: []Check{{"sent = decided about", 8, 8}},
		Decisions:     &olaf.Decisions{Checked: 20, Equal: 20},
		WorkersLateNS: &olaf.Quantiles{P99: 5}, Weights: "abc",
	}
}

// TestVerify checks that stored training runs verify, with simulated ones equal to the last bit and valid identities
// for real packets, and that every later change is found and named.
func TestVerify(t *testing.T) {
	invalid := believed(t)
	invalid.Seed, invalid.Curves, invalid.Invalid = 4, nil, []string{"a frame got lost"}
	f := keep(t, believed(t), invalid)
	if !IsKept(f) || f.Manifest.Valid || !strings.Contains(f.Manifest.Reasons[0], "olaf, seed 4: invalid training: a frame got lost") {
		t.Fatalf("%+v", f.Manifest)
	}
	for _, c := range []struct {
		name  string
		edit  func(*Report)
		finds string // empty for none
	}{
		{"as it was", func(*Report) {}, ""},
		{"without the shares that arrived", func(r *Report) { r.Trainings[1].ArrivedPct = nil }, ""},
		{"a reward", func(r *Report) { r.Trainings[0].Curves[1][0].Reward++ }, "the curves: "},
		{"a simulated policy", func(r *Report) { r.Trainings[2].Greedy++ }, "fifo, seed 3, simulated: "},
		{"a curve of the figure", func(r *Report) { r.Panels[0].Series[0].Name = "another" }, "the curves: "},
		{"an identity", func(r *Report) { r.Trainings[4].Identities[0].Right++ },
			"olaf, seed 3, was kept as valid, but sent = decided about: 8, 9"},
		{"a decision", func(r *Report) { r.Trainings[4].Decisions.Equal-- }, "19 of 20 decisions"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k, r, err := Load(f)
			if err != nil {
				t.Fatal(err)
			}
			c.edit(r)
			k.OnUpdate = func(float64) {}
			p, err := k.Verify(t.Context(), r, nil)
			switch {
			case c.finds != "":
				if !errors.Is(err, archive.ErrMismatch) || !strings.Contains(err.Error(), c.finds) {
					t.Errorf("%v", err)
				}
			case err != nil:
				t.Error(err)
			case *p != Proof{Repeated: 4, Real: 2, Invalid: 1, Identities: 1, Decisions: 20, Digests: 1}:
				t.Errorf("%+v", *p)
			}
		})
	}
}
