package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/olafctl/olaf"
	benchcmd "github.com/olafctl/olaf/cmd/olafctl/bench"
	capturecmd "github.com/olafctl/olaf/cmd/olafctl/capture"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	devicecmd "github.com/olafctl/olaf/cmd/olafctl/device"
	experimentcmd "github.com/olafctl/olaf/cmd/olafctl/experiment"
	exportcmd "github.com/olafctl/olaf/cmd/olafctl/export"
	runscmd "github.com/olafctl/olaf/cmd/olafctl/runs"
	schedulecmd "github.com/olafctl/olaf/cmd/olafctl/schedule"
	simulatecmd "github.com/olafctl/olaf/cmd/olafctl/simulate"
	sweepcmd "github.com/olafctl/olaf/cmd/olafctl/sweep"
	systemcmd "github.com/olafctl/olaf/cmd/olafctl/system"
	tablescmd "github.com/olafctl/olaf/cmd/olafctl/tables"
	testbedcmd "github.com/olafctl/olaf/cmd/olafctl/testbed"
	tracecmd "github.com/olafctl/olaf/cmd/olafctl/trace"
	traincmd "github.com/olafctl/olaf/cmd/olafctl/train"
	tuicmd "github.com/olafctl/olaf/cmd/olafctl/tui"
	verifycmd "github.com/olafctl/olaf/cmd/olafctl/verify"
	"github.com/olafctl/olaf/internal/suggest"
	"github.com/olafctl/olaf/results/text"
)

// run executes a command line and returns its exit code. All output goes through env.
func run(ctx context.Context, env *cli.Env, args []string) int {
	started := false
	env.Args = args
	env.Stdout, env.Stderr = &text.Printable{Terminal: env.Stdout}, &text.Printable{Terminal: env.Stderr}
	root := newRootCmd(env)
	onStart(root, func() { started = true })
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return cli.ExitDone
	}
	err = env.TLS.Advise(cli.ShortenInterrupt(ctx, err))
	code := cli.ExitCode(err)
	if !started && code == cli.ExitFailed {
		code = cli.ExitUsage // cobra's own errors: unknown command, missing argument
	}
	if exit, ok := err.(*cli.Exit); !ok || exit.Err != nil {
		for _, line := range cli.ErrorLines(err) {
			fmt.Fprintf(env.Stderr, "olafctl: %s\n", line)
		}
	}
	return code
}

func newRootCmd(env *cli.Env) *cobra.Command {
	env.Readers, env.SweepCommands, env.WorkCommands = readers(), sweepCommands, workCommands
	root := &cobra.Command{
		Use:   "olafctl",
		Short: "Run an in-network-aggregation testbed on a card or its software twin",
		Long: `olafctl runs an in-network-aggregation testbed: it programs an OLAF card or its software twin, starts the packet generator,
captures the packets at the parameter server, and reports Age of Model (AoM), loss, speed-up and aggregation beside the
published numbers. Without --device everything runs on the software twin in virtual time.

Which command? 'bench' measures one system under your traffic, 'simulate' a network, and 'train' a training run. 'experiment run'
repeats one table or figure of a paper, and 'reproduce' judges all published numbers.

Common flags: -d the device, -o the output format, -w a file to write, -q no progress, --force to overwrite files, --store the
folder of stored runs, --keep=false not to store a run.`,
		Example: `  olafctl bench --queue olaf --rate 60G            # the paper's Table 1, our numbers beside the published ones
  olafctl experiment list                          # the other tables and figures
  olafctl tui --demo                               # a guided tour of one run
  olafctl device info                              # the twin's registers and build`,
		Version:       versionLine(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return cli.UsageError("%s%s; see '%s --help'", flagMistake(err), suggestFlag(cmd, err), cmd.CommandPath())
	})
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
		for _, create := range g.commands {
			cmd := create(env)
			cmd.GroupID = g.title
			root.AddCommand(cmd)
		}
	}
	for _, create := range unlisted {
		cmd := create(env)
		cmd.Hidden = true
		root.AddCommand(cmd)
	}
	root.SetCompletionCommandGroupID(groups[len(groups)-1].title)
	root.InitDefaultCompletionCmd() // cobra would add its own too late for the changes below
	root.SetHelpCommand(cli.NewHelpCmd(knownCommand))
	cli.AddClientTLS(root, env)
	completeTree(root)
	cli.AddSettings(env, root)
	cli.SetHelp(env, root)
	return root
}

// completeTree applies the rules that all commands share: a command that only groups other commands rejects unknown
// ones, the error for wrong arguments shows the expected arguments, and help does not show zero defaults.
func completeTree(cmd *cobra.Command) {
	for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
		flags.VisitAll(hideZero)
		flags.VisitAll(func(f *pflag.Flag) { offerFiles(cmd, f) })
		cli.CheckValues(flags)
	}
	if args := cmd.Args; args != nil {
		cmd.Args = func(cmd *cobra.Command, given []string) error {
			if err := args(cmd, given); err != nil {
				return cli.UsageError("%s takes %s; see '%s --help'", cmd.CommandPath(), argumentMistake(cmd, given),
					cmd.CommandPath())
			}
			if at := slices.Index(given, ""); at >= 0 && cmd.Annotations[cli.TakesEmpty] == "" {
				_, form, _ := strings.Cut(cmd.Use, " ")
				return cli.UsageError("%s takes %s, but argument %d is empty; is a shell variable not set?", cmd.CommandPath(),
					form, at+1)
			}
			return nil
		}
	}
	if !cmd.Runnable() && cmd.HasSubCommands() {
		cmd.DisableFlagsInUseLine = true
		cmd.Args = knownCommand
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	for _, c := range cmd.Commands() {
		completeTree(c)
	}
}

// onStart calls started when the flags and arguments of a command have been accepted, before the command does its work.
func onStart(cmd *cobra.Command, started func()) {
	if work := cmd.RunE; work != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			started()
			return work(cmd, args)
		}
	}
	for _, c := range cmd.Commands() {
		onStart(c, started)
	}
}

// fileFlags lists the flags whose value is the name of a file, a folder, a socket or a command.
var fileFlags = []string{"add", "arrivals", "attach", "config", "csv", "dump", "file", "film", "for", "journal", "json", "k8s",
	"keys", "listen", "lp", "metrics-file", "p4-config", "p4info", "p4rt", "parquet", "pcap", "pdf", "plots", "png", "program",
	"record", "report", "rx-import", "rx-trace", "schedule", "slurm", "store", "svg", "tls-ca", "tls-cert", "tls-client-ca",
	"tls-key", "token-file", "trace", "training", "trainings", "write", "xlsx"}

// offerFiles prevents the shell from completing file names for a flag whose value is not a file name.
func offerFiles(cmd *cobra.Command, f *pflag.Flag) {
	if _, completed := cmd.GetFlagCompletionFunc(f.Name); !completed && !slices.Contains(fileFlags, f.Name) {
		cli.Complete(cmd, f.Name, func() []string { return nil })
	}
}

// hideZero removes zero defaults such as "(default 0ps)" from the help, as pflag does for plain numbers.
func hideZero(f *pflag.Flag) {
	if slices.Contains([]string{olaf.Rate(0).String(), olaf.Size(0).String(), olaf.Duration(0).String()}, f.DefValue) {
		f.DefValue = ""
	}
}

// knownCommand rejects arguments of a command that only groups other commands.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return cli.UsageError("unknown command %q for %s%s; see '%s --help'", args[0], cmd.CommandPath(),
		suggestCommands(cmd, args[0]), cmd.CommandPath())
}

// suggestCommands returns a remark with the commands whose names are similar to a mistyped one.
func suggestCommands(cmd *cobra.Command, typed string) string {
	cmd.SuggestionsMinimumDistance = max(cmd.SuggestionsMinimumDistance, 2)
	names := cmd.SuggestionsFor(typed)
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", strings.Join(names, " or "))
}

// suggestFlag returns a remark with the flag whose name is most similar to an unknown flag, or else with the only flag
// whose description contains the unknown word.
func suggestFlag(cmd *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || len(unknown.GetSpecifiedName()) < 2 {
		return ""
	}
	typed := unknown.GetSpecifiedName()
	var names, described []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		names = append(names, f.Name)
		if slices.Contains(strings.Fields(strings.ToLower(f.Usage)), strings.ToLower(typed)) {
			described = append(described, f.Name)
		}
	})
	switch near := suggest.NearestNames(typed, names, 1); {
	case len(near) > 0:
		return fmt.Sprintf("; did you mean --%s?", near[0])
	case len(described) == 1:
		return fmt.Sprintf("; did you mean --%s?", described[0])
	}
	return ""
}

// argumentMistake describes the arguments that a command accepts and the arguments that it was given.
func argumentMistake(cmd *cobra.Command, given []string) string {
	_, form, some := strings.Cut(cmd.Use, " ")
	switch {
	case !some && cmd.HasSubCommands():
		return fmt.Sprintf("no argument, and has no command %q%s", given[0], suggestCommands(cmd, given[0]))
	case !some:
		return fmt.Sprintf("no argument, but was given %q", given)
	}
	return fmt.Sprintf("%s, but was given %d of them", form, len(given))
}

// flagMistake describes an error about a flag without the names of library functions.
func flagMistake(err error) string {
	var value *pflag.InvalidValueError
	var number *strconv.NumError
	var choice *cli.ChoiceError
	if errors.As(err, &value) && errors.As(err, &choice) {
		return fmt.Sprintf("--%s: %v", value.GetFlag().Name, choice)
	}
	if errors.As(err, &value) && value.GetValue() == "" {
		return fmt.Sprintf("--%s is empty; give it a value, or leave it out", value.GetFlag().Name)
	}
	if !errors.As(err, &value) || !errors.As(err, &number) {
		return err.Error()
	}
	return fmt.Sprintf("--%s %q: want %s", value.GetFlag().Name, value.GetValue(),
		cli.DescribeValues(value.GetFlag(), number))
}

// groups lists the commands in the root command's help, in the order in which they are shown.
var groups = []struct {
	title    string
	commands []func(*cli.Env) *cobra.Command
}{
	{"Measure", []func(*cli.Env) *cobra.Command{
		benchcmd.New, simulatecmd.New, traincmd.New, sweepcmd.New, schedulecmd.New, verifycmd.New, tuicmd.New,
	}},
	{"Compare with the papers", []func(*cli.Env) *cobra.Command{experimentcmd.New, experimentcmd.NewReproduce,
		systemcmd.New}},
	{"Keep and share results", []func(*cli.Env) *cobra.Command{runscmd.New, exportcmd.New, tracecmd.New}},
	{"Devices and real packets", []func(*cli.Env) *cobra.Command{
		devicecmd.New, tablescmd.New, testbedcmd.New, capturecmd.New, capturecmd.NewReplay,
	}},
	{"Set up", []func(*cli.Env) *cobra.Command{newConfigCmd}},
}

// unlisted lists commands that work but are not shown in the help: former names of commands that were moved, the
// version, which --version also prints, and the manual pages, which packagers need.
var unlisted = []func(*cli.Env) *cobra.Command{
	devicecmd.NewReg, devicecmd.NewServe, tablescmd.NewCluster, testbedcmd.NewWorker, testbedcmd.NewPS,
	systemcmd.NewProgram,
	simulatecmd.NewTopology, newMetricsCmd, newManCmd, newVersionCmd,
}
