package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/results/store"
)

// completeRuns offers kept runs, newest first, for the first so many arguments. A store that is not there or cannot be read
// offers nothing, and none is made.
func (f *storeFlag) completeRuns(env *environment, arguments int) cobra.CompletionFunc {
	return func(_ *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
		const as = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		dir, err := f.path(env)
		if err != nil || len(given) >= arguments {
			return nil, as
		}
		if _, err := os.Stat(dir); err != nil {
			return nil, as
		}
		var offered []string
		err = f.with(env, func(s *store.Store) error {
			entries, err := s.List()
			if len(entries) > 0 {
				offered = append(offered, "last")
			}
			for i := range entries {
				offered = append(offered, cobra.CompletionWithDesc(entries[i].ID, described(&entries[i])))
			}
			return err
		})
		if err != nil {
			return nil, as
		}
		return offered, as
	}
}

// described says beside an id what its user remembers of the run.
func described(e *store.Entry) string {
	if e.Note != "" {
		return e.Note
	}
	return e.Experiment
}
