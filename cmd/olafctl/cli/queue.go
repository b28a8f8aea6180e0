package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// IsAddress reports whether text is the address of a work queue, such as nats://lab:4222, rather than a number.
func IsAddress(text string) bool { return strings.Contains(text, "://") }

// NumberOrQueue is the value of --workers. The flag may be given twice: once with the number of the command's workers,
// and once with the address of a work queue whose machines run the sweep.
type NumberOrQueue struct {
	pflag.Value // value of the number
	Address     string
	flag        *pflag.Flag
	numbered    bool
}

// AddQueueTo makes a command's flag --workers also accept the address of a work queue.
func AddQueueTo(cmd *cobra.Command) *NumberOrQueue {
	flag := cmd.Flags().Lookup("workers")
	both := &NumberOrQueue{Value: &checkedValue{flag.Value}, flag: flag}
	flag.Value = both
	flag.Usage += "; with --sweep also nats://HOST:4222"
	return both
}

// Set accepts a number or an address.
func (n *NumberOrQueue) Set(text string) error {
	if IsAddress(text) {
		n.Address = text
		return nil
	}
	n.numbered = true
	return n.Value.Set(text)
}

// SettleFlag marks the flag as not given if its only value was an address.
func (n *NumberOrQueue) SettleFlag() { n.flag.Changed = n.numbered }
