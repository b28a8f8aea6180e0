//go:build !unix

package lockfile

import (
	"io/fs"
	"os"
)

const noFollow = 0

// Works reports whether files can be locked on this operating system.
const Works = false

// Own returns true, because the owner of a file is unknown on this operating system.
func Own(fs.FileInfo) bool { return true }

// Names returns 1, because the number of hard links is unknown on this operating system.
func Names(fs.FileInfo) int { return 1 }

// Lock does nothing on this operating system.
func Lock(*os.File, bool) error { return nil }
