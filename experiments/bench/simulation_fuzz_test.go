package bench

import (
	"bytes"
	"testing"

	"github.com/olafctl/olaf/experiments/system"
)

// FuzzSimulation reads arbitrary text as a stored simulation: accepted ones survive a round trip.
func FuzzSimulation(f *testing.F) {
	for _, seed := range []string{
		`{"experiment":"simulate","networks":[{"name":"olaf","topology":{"switches":[{"name":"a","slots":4,"rate":"10M","system":"olaf"}],"clusters":[{"at":["a"],"workers":3,"interval":"5ms"}]}}],"seeds":[1,2]}`,
		`{"networks":[{"topology":{}}]}`, `{"networks":[{"name":"x","topology":[]}]}`, `{}`, `{"seeds":[-1]}`, `null`, `{"networks":`,
	} {
		f.Add([]byte(seed))
	}
	systems := system.All()
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := readSimulation(systems, raw)
		if err != nil {
			return
		}
		first, err := s.Outline()
		if err != nil {
			t.Fatal(err)
		}
		again, err := readSimulation(systems, first.Config)
		if err != nil {
			t.Fatalf("%v in %s", err, first.Config)
		}
		if second, err := again.Outline(); err != nil || !bytes.Equal(first.Config, second.Config) {
			t.Errorf("%s and %s, %v", first.Config, second.Config, err)
		}
	})
}
