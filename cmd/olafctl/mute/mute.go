// Package mute prevents libraries from querying the terminal's colours while the program starts. Bubble Tea queries
// them in an init function. Every command would therefore print escape codes, swallow typed-ahead input, and wait five
// seconds for a terminal that does not answer. Only the dashboard needs the colours, and it queries them itself.
//
// The package works because Go initialises packages that are ready in the order of their import paths. Package mute
// imports only the standard library, whereas Bubble Tea needs golang.org/x/sys, which is initialised later.
package mute

import "os"

const variable = "TERM"

var term, known = os.LookupEnv(variable)

func init() {
	if known {
		_ = os.Setenv(variable, "dumb") // a terminal that libraries do not query
	}
}

// End restores the environment variable with the terminal's name. Call it at the start of main.
func End() {
	if known {
		_ = os.Setenv(variable, term)
	}
}
