// Package keys contains the key bindings as data. Help, key matching and the user's bindings file use the same table.
package keys

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"
	"go.yaml.in/yaml/v4"
)

// Action identifies the effect of a key by its name in a bindings file.
type Action string

// All actions.
const (
	Help         Action = "help"
	Quit         Action = "quit"
	NextTab      Action = "next-tab"
	PreviousTab  Action = "previous-tab"
	NextPanel    Action = "next-panel"
	LastPanel    Action = "previous-panel"
	Maximise     Action = "maximise"
	Freeze       Action = "freeze"
	Filter       Action = "filter"
	Up           Action = "up"
	Down         Action = "down"
	PageUp       Action = "page-up"
	PageDown     Action = "page-down"
	Top          Action = "top"
	Bottom       Action = "bottom"
	Open         Action = "open"
	Back         Action = "back"
	SortBy       Action = "sort"
	Watch        Action = "watch-cluster"
	Window       Action = "window"
	Pause        Action = "pause"
	Faster       Action = "faster"
	Slower       Action = "slower"
	FullSpeed    Action = "full-speed"
	RealTime     Action = "real-time"
	Step         Action = "step"
	StepBack     Action = "step-back"
	SeekForward  Action = "seek-forward"
	SeekBackward Action = "seek-backward"
	Rewind       Action = "rewind"
	Mark         Action = "mark"
	NextMark     Action = "next-mark"
	Rerun        Action = "rerun"
	Stop         Action = "stop"
	ExportText   Action = "export-text"
	ExportSVG    Action = "export-svg"
	Workbook     Action = "export-workbook"
	Figures      Action = "export-figures"
	Mouse        Action = "mouse"
	Reading      Action = "reading"
)

// Tabs lists the actions that open a page by its number.
var Tabs = []Action{"tab-1", "tab-2", "tab-3", "tab-4", "tab-5", "tab-6", "tab-7", "tab-8", "tab-9"}

// Binding is an action with its keys.
type Binding struct {
	Action Action
	Keys   []string // in Bubble Tea's names
	About  string
	Group  string
	Brief  string // short label for the footer; empty omits it
}

// table contains the default bindings.
var table = []Binding{
	{Help, []string{"?"}, "help", "general", "help"},
	{Quit, []string{"q", "ctrl+c"}, "quit; asks while a run is on", "general", "quit"},
	{NextTab, []string{"tab"}, "next page", "general", "next"},
	{PreviousTab, []string{"shift+tab"}, "previous page", "general", ""},
	{Tabs[0], []string{"1"}, "page 1", "general", ""},
	{Tabs[1], []string{"2"}, "page 2", "general", ""},
	{Tabs[2], []string{"3"}, "page 3", "general", ""},
	{Tabs[3], []string{"4"}, "page 4", "general", ""},
	{Tabs[4], []string{"5"}, "page 5", "general", ""},
	{Tabs[5], []string{"6"}, "page 6", "general", ""},
	{Tabs[6], []string{"7"}, "page 7", "general", ""},
	{Tabs[7], []string{"8"}, "page 8", "general", ""},
	{Tabs[8], []string{"9"}, "page 9", "general", ""},
	{Mouse, []string{"t"}, "mouse on or off (off: select text)", "general", ""},

	{Pause, []string{" ", "space"}, "pause or go on", "time", "pause"},
	{Faster, []string{"+", "="}, "faster", "time", "faster"},
	{Slower, []string{"-"}, "slower", "time", "slower"},
	{FullSpeed, []string{"M"}, "as fast as possible", "time", ""},
	{RealTime, []string{"R"}, "a second a second", "time", ""},
	{Step, []string{"."}, "step to the next event", "time", "step"},
	{StepBack, []string{","}, "step back", "time", ""},
	{SeekForward, []string{"right", "]"}, "go on by a fiftieth of the run", "time", ""},
	{SeekBackward, []string{"left", "["}, "go back by a fiftieth of the run", "time", ""},
	{Rewind, []string{"0"}, "back to the start", "time", ""},
	{Mark, []string{"m"}, "mark this instant", "time", ""},
	{NextMark, []string{"'"}, "go to the next mark", "time", ""},
	{Rerun, []string{"r"}, "run again with other settings", "time", "re-run"},
	{Stop, []string{"S"}, "stop the traffic; press twice", "time", ""},

	{NextPanel, []string{"p"}, "next panel", "view", "panel"},
	{LastPanel, []string{"P"}, "previous panel", "view", ""},
	{Maximise, []string{"z"}, "maximise the panel, or back", "view", "max"},
	{Freeze, []string{"f"}, "freeze the view; the run goes on", "view", "freeze"},
	{Filter, []string{"/"}, "filter the list", "view", "filter"},
	{SortBy, []string{"s"}, "sort by the next column", "view", ""},
	{Watch, []string{"c"}, "watch the next cluster", "view", "cluster"},
	{Reading, []string{"a"}, "ages per cluster or per worker", "view", "reading"},
	{Window, []string{"w"}, "newest part or whole run", "view", ""},
	{Up, []string{"up", "k"}, "up", "list", ""},
	{Down, []string{"down", "j"}, "down", "list", ""},
	{PageUp, []string{"pgup", "ctrl+b"}, "page up", "list", ""},
	{PageDown, []string{"pgdown", "ctrl+f"}, "page down", "list", ""},
	{Top, []string{"home", "g"}, "first line", "list", ""},
	{Bottom, []string{"end", "G"}, "last line", "list", ""},
	{Open, []string{"enter"}, "more about the line; watch the cluster", "list", "more"},
	{Back, []string{"esc"}, "close, or clear the filter", "list", ""},

	{ExportText, []string{"e"}, "write this view as text", "export", ""},
	{ExportSVG, []string{"E"}, "write this view as SVG", "export", ""},
	{Workbook, []string{"x"}, "write the results as a workbook", "export", ""},
	{Figures, []string{"X"}, "write the results as figures", "export", ""},
}

// Map is a set of key bindings.
type Map struct {
	bindings []Binding
	matchers []key.Binding
}

// Default returns the default bindings.
func Default() *Map { return newMap(slices.Clone(table)) }

func newMap(bindings []Binding) *Map {
	m := &Map{bindings: bindings}
	for _, b := range bindings {
		m.matchers = append(m.matchers, key.NewBinding(key.WithKeys(b.Keys...), key.WithHelp(LabelKeys(b.Keys), b.About)))
	}
	return m
}

// Bindings returns all bindings in the order in which the help lists them.
func (m *Map) Bindings() []Binding { return m.bindings }

// Action returns the action for a key, or false if the key has no action.
func (m *Map) Action(msg tea.KeyMsg) (Action, bool) {
	for i := range m.matchers {
		if key.Matches(msg, m.matchers[i]) {
			return m.bindings[i].Action, true
		}
	}
	return "", false
}

// Key returns the first key for an action, as shown in the help.
func (m *Map) Key(a Action) string {
	for _, b := range m.bindings {
		if b.Action == a {
			return LabelKeys(b.Keys[:1])
		}
	}
	return ""
}

// LabelKeys returns the names of the keys for display.
func LabelKeys(keys []string) string {
	var out []string
	for _, k := range keys {
		if k == " " {
			continue
		}
		out = append(out, k)
	}
	if len(out) == 0 {
		return "space"
	}
	return strings.Join(out, " ")
}

// ErrBindings is matched by errors in a bindings file.
var ErrBindings = errors.New("bad key bindings")

// Load reads a YAML file of the form
//
//	keys:
//	  pause: [p, space]
//	  next-panel: n
//
// and returns the default bindings, of which those in the file are replaced. For unknown names, empty lists and
// ambiguous keys, it returns an error that matches ErrBindings.
func Load(file []byte) (*Map, error) {
	var doc struct {
		Keys map[string]yaml.Node `yaml:"keys"`
	}
	var top map[string]yaml.Node
	if err := yaml.Unmarshal(file, &top); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBindings, err)
	}
	for name := range top {
		if name != "keys" {
			return nil, fmt.Errorf("%w: unknown section %q; the file has one, keys", ErrBindings, name)
		}
	}
	if err := yaml.Unmarshal(file, &doc); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBindings, err)
	}
	bindings := slices.Clone(table)
	for _, name := range slices.Sorted(maps.Keys(doc.Keys)) {
		i := slices.IndexFunc(bindings, func(b Binding) bool { return string(b.Action) == name })
		if i < 0 {
			return nil, fmt.Errorf("%w: unknown action %q%s", ErrBindings, name, suggestActions(name))
		}
		node := doc.Keys[name]
		keys, err := readKeys(&node)
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %s: %w", ErrBindings, node.Line, name, err)
		}
		bindings[i].Keys = keys
	}
	return newMap(bindings), checkUnique(bindings)
}

// readKeys reads a key or a list of keys.
func readKeys(node *yaml.Node) ([]string, error) {
	var keys []string
	if node.Kind == yaml.ScalarNode {
		keys = []string{node.Value}
	} else if err := node.Decode(&keys); err != nil {
		return nil, err
	}
	out := keys[:0]
	for _, k := range keys {
		switch {
		case k == "":
		case k == "space":
			out = append(out, " ", "space")
		default:
			out = append(out, k)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no key")
	}
	return out, nil
}

func checkUnique(bindings []Binding) error {
	owner := make(map[string]Action)
	for _, b := range bindings {
		for _, k := range b.Keys {
			if other, taken := owner[k]; taken && other != b.Action {
				return fmt.Errorf("%w: key %q would do both %s and %s", ErrBindings, k, other, b.Action)
			}
			owner[k] = b.Action
		}
	}
	return nil
}

// suggestActions returns a hint with the actions whose names begin like a mistyped name.
func suggestActions(name string) string {
	var out []string
	for _, b := range table {
		if len(name) >= 2 && strings.HasPrefix(string(b.Action), name[:2]) {
			out = append(out, string(b.Action))
		}
	}
	if len(out) == 0 {
		return "; docs/reference/dashboard.md lists them"
	}
	return "; did you mean " + strings.Join(out, ", ") + "?"
}
