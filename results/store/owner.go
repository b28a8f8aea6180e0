package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Person is the user for whom root writes to a store, for example with sudo.
type Person struct{ UID, GID int }

// OpenFor opens a store as root on behalf of p. If the store belongs to p or is created by this call, Close makes p the
// owner of all files in the store that root owns. A store of root or of a third user keeps its owners.
func OpenFor(dir string, p Person) (*Store, error) {
	made, err := missingFolders(dir)
	if err != nil {
		return nil, err
	}
	s, err := Open(dir)
	if err != nil {
		return nil, err
	}
	for _, d := range made {
		if err := os.Lchown(d, p.UID, p.GID); err != nil {
			return nil, fmt.Errorf("the run store can't be given to user %d: %w", p.UID, err)
		}
	}
	about, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("the run store can't be read: %w", err)
	}
	if uid, _, known := ownerOf(about); known && uid == p.UID {
		s.person = &p
	}
	return s, nil
}

// missingFolders returns the folders that do not exist yet among dir and its parent folders.
func missingFolders(dir string) (folders []string, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			return folders, nil
		}
		folders = append(folders, dir)
	}
}

// handOver makes the invoking user the owner of every file in the store that root owns. It does not follow links out of
// the store's folder, and skips files that have a second name elsewhere.
func (s *Store) handOver() error {
	if s.person == nil {
		return nil
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return fmt.Errorf("the run store can't be given to user %d: %w", s.person.UID, err)
	}
	err = fs.WalkDir(root.FS(), ".", func(path string, _ fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another process removed it
		}
		if err != nil {
			return err
		}
		about, err := root.Lstat(path)
		if err != nil {
			return nil // another process removed it
		}
		if uid, names, known := ownerOf(about); !known || uid != 0 || names > 1 && !about.IsDir() {
			return nil
		}
		return root.Lchown(path, s.person.UID, s.person.GID)
	})
	if err := errors.Join(err, root.Close()); err != nil {
		return fmt.Errorf("the run store can't be given to user %d: %w", s.person.UID, err)
	}
	return nil
}

// blameOwner adds the owner of a folder to a permission error. It uses the first of the folders that belongs to another
// user. If a folder does not exist, the closest existing folder above it is checked.
func blameOwner(err error, folders ...string) error {
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	for _, dir := range folders {
		about, missing := os.Stat(dir)
		for missing != nil && dir != filepath.Dir(dir) {
			dir = filepath.Dir(dir)
			about, missing = os.Stat(dir)
		}
		if missing != nil {
			continue
		}
		if uid, _, known := ownerOf(about); known && uid != os.Geteuid() {
			return fmt.Errorf("%w; %s belongs to %s, and 'sudo chown -R %d %[2]s' makes it yours", err, dir,
				userName(uid), os.Geteuid())
		}
	}
	return err
}
