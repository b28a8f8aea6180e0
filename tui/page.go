package tui

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/tui/keys"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/screen"
)

// Page is a tab of a dashboard. Its position in the dashboard's list determines its number key.
type Page struct {
	Title string
	About string // describes the page and how to read it, for the help
	Keys  Acts   // acts on this page; they take precedence over all others
	Draw  func(*Frame, screen.Region)
	// Rows returns the lines for the cursor and the filter. It is nil for a page without lines.
	Rows func() list.Rows
	// Open performs the enter key's act on the row with the given id; may be nil.
	Open func(f *Frame, id int64) tea.Cmd
	// Settle is called before the cursor moves, so that a growing list can be frozen; may be nil.
	Settle func(*Frame)
	// Caption returns the caption of a view written to a file; nil uses the title.
	Caption func() string
}

// Acts maps actions to functions. A command that a function returns runs in the background.
type Acts map[keys.Action]func(*Frame) tea.Cmd

// Dashboard is a set of pages about one subject.
type Dashboard struct {
	Subject Subject
	Pages   []Page
	Keys    Acts                   // acts on every page
	Without map[keys.Action]string // actions that this subject does not support, with the reasons
	Story   []Scene                // guided tour; nil for none
	Leaving string                 // a sentence that describes the effect of quitting during a run
	Instead string                 // what to do if the terminal is too small
}

// Subject is the run shown on a dashboard. None of its methods blocks.
type Subject interface {
	// Look fetches the newest snapshot for Status and the pages; wall is the viewer's time. A returned command fetches
	// data that takes longer.
	Look(wall time.Time) tea.Cmd
	Status() Status
	// Seek moves to an instant of the run, or returns the reason why it cannot.
	Seek(olaf.Time) (refusal string)
}

// State is the state of a run.
type State uint8

// All states. Starting lasts until the first snapshot.
const (
	Starting State = iota
	Running
	Paused
	Done
	Failed
)

// Status is the state of a run that is shown above and below every page.
type Status struct {
	State      State
	Speed      string          // "10.0 µs/s"
	Word       string          // replaces "running" as the word for a running subject
	Head       []screen.Phrase // the run, its device and its validity
	Now, End   olaf.Time
	Progress   string        // progress of the run
	Left       time.Duration // viewing time that is left; negative if unknown
	Background string        // progress of the work in the background
	Busy       bool          // quitting would end work in progress
	Hint       string        // suggested next step
	Err        error
}
