package lab

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/olafctl/olaf/internal/caller"
)

// LastError is the last failure of a command that used a testbed which is up.
type LastError struct {
	At    time.Time `json:"at"`
	Error string    `json:"error"`
}

// errorFile returns the path of the file with a testbed's last error. It is next to the testbed's plan.
func errorFile(name string) (string, error) {
	path, err := upFile(name)
	return strings.TrimSuffix(path, ".json") + ".error", err
}

// noteError stores the failure of a command that used a testbed which is up. A testbed from a file has no stored
// failure, because it is removed when the command ends.
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

// FindLastError returns the last failure of a command that used a testbed. It returns nil if the testbed is not up or
// no command failed.
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
