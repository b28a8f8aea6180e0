package device

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/fpga/pcie"
)

// listedCard is a PCI function and the image that runs on it.
type listedCard struct {
	pcie.Card
	Image string `json:"image,omitempty"`
}

func newDeviceListCmd(env *cli.Env) *cobra.Command {
	var (
		out    cli.Format
		asleep bool
	)
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List Xilinx PCI functions and whether each can be used",
		Long: `List Xilinx PCI functions from sysfs. A few registers of matching cards are read to identify the image, and nothing is
written; --sysfs skips these reads.`,
		Example: "  olafctl device list\n  olafctl device list -o json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			found, err := env.Bus.Scan()
			if err != nil {
				return err
			}
			cards := make([]listedCard, len(found))
			for i, c := range found {
				cards[i].Card = c
				if !asleep && c.State == pcie.Loaded {
					cards[i].readImage(env)
				}
			}
			return printCards(env, cards, out)
		},
	}
	cmd.Flags().BoolVar(&asleep, "sysfs", false, "do not access the cards")
	cli.AddFormatFlag(cmd, &out)
	return cmd
}

// readImage reads the identity of a card's image and records why a card cannot be used.
func (c *listedCard) readImage(env *cli.Env) {
	d, err := pcie.Open(env.Bus, c.BDF, pcie.Options{ReadOnly: true})
	switch {
	case errors.Is(err, pcie.ErrBusy):
		c.Reason = cli.OneLine(err)
		return
	case err != nil:
		c.State, c.Reason = pcie.Refused, cli.OneLine(err)
		return
	}
	defer d.Close()
	if why := d.Foreign(); why != "" {
		c.State, c.Reason = pcie.Refused, why
		return
	}
	id := d.Identity()
	c.Image = fmt.Sprintf("OLAF, map %s, build %s", id.MapVersion, id.Build)
}

func printCards(env *cli.Env, cards []listedCard, out cli.Format) error {
	if out == cli.JSON {
		if cards == nil {
			cards = []listedCard{}
		}
		return cli.WriteJSON(env.Stdout, struct {
			cli.Head
			Cards []listedCard `json:"cards"`
		}{cli.List("cards"), cards})
	}
	list := cli.Grid{Header: []string{"ADDRESS", "ID", "DRIVER", "LINK", "STATE", "IMAGE", "WHY"}}
	for _, c := range cards {
		list.Add("pci:"+c.BDF, fmt.Sprintf("%04x:%04x", c.Vendor, c.Device), cli.OrDash(c.Driver),
			cli.OrDash(linkText(c.Card)), string(c.State), cli.OrDash(c.Image), cli.OrDash(c.Reason))
	}
	if len(cards) == 0 {
		fmt.Fprintf(env.Stderr, "no Xilinx PCI function on this host; the twin is always there: -d %s\n",
			env.Devices.Default())
	}
	return list.Write(env, out)
}

func linkText(c pcie.Card) string {
	if c.LinkSpeed == "" {
		return ""
	}
	return c.LinkSpeed + " x" + c.LinkWidth
}
