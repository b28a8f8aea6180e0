//go:build !unix

package main

import "os"

// perhapsClosed returns false, because this operating system does not provide the information.
func perhapsClosed(*os.File) bool { return false }
