package cli

import (
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

// StoreFlag says where runs are kept.
type StoreFlag struct{ dir string }

// Add adds --store, for the commands below too.
func (f *StoreFlag) Add(cmd *cobra.Command) {
	InGroup(cmd, OutputFlags, func() {
		cmd.PersistentFlags().StringVar(&f.dir, "store", "", "folder of stored runs; default $OLAFCTL_HOME or the user's data folder")
	})
}

// StoreFlagOf is what a command's --store says.
func StoreFlagOf(cmd *cobra.Command) *StoreFlag {
	f := new(StoreFlag)
	if flag := cmd.Flag("store"); flag != nil {
		f.dir = flag.Value.String()
	}
	return f
}

// path resolves the folder: flag, then environment, then the data folder of the user, who may act by sudo. Service files hand over ~/ without
// expanding it, and a relative XDG_DATA_HOME is to be ignored by its specification.
func (f *StoreFlag) path(env *Env) (string, error) {
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
	if _, home := sudoer(env); home != "" {
		return filepath.Join(home, ".local", "share", "olafctl"), nil
	}
	if home := env.Getenv("HOME"); home != "" {
		return filepath.Join(home, ".local", "share", "olafctl"), nil
	}
	return "", UsageError("no folder for kept runs: set OLAFCTL_HOME or give --store")
}

func (f *StoreFlag) open(env *Env) (*store.Store, error) {
	dir, err := f.path(env)
	if err != nil {
		return nil, err
	}
	if person, _ := sudoer(env); person != nil {
		return store.OpenFor(dir, *person)
	}
	return store.Open(dir)
}

// sudoer returns the person on whose behalf sudo runs this process as root, with the home folder; nil without sudo.
func sudoer(env *Env) (p *store.Person, home string) {
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

// With opens the store for one piece of work.
func (f *StoreFlag) With(env *Env, work func(*store.Store) error) error {
	s, err := f.open(env)
	if err != nil {
		return err
	}
	return errors.Join(work(s), s.Close())
}

// WithWritable opens the store for work that needs a place to write. Where the user's own store can't be written, a remark
// gives the reason and a temporary store takes its place, which is not kept. A store that --store names is not replaced.
func (f *StoreFlag) WithWritable(env *Env, work func(s *store.Store, kept bool) error) error {
	s, err := f.open(env)
	if err == nil {
		err = s.CheckWritable()
	}
	if err == nil {
		return errors.Join(work(s, true), s.Close())
	}
	if f.dir != "" {
		return err
	}
	dir, remove, failed := tempfolder.Make()
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

// WithRun opens one kept run by its id or an unambiguous beginning of it.
func (f *StoreFlag) WithRun(env *Env, name string, work func(*store.Store, *store.Folder) error) error {
	return f.With(env, func(s *store.Store) error {
		folder, err := LoadRun(s, name)
		if err != nil {
			return err
		}
		return work(s, folder)
	})
}

// LoadRun finds a kept run by its id, an unambiguous beginning of it, or 'last'.
func LoadRun(s *store.Store, name string) (*store.Folder, error) {
	id, err := s.Resolve(name)
	if err != nil {
		return nil, err
	}
	return s.Load(id)
}

// RemarkAbandoned says which runs a killed process left in s.
func RemarkAbandoned(env *Env, s *store.Store) error {
	left, err := s.ListAbandoned()
	if len(left) > 0 {
		fmt.Fprintf(env.Stderr, "never finished, because olafctl was killed: remove with olafctl runs rm %s\n", strings.Join(left, " "))
	}
	return err
}

// CompleteRuns offers kept runs, newest first, for the first so many arguments. A store that is not there or cannot be read
// offers nothing, and none is made.
func (f *StoreFlag) CompleteRuns(env *Env, arguments int) cobra.CompletionFunc {
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
		err = f.With(env, func(s *store.Store) error {
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
