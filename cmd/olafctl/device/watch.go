package device

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
)

func newDeviceWatchCmd(env *cli.Env) *cobra.Command {
	var (
		out      cli.Format
		device   cli.DeviceFlags
		interval = olaf.Second
		count    int
	)
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Print a device's counters at an interval",
		Long: `Latch and print a device's counters, one line per reading, until interrupted or --count is reached. On a card the counters
of MACs and packet adapters are included. Latches by other programs, such as ethtool -S, are counted, because each of them
takes counts away. An interrupt exits with code 0.`,
		Example: `  olafctl device watch -d pci:0000:3b:00.0
  olafctl device watch --after table1 --count 2 --interval 1ms -o csv`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if interval <= 0 {
				return cli.UsageError("--interval must be positive")
			}
			if count < 0 {
				return cli.UsageError("--count %d is negative; use 0 for no limit", count)
			}
			w := &watch{env: env, out: out}
			err := device.WithRegisters(cmd.Context(), env, testbed.DeviceOptions{}, func(dev fpga.Device) error {
				return w.run(cmd.Context(), dev, interval, count)
			})
			if errors.Is(err, context.Canceled) {
				return nil // an interrupt is the normal way to end
			}
			return err
		},
	}
	cmd.Flags().Var(&interval, "interval", "device time between two readings")
	cmd.Flags().IntVar(&count, "count", 0, "number of readings; 0 for no limit")
	cli.AddFormatFlag(cmd, &out)
	device.Add(cmd, env)
	return cmd
}

// watch prints the counters at intervals, one line per reading.
type watch struct {
	env    *cli.Env
	out    cli.Format
	looks  int
	values []sample
}

// sample is a named number in a reading.
type sample struct {
	name  string
	value uint64
}

func (w *watch) run(ctx context.Context, dev fpga.Device, interval olaf.Duration, count int) error {
	for {
		if err := w.readCounters(dev); err != nil {
			return err
		}
		if err := w.printReading(); err != nil {
			return err
		}
		if w.looks++; w.looks == count {
			return nil
		}
		before := w.env.Now()
		if err := dev.Sleep(ctx, interval); err != nil {
			return err
		}
		if count > 0 {
			continue
		}
		if err := pause(ctx, time.Duration(interval/olaf.Nanosecond)-w.env.Now().Sub(before)); err != nil {
			return err
		}
	}
}

// pause waits in wall time for the rest of an interval, because the device's clock can run ahead of wall time.
func pause(ctx context.Context, rest time.Duration) error {
	if rest <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// readCounters latches the counters and reads them all.
func (w *watch) readCounters(dev fpga.Device) error {
	c, err := fpga.Snapshot(dev)
	if err != nil {
		return err
	}
	occupancy, err := dev.Read32(regmap.QueueOccupancy)
	if err != nil {
		return err
	}
	q := &c.Queue
	w.values = append(w.values[:0],
		sample{"cycle", q.SnapshotCycle}, sample{"sent", c.Generator.SentPackets}, sample{"in", q.In},
		sample{"aggregated", q.Aggregated},
		sample{"replaced", q.Replaced + q.ReplacedReward},
		sample{"dropped", q.DroppedFull + q.DroppedReward + q.DroppedMismatch},
		sample{"delivered", q.DeliveredFrames}, sample{"occupancy", uint64(occupancy)},
		sample{"bypassed", q.Bypassed}, sample{"malformed", q.Malformed}, sample{"lost_before", q.LostBeforeEngine})
	ports, err := fpga.PortCounts(dev)
	for i := range ports {
		w.addPort(i, &ports[i])
	}
	return err
}

func (w *watch) addPort(i int, p *fpga.Port) {
	name := func(what string) string { return fmt.Sprintf("port%d_%s", i, what) }
	w.values = append(w.values,
		sample{name("rx"), p.Received}, sample{name("tx"), p.Sent}, sample{name("rx_bad_fcs"), p.ReceivedBadFCS},
		sample{name("rx_oversize"), p.ReceivedOversize}, sample{name("rx_dropped"), p.Dropped},
		sample{name("tx_dropped"), p.Stray},
		sample{name("foreign_ticks"), p.ForeignTicks})
}

// printReading prints a reading as a line of JSON or as a table row, with a new header every 20 rows.
func (w *watch) printReading() error {
	if w.out == cli.JSON {
		head := cli.Info("watch")
		document := map[string]any{"schema": head.Schema, "document": head.Kind}
		for _, s := range w.values {
			document[s.name] = s.value
		}
		return json.NewEncoder(w.env.Stdout).Encode(document)
	}
	header, row := make([]string, len(w.values)), make([]string, len(w.values))
	for i, s := range w.values {
		header[i], row[i] = s.name, fmt.Sprint(s.value)
		if w.out == cli.Table {
			header[i] = fmt.Sprintf("%*s", max(len(s.name), 8), s.name)
			row[i] = fmt.Sprintf("%*s", len(header[i]), row[i])
		}
	}
	separator := map[bool]string{true: "  ", false: ","}[w.out == cli.Table]
	if w.looks%20 == 0 && (w.out == cli.Table || w.looks == 0) {
		fmt.Fprintln(w.env.Stdout, strings.Join(header, separator))
	}
	_, err := fmt.Fprintln(w.env.Stdout, strings.Join(row, separator))
	return err
}
