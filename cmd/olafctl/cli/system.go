package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// AddSystem adds --system, which sets value to one of names, and makes the older flags --queue and others set the same
// value. Several of them may be given if they agree.
func AddSystem(cmd *cobra.Command, value *string, usage string, names func() []string, others ...string) {
	all := &sharedSystem{value: value}
	cmd.Flags().Var(&systemFlag{all, "system"}, "system", usage)
	Complete(cmd, "system", names)
	for _, alias := range append([]string{"queue"}, others...) {
		cmd.Flags().Var(&systemFlag{all, alias}, alias, "alias of --system")
		cmd.Flags().Lookup(alias).DefValue = "" // only --system shows the default
		Complete(cmd, alias, names)
	}
}

// sharedSystem is a value that several flags set.
type sharedSystem struct {
	value *string
	by    string // the flag that set it; empty for the default
	given string // the value of that flag
}

type systemFlag struct {
	*sharedSystem
	name string
}

func (f *systemFlag) String() string {
	if f.sharedSystem == nil { // pflag makes zero values
		return ""
	}
	return *f.value
}

func (f *systemFlag) Type() string { return "string" }

func (f *systemFlag) Set(name string) error {
	if f.by != "" && f.by != f.name && f.given != name {
		return fmt.Errorf("--%s %q sets the same value; use one of the two flags", f.by, f.given)
	}
	f.by, f.given, *f.value = f.name, name, name
	return nil
}
