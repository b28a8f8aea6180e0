package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/internal/tempfolder"
	"github.com/olafctl/olaf/results/store"
)

// StoreFlag is the flag --store, which selects the folder with stored runs.
type StoreFlag struct{ dir string }

// Add adds --store to the command and its subcommands.
func (f *StoreFlag) Add(cmd *cobra.Command) {
	InGroup(cmd, OutputFlags, func() {
		cmd.PersistentFlags().StringVar(&f.dir, "store", "",
			"folder of stored runs; default $OLAFCTL_HOME or the user's data folder")
	})
}

// StoreFlagOf returns the command's --store flag.
func StoreFlagOf(cmd *cobra.Command) *StoreFlag {
	f := new(StoreFlag)
	if flag := cmd.Flag("store"); flag != nil {
		f.dir = flag.Value.String()
	}
	return f
}

// resolvePath returns the store's folder from the flag, the environment or the user's data folder. Under sudo it uses
// the data folder of the calling user. Service files pass ~/ without expanding it, and the XDG specification requires
// that a relative XDG_DATA_HOME is ignored.
func (f *StoreFlag) resolvePath(env *Env) (string, error) {
	if f.dir != "" {
		return f.dir, nil
	}
	if dir := env.Getenv("OLAFCTL_HOME"); dir != "" {
		if below, ok := strings.CutPrefix(dir, "~/"); ok && env.Getenv("HOME") != "" {
			return filepath.Join(env.Getenv("HOME"), below), nil
		}
		return dir, nil
	}
	if dir := env.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "olafctl"), nil
	}
	if _, home := findSudoer(env); home != "" {
		return filepath.Join(home, ".local", "share", "olafctl"), nil
	}
	if home := env.Getenv("HOME"); home != "" {
		return filepath.Join(home, ".local", "share", "olafctl"), nil
	}
	return "", UsageError("no folder for kept runs: set OLAFCTL_HOME or use --store")
}

func (f *StoreFlag) openStore(env *Env) (*store.Store, error) {
	dir, err := f.resolvePath(env)
	if err != nil {
		return nil, err
	}
	if person, _ := findSudoer(env); person != nil {
		return store.OpenFor(dir, *person)
	}
	return store.Open(dir)
}

// findSudoer returns the user who called sudo and that user's home folder. p is nil without sudo.
func findSudoer(env *Env) (p *store.Person, home string) {
	if os.Geteuid() != 0 {
		return nil, ""
	}
	u, err := user.LookupId(env.Getenv("SUDO_UID"))
	if err != nil {
		return nil, ""
	}
	uid, badUID := strconv.Atoi(u.Uid)
	gid, badGID := strconv.Atoi(u.Gid)
	if badUID != nil || badGID != nil || uid == 0 {
		return nil, ""
	}
	return &store.Person{UID: uid, GID: gid}, u.HomeDir
}

// WithStore opens the store, calls work with it and closes it.
func (f *StoreFlag) WithStore(env *Env, work func(*store.Store) error) error {
	s, err := f.openStore(env)
	if err != nil {
		return err
	}
	return errors.Join(work(s), s.Close())
}

// WithWritable opens the store for work that must write to it. If the user's own store is not writable, it prints a
// remark and uses a temporary store, for which kept is false. A store given by --store is never replaced.
func (f *StoreFlag) WithWritable(env *Env, work func(s *store.Store, kept bool) error) error {
	s, err := f.openStore(env)
	if err == nil {
		err = s.CheckWritable()
	}
	if err == nil {
		return errors.Join(work(s, true), s.Close())
	}
	if f.dir != "" {
		return err
	}
	dir, remove, failed := tempfolder.MakeFolder()
	if failed != nil {
		return errors.Join(err, failed)
	}
	fmt.Fprintf(env.Stderr, "not kept: %s\n", OneLine(err))
	temporary, err := store.Open(dir)
	if err == nil {
		err = work(temporary, false)
	}
	return errors.Join(err, remove())
}

// WithRun opens a stored run by its ID or an unambiguous prefix of the ID, and calls work with it.
func (f *StoreFlag) WithRun(env *Env, name string, work func(*store.Store, *store.Folder) error) error {
	return f.WithStore(env, func(s *store.Store) error {
		folder, err := LoadRun(s, name)
		if err != nil {
			return err
		}
		return work(s, folder)
	})
}

// LoadRun finds a stored run by its ID, an unambiguous prefix of the ID, or "last".
func LoadRun(s *store.Store, name string) (*store.Folder, error) {
	id, err := s.Resolve(name)
	if err != nil {
		return nil, err
	}
	return s.Load(id)
}

// CompleteRuns returns a function that completes IDs of stored runs, newest first, in the given number of arguments.
// The function creates no store and returns nothing if the store cannot be read.
func (f *StoreFlag) CompleteRuns(env *Env, arguments int) cobra.CompletionFunc {
	return func(_ *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
		const as = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		dir, err := f.resolvePath(env)
		if err != nil || len(given) >= arguments {
			return nil, as
		}
		if _, err := os.Stat(dir); err != nil {
			return nil, as
		}
		var offered []string
		err = f.WithStore(env, func(s *store.Store) error {
			entries, err := s.List()
			if len(entries) > 0 {
				offered = append(offered, "last")
			}
			for i := range entries {
				offered = append(offered, cobra.CompletionWithDesc(entries[i].ID, describeEntry(&entries[i])))
			}
			return err
		})
		if err != nil {
			return nil, as
		}
		return offered, as
	}
}

// describeEntry returns the description to show next to a run's ID: its note, or else its experiment.
func describeEntry(e *store.Entry) string {
	return cmp.Or(e.Note, e.Experiment)
}
