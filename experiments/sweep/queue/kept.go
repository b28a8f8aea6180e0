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

// ErrKept says that what is in the queue was put there by no olafctl, or is damaged.
var ErrKept = olaf.NewError(olaf.Failed, "what the work queue keeps is none of ours")

// answer is what a job came to: a result, or why there is none.
type answer struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
	By     store.Maker     `json:"by"`
}

// Presence is what somebody says of himself.
type Presence struct {
	Role  string `json:"role"` // hands out, or works
	Host  string `json:"host"`
	Build string `json:"build"` // its hash
	Named string `json:"named"` // the build, for people
	At    string `json:"at"`    // RFC 3339, by his own clock
}

// Roles.
const (
	HandsOut = "hands-out"
	Works    = "works"
)

// read reads what is kept as JSON. The error matches ErrKept.
func read(raw []byte, into any, check func() error) error {
	err := json.Unmarshal(raw, into)
	if err == nil {
		err = check()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrKept, err)
	}
	return nil
}

// readAnswer reads what a job came to, which is one of two things.
func readAnswer(raw []byte) (a answer, err error) {
	return a, read(raw, &a, func() error {
		if (len(a.Result) > 0) == (a.Error != "") {
			return errors.New("neither a result alone nor an error alone")
		}
		if strings.ContainsFunc(a.By.Host+a.By.Worker+a.By.Build+a.By.Finished, unicode.IsControl) {
			return errors.New("a maker whose name has control characters")
		}
		return nil
	})
}

// outcomeOf is what a job came to. What can't be read is a job that failed, so that it is done again when somebody wants it again.
func outcomeOf(raw []byte) answer {
	a, err := readAnswer(raw)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return a
}

// keyLength is that of a job's key, a hash in hexadecimal digits.
const keyLength = 64

// readJob reads a job; one whose outcome could not be kept is none.
func readJob(raw []byte) (j sweep.Job, err error) {
	return j, read(raw, &j, func() error {
		if _, err := hex.DecodeString(j.Key); err != nil || len(j.Key) != keyLength {
			return errors.New("a job without the key that jobs have")
		}
		return nil
	})
}

// readPresence reads what somebody says of himself, which people are shown.
func readPresence(raw []byte) (p Presence, err error) {
	return p, read(raw, &p, func() error {
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
