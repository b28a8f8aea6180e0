package testbed

import (
	"encoding/json"
	"os"
	"time"

	"github.com/olafctl/olaf/internal/caller"
)

// LastError is the last failure of a command that used a testbed which is up.
type LastError struct {
	At    time.Time `json:"at"`
	Error string    `json:"error"`
}

// Store writes the error to a file. A failure to write is ignored, because the command reports its error anyway.
func (e LastError) Store(path string) {
	e.At, e.Error = e.At.UTC(), caller.Plain(e.Error)
	if text, err := json.Marshal(e); err == nil {
		_ = os.WriteFile(path, text, 0o600)
	}
}

// LoadLastError returns the error stored in a file, or nil if there is none.
func LoadLastError(path string) *LastError {
	text, err := os.ReadFile(path)
	last := new(LastError)
	if err != nil || json.Unmarshal(text, last) != nil {
		return nil
	}
	return last
}
