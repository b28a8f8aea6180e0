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
	"github.com/olafctl/olaf/internal/yamlfile"
)

// ErrConfig is matched by errors in a configuration file or in an environment variable.
var ErrConfig = olaf.NewError(olaf.Usage, "bad configuration")

// setting is a flag that can also be set in the environment or the configuration file, because its value depends on the
// machine or the user rather than on the run.
type setting struct {
	flag string
	env  string // name of its variable, if not the usual one
	path bool   // a file; in the configuration relative to its folder
	// needs reports whether the value would have an effect on this command line; nil means always.
	needs func(*Env, *pflag.FlagSet) bool
}

// settings lists the settings in the order in which they are shown and applied. A setting comes after the settings on
// which it depends.
var settings = []setting{
	{flag: "device"},
	{flag: "store", env: "OLAFCTL_HOME", path: true},
	{flag: "keep"},
	{flag: "quiet"},
	{flag: "theme"},
	{flag: "mouse"},
	{flag: "keys", path: true},
	{flag: "capture", needs: usesCard},
	{flag: "stamps", needs: usesCard},
	{flag: "server-port", needs: usesCard},
	{flag: "vnp4-1", needs: usesCard},
	{flag: "vnp4-2", needs: usesCard},
	{flag: "tls-ca", path: true, needs: usesAgent},
	{flag: "tls-cert", path: true, needs: usesAgent},
	{flag: "tls-key", path: true, needs: usesAgent},
	{flag: "tls-server-name", needs: usesAgent},
}

// usesCard reports whether the selected device is a card in this host.
func usesCard(env *Env, flags *pflag.FlagSet) bool {
	device := flags.Lookup("device")
	if device == nil {
		return false
	}
	row, _, err := env.Devices.Lookup(device.Value.String())
	return err == nil && row.NotCard == "" && row.Lend != nil
}

// usesAgent reports whether the command is a client that will connect to an agent. Server commands have flags with the
// same names.
func usesAgent(env *Env, flags *pflag.FlagSet) bool {
	return flags.Lookup("tls-ca") != nil && reachesAgent(flags, env.Devices)
}

// variableName returns the name of the setting's environment variable.
func (s *setting) variableName() string {
	return cmp.Or(s.env, "OLAFCTL_"+strings.ToUpper(strings.ReplaceAll(s.flag, "-", "_")))
}

// config contains the values in a configuration file.
type config struct {
	file   string // its path, whether it exists or not
	values map[string]string
	lines  yamlfile.Lines
}

// configFile returns the path in OLAFCTL_CONFIG, or else the default path in the user's configuration folder. asked
// reports whether the file must exist.
func configFile(env *Env) (file string, asked bool) {
	if file := env.Getenv("OLAFCTL_CONFIG"); file != "" {
		return file, true
	}
	return env.UserPath("XDG_CONFIG_HOME", ".config", "config.yaml"), false
}

// readConfig reads the configuration file. The default file need not exist.
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
	return c, c.parseText(text)
}

// colonAtEnd matches a setting whose value ends in a colon, as device addresses such as xdp: do. YAML would parse it as
// a nested mapping, which is always wrong on a single line.
var colonAtEnd = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*:[ \t]+)([^\s'"#]*:)([ \t]*(?:[ \t]#.*)?\r?)$`)

// parseText parses the text of a configuration file, which may be empty. The error matches ErrConfig and lists mistakes
// with their line numbers.
func (c *config) parseText(text []byte) (err error) {
	format := yamlfile.Format{Name: "config", Fail: c.failAt}
	text = colonAtEnd.ReplaceAll(text, []byte(`${1}"${2}"${3}`))
	if c.lines, err = format.DecodeWithLines(text, &c.values); err != nil {
		return err
	}
	names := olaf.Map(settings, func(s setting) string { return s.flag })
	given := slices.SortedFunc(maps.Keys(c.values), func(a, b string) int { return cmp.Or(c.lines.LineOf(a)-c.lines.LineOf(b), cmp.Compare(a, b)) })
	for _, name := range given {
		if !slices.Contains(names, name) {
			err = errors.Join(err, c.failAt(c.lines.LineOf(name), fmt.Sprintf("unknown setting %q%s", name, yamlfile.Suggest(name, names))))
		}
	}
	return err
}

func (c *config) failAt(line int, what string) error {
	if line == 0 {
		return fmt.Errorf("%w: %s: %s", ErrConfig, c.file, what)
	}
	return fmt.Errorf("%w: %s:%d: %s", ErrConfig, c.file, line, what)
}

// origin is the kind of source from which a value was taken, such as the environment.
type origin string

const (
	fromDefault     origin = "default"
	fromFile        origin = "file"
	fromEnvironment origin = "environment"
)

// lookupSetting returns a setting's value from the environment or the configuration file, with its kind of source and
// its exact place. value is empty if the default applies.
func (c *config) lookupSetting(env *Env, s *setting) (value string, from origin, where string) {
	if value := env.Getenv(s.variableName()); value != "" {
		return value, fromEnvironment, s.variableName()
	}
	value, given := c.values[s.flag]
	if !given {
		return "", fromDefault, ""
	}
	if s.path && value != "" && !filepath.IsAbs(value) {
		value = filepath.Join(filepath.Dir(c.file), value)
	}
	return value, fromFile, fmt.Sprintf("%s:%d", c.file, c.lines.LineOf(s.flag))
}

// setFlag sets a flag. The error for a bad value includes where, the place from which it was taken.
func (s *setting) setFlag(flag *pflag.Flag, value, where string) error {
	err := flag.Value.Set(value)
	var number *strconv.NumError
	switch {
	case errors.As(err, &number):
		return fmt.Errorf("%w: %s: %s %q: want %s", ErrConfig, where, s.flag, value, DescribeValues(flag, number))
	case err != nil:
		return fmt.Errorf("%w: %s: %s %q: %w", ErrConfig, where, s.flag, value, err)
	}
	return nil
}

// DescribeValues describes in words which values a flag accepts. It is used after a value failed to parse.
func DescribeValues(flag *pflag.Flag, number *strconv.NumError) string {
	want := map[string]string{"uint64": "a whole number from 0", "int": "a whole number", "float64": "a number",
		"float": "a number", "bool": "true or false"}[flag.Value.Type()]
	if want == "" || errors.Is(number, strconv.ErrRange) {
		return "a number in range"
	}
	return want
}

// applyTo sets the flags that are not set on the command line.
func (c *config) applyTo(env *Env, flags *pflag.FlagSet) error {
	for i := range settings {
		s := &settings[i]
		flag := flags.Lookup(s.flag)
		if flag == nil || flag.Changed || s.needs != nil && !s.needs(env, flags) {
			continue
		}
		value, from, where := c.lookupSetting(env, s)
		// A variable with a special name is read elsewhere, where it is used.
		if from == fromDefault || value == "" || s.env != "" && from == fromEnvironment {
			continue
		}
		if err := s.setFlag(flag, value, where); err != nil {
			return err
		}
	}
	return nil
}

// AddSettings makes all commands in a tree use values from the environment or the configuration file for flags that are
// not given.
func AddSettings(env *Env, cmd *cobra.Command) {
	has := slices.ContainsFunc(settings, func(s setting) bool {
		return cmd.Flags().Lookup(s.flag) != nil || cmd.InheritedFlags().Lookup(s.flag) != nil
	})
	if run := cmd.RunE; run != nil && has {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			c, err := readConfig(env)
			if err == nil {
				err = c.applyTo(env, cmd.Flags())
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

// Setting is a line in the output of 'config show'.
type Setting struct {
	Name     string `json:"name"`
	Value    string `json:"value"`
	From     string `json:"from"`            // default, file, environment
	Location string `json:"where,omitempty"` // line in the file, or name of the variable
	Variable string `json:"variable"`        // name of its variable
	About    string `json:"-"`
}

// ListSettings returns every setting's value and origin, as the commands below root would use them, and the path of the
// configuration file, which need not exist.
func ListSettings(env *Env, root *cobra.Command) (all []Setting, file string, err error) {
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
		value, from, where := c.lookupSetting(env, s)
		if from == fromDefault {
			value = flag.DefValue
		} else if err := s.setFlag(flag, value, where); err != nil {
			return nil, "", err
		}
		if s.flag == "store" && value == "" {
			value, err = new(StoreFlag).resolvePath(env)
			if err != nil {
				value = ""
			}
		}
		all = append(all, Setting{s.flag, value, string(from), where, s.variableName(), flag.Usage})
	}
	return all, c.file, nil
}

// flagBelow finds a flag by name in a tree of commands.
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
