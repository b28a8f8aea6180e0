package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// IsAddress says whether a text is the address of a work queue, such as nats://lab:4222, and not a number.
func IsAddress(text string) bool { return strings.Contains(text, "://") }

// NumberOrQueue is the value of a flag that counts the workers of what a command measures and, given once more with an address,
// names the work queue whose machines carry its sweep out.
type NumberOrQueue struct {
	pflag.Value // the number
	Address     string
	flag        *pflag.Flag
	numbered    bool
}

// AddQueueTo lets the flag --workers of a command take the address of a work queue as well.
func AddQueueTo(cmd *cobra.Command) *NumberOrQueue {
	flag := cmd.Flags().Lookup("workers")
	both := &NumberOrQueue{Value: &checkedValue{flag.Value}, flag: flag}
	flag.Value = both
	flag.Usage += "; with --sweep also nats://HOST:4222"
	return both
}

// Set takes either.
func (n *NumberOrQueue) Set(text string) error {
	if IsAddress(text) {
		n.Address = text
		return nil
	}
	n.numbered = true
	return n.Value.Set(text)
}

// Settle makes the flag one that was not given where only an address was.
func (n *NumberOrQueue) Settle() { n.flag.Changed = n.numbered }
