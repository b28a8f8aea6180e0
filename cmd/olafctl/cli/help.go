package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// FlagGroup is a heading under which the help of a command with many flags lists some.
type FlagGroup string

// Groups, in the order of the help. Flags of none of them come last.
const (
	SystemFlags    FlagGroup = "What is measured"
	TrafficFlags   FlagGroup = "Traffic"
	LoopFlags      FlagGroup = "Workers that wait for answers (switchml, atp, p4inc, ps, ring; iswitch by a file)"
	RunFlags       FlagGroup = "Runs"
	JobFlags       FlagGroup = "Jobs whose hosts wait for answers (--preset isw-lab)"
	SweepFlags     FlagGroup = "Sweep"
	OutputFlags    FlagGroup = "Output"
	DashboardFlags FlagGroup = "Dashboard"
	DeviceFlagsOf  FlagGroup = "Device"
	otherFlags     FlagGroup = "Other"
	// ModelFlags are of systems that add on servers.
	ModelFlags FlagGroup = "Models added up on servers"
	// CardFlagsOf are for cards and agents, which most people have not: --help-all lists them.
	CardFlagsOf FlagGroup = "Cards and agents"
)

var flagGroups = []FlagGroup{SystemFlags, TrafficFlags, LoopFlags, RunFlags, SweepFlags, JobFlags, OutputFlags, DashboardFlags, ModelFlags, DeviceFlagsOf, otherFlags, CardFlagsOf}

const (
	groupKey = "olafctl_group" // annotates a flag
	helpAll  = "help-all"
	// manyFlags is from how many on a command's flags are listed in groups.
	manyFlags = 20
)

// InGroup puts the flags that add adds to a command under a heading of its help.
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
			if f.Annotations == nil {
				f.Annotations = map[string][]string{}
			}
			f.Annotations[groupKey] = []string{string(group)}
		}
	})
}

func groupOf(f *pflag.Flag) FlagGroup {
	if group := f.Annotations[groupKey]; len(group) > 0 {
		return FlagGroup(group[0])
	}
	return otherFlags
}

// grouped are the visible flags of a command by their heading.
func grouped(flags *pflag.FlagSet) map[FlagGroup]*pflag.FlagSet {
	groups := map[FlagGroup]*pflag.FlagSet{}
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		group := groupOf(f)
		if groups[group] == nil {
			groups[group] = pflag.NewFlagSet(string(group), pflag.ContinueOnError)
		}
		groups[group].AddFlag(f)
	})
	return groups
}

// hasMany says whether a command's flags are listed in groups, those of cards only on demand.
func hasMany(cmd *cobra.Command) bool {
	n := 0
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			n++
		}
	})
	return n >= manyFlags
}

// SetHelp makes a tree of commands print its help as wide as a page is, with the flags of large commands in groups.
func SetHelp(env *Env, root *cobra.Command) {
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		p := helpPage{cmd: cmd, width: helpWidth(env)}
		_, err := io.WriteString(cmd.OutOrStdout(), p.usage())
		return err
	})
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		p := helpPage{cmd: cmd, width: helpWidth(env)}
		about := cmd.Long
		if about == "" {
			about = cmd.Short
		}
		fmt.Fprint(cmd.OutOrStdout(), p.fold(about), "\n\n", p.usage())
	})
	addHelpAll(root)
}

// addHelpAll gives every command that hides flags a way to list them.
func addHelpAll(cmd *cobra.Command) {
	cmd.InitDefaultHelpFlag() // counts as one of the flags, now as when the help is printed
	if hasMany(cmd) && grouped(cmd.LocalFlags())[CardFlagsOf] != nil {
		all := cmd.Flags().Bool(helpAll, false, "help, with the flags for cards and agents")
		args := cmd.Args
		cmd.Args = func(cmd *cobra.Command, given []string) error {
			if *all {
				return pflag.ErrHelp
			}
			if args == nil { // cobra takes any argument then
				return nil
			}
			return args(cmd, given)
		}
	}
	for _, sub := range cmd.Commands() {
		addHelpAll(sub)
	}
}

// helpWidth is how many characters a line of help has.
func helpWidth(env *Env) int { return max(env.View(false).Width, 40) }

// helpPage is the help of one command.
type helpPage struct {
	cmd   *cobra.Command
	width int
	strings.Builder
}

// fold breaks paragraphs into lines. What is indented stays as it is.
func (p *helpPage) fold(text string) string {
	paragraphs := strings.Split(strings.TrimSpace(text), "\n\n")
	for i, paragraph := range paragraphs {
		if strings.HasPrefix(paragraph, " ") || strings.Contains(paragraph, "\n ") {
			continue
		}
		paragraphs[i] = foldAt(paragraph, p.width, "")
	}
	return strings.Join(paragraphs, "\n\n")
}

// foldAt breaks words into lines of a width, each but the first behind an indentation.
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

// usage is everything below the text.
func (p *helpPage) usage() string {
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
	p.commands()
	p.flags()
	if inherited := p.cmd.InheritedFlags(); inherited.HasAvailableFlags() {
		p.flagList("Global flags", inherited)
	}
	if p.cmd.HasAvailableSubCommands() {
		fmt.Fprintf(p, "\n'%s [command] --help' tells more of a command.\n", p.cmd.CommandPath())
	}
	return p.String()
}

// commands lists what is below the command, by its groups.
func (p *helpPage) commands() {
	below := slices.DeleteFunc(slices.Clone(p.cmd.Commands()), func(c *cobra.Command) bool { return !c.IsAvailableCommand() })
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
			fmt.Fprintf(p, "  %-*s %s\n", margin-3, c.Name(), foldAt(c.Short, p.width-margin, strings.Repeat(" ", margin)))
		}
	}
}

// flags lists the command's own flags.
func (p *helpPage) flags() {
	local := p.cmd.LocalFlags()
	if !hasMany(p.cmd) {
		if local.HasAvailableFlags() {
			p.flagList("Flags", local)
		}
		return
	}
	groups := grouped(local)
	device := p.cmd.Flags().Lookup("device")
	all := device != nil && device.Changed
	if given := p.cmd.Flags().Lookup(helpAll); given != nil {
		all = all || given.Changed
	}
	for _, group := range flagGroups {
		flags := groups[group]
		if flags == nil || group == CardFlagsOf && !all {
			continue
		}
		p.flagList(string(group), flags)
	}
	if hidden := groups[CardFlagsOf]; hidden != nil && !all {
		fmt.Fprintf(p, "\n%s\n", p.fold(fmt.Sprintf("'%s --%s' also lists the flags for cards and agents.", p.cmd.CommandPath(), helpAll)))
	}
}

func (p *helpPage) flagList(title string, flags *pflag.FlagSet) {
	fmt.Fprintf(p, "\n%s:\n%s", title, flags.FlagUsagesWrapped(p.width))
}

// NewHelpCmd prints the help of a command, and refuses what is none.
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
