package cli

import (
	"encoding/json"
	"io"
	"sync"

	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/results"
)

// EventSchema names the lines of -o jsonl that come before the document.
const EventSchema = "olafctl.event/v1"

// eventLine is one step of an experiment, as a line.
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

// eventLines prints what happens while it happens. A stream hands it one event at a time.
type eventLines struct {
	mu      sync.Mutex // runs are done side by side
	w       io.Writer
	outline *bench.Outline
	line    eventLine // with what every line has
}

// EventSinks print events where the format asks for them.
func EventSinks(env *Env, out Format) []bench.Sink {
	if out != JSONL {
		return nil
	}
	return []bench.Sink{&eventLines{w: env.Stdout, line: eventLine{Head: Head{Schema: EventSchema}}}}
}

// Wants no frames: a line is of a run as a whole.
func (*eventLines) Wants(bench.RunID) bool { return false }

func (l *eventLines) Event(e bench.Event) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.line
	switch e := e.(type) {
	case bench.Started:
		if l.outline, err = e.Work.Outline(); err != nil {
			return err
		}
		l.line.Runs, l.line.Done = e.Work.Runs(), 0
		line.Event, line.Runs, line.Experiment, line.Seeds = "started", l.line.Runs, l.outline.Experiment, l.outline.Seeds
		for i := range l.outline.Configurations {
			line.Configurations = append(line.Configurations, l.outline.Configurations[i].Name)
		}
	case bench.RunDone:
		l.line.Done++
		line.Event, line.Done, line.Configuration, line.Run = "run", l.line.Done, l.outline.Configurations[e.Run.Config].Name, e.Result
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

// WriteLine prints a document on a line of its own.
func WriteLine(w io.Writer, document any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(document)
}
