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

// ViewFlags are the flags for the dashboards.
type ViewFlags struct {
	Speed  string
	Paused bool
	Mouse  bool
	Plain  bool
	Ground string // auto, dark or light
	keys   string
}

// Add adds the flags for a card's dashboard.
func (v *ViewFlags) Add(cmd *cobra.Command) {
	InGroup(cmd, DashboardFlags, func() {
		cmd.Flags().StringVar(&v.Speed, "speed", "10us", "device time shown per second, such as 500ns or max")
		cmd.Flags().BoolVar(&v.Paused, "paused", false, "start paused")
	})
	v.AddLooks(cmd)
}

// AddLooks adds the flags for keys, theme and mouse, which every dashboard has.
func (v *ViewFlags) AddLooks(cmd *cobra.Command) {
	InGroup(cmd, DashboardFlags, func() {
		flags := cmd.Flags()
		flags.StringVar(&v.keys, "keys", "",
			"YAML file with key bindings; default olafctl/keys.yaml in the config folder")
		v.Ground = "auto"
		Choose(cmd, &v.Ground, "theme", "terminal background to choose colours for", "auto", "dark", "light")
		flags.BoolVar(&v.Mouse, "mouse", true, "use the mouse; off lets the terminal select text")
	})
}

// RefuseViewFlags rejects dashboard flags if --tui is not given.
func RefuseViewFlags(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if GroupOf(f) == DashboardFlags && f.Name != "tui" && err == nil {
			err = UsageError("--%s needs the dashboard; add --tui", f.Name)
		}
	})
	return err
}

// IsPlain reports whether plain lines are printed instead of a dashboard.
func (v *ViewFlags) IsPlain(env *Env) bool {
	return v.Plain || !env.Terminal || env.Getenv("TERM") == "dumb"
}

// DashboardOptions returns the options that every dashboard uses.
func (v *ViewFlags) DashboardOptions(env *Env) (o tui.Options, err error) {
	o = tui.Options{Save: SaveView, Mouse: v.Mouse, ASCII: showsASCII(env)}
	if o.Keys, err = v.loadKeys(); err != nil {
		return o, err
	}
	o.Theme = v.chooseTheme(env)
	return o, nil
}

// showsASCII reports whether the terminal can show only ASCII. This is the case on the Linux console, which lacks
// braille, and in locales such as C and POSIX, whose character set is not UTF-8. Without a locale, UTF-8 is assumed.
func showsASCII(env *Env) bool {
	locale := cmp.Or(env.Getenv("LC_ALL"), env.Getenv("LC_CTYPE"), env.Getenv("LANG"))
	name := strings.ReplaceAll(strings.ToLower(locale), "-", "")
	return env.Getenv("TERM") == "linux" || locale != "" && !strings.Contains(name, "utf8")
}

// loadKeys reads the user's key bindings, if there are any.
func (v *ViewFlags) loadKeys() (*keys.Map, error) {
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

// chooseTheme returns the colours. With the value auto, it asks the terminal for its background colour.
func (v *ViewFlags) chooseTheme(env *Env) *theme.Theme {
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

// NewProgram returns a program that shows a dashboard on the terminal. Bubble Tea restores the terminal when ctx ends
// and after a panic.
func (v *ViewFlags) NewProgram(ctx context.Context, f *tui.Frame, o ...tea.ProgramOption) *tea.Program {
	o = append(o, tea.WithContext(ctx), tea.WithAltScreen(), tea.WithoutSignalHandler(), tea.WithFPS(30))
	if v.Mouse {
		o = append(o, tea.WithMouseCellMotion())
	}
	return tea.NewProgram(f, o...)
}

// SaveView writes an exported view to a new file in the working folder and returns the file's name.
func SaveView(name string, data []byte) (string, error) {
	base, kind := name[:strings.LastIndexByte(name, '.')], name[strings.LastIndexByte(name, '.'):]
	for n := 2; ; n++ {
		if _, err := os.Lstat(name); err != nil {
			return name, renameio.WriteFile(name, data, 0o644)
		}
		name = fmt.Sprintf("%s-%d%s", base, n, kind)
	}
}

// NewFolder creates a folder with an unused name in the working folder and returns the name.
func NewFolder(name string) (string, error) {
	folder := name
	for n := 2; ; n++ {
		if err := os.Mkdir(folder, 0o755); !errors.Is(err, fs.ErrExist) {
			return folder, err
		}
		folder = fmt.Sprintf("%s-%d", name, n)
	}
}
