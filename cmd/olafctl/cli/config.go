package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/yamlfile"
)

// ErrConfig is the kind of every refused configuration file or environment variable.
var ErrConfig = olaf.NewError(olaf.Usage, "bad configuration")

// setting is a flag whose value may be said once for all: what belongs to a place or a person, and to no run.
type setting struct {
	flag string
	env  string // another name of its variable than the common one
	path bool   // a file; in the configuration relative to its folder
	// needs says whether the value would do anything on this command line; nil for always.
	needs func(*Env, *pflag.FlagSet) bool
}

// settings in the order in which they are shown and applied: what others need comes first.
var settings = []setting{
	{flag: "device"},
	{flag: "store", env: "OLAFCTL_HOME", path: true},
	{flag: "keep"},
	{flag: "quiet"},
	{flag: "theme"},
	{flag: "mouse"},
	{flag: "keys", path: true},
	{flag: "capture", needs: ofCard},
	{flag: "stamps", needs: ofCard},
	{flag: "server-port", needs: ofCard},
	{flag: "vnp4-1", needs: ofCard},
	{flag: "vnp4-2", needs: ofCard},
	{flag: "tls-ca", path: true, needs: ofAgent},
	{flag: "tls-cert", path: true, needs: ofAgent},
	{flag: "tls-key", path: true, needs: ofAgent},
	{flag: "tls-server-name", needs: ofAgent},
}

// ofCard holds where the device is a card of this host.
func ofCard(env *Env, flags *pflag.FlagSet) bool {
	device := flags.Lookup("device")
	if device == nil {
		return false
	}
	row, _, err := env.Devices.Of(device.Value.String())
	return err == nil && row.NotCard == ""
}

// ofAgent holds of a client that is going to reach an agent, and never of a server, whose flags have the same names.
func ofAgent(env *Env, flags *pflag.FlagSet) bool {
	return flags.Lookup("tls-ca") != nil && reachesAgent(flags, env.Devices)
}

// variable is the environment's name for the setting.
func (s *setting) variable() string {
	if s.env != "" {
		return s.env
	}
	return "OLAFCTL_" + strings.ToUpper(strings.ReplaceAll(s.flag, "-", "_"))
}

// config is what a configuration file says.
type config struct {
	file   string // where it is or would be
	values map[string]string
	lines  yamlfile.Lines
}

// configFile is where the file is: OLAFCTL_CONFIG, else in the user's folder for such files. Asked says that it must be there.
func configFile(env *Env) (file string, asked bool) {
	if file := env.Getenv("OLAFCTL_CONFIG"); file != "" {
		return file, true
	}
	dir := env.Getenv("XDG_CONFIG_HOME")
	if home := env.Getenv("HOME"); dir == "" && home != "" {
		dir = filepath.Join(home, ".config")
	}
	if dir == "" {
		return "", false
	}
	return filepath.Join(dir, "olafctl", "config.yaml"), false
}

// readConfig reads the file. One that nobody asked for need not be there.
func readConfig(env *Env) (*config, error) {
	file, asked := configFile(env)
	c := &config{file: file}
	if file == "" {
		return c, nil
	}
	text, err := os.ReadFile(file)
	switch {
	case !asked && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)):
		return c, nil
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return c, c.parse(text)
}

// colonAtEnd matches a setting whose value ends in a colon, as the addresses of devices such as xdp: do. YAML takes that
// for a mapping inside of a mapping, which is never right in one line.
var colonAtEnd = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*:[ \t]+)([^\s'"#]*:)([ \t]*(?:[ \t]#.*)?\r?)$`)

// parse reads what a file says; one without settings says nothing. The error matches ErrConfig and lists mistakes by their lines.
func (c *config) parse(text []byte) (err error) {
	format := yamlfile.Format{Name: "config", Fail: c.fail}
	text = colonAtEnd.ReplaceAll(text, []byte(`${1}"${2}"${3}`))
	if c.lines, err = format.DecodeWithLines(text, &c.values); err != nil {
		return err
	}
	var names []string
	for i := range settings {
		names = append(names, settings[i].flag)
	}
	given := slices.SortedFunc(maps.Keys(c.values), func(a, b string) int { return cmp.Or(c.lines.Of(a)-c.lines.Of(b), cmp.Compare(a, b)) })
	for _, name := range given {
		if !slices.Contains(names, name) {
			err = errors.Join(err, c.fail(c.lines.Of(name), fmt.Sprintf("nothing is called %q%s", name, yamlfile.Suggest(name, names))))
		}
	}
	return err
}

func (c *config) fail(line int, what string) error {
	if line == 0 {
		return fmt.Errorf("%w: %s: %s", ErrConfig, c.file, what)
	}
	return fmt.Errorf("%w: %s:%d: %s", ErrConfig, c.file, line, what)
}

// origin is where a value comes from.
type origin string

const (
	fromDefault     origin = "default"
	fromFile        origin = "file"
	fromEnvironment origin = "environment"
)

// said is the value of a setting outside of the command line; empty for its default.
func (c *config) said(env *Env, s *setting) (value string, from origin, where string) {
	if value := env.Getenv(s.variable()); value != "" {
		return value, fromEnvironment, s.variable()
	}
	value, given := c.values[s.flag]
	if !given {
		return "", fromDefault, ""
	}
	if s.path && value != "" && !filepath.IsAbs(value) {
		value = filepath.Join(filepath.Dir(c.file), value)
	}
	return value, fromFile, fmt.Sprintf("%s:%d", c.file, c.lines.Of(s.flag))
}

// set gives a flag the value, and says where a bad one comes from.
func (s *setting) set(flag *pflag.Flag, value, where string) error {
	err := flag.Value.Set(value)
	var number *strconv.NumError
	switch {
	case errors.As(err, &number):
		return fmt.Errorf("%w: %s: %s %q: want %s", ErrConfig, where, s.flag, value, Wanted(flag, number))
	case err != nil:
		return fmt.Errorf("%w: %s: %s %q: %w", ErrConfig, where, s.flag, value, err)
	}
	return nil
}

// Wanted says in words what a flag takes that was given another thing.
func Wanted(flag *pflag.Flag, number *strconv.NumError) string {
	want := map[string]string{"uint64": "a whole number from 0", "int": "a whole number", "float64": "a number", "float": "a number", "bool": "true or false"}[flag.Value.Type()]
	if want == "" || errors.Is(number, strconv.ErrRange) {
		return "a number in range"
	}
	return want
}

// apply sets the flags of a command that its line leaves open.
func (c *config) apply(env *Env, flags *pflag.FlagSet) error {
	for i := range settings {
		s := &settings[i]
		flag := flags.Lookup(s.flag)
		if flag == nil || flag.Changed || s.needs != nil && !s.needs(env, flags) {
			continue
		}
		value, from, where := c.said(env, s)
		if from == fromDefault || value == "" || s.env != "" && from == fromEnvironment { // a variable of its own is read where it is used
			continue
		}
		if err := s.set(flag, value, where); err != nil {
			return err
		}
	}
	return nil
}

// AddSettings lets every command of a tree take what its line leaves open from the environment, or from a file.
func AddSettings(env *Env, cmd *cobra.Command) {
	has := slices.ContainsFunc(settings, func(s setting) bool {
		return cmd.Flags().Lookup(s.flag) != nil || cmd.InheritedFlags().Lookup(s.flag) != nil
	})
	if run := cmd.RunE; run != nil && has {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			c, err := readConfig(env)
			if err == nil {
				err = c.apply(env, cmd.Flags())
			}
			if err != nil {
				return err
			}
			return run(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		AddSettings(env, sub)
	}
}

// Setting is one line of 'config show'.
type Setting struct {
	Name     string `json:"name"`
	Value    string `json:"value"`
	From     string `json:"from"`            // default, file, environment
	Where    string `json:"where,omitempty"` // the file's line, or the variable
	Variable string `json:"variable"`        // that would set it
	About    string `json:"-"`
}

// Settings tells every setting's value, as the commands below root would take it, and where it comes from; file is where the
// configuration is, or would be.
func Settings(env *Env, root *cobra.Command) (all []Setting, file string, err error) {
	c, err := readConfig(env)
	if err != nil {
		return nil, "", err
	}
	for i := range settings {
		s := &settings[i]
		flag := flagBelow(root, s.flag)
		if flag == nil {
			continue
		}
		value, from, where := c.said(env, s)
		if from == fromDefault {
			value = flag.DefValue
		} else if err := s.set(flag, value, where); err != nil {
			return nil, "", err
		}
		if s.flag == "store" && value == "" {
			value, err = new(StoreFlag).path(env)
			if err != nil {
				value = ""
			}
		}
		all = append(all, Setting{s.flag, value, string(from), where, s.variable(), flag.Usage})
	}
	return all, c.file, nil
}

// flagBelow finds a flag by its name in a tree of commands.
func flagBelow(cmd *cobra.Command, name string) *pflag.Flag {
	if flag := cmd.Flags().Lookup(name); flag != nil {
		return flag
	}
	if flag := cmd.PersistentFlags().Lookup(name); flag != nil {
		return flag
	}
	for _, sub := range cmd.Commands() {
		if flag := flagBelow(sub, name); flag != nil {
			return flag
		}
	}
	return nil
}
