package main

import (
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// TestManualPagesAreRoff checks the page of a command with each form of text: paragraphs, headings, indented commands,
// an example, flags, and characters that mean something else in roff.
func TestManualPagesAreRoff(t *testing.T) {
	root := &cobra.Command{Use: "top"}
	cmd := &cobra.Command{Use: "leaf FILE", Short: `Split at \`, Run: func(*cobra.Command, []string) {},
		Long: "First.\n.profile is read.\n\n#### Linux:\n\n\tleaf > ~/.leaf\n\nLast.", Example: "  top leaf a"}
	root.AddCommand(cmd)
	cmd.Flags().StringP("queue", "q", "olaf", "discipline with this `name`")
	cmd.Flags().Int("runs", 3, "number of runs")
	want := `.nh
.TH "TOP-LEAF" "1" "Nov 2026" "olafctl" "olafctl"

.SH NAME
top-leaf - Split at \e

.SH SYNOPSIS
\fBtop leaf FILE [flags]\fP

.SH DESCRIPTION
First.
\&.profile is read.

.SS Linux:

.EX
leaf > ~/.leaf
.EE

.PP
Last.

.SH OPTIONS
\fB-q\fP, \fB--queue\fP="olaf"
	discipline with this name

.PP
\fB--runs\fP=3
	number of runs

.SH EXAMPLE
.EX
  top leaf a
.EE

.SH SEE ALSO
\fBtop(1)\fP
`
	if got := string(formatPage(cmd, time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC))); got != want {
		t.Errorf("the page is\n%s\nwant\n%s", got, want)
	}
}
