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

// answer is the outcome of a job: a result, or the reason why there is none.
type answer struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
	By     store.Maker     `json:"by"`
}

// Presence announces a process that hands out jobs or works on them.
type Presence struct {
	Role  string `json:"role"` // HandsOut or Works
	Host  string `json:"host"`
	Build string `json:"build"` // hash of the build
	Named string `json:"named"` // the build, for display
	At    string `json:"at"`    // RFC 3339, by the sender's clock
}

// Roles.
const (
	HandsOut = "hands-out"
	Works    = "works"
)

// readKept decodes a stored JSON value and calls check. The error matches ErrKept.
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

// outcomeOf returns the outcome of a job from its stored form. An outcome that cannot be read counts as failed, so that
// the next sweep repeats the job.
func outcomeOf(raw []byte) answer {
	a, err := readAnswer(raw)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return a
}

// keyLength is the number of hexadecimal digits in the key of a job, which is a hash.
const keyLength = 64

// readJob parses a job. It rejects a job with a key under which no outcome could be stored.
func readJob(raw []byte) (j sweep.Job, err error) {
	return j, readKept(raw, &j, func() error {
		if _, err := hex.DecodeString(j.Key); err != nil || len(j.Key) != keyLength {
			return errors.New("a job without the key that jobs have")
		}
		return nil
	})
}

// readPresence parses a Presence and rejects one that cannot be displayed.
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
