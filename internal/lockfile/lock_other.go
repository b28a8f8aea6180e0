//go:build !unix

package lockfile

import (
	"io/fs"
	"os"
)

const noFollow = 0

// Works reports whether files can be locked on this system.
const Works = false

// Own returns true, because it cannot be known on this system.
func Own(fs.FileInfo) bool { return true }

// Names returns 1, because it cannot be known on this system.
func Names(fs.FileInfo) int { return 1 }

// Lock does nothing on this system.
func Lock(*os.File, bool) error { return nil }
