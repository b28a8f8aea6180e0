package onwire

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/olafctl/olaf/experiments/rl"
)

// FuzzTraining parses arbitrary training descriptions for a worker: rejected ones give an error on one plain line, and
// accepted ones survive a round trip, have a worker whose iterations take time and, if small, a server and a first
// gradient.
func FuzzTraining(f *testing.F) {
	for _, change := range []func(*rl.Config){
		func(*rl.Config) {},
		func(c *rl.Config) {
			c.Workers, c.Clusters, c.Iterations, c.Spread, c.StepsSpread = 65536, 3, 1<<40, 1000, 0.99
		},
		func(c *rl.Config) { c.Network.Kind, c.PPO.Steps, c.PPO.Epochs, c.PPO.Minibatch = "olaf", 1, 1, 2 },
		func(c *rl.Config) { c.Cost.StepNS, c.Cost.SampleNS, c.PPO.Steps = 1<<62, 1<<62, 1<<40 },
		func(c *rl.Config) { c.Mode, c.Threshold, c.StepSize = rl.Periodic, 0, 1e38 },
		func(c *rl.Config) { c.Until, c.PPO.LearnRate = -1, 0 },
	} {
		c := rl.Defaults()
		change(&c)
		text, err := json.Marshal(&c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
		f.Add([]byte(`{"schema":"olafctl.training/v1","config":` + string(text) + `}`))
	}
	for _, seed := range []string{``, `{`, `{}`, `null`, `{"config":null}`, `{"config":7}`, `{"workers":"8"}`, `{"mode":"\u001b[2J"}`,
		`{"gate":"a\nb","mode":"async","gradient":"delta"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := rl.ParseConfig(text)
		if err != nil {
			if !errors.Is(err, rl.ErrConfig) || strings.ContainsFunc(err.Error(), unicode.IsControl) {
				t.Errorf("%q is no ErrConfig in one plain line", err)
			}
			return
		}
		written, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := rl.ParseConfig(written); err != nil || !reflect.DeepEqual(again, c) {
			t.Fatalf("%s is %+v when it is read, %v", written, again, err)
		}
		for _, k := range []int{0, c.Workers - 1} {
			p, err := NewPilot(c, k)
			if errors.Is(err, rl.ErrConfig) {
				return // no worker can offer the rate
			}
			if err != nil {
				t.Fatal(err)
			}
			if usual := p.pilot.IterationTime(); usual < 1 {
				t.Errorf("an iteration of worker %d takes %v in %s", k, usual, written)
			}
			if c.PPO.Steps*c.PPO.Epochs <= 4 && c.PPO.Steps <= 4 {
				if got := p.Compute(t.Context(), 0); got.Due < 0 {
					t.Errorf("worker %d sends its first update %v after its begin in %s", k, got.Due, written)
				}
			}
		}
		if c.Clusters < 100 {
			if s, err := NewServers(c); err != nil || len(s.keepers) != c.Clusters {
				t.Errorf("%d servers of %d clusters, %v", len(s.keepers), c.Clusters, err)
			}
		}
	})
}
