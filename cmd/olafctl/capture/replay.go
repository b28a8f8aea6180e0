package capture

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/capture/replay"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/cmd/olafctl/expect"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/text"
)

// replayFlags are the flags of replay.
type replayFlags struct {
	queue     string
	outRate   olaf.Rate
	slots     int
	overhead  olaf.Size
	dequeue   int
	merge     int
	profile   engine.Profile
	filter    bool
	threshold float64
	to        string
	clock     func() (*int64, error) // --clock-error
	keep      cli.KeepFlags
	started   time.Time
	force     bool
	format    cli.Format
	expect    cli.ExpectFlags
	watch     watchedReplay
}

func NewReplay(env *cli.Env) *cobra.Command {
	f := &replayFlags{outRate: 40 * olaf.Gbps}
	cmd := &cobra.Command{
		Use:   "replay CAPTURE",
		Short: "Replay a capture of OLAF frames through a queue",
		Long: `Read a pcap or pcapng file ("-" for standard input), pass its OLAF frames through a queue, and count the outcomes. Ages are
printed if packets and updates carry stamps from one clock. If the stamps are coarser than a frame at --out-rate, losses,
merges and ages are withheld: capture with 'tcpdump --time-stamp-precision=nano'.`,
		Example: `  olafctl replay in.pcap --system olaf --out-rate 40G -w delivered.pcap
  olafctl replay in.pcapng --slots 64 --profile ideal -o json
  olafctl replay in.pcapng --out-rate 20G --tui
  xz -dc in.pcapng.xz | olafctl replay - --expect 'lost_pct < 1'`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, env, args[0]) },
	}
	cli.InGroup(cmd, cli.SystemFlags, func() { f.addQueue(cmd) })
	cli.InGroup(cmd, cli.OutputFlags, func() {
		cli.AddWrite(cmd.Flags(), &f.to, "write the queue's output to this file: .pcap or .pcapng")
		cli.AddForce(cmd.Flags(), &f.force, "an existing output file")
	})
	f.clock = clockErrorFlag(cmd)
	f.keep.AddOptional(cmd)
	f.expect.Add(cmd)
	f.watch.add(cmd)
	cli.AddFormatFlag(cmd, &f.format)
	return cmd
}

func (f *replayFlags) addQueue(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.queue, f.profile = "olaf", engine.Calibrated
	cli.AddSystem(cmd, &f.queue, "queue to replay through: "+strings.Join(engine.DisciplineNames(), "|"),
		engine.DisciplineNames)
	flags.Var(&f.outRate, "out-rate", "output rate")
	flags.IntVar(&f.slots, "slots", 8, "queue slots (Qmax)")
	flags.Var(&f.overhead, "overhead", "bytes the rate limiter adds to each frame")
	cli.ProfileFlag(cmd, &f.profile)
	flags.IntVar(&f.dequeue, "dequeue-cycles", 0, "override: 4 ns cycles per departure")
	flags.IntVar(&f.merge, "merge-cycles", 0, "override: cycles per merge")
	cli.AddRewardFilter(flags, &f.filter, &f.threshold)
}

// queueConfig returns the queue's configuration.
func (f *replayFlags) queueConfig(cmd *cobra.Command) (replay.Config, error) {
	c := replay.Config{
		Queue: f.queue, Lanes: f.to != "", Engine: engine.Config{Slots: f.slots, RewardFilter: f.filter},
	}
	var err error
	if c.Engine.RewardThreshold, err = engine.FixedReward(f.threshold); err != nil {
		return c, fmt.Errorf("%w: %w", bench.ErrSpec, err)
	}
	if c.Output, err = f.profile.Output(f.queue, f.outRate); err != nil {
		return c, err
	}
	if c.ClockErrorNS, err = f.clock(); err != nil {
		return c, err
	}
	c.Output.OverheadBytes = int(f.overhead)
	if cmd.Flags().Changed("dequeue-cycles") {
		c.Output.DequeueCycles = f.dequeue
	}
	if cmd.Flags().Changed("merge-cycles") {
		c.Output.MergeCycles = f.merge
	}
	return c, nil
}

func (f *replayFlags) run(cmd *cobra.Command, env *cli.Env, path string) (err error) {
	f.started = env.Now()
	config, err := f.queueConfig(cmd)
	if err != nil {
		return err
	}
	if err := cli.RefuseSameFile(path, f.to); err != nil {
		return err
	}
	if err := cli.CheckExtension("-w", f.to, ".pcap", ".pcapng"); err != nil {
		return err
	}
	if err := f.watch.checkFlags(cmd); err != nil {
		return err
	}
	at := []expect.Configuration{{System: f.queue, Rate: f.outRate}}
	if err := f.expect.ResolveRules(nil, replay.DeclareMetrics(), at); err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return cli.UsageError("%s is a directory; name a capture", path)
	}
	reader, err := capture.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	decoder := capture.NewDecoder(reader)
	decoder.Others = frame.DetectSystem
	if f.watch.tui {
		return f.watch.showReplay(cmd, env, path, decoder, config)
	}
	if f.to == "" {
		result, err := replay.Run(cmd.Context(), decoder, config, nil)
		return f.finishReplay(env, path, result, err)
	}
	file, err := capture.Create(f.to, f.force, 0)
	if err != nil {
		return err
	}
	defer file.Abandon() // does nothing after the commit
	result, err := replay.Run(cmd.Context(), decoder, config, &fileSink{file})
	if err == nil {
		err = file.Commit()
	}
	return f.finishReplay(env, path, result, err)
}

// fileSink writes deliveries to a capture file.
type fileSink struct{ *capture.File }

func (s *fileSink) Deliver(d *replay.Delivery) error {
	return s.WriteUpdate(d.At, &d.Addresses, &d.Update, d.Lanes)
}

// finishReplay prints the result, even if it is only partial.
func (f *replayFlags) finishReplay(env *cli.Env, path string, r *replay.Result, err error) error {
	if r == nil {
		return err
	}
	if printErr := f.printCounters(env, path, r); printErr != nil {
		return errors.Join(err, printErr)
	}
	if keepErr := f.keepRun(env, path, r); keepErr != nil || err != nil {
		return errors.Join(cli.MarkInterrupted(err), keepErr)
	}
	if f.to != "" {
		fmt.Fprintf(env.Stderr, "capture: %s (%s)\n", f.to, olaf.Plural(r.Counts.Of("delivered"), "frame"))
	}
	if r.WithheldWhy != "" {
		fmt.Fprintf(env.Stderr, "withheld: %s\n", r.WithheldWhy)
	}
	if !r.Valid {
		return &cli.Exit{Kind: olaf.Failed, Err: fmt.Errorf("the replay is invalid: %s", r.Reason)}
	}
	return f.expect.JudgeRows(env, []results.Row{r.Row()})
}

// keepRun stores the counts and ages if --keep is set.
func (f *replayFlags) keepRun(env *cli.Env, path string, r *replay.Result) error {
	run := &cli.CountedRun{Experiment: "replay", Config: map[string]any{"capture": path, "queue": r.Queue, "out_rate_bps": r.OutRateBPS,
		"slots": r.Slots, "dequeue_cycles": r.DequeueCycles, "merge_cycles": r.MergeCycles, "overhead_bytes": r.OverheadBytes},
		Counters: map[string]int64{}, Invalid: r.Reason, Partial: r.Partial,
		Found: fmt.Sprintf("%s at %v: %d of %d delivered", r.Queue, olaf.Rate(r.OutRateBPS), r.Counts.Of("delivered"), r.Counts.Of("in"))}
	for i, c := range r.Counts.Ledger().Counters {
		if !slices.Contains(r.Withheld, c.Name) {
			run.Counters[c.Name] = r.Counts.At(i)
		}
	}
	if r.WithheldWhy != "" {
		run.Remarks = append(run.Remarks, "withheld: "+r.WithheldWhy)
	}
	addAgesTo(run, "", r.Ages)
	addAgesTo(run, "arriving_", r.Arriving)
	return f.keep.KeepRun(env, f.started, false, run)
}

// addCounter adds a counter. In CSV, the number is left empty if it is withheld.
func (f *replayFlags) addCounter(list *cli.Grid, name string, n int64, meaning string, withheld bool) {
	value := fmt.Sprint(n)
	if withheld {
		value, meaning = text.Missing, "withheld: "+meaning
		if f.format == cli.CSV {
			value = ""
		}
	}
	list.Add(name, value, meaning)
}

func (f *replayFlags) printCounters(env *cli.Env, path string, r *replay.Result) error {
	if f.format == cli.JSON {
		return cli.WriteJSON(env.Stdout, r)
	}
	list := cli.Grid{Header: []string{"COUNTER", "VALUE", "MEANING"}}
	for i, c := range r.Counts.Ledger().Counters {
		// Tables leave out minor counters that are zero.
		n, withheld := r.Counts.At(i), slices.Contains(r.Withheld, c.Name)
		if n != 0 && !withheld || !c.Sparse && (!c.Aside || f.format != cli.Table) {
			f.addCounter(&list, c.Name, n, c.Doc, withheld)
		}
	}
	f.addCounter(&list, "lost", r.Lost, "as the paper counts it: sent − delivered − aggregated", r.WithheldWhy != "")
	if f.format == cli.Table {
		fmt.Fprintf(env.Stdout, "%s through %s at %v, %s: %s in %s\n\n", path, r.Queue, olaf.Rate(r.OutRateBPS),
			olaf.Plural(r.Slots, "slot"), olaf.Plural(r.Workers, "worker"), olaf.Plural(r.Clusters, "cluster"))
	}
	if f.format == cli.CSV {
		addAges(&list, "arriving_", r.Arriving)
		addAges(&list, "", r.Ages)
	}
	if err := list.Write(env, f.format); err != nil || f.format == cli.CSV {
		return err
	}
	if err := printAges(env, "behind "+r.Queue, r.Ages); err != nil || !r.Arriving.Available() {
		return err
	}
	return printAges(env, "as captured", r.Arriving)
}
