package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/google/renameio/v2"
	"github.com/muesli/termenv"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/keys"
	"github.com/olafctl/olaf/tui/theme"
)

// ViewFlags say how the dashboard looks and moves.
type ViewFlags struct {
	Speed  string
	Paused bool
	Mouse  bool
	Plain  bool
	Ground string // auto, dark or light
	keys   string
}

// Add adds the flags of a dashboard of a card.
func (v *ViewFlags) Add(cmd *cobra.Command) {
	InGroup(cmd, DashboardFlags, func() {
		cmd.Flags().StringVar(&v.Speed, "speed", "10us", "device time shown per second, such as 500ns or max")
		cmd.Flags().BoolVar(&v.Paused, "paused", false, "start paused")
	})
	v.AddLooks(cmd)
}

// AddLooks adds what is the same whatever is watched.
func (v *ViewFlags) AddLooks(cmd *cobra.Command) {
	InGroup(cmd, DashboardFlags, func() {
		flags := cmd.Flags()
		flags.StringVar(&v.keys, "keys", "", "YAML file with key bindings; default olafctl/keys.yaml in the config folder")
		v.Ground = "auto"
		Choose(cmd, &v.Ground, "theme", "colours for a background that is", "auto", "dark", "light")
		flags.BoolVar(&v.Mouse, "mouse", true, "use the mouse; off lets the terminal select text")
	})
}

// RefuseViewFlags refuses flags about a dashboard that is not shown.
func RefuseViewFlags(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if GroupOf(f) == DashboardFlags && f.Name != "tui" && err == nil {
			err = UsageError("--%s is about the dashboard; add --tui", f.Name)
		}
	})
	return err
}

// IsPlain says whether there is to be no dashboard, but lines.
func (v *ViewFlags) IsPlain(env *Env) bool {
	return v.Plain || !env.Terminal || env.Getenv("TERM") == "dumb"
}

// Options are what every dashboard is drawn and driven with.
func (v *ViewFlags) Options(env *Env) (o tui.Options, err error) {
	o = tui.Options{Save: SaveView, Mouse: v.Mouse, ASCII: showsASCII(env)}
	if o.Keys, err = v.bindings(); err != nil {
		return o, err
	}
	o.Theme = v.theme(env)
	return o, nil
}

// showsASCII reports whether the terminal shows no other characters: the Linux console, which lacks braille, and locales that
// name another character set than UTF-8, as C and POSIX do. Without a locale in the environment UTF-8 is taken.
func showsASCII(env *Env) bool {
	locale := cmp.Or(env.Getenv("LC_ALL"), env.Getenv("LC_CTYPE"), env.Getenv("LANG"))
	name := strings.ReplaceAll(strings.ToLower(locale), "-", "")
	return env.Getenv("TERM") == "linux" || locale != "" && !strings.Contains(name, "utf8")
}

// bindings reads the user's keys, if there are any.
func (v *ViewFlags) bindings() (*keys.Map, error) {
	path := v.keys
	if path == "" {
		dir, err := os.UserConfigDir()
		if err != nil {
			return keys.Default(), nil
		}
		path = dir + "/olafctl/keys.yaml"
		if _, err := os.Stat(path); err != nil {
			return keys.Default(), nil
		}
	}
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, UsageError("--keys: %v", err)
	}
	m, err := keys.Load(file)
	if err != nil {
		return nil, UsageError("%s: %v", path, err)
	}
	return m, nil
}

// theme asks the terminal for its ground where nobody says it.
func (v *ViewFlags) theme(env *Env) *theme.Theme {
	o := theme.Options{Colour: env.Getenv("NO_COLOR") == ""}
	switch v.Ground {
	case "light":
		o.Light = true
	case "dark":
	case "auto":
		o.Light = !v.IsPlain(env) && !termenv.NewOutput(os.Stdout).HasDarkBackground()
	}
	return theme.New(o)
}

// Program is a dashboard on the terminal. Bubble Tea restores the terminal when ctx ends and when something panics.
func (v *ViewFlags) Program(ctx context.Context, f *tui.Frame, o ...tea.ProgramOption) *tea.Program {
	o = append(o, tea.WithContext(ctx), tea.WithAltScreen(), tea.WithoutSignalHandler(), tea.WithFPS(30))
	if v.Mouse {
		o = append(o, tea.WithMouseCellMotion())
	}
	return tea.NewProgram(f, o...)
}

// SaveView writes an exported view into the working folder, under a name that is free.
func SaveView(name string, data []byte) (string, error) {
	base, kind := name[:strings.LastIndexByte(name, '.')], name[strings.LastIndexByte(name, '.'):]
	for n := 2; ; n++ {
		if _, err := os.Lstat(name); err != nil {
			return name, renameio.WriteFile(name, data, 0o644)
		}
		name = fmt.Sprintf("%s-%d%s", base, n, kind)
	}
}

// NewFolder makes a folder in the working one, under a name that is free.
func NewFolder(name string) (string, error) {
	folder := name
	for n := 2; ; n++ {
		if err := os.Mkdir(folder, 0o755); !errors.Is(err, fs.ErrExist) {
			return folder, err
		}
		folder = fmt.Sprintf("%s-%d", name, n)
	}
}
