package lab

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/olafctl/olaf/internal/caller"
)

// LastError is the last failure of a command on a testbed that is up.
type LastError struct {
	At    time.Time `json:"at"`
	Error string    `json:"error"`
}

// errorFile returns the file of a testbed's last error, beside its plan.
func errorFile(name string) (string, error) {
	path, err := upFile(name)
	return strings.TrimSuffix(path, ".json") + ".error", err
}

// noteError stores a failure on a testbed that is up by name. A testbed from a file, which ends with its command, has none.
func noteError(name string, at time.Time, failure error) {
	if strings.ContainsAny(name, "./") || errors.Is(failure, ErrAbsent) {
		return
	}
	path, err := errorFile(name)
	if err != nil {
		return
	}
	text, err := json.Marshal(LastError{at.UTC(), caller.Plain(failure.Error())})
	if err == nil {
		_ = os.WriteFile(path, text, 0o600) // the failure itself is reported anyway
	}
}

// FindLastError returns the last failure of a command on a testbed that is up; nil if it is not up, or if nothing failed.
func FindLastError(name string) *LastError {
	path, err := errorFile(name)
	if err != nil {
		return nil
	}
	text, err := os.ReadFile(path)
	last := new(LastError)
	if err != nil || json.Unmarshal(text, last) != nil {
		return nil
	}
	return last
}
