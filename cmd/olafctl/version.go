package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// build is what the Go toolchain recorded about this binary.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Dirty    bool   `json:"dirty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func thisBuild() build {
	b := build{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Dirty = s.Value == "true"
		}
	}
	return b
}

func newVersionCmd(env *environment) *cobra.Command {
	format := formatTable
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print version, commit and toolchain of this binary",
		Example: "  olafctl version -o json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			if format == formatJSON {
				return writeJSON(env.stdout, struct {
					schema
					build
				}{schema{"olafctl.version/v1"}, b})
			}
			revision := b.Revision
			if revision == "" {
				revision = "unknown commit"
			}
			if b.Dirty {
				revision += " (with local changes)"
			}
			_, err := fmt.Fprintf(env.stdout, "olafctl %s, %s, %s %s\n", b.Version, revision, b.Go, b.Platform)
			return err
		},
	}
	addFormatFlag(cmd, &format, formatTable, formatJSON)
	return cmd
}
