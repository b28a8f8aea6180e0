package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// AddSystem adds --system, which sets value to one of some names, and the flags that were there before it, for good: --queue everywhere, and
// others of a command. Several may be given if they agree.
func AddSystem(cmd *cobra.Command, value *string, usage string, names func() []string, others ...string) {
	all := &sharedSystem{value: value}
	cmd.Flags().Var(&systemFlag{all, "system"}, "system", usage)
	Complete(cmd, "system", names)
	for _, alias := range append([]string{"queue"}, others...) {
		cmd.Flags().Var(&systemFlag{all, alias}, alias, "alias of --system")
		cmd.Flags().Lookup(alias).DefValue = "" // said once
		Complete(cmd, alias, names)
	}
}

// sharedSystem is what several flags set together.
type sharedSystem struct {
	value *string
	by    string // the flag that set it; empty for the default
	given string // what that flag said
}

type systemFlag struct {
	*sharedSystem
	name string
}

func (f *systemFlag) String() string {
	if f.sharedSystem == nil { // of a zero value, which pflag makes
		return ""
	}
	return *f.value
}

func (f *systemFlag) Type() string { return "string" }

func (f *systemFlag) Set(name string) error {
	if f.by != "" && f.by != f.name && f.given != name {
		return fmt.Errorf("--%s says %q and means the same; give one of them", f.by, f.given)
	}
	f.by, f.given, *f.value = f.name, name, name
	return nil
}
