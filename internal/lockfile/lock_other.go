//go:build !unix

package lockfile

import "os"

const noFollow = 0

// Lock does nothing here.
func Lock(*os.File, bool) error { return nil }
