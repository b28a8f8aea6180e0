//go:build !unix

package lockfile

import (
	"io/fs"
	"os"
)

const noFollow = 0

// Works says whether files can be locked here.
const Works = false

// Own can't tell here.
func Own(fs.FileInfo) bool { return true }

// Names can't tell here.
func Names(fs.FileInfo) int { return 1 }

// Lock does nothing here.
func Lock(*os.File, bool) error { return nil }
