package tui

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/tui/keys"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/screen"
)

// Page is one tab. Its key is its place in the dashboard's list.
type Page struct {
	Title string
	About string // what is to be seen there and how to read it, for the help
	Keys  Acts   // what keys do on this page alone, before what they do anywhere
	Draw  func(*Frame, screen.Region)
	// Rows are the lines that cursor and filter work on; nil where there are none.
	Rows func() list.Rows
	// Open is what enter does with the row of an id; nil for nothing.
	Open func(f *Frame, id int64) tea.Cmd
	// Settle is called before the cursor moves, so that a list that grows can be made to hold still; nil for nothing.
	Settle func(*Frame)
	// Caption says what a view shows that is written to a file; nil for the title.
	Caption func() string
}

// Acts are what actions do. The command, if any, is carried out beside the frame.
type Acts map[keys.Action]func(*Frame) tea.Cmd

// Dashboard is a set of pages about one subject.
type Dashboard struct {
	Subject Subject
	Pages   []Page
	Keys    Acts                   // on every page
	Without map[keys.Action]string // the actions that this subject cannot have, and why
	Story   []Scene                // a guided tour; nil for none
	Leaving string                 // what quitting does to a run that is on, as a sentence
	Instead string                 // what to do where the terminal is too small
}

// Subject is what a dashboard looks at: a run that is on. None of its methods waits.
type Subject interface {
	// Look takes the newest picture, which Status and the pages then show; wall is the time of the person who looks. The
	// command, if any, fetches what takes longer.
	Look(wall time.Time) tea.Cmd
	Status() Status
	// Seek goes to an instant of the run, or says why that cannot be.
	Seek(olaf.Time) (refusal string)
}

// State is where a run stands.
type State uint8

// All states. Starting is before the first picture.
const (
	Starting State = iota
	Running
	Paused
	Done
	Failed
)

// Status is what is said of a run above and below every page.
type Status struct {
	State    State
	Speed    string          // "10.0 µs/s"
	Word     string          // of a running one: "running" when empty
	Head     []screen.Phrase // what runs where, and whether it counts
	Now, End olaf.Time
	Progress string        // how far it is
	Left     time.Duration // of watching; negative when nobody knows
	Beside   string        // how far what runs beside it is
	Busy     bool          // quitting would end something
	Hint     string        // what to do next
	Err      error
}
