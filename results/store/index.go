package store

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"time"

	"modernc.org/sqlite" // also the driver "sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// index is the list of finished runs in SQLite. It is a cache: what is wrong with it is mended by making it anew.
type index struct {
	db   *sql.DB
	path string
}

const (
	indexVersion = 1
	inMemory     = ":memory:"
)

func openIndex(path string) (*index, error) {
	ix := &index{path: path}
	err := ix.openPatiently()
	if err == nil {
		return ix, nil
	}
	ix.close()
	if unwritable(err) {
		// What others keep can be looked at, and a full disk can be cleared: the folders fill an index that is forgotten.
		ix.path = inMemory
		if err := ix.open(); err != nil {
			return nil, fmt.Errorf("the index of the run store can't be opened: %w", err)
		}
		return ix, nil
	}
	if !worthless(err) {
		return nil, fmt.Errorf("the index of the run store can't be opened: %w; choose another place with --store", err)
	}
	// The folders hold everything, so begin again.
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("the index of the run store can't be written: %w; choose another place with --store", err)
		}
	}
	if err := ix.openPatiently(); err != nil {
		ix.close()
		return nil, fmt.Errorf("the index of the run store can't be opened: %w; choose another place with --store", err)
	}
	return ix, nil
}

// openPatiently opens while another process makes the same index, of which SQLite does not wait for every step.
func (ix *index) openPatiently() error {
	for wait := time.Millisecond; ; wait *= 2 {
		err := ix.open()
		if !busy(err) || wait > patience {
			return err
		}
		ix.close()
		time.Sleep(wait)
	}
}

// patience is the longest wait between two attempts; together they take twice as long.
const patience = 5 * time.Second

func (ix *index) open() error {
	options := url.Values{"_pragma": {"busy_timeout(10000)", "journal_mode(wal)", "synchronous(normal)"}, "_txlock": {"immediate"}}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: ix.path}).EscapedPath()+"?"+options.Encode())
	if err != nil {
		return err
	}
	ix.db = db
	db.SetMaxOpenConns(1)
	var version int
	if err := db.QueryRow("PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	switch version {
	case indexVersion:
		return nil
	case 0:
		_, err := db.Exec(fmt.Sprintf(`CREATE TABLE IF NOT EXISTS runs (id TEXT PRIMARY KEY, experiment TEXT, device TEXT, started TEXT, valid INTEGER,
			partial INTEGER, spec TEXT, bytes INTEGER, note TEXT) WITHOUT ROWID; PRAGMA user_version = %d`, indexVersion))
		return err
	}
	return fmt.Errorf("%w: %d", errIndexVersion, version)
}

var errIndexVersion = errors.New("index of another version")

// worthless says whether err means that the file is no index of ours; one that is merely busy is another process's.
func worthless(err error) bool {
	var code *sqlite.Error
	if errors.As(err, &code) {
		kind := code.Code() & 0xff
		return kind == sqlite3.SQLITE_NOTADB || kind == sqlite3.SQLITE_CORRUPT
	}
	return errors.Is(err, errIndexVersion)
}

// busy says whether err means that another process holds the index.
func busy(err error) bool {
	var code *sqlite.Error
	return errors.As(err, &code) && slices.Contains([]int{sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}, code.Code()&0xff)
}

// unwritable says whether err means that the index can be neither made nor written: it is another user's, or the disk is
// full.
func unwritable(err error) bool {
	var code *sqlite.Error
	if !errors.As(err, &code) {
		return false
	}
	kind := code.Code() & 0xff
	return slices.Contains([]int{sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}, kind)
}

func (ix *index) close() error {
	if ix.db == nil {
		return nil
	}
	return ix.db.Close()
}

func (ix *index) list() ([]Entry, error) {
	rows, err := ix.db.Query("SELECT id, experiment, device, started, valid, partial, spec, bytes, note FROM runs")
	if err != nil {
		return nil, indexError(err)
	}
	defer rows.Close()
	var entries []Entry
	for rows.Next() {
		e := Entry{State: Complete}
		if err := rows.Scan(&e.ID, &e.Experiment, &e.Device, &e.Started, &e.Valid, &e.Partial, &e.SpecSHA256, &e.Bytes, &e.Note); err != nil {
			return nil, indexError(err)
		}
		entries = append(entries, e)
	}
	return entries, indexError(rows.Err())
}

// change enters or renews put and forgets gone, all or nothing.
func (ix *index) change(put []Entry, gone []string) error {
	return ix.transaction(func(tx *sql.Tx) error {
		for _, id := range gone {
			if _, err := tx.Exec("DELETE FROM runs WHERE id = ?", id); err != nil {
				return err
			}
		}
		return insert(tx, put)
	})
}

// replace makes entries all there is.
func (ix *index) replace(entries []Entry) error {
	return ix.transaction(func(tx *sql.Tx) error {
		if _, err := tx.Exec("DELETE FROM runs"); err != nil {
			return err
		}
		return insert(tx, entries)
	})
}

func insert(tx *sql.Tx, entries []Entry) error {
	statement, err := tx.Prepare("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")
	if err != nil {
		return err
	}
	defer statement.Close()
	for i := range entries {
		e := &entries[i]
		if _, err := statement.Exec(e.ID, e.Experiment, e.Device, e.Started, e.Valid, e.Partial, e.SpecSHA256, e.Bytes, e.Note); err != nil {
			return err
		}
	}
	return nil
}

func (ix *index) transaction(do func(*sql.Tx) error) error {
	tx, err := ix.db.Begin()
	if err != nil {
		return indexError(err)
	}
	if err := do(tx); err != nil {
		return indexError(errors.Join(err, tx.Rollback()))
	}
	return indexError(tx.Commit())
}

func indexError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the index of the run store: %w; olafctl runs reindex makes it anew", err)
}
