// Package mute keeps libraries from querying the terminal's colours while the program starts. Bubble Tea does so in an
// init function. Every command would then print escape codes, swallow typed-ahead input, and wait five seconds for a
// terminal that does not answer; only the dashboard needs the colours, and queries them itself. This works because Go
// initialises packages that are ready in the order of their import paths: this one imports only the standard library,
// and Bubble Tea needs golang.org/x/sys, which sorts behind it.
package mute

import "os"

const variable = "TERM"

var term, known = os.LookupEnv(variable)

func init() {
	if known {
		_ = os.Setenv(variable, "dumb") // a terminal that libraries do not query
	}
}

// End restores the terminal's name. Call it at the start of main.
func End() {
	if known {
		_ = os.Setenv(variable, term)
	}
}
