//go:build !unix

package store

import (
	"fmt"
	"io/fs"
)

func ownerOf(fs.FileInfo) (uid, names int, known bool) { return 0, 0, false }

func userName(uid int) string { return fmt.Sprintf("user %d", uid) }
