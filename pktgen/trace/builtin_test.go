package trace

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/olafctl/olaf/internal/test/golden"
)

// asJSON compares v with a JSON file in testdata.
func asJSON(t *testing.T, name string, v any) {
	t.Helper()
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, name, append(text, '\n'))
}

// TestStatisticsOfTheEmbeddedTrace checks the statistics on which scaling is based. The embedded recording is real:
// eight workers that learn to land.
func TestStatisticsOfTheEmbeddedTrace(t *testing.T) {
	r, closer, err := Open("builtin:lander8")
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	s, err := MeasureSource(r)
	if err != nil {
		t.Fatal(err)
	}
	if s.Updates != 1600 || s.LateMean < s.EarlyMean+200 {
		t.Errorf("%d updates, reward %.0f, later %.0f: not the recording of a training that learned", s.Updates, s.EarlyMean,
			s.LateMean)
	}
	asJSON(t, "lander8.json", s)
}

func TestScalingOfTheEmbeddedTraceIsPinned(t *testing.T) {
	r, closer, err := Open("builtin:lander8")
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	recording, err := LoadRecording(r)
	if err != nil {
		t.Fatal(err)
	}
	sc, err := NewScaler(recording, DefaultScaling())
	if err != nil {
		t.Fatal(err)
	}
	scaled, err := MeasureSource(sc)
	if err != nil {
		t.Fatal(err)
	}
	again, closer2, err := Open("builtin:lander8")
	if err != nil {
		t.Fatal(err)
	}
	defer closer2.Close()
	source, err := MeasureSource(again)
	if err != nil {
		t.Fatal(err)
	}
	asJSON(t, "lander8-27.json", struct {
		Header *Header
		Report ScaleReport
	}{sc.Header(), sc.Report(source, scaled)})
}

func TestUnknownEmbeddedTrace(t *testing.T) {
	if _, _, err := Open("builtin:pong"); err == nil || !strings.Contains(err.Error(), "builtin:lander8") {
		t.Errorf("error %v", err)
	}
}
