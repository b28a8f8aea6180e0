// Package mute keeps libraries from asking the terminal for its colours while the program starts. Bubble Tea asks in an
// init function, so that every command would write escape codes, swallow what is typed ahead, and wait five seconds for
// a terminal that never answers; only the dashboard wants to know, and asks by itself.
//
// It works because Go initialises, of the packages that are ready, the first by import path: this one imports only the
// standard library, and Bubble Tea needs golang.org/x/sys, which sorts behind it.
package mute

import "os"

const variable = "TERM"

var term, known = os.LookupEnv(variable)

func init() {
	if known {
		_ = os.Setenv(variable, "dumb") // a terminal that nobody asks anything; the name is a valid one
	}
}

// End gives the terminal its name back. It belongs at the start of main.
func End() {
	if known {
		_ = os.Setenv(variable, term)
	}
}
