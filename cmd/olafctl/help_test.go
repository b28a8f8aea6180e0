package main

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
)

// tree returns the root and every command that a user can call.
func tree(t *testing.T) (root *cobra.Command, all []*cobra.Command, out *bytes.Buffer) {
	t.Helper()
	env := process()
	out = new(bytes.Buffer)
	env.Stdout, env.Getenv = out, func(string) string { return "" }
	root = newRootCmd(env)
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.HasParent() && !cmd.IsAvailableCommand() {
			return
		}
		all = append(all, cmd)
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
	return root, all, out
}

func TestEveryCommandHasAnExample(t *testing.T) {
	_, all, _ := tree(t)
	for _, cmd := range all {
		// a group's subcommands have examples, and completion is cobra's
		if cmd.HasSubCommands() || strings.HasPrefix(cmd.CommandPath(), "olafctl completion") {
			continue
		}
		if !strings.Contains(cmd.Example, cmd.CommandPath()) {
			t.Errorf("%s has no example of itself", cmd.CommandPath())
		}
	}
}

// TestFlagsOfFilesAreCompleted checks that the shell completes file names for flags whose help names a file, and that
// all listed flags still exist.
func TestFlagsOfFilesAreCompleted(t *testing.T) {
	_, all, _ := tree(t)
	aFile, found := regexp.MustCompile(`(?i)\b(file|folder|workbook)\b|unix:`), map[string]bool{}
	for _, cmd := range all {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			found[f.Name] = true
			complete, set := cmd.GetFlagCompletionFunc(f.Name)
			if !set || f.Value.Type() != "string" || !aFile.MatchString(f.Usage) || strings.Contains(f.Usage, "overriding the file") {
				return
			}
			if values, _ := complete(cmd, nil, ""); len(values) == 0 {
				t.Errorf("%s --%s (%s) is completed with nothing, want file names: add it to fileFlags", cmd.CommandPath(), f.Name,
					f.Usage)
			}
		})
	}
	for _, name := range fileFlags {
		if !found[name] {
			t.Errorf("no command has the flag --%s of fileFlags", name)
		}
	}
}

// TestExamplesAreOfFlagsThatExist checks that every line in every example can be parsed.
func TestExamplesAreOfFlagsThatExist(t *testing.T) {
	root, all, _ := tree(t)
	for _, cmd := range all {
		for line := range strings.Lines(cmd.Example) {
			for _, call := range strings.Split(line, "olafctl ")[1:] {
				call, _, _ = strings.Cut(call, " #")
				found, rest, err := root.Find(strings.Fields(call))
				if err != nil || found == root {
					t.Errorf("%s: %q is no command: %v", cmd.CommandPath(), call, err)
					continue
				}
				for _, word := range rest {
					name, long := strings.CutPrefix(word, "--")
					name, _, _ = strings.Cut(name, "=")
					if long && found.Flags().Lookup(name) == nil && found.InheritedFlags().Lookup(name) == nil {
						t.Errorf("%s: %q has no flag --%s", cmd.CommandPath(), found.CommandPath(), name)
					}
				}
			}
		}
	}
}

// TestHelp checks that the help for every command fits the page, except for examples, and contains every flag. The
// library that folds flags allows five characters more.
func TestHelp(t *testing.T) {
	_, all, out := tree(t)
	for _, cmd := range all {
		out.Reset()
		cmd.InitDefaultHelpFlag()
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		text, example := out.String(), "\n"+cmd.Example+"\n"
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			if n := utf8.RuneCountInString(line); n > 85 && !slices.ContainsFunc(strings.Fields(line), unfoldable) && !strings.Contains(example, "\n"+line+"\n") {
				t.Errorf("%s: %d characters: %s", cmd.CommandPath(), n, line)
			}
		}
		if cmd.Flags().Lookup("help-all") != nil {
			out.Reset()
			cmd.SetArgs(nil)
			if err := cmd.Flags().Set("help-all", "true"); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Help(); err != nil {
				t.Fatal(err)
			}
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if n := strings.Count(out.String(), "--"+f.Name+" ") + strings.Count(out.String(), "--"+f.Name+"\n"); !f.Hidden && n == 0 {
				t.Errorf("the help of %s has no --%s", cmd.CommandPath(), f.Name)
			}
		})
	}
}

// unfoldable reports whether a word is a long list without spaces.
func unfoldable(word string) bool { return len(word) > 40 }

// TestHelpOfTheRootIsAPage checks that the root's help lists at most 20 commands, in five groups, and that all other
// commands still work.
func TestHelpOfTheRootIsAPage(t *testing.T) {
	root, _, _ := tree(t)
	shown := 0
	for _, cmd := range root.Commands() {
		if cmd.IsAvailableCommand() {
			shown++
		}
	}
	if shown > 20 || len(root.Groups()) != 5 {
		t.Errorf("the root shows %d commands in %d groups; want at most 20 in 5", shown, len(root.Groups()))
	}
}

// TestHelpOfBenchIsAPage checks that the help for each system fits 70 lines.
func TestHelpOfBenchIsAPage(t *testing.T) {
	systems := append(process().Systems.Names(), "")
	for _, system := range systems {
		env := process()
		var out bytes.Buffer
		env.Stdout, env.Stderr, env.Getenv = &out, &out, func(string) string { return "" }
		args := []string{"bench", "--system", system, "--help"}
		if system == "" {
			args = []string{"bench", "--help"}
		}
		if code := run(t.Context(), env, args); code != cli.ExitDone {
			t.Errorf("%v: exit code %d: %s", args, code, &out)
		}
		if n := strings.Count(out.String(), "\n"); n > 70 {
			t.Errorf("%v prints %d lines; want at most 70", args, n)
		}
	}
}

func TestBenchHelpHidesCardFlags(t *testing.T) {
	for _, c := range []struct {
		args  []string
		cards bool
	}{
		{[]string{"bench", "--help"}, false},
		{[]string{"bench", "--help-all"}, true},
		{[]string{"bench", "-d", "pci:0000:3b:00.0", "--help"}, true},
		{[]string{"help", "bench"}, false},
		{[]string{"serve", "--help"}, true}, // too few flags to hide any
	} {
		env := process()
		var out bytes.Buffer
		env.Stdout, env.Stderr, env.Getenv = &out, &out, func(string) string { return "" }
		if code := run(t.Context(), env, c.args); code != cli.ExitDone {
			t.Errorf("%v: exit code %d: %s", c.args, code, &out)
		}
		if got := strings.Contains(out.String(), "--server-port"); got != c.cards {
			t.Errorf("%v lists flags for cards: %v", c.args, got)
		}
	}
}
