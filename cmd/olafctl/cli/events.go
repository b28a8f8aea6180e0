package cli

import (
	"encoding/json"
	"io"
	"sync"

	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/results"
)

// eventSchema is the schema of the lines that -o jsonl prints before the final document.
const eventSchema = "olafctl.event/v1"

// eventLine is one step of an experiment, printed as a line of JSON.
type eventLine struct {
	Head
	Event          string       `json:"event"` // started, run, finished
	Experiment     string       `json:"experiment,omitempty"`
	Configurations []string     `json:"configurations,omitempty"`
	Seeds          []uint64     `json:"seeds,omitempty"`
	Configuration  string       `json:"configuration,omitempty"`
	Done           int          `json:"done"`
	Runs           int          `json:"runs"`
	Run            *results.Run `json:"run,omitempty"`
	Partial        bool         `json:"partial,omitempty"`
	Error          string       `json:"error,omitempty"`
}

// eventLines is a sink that prints events when they happen.
type eventLines struct {
	bench.NumbersOnly
	mu      sync.Mutex // runs finish concurrently
	w       io.Writer
	outline *bench.Outline
	line    eventLine // the fields that every line has
}

// EventSinks returns a sink that prints events if the format is JSONL, and otherwise none.
func EventSinks(env *Env, out Format) []bench.Sink {
	if out != JSONL {
		return nil
	}
	return []bench.Sink{&eventLines{w: env.Stdout, line: eventLine{Head: Head{Schema: eventSchema}}}}
}

func (l *eventLines) Event(e bench.Event) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.line
	switch e := e.(type) {
	case bench.Started:
		if l.outline, err = e.Work.Outline(); err != nil {
			return err
		}
		l.line.Runs, l.line.Done = e.Work.RunCount(), 0
		line.Event, line.Runs, line.Experiment, line.Seeds = "started", l.line.Runs, l.outline.Experiment,
			l.outline.Seeds
		for i := range l.outline.Configurations {
			line.Configurations = append(line.Configurations, l.outline.Configurations[i].Name)
		}
	case bench.RunDone:
		l.line.Done++
		line.Event, line.Done, line.Configuration, line.Run = "run", l.line.Done,
			l.outline.Configurations[e.Run.Config].Name, e.Result
	case bench.Finished:
		line.Event, line.Partial = "finished", e.Partial
		if e.Err != nil {
			line.Error = OneLine(e.Err)
		}
	default:
		return nil
	}
	return WriteLine(l.w, line)
}

// WriteLine prints a document on one line.
func WriteLine(w io.Writer, document any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(document)
}
