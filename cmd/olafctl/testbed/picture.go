package testbed

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// pictureFlags are the flags for recording the output of a command as an animated picture.
type pictureFlags struct {
	path  string
	force bool
}

func (f *pictureFlags) Add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.path, "record", "", "also record the output as an animated `file`.svg")
	cmd.Flags().BoolVar(&f.force, "force", false, "with --record: overwrite an existing file")
}

// RecordOutput calls work and records its output. If work fails, no picture is written.
func (f *pictureFlags) RecordOutput(cmd *cobra.Command, env *cli.Env, work func(*cli.Env) error) error {
	if f.path == "" {
		return work(env)
	}
	if err := cli.CheckEnding(f.path, "pictures", ".svg"); err != nil {
		return err
	}
	if err := cli.RefuseExisting(f.path, f.force); err != nil {
		return err
	}
	p := picture{now: env.Now, began: env.Now()}
	seen := *env
	seen.Stdout, seen.Stderr = io.MultiWriter(env.Stdout, &p), io.MultiWriter(env.Stderr, &p)
	if err := work(&seen); err != nil {
		return err
	}
	if err := renameio.WriteFile(f.path, []byte(p.drawSVG(f.commandLine(cmd))), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(env.Stderr, "wrote %s\n", f.path)
	return nil
}

// commandLine returns the command line without the recording flags.
func (f *pictureFlags) commandLine(cmd *cobra.Command) string {
	words := []string{cmd.CommandPath()}
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		switch {
		case flag.Name == "record" || flag.Name == "force":
		case flag.Value.Type() == "bool" && flag.Value.String() == "true":
			words = append(words, "--"+flag.Name)
		default:
			words = append(words, "--"+flag.Name, flag.Value.String())
		}
	})
	return strings.Join(words, " ")
}

// picture records printed lines with their times.
type picture struct {
	now   func() time.Time
	began time.Time
	lines []pictureLine
	rest  string // an unfinished line
}

type pictureLine struct {
	after time.Duration
	text  string
}

// Write records complete lines and keeps an incomplete line for the next call.
func (p *picture) Write(b []byte) (int, error) {
	p.rest += string(b)
	for {
		line, rest, ended := strings.Cut(p.rest, "\n")
		if !ended {
			return len(b), nil
		}
		p.lines, p.rest = append(p.lines, pictureLine{p.now().Sub(p.began), line}), rest
	}
}

// drawSVG draws the command and its output as SVG. A line shows its time if it differs from that of the previous line.
func (p *picture) drawSVG(command string) string {
	const times = 9 // width of the time column
	width := len(command) + 2
	for _, l := range p.lines {
		width = max(width, screen.TextWidth(l.text))
	}
	var s screen.Screen
	s.Resize(times+width, len(p.lines)+1)
	all := s.All()
	all.Text(times, 0, theme.Strong, "$ "+command)
	before := ""
	for i, l := range p.lines {
		if at := fmt.Sprintf("%.1f s", l.after.Seconds()); at != before {
			all.TextRight(times-2, i+1, theme.Dim, at)
			before = at
		}
		all.Text(times, i+1, theme.Text, l.text)
	}
	looks, fore, back := theme.New(theme.Options{Colour: true}).Looks()
	return s.SVG(command, looks, fore, back)
}
