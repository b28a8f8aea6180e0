package queue

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/sweep"
	"github.com/olafctl/olaf/results/store"
)

// ErrKept reports that an entry in the queue is damaged or was not written by olafctl.
var ErrKept = olaf.NewError(olaf.Failed, "what the work queue keeps is none of ours")

// answer is a job's outcome: a result, or the reason why there is none.
type answer struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
	By     store.Maker     `json:"by"`
}

// Presence announces a process that hands out or does work.
type Presence struct {
	Role  string `json:"role"` // HandsOut or Works
	Host  string `json:"host"`
	Build string `json:"build"` // its hash
	Named string `json:"named"` // the build, for display
	At    string `json:"at"`    // RFC 3339, by the sender's clock
}

// Roles.
const (
	HandsOut = "hands-out"
	Works    = "works"
)

// readKept decodes a stored JSON value and checks it. The error matches ErrKept.
func readKept(raw []byte, into any, check func() error) error {
	err := json.Unmarshal(raw, into)
	if err == nil {
		err = check()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrKept, err)
	}
	return nil
}

// readAnswer parses a job's outcome, which is either a result or an error.
func readAnswer(raw []byte) (a answer, err error) {
	return a, readKept(raw, &a, func() error {
		if (len(a.Result) > 0) == (a.Error != "") {
			return errors.New("neither a result alone nor an error alone")
		}
		if strings.ContainsFunc(a.By.Host+a.By.Worker+a.By.Build+a.By.Finished, unicode.IsControl) {
			return errors.New("a maker whose name has control characters")
		}
		return nil
	})
}

// outcomeOf returns a job's outcome. An unreadable one counts as failed, so the next sweep repeats the job.
func outcomeOf(raw []byte) answer {
	a, err := readAnswer(raw)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return a
}

// keyLength is the length of a job's key, a hash in hexadecimal digits.
const keyLength = 64

// readJob parses a job; it rejects a job under whose key no outcome could be stored.
func readJob(raw []byte) (j sweep.Job, err error) {
	return j, readKept(raw, &j, func() error {
		if _, err := hex.DecodeString(j.Key); err != nil || len(j.Key) != keyLength {
			return errors.New("a job without the key that jobs have")
		}
		return nil
	})
}

// readPresence parses a Presence, which is displayed.
func readPresence(raw []byte) (p Presence, err error) {
	return p, readKept(raw, &p, func() error {
		if p.Role != HandsOut && p.Role != Works {
			return fmt.Errorf("no role is %q", p.Role)
		}
		if strings.ContainsFunc(p.Host+p.Named, unicode.IsControl) {
			return errors.New("a name that is not plain words")
		}
		_, err := time.Parse(time.RFC3339, p.At)
		return err
	})
}
