package device

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/pktgen"
)

// flowDocument is an entry in the generator's flow table.
type flowDocument struct {
	Flow     int            `json:"flow"`
	Enable   bool           `json:"enable"`
	Source   netip.Addr     `json:"source_ip"`
	Dest     netip.Addr     `json:"dest_ip"`
	MAC      string         `json:"source_mac"`
	From     uint16         `json:"source_port"`
	To       uint16         `json:"dest_port"`
	Cluster  olaf.ClusterID `json:"cluster"`
	Worker   olaf.WorkerID  `json:"worker"`
	Length   uint16         `json:"length"`
	Template uint16         `json:"template"`
	Format   string         `json:"format"` // name of the system that uses the format
	ToS      uint8          `json:"tos"`
	Seg      uint64         `json:"seg"`
}

func newRegFlowsCmd(env *cli.Env) *cobra.Command {
	var out cli.Format
	var device cli.DeviceFlags
	cmd := &cobra.Command{
		Use:   "flows",
		Short: "List the generator's flows: worker and vector fragment of each",
		Long: `List the packet generator's flow table: addresses, cluster, worker, wire format, type of service and vector segment of each
entry. For closed-loop hosts, which no generator plays, it lists the hosts. A software twin starts fresh with every command;
--after runs an experiment on it first.`,
		Example: `  olafctl device reg flows --after table1
  olafctl device reg flows --after table1 --system iswitch
  olafctl device reg flows -d grpc:testbed:9559 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return device.WithRegisters(cmd.Context(), env, testbed.DeviceOptions{}, func(dev fpga.Device) error {
				flows, err := pktgen.NewGenerator(dev).ReadFlows()
				if err != nil {
					return err
				}
				return printFlows(env, flows, out)
			})
		},
	}
	cli.AddFormatFlag(cmd, &out)
	device.Add(cmd, env)
	return cmd
}

func printFlows(env *cli.Env, flows []regmap.Flow, out cli.Format) error {
	entries := []flowDocument{}
	list := cli.Grid{Header: []string{"FLOW", "CLUSTER", "WORKER", "FORMAT", "TOS", "SEG", "LENGTH", "FROM", "TO"}}
	for i := range flows {
		f := &flows[i]
		e := flowDocument{
			Flow: i, Enable: f.Enable, Source: netip.AddrFrom4(f.SourceIP), Dest: netip.AddrFrom4(f.DestIP),
			MAC:  net.HardwareAddr(f.SourceMAC[:]).String(),
			From: f.SourcePort, To: f.DestPort, Cluster: f.Cluster, Worker: f.Worker, Length: f.Length,
			Template: f.Template,
			Format:   formatName(env.Programs, f.Format), ToS: f.ToS, Seg: f.Seg,
		}
		entries = append(entries, e)
		list.Add(strconv.Itoa(i), fmt.Sprint(e.Cluster), fmt.Sprintf("w%d", e.Worker), e.Format,
			fmt.Sprintf("0x%02x", e.ToS), fmt.Sprint(e.Seg),
			olaf.Size(e.Length).String(), e.Source.String(), e.Dest.String())
	}
	if out == cli.JSON {
		return cli.WriteJSON(env.Stdout, struct {
			cli.Head
			Flows []flowDocument `json:"flows"`
		}{cli.List("flows"), entries})
	}
	return list.Write(env, out)
}

// formatName returns the name of the system that uses a frame format code.
func formatName(known []program.Description, code uint8) string {
	if code == 0 {
		return "olaf"
	}
	return program.ProgramName(known, uint32(code))
}
