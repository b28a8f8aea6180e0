package system

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/fpga/frame"
)

func newProgramDissectorCmd(env *cli.Env) *cobra.Command {
	var path string
	var force bool
	cmd := &cobra.Command{
		Use:   "dissector",
		Short: "Print a Wireshark dissector for all systems' frames",
		Long: `Print a Lua dissector for Wireshark and tshark with every field and lane of the systems' frames. It is generated from the
tables with which olafctl encodes and decodes frames (docs/reference/wire.md).`,
		Example: `  olafctl system program dissector -w inagg.lua
  tshark -X lua_script:inagg.lua -r run.pcapng -Y 'isw.seg == 3'`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if path == "" {
				_, err := fmt.Fprint(env.Stdout, frame.DissectorScript())
				return err
			}
			if err := errors.Join(cli.CheckExtension("-w", path, ".lua"), cli.RefuseExisting(path, force)); err != nil {
				return err
			}
			return cli.WriteWhole(env, path, []byte(frame.DissectorScript()))
		},
	}
	cli.AddWrite(cmd.Flags(), &path, "write to this .lua file")
	cli.AddForce(cmd.Flags(), &force, "an existing file")
	return cmd
}
