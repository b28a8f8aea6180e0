package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// FlagGroup is a heading in the help of a command with many flags.
type FlagGroup string

// Groups, in the order of the help. Flags without a group come last.
const (
	SystemFlags    FlagGroup = "What to measure"
	TrafficFlags   FlagGroup = "Traffic"
	LoopFlags      FlagGroup = "Closed-loop workers (switchml, atp, p4inc, ps, ring; iswitch with --mode)"
	RunFlags       FlagGroup = "Runs"
	JobFlags       FlagGroup = "Closed-loop jobs (--preset isw-lab)"
	SweepFlags     FlagGroup = "Sweep"
	OutputFlags    FlagGroup = "Output"
	DashboardFlags FlagGroup = "Dashboard"
	otherFlags     FlagGroup = "Other"
	ModelFlags     FlagGroup = "Models summed on servers (xagg)"
	CardFlagsOf    FlagGroup = "Cards and agents"
)

// rareFlags lists flags shared by many commands that long help texts show only with --help-all. The root command's help
// explains the common ones.
var rareFlags = []string{
	"store", "keep", "force", "quiet", "metrics-file", "metrics", "schema", "yes", // output and files
	"metric", "order", "processes", "until", "check", "token-file", // sweeps
	"theme", "keys", "mouse", "paused", "speed", // dashboard
}

var flagGroups = []FlagGroup{SystemFlags, TrafficFlags, LoopFlags, RunFlags, SweepFlags, JobFlags, OutputFlags,
	DashboardFlags, ModelFlags, otherFlags, CardFlagsOf}

const (
	groupKey = "olafctl_group" // annotates a flag with its group
	rareKey  = "olafctl_rare"  // annotates a flag that only --help-all lists
	helpAll  = "help-all"
	// manyFlags is the number of flags at which a command's help groups its flags and omits the rare ones.
	manyFlags = 20
)

// MarkRare omits flags from the command's help unless --help-all is given.
func MarkRare(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		annotate(cmd.Flags().Lookup(name), rareKey, "true")
	}
}

func annotate(f *pflag.Flag, key, value string) {
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[key] = []string{value}
}

// isRare reports whether only --help-all lists the flag.
func isRare(f *pflag.Flag) bool {
	return f.Annotations[rareKey] != nil || GroupOf(f) == CardFlagsOf || slices.Contains(rareFlags, f.Name)
}

// TakesEmpty is the annotation of commands that accept an empty argument. All other commands reject it.
const TakesEmpty = "takes-empty"

// InGroup puts the flags that the function add adds to a command under one heading in its help.
func InGroup(cmd *cobra.Command, group FlagGroup, add func()) {
	before := map[string]bool{}
	each := func(visit func(*pflag.Flag)) {
		cmd.Flags().VisitAll(visit)
		cmd.PersistentFlags().VisitAll(visit)
	}
	each(func(f *pflag.Flag) { before[f.Name] = true })
	add()
	each(func(f *pflag.Flag) {
		if !before[f.Name] && f.Annotations[groupKey] == nil {
			annotate(f, groupKey, string(group))
		}
	})
}

// GroupOf returns the heading under which the help lists a flag.
func GroupOf(f *pflag.Flag) FlagGroup {
	if group := f.Annotations[groupKey]; len(group) > 0 {
		return FlagGroup(group[0])
	}
	return otherFlags
}

// groupFlags returns the flags for which show returns true, by heading. It omits hidden flags.
func groupFlags(flags *pflag.FlagSet, show func(*pflag.Flag) bool) map[FlagGroup]*pflag.FlagSet {
	groups := map[FlagGroup]*pflag.FlagSet{}
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || !show(f) {
			return
		}
		group := GroupOf(f)
		if groups[group] == nil {
			groups[group] = pflag.NewFlagSet(string(group), pflag.ContinueOnError)
		}
		groups[group].AddFlag(f)
	})
	return groups
}

// hasMany reports whether the help lists a command's flags in groups and shows rare flags only with --help-all.
func hasMany(cmd *cobra.Command) bool {
	n := 0
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			n++
		}
	})
	return n >= manyFlags
}

// SetHelp sets the help of all commands in a tree. The help is as wide as the page and groups the flags of large
// commands.
func SetHelp(env *Env, root *cobra.Command) {
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		p := helpPage{cmd: cmd, width: helpWidth(env)}
		_, err := io.WriteString(cmd.OutOrStdout(), p.formatUsage())
		return err
	})
	root.SetHelpFunc(PrintHelp(env, nil))
	addHelpAll(root)
}

// PrintHelp returns a help function for a command some of whose flags apply only to certain arguments, such as a
// system. Without --help-all, the help omits the flags for which applies returns false. A nil applies accepts all
// flags.
func PrintHelp(env *Env, applies func(flag string) bool) func(*cobra.Command, []string) {
	return func(cmd *cobra.Command, _ []string) {
		p := helpPage{cmd: cmd, width: helpWidth(env), applies: applies}
		fmt.Fprint(cmd.OutOrStdout(), p.foldText(cmp.Or(cmd.Long, cmd.Short)), "\n\n", p.formatUsage())
	}
}

// addHelpAll adds --help-all to every command whose help omits flags.
func addHelpAll(cmd *cobra.Command) {
	cmd.InitDefaultHelpFlag() // so that hasMany counts it now, as when help is printed
	if hasMany(cmd) {
		all := cmd.Flags().Bool(helpAll, false, "help with every flag")
		args := cmd.Args
		cmd.Args = func(cmd *cobra.Command, given []string) error {
			if *all {
				return pflag.ErrHelp
			}
			if args == nil { // cobra then accepts any argument
				return nil
			}
			return args(cmd, given)
		}
	}
	for _, sub := range cmd.Commands() {
		addHelpAll(sub)
	}
}

// helpWidth returns the width of help texts in characters.
func helpWidth(env *Env) int { return max(env.View(false).Width, 40) }

// helpPage is the help text of a command.
type helpPage struct {
	cmd     *cobra.Command
	width   int
	applies func(flag string) bool // nil for every flag
	strings.Builder
}

// foldText wraps paragraphs, except indented ones, to the width of the page.
func (p *helpPage) foldText(text string) string {
	paragraphs := strings.Split(strings.TrimSpace(text), "\n\n")
	for i, paragraph := range paragraphs {
		if strings.HasPrefix(paragraph, " ") || strings.Contains(paragraph, "\n ") {
			continue
		}
		paragraphs[i] = foldAt(paragraph, p.width, "")
	}
	return strings.Join(paragraphs, "\n\n")
}

// foldAt wraps text to a width and indents every line but the first.
func foldAt(text string, width int, indent string) string {
	var folded strings.Builder
	length := 0
	for word := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case length == 0:
		case length+1+n > width:
			folded.WriteString("\n" + indent)
			length = 0
		default:
			folded.WriteByte(' ')
			length++
		}
		folded.WriteString(word)
		length += n
	}
	return folded.String()
}

// formatUsage returns the part of a help page below the description.
func (p *helpPage) formatUsage() string {
	p.Reset()
	fmt.Fprintf(p, "Usage:\n")
	if p.cmd.Runnable() && !p.cmd.HasAvailableSubCommands() {
		fmt.Fprintf(p, "  %s\n", p.cmd.UseLine())
	} else {
		fmt.Fprintf(p, "  %s [command]\n", p.cmd.CommandPath())
	}
	if p.cmd.HasExample() {
		fmt.Fprintf(p, "\nExamples:\n%s\n", p.cmd.Example)
	}
	p.writeCommands()
	p.writeFlags()
	if inherited := p.cmd.InheritedFlags(); inherited.HasAvailableFlags() {
		p.flagList("Global flags", inherited)
	}
	if p.cmd.HasAvailableSubCommands() {
		fmt.Fprintf(p, "\n'%s [command] --help' describes one command.\n", p.cmd.CommandPath())
	}
	return p.String()
}

// writeCommands lists the subcommands by group.
func (p *helpPage) writeCommands() {
	below := slices.DeleteFunc(slices.Clone(p.cmd.Commands()),
		func(c *cobra.Command) bool { return !c.IsAvailableCommand() })
	for _, group := range append(slices.Clone(p.cmd.Groups()), &cobra.Group{Title: "Commands:"}) {
		first := true
		for _, c := range below {
			if c.GroupID != group.ID {
				continue
			}
			if title := group.Title; first {
				if group.ID == "" && len(p.cmd.Groups()) > 0 {
					title = "Other:"
				}
				fmt.Fprintf(p, "\n%s\n", title)
				first = false
			}
			margin := c.NamePadding() + 3
			fmt.Fprintf(p, "  %-*s %s\n", margin-3, c.Name(),
				foldAt(c.Short, p.width-margin, strings.Repeat(" ", margin)))
		}
	}
}

// writeFlags lists the command's own flags.
func (p *helpPage) writeFlags() {
	local := p.cmd.LocalFlags()
	if !hasMany(p.cmd) {
		if local.HasAvailableFlags() {
			p.flagList("Flags", local)
		}
		return
	}
	device, all := p.cmd.Flags().Lookup("device"), p.cmd.Flags().Lookup(helpAll)
	cards := device != nil && device.Changed
	left := 0
	groups := groupFlags(local, func(f *pflag.Flag) bool {
		show := all != nil && all.Changed || f.Changed || cards && GroupOf(f) == CardFlagsOf ||
			!isRare(f) && (p.applies == nil || p.applies(f.Name))
		if !show {
			left++
		}
		return show
	})
	for _, group := range flagGroups {
		if flags := groups[group]; flags != nil && (group != otherFlags || left == 0) {
			p.flagList(string(group), flags)
		}
	}
	if left > 0 {
		fmt.Fprintf(p, "\n%s\n", p.foldText(fmt.Sprintf("'%s --%s' lists %d more flags.", p.cmd.CommandPath(), helpAll,
			left)))
	}
}

func (p *helpPage) flagList(title string, flags *pflag.FlagSet) {
	fmt.Fprintf(p, "\n%s:\n%s", title, flags.FlagUsagesWrapped(p.width))
}

// NewHelpCmd returns the help command. It calls unknown if the arguments do not name a command.
func NewHelpCmd(unknown func(cmd *cobra.Command, args []string) error) *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND…]",
		Short:   "Print the help of a command",
		Example: "  olafctl help runs compare",
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			found, rest, err := root.Find(args)
			if err != nil || found == nil || len(rest) > 0 {
				if found == nil {
					found = root
				}
				return unknown(found, rest)
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
			found, _, err := cmd.Root().Find(given)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, c := range found.Commands() {
				if c.IsAvailableCommand() {
					names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}
