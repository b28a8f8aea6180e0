// Package playback records a program's accesses to a card and plays them back as a card.
//
// A session recorded on silicon can be repeated without a card: the player answers like the card as long as the
// program makes the same accesses in the same order, and reports the first deviation. A session is text, one access
// per line:
//
//	olafctl.register-session/v1
//	identity {"address":"twin:",…}
//	r 101034 8                  read: address and answer, hexadecimal
//	w 101034 10                 write
//	w 101034 0 !refused "…"     a failed write: kind and text of the error
//	b 103088 1 2 3              burst; lines that start with + continue it
//	s 1000000                   sleep, in ps of device time
package playback

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
)

// Schema is the first line of a session.
const Schema = "olafctl.register-session/v1"

// Kinds of errors; match them with errors.Is.
var (
	// ErrSession is the error for text that is not a valid session.
	ErrSession = olaf.NewError(olaf.Usage, "not a register session")
	// ErrDiverged is the error for accesses that differ from the recorded ones.
	ErrDiverged = olaf.NewError(olaf.Missed, "the session went another way")
)

// wordsPerLine is the number of words per line in a burst.
const wordsPerLine = 16

// access is a recorded access. It occupies one line of a session, or several for a long burst.
type access struct {
	line  int
	op    byte   // r, w, b, s
	addr  uint32 // for r, w, b
	value uint64 // read or written value; ps of a sleep
	words []uint32
	fails *failure
}

// failure is the recorded error of an access.
type failure struct {
	kind string
	text string
}

// kinds lists the errors that can still be matched in a playback. Other errors are recorded only as text.
var kinds = []struct {
	name string
	err  error
}{{"gone", fpga.ErrGone}, {"address", fpga.ErrAddress}, {"refused", fpga.ErrRefused}, {"doubtful", fpga.ErrDoubtful},
	{"error", nil}}

func failureOf(err error) *failure {
	if err == nil {
		return nil
	}
	for _, k := range kinds {
		if k.err == nil || errors.Is(err, k.err) {
			return &failure{k.name, err.Error()}
		}
	}
	return nil
}

// replayed is a recorded error that is returned by a playback.
type replayed struct {
	text string
	kind error
}

func (r *replayed) Error() string { return r.text }
func (r *replayed) Unwrap() error { return r.kind }

func (f *failure) err() error {
	if f == nil {
		return nil
	}
	r := &replayed{text: f.text}
	for _, k := range kinds {
		if k.name == f.kind {
			r.kind = k.err
		}
	}
	return r
}

// sameRequest reports whether two accesses make the same request. It does not compare their results.
func (a *access) sameRequest(b *access) bool {
	return a.op == b.op && a.addr == b.addr && slices.Equal(a.words, b.words) && (a.op == 'r' || a.value == b.value)
}

// String returns a description of the request for messages.
func (a *access) String() string {
	switch a.op {
	case 'r':
		return fmt.Sprintf("read %#x", a.addr)
	case 'w':
		return fmt.Sprintf("write %#x to %#x", a.value, a.addr)
	case 'b':
		return fmt.Sprintf("burst of %d words to %#x", len(a.words), a.addr)
	}
	return fmt.Sprintf("sleep %d ps", a.value)
}

// appendTo appends the lines that record the access to b.
func (a *access) appendTo(b []byte) []byte {
	b = append(b, a.op, ' ')
	switch a.op {
	case 's':
		b = strconv.AppendUint(b, a.value, 10)
	case 'b':
		b = strconv.AppendUint(b, uint64(a.addr), 16)
		for i, w := range a.words {
			if i > 0 && i%wordsPerLine == 0 {
				b = append(b, "\n+"...)
			}
			b = strconv.AppendUint(append(b, ' '), uint64(w), 16)
		}
	default:
		b = strconv.AppendUint(b, uint64(a.addr), 16)
		b = strconv.AppendUint(append(b, ' '), a.value, 16)
	}
	if a.fails != nil {
		b = append(b, " !"...)
		b = append(b, a.fails.kind...)
		b = strconv.AppendQuote(append(b, ' '), a.fails.text)
	}
	return append(b, '\n')
}

// session is a complete recording, parsed into accesses.
type session struct {
	identity fpga.Identity
	accesses []access
}

// lineError returns an error for an invalid line of a session.
func lineError(line int, format string, args ...any) error {
	return fmt.Errorf("%w: line %d: %s", ErrSession, line, fmt.Sprintf(format, args...))
}

// parseSession reads a session.
func parseSession(r io.Reader) (*session, error) {
	s, lines := new(session), bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		if err := s.parseLine(n, lines.Text()); err != nil {
			return nil, err
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSession, err)
	}
	if s.identity.Kind == "" {
		return nil, fmt.Errorf("%w: it ends before the identity", ErrSession)
	}
	return s, nil
}

func (s *session) parseLine(n int, text string) error {
	switch {
	case n == 1:
		if text != Schema {
			return lineError(n, "want %s, got %.40q", Schema, text)
		}
		return nil
	case n == 2:
		document, ok := strings.CutPrefix(text, "identity ")
		if !ok || json.Unmarshal([]byte(document), &s.identity) != nil || s.identity.Kind == "" {
			return lineError(n, "want the identity of the device")
		}
		return nil
	case text == "" || text[0] == '#':
		return nil
	}
	a, err := parseAccess(text)
	if err != nil {
		return lineError(n, "%v", err)
	}
	if a.op != '+' {
		a.line = n
		s.accesses = append(s.accesses, a)
		return nil
	}
	if len(s.accesses) == 0 || s.accesses[len(s.accesses)-1].op != 'b' || s.accesses[len(s.accesses)-1].fails != nil {
		return lineError(n, "nothing to go on with")
	}
	last := &s.accesses[len(s.accesses)-1]
	last.words, last.fails = append(last.words, a.words...), a.fails
	return nil
}

// parseAccess parses one line. A line that starts with + contains further words of a burst.
func parseAccess(text string) (a access, err error) {
	text, fails, failed := strings.Cut(text, " !")
	if failed {
		if a.fails, err = parseFailure(fails); err != nil {
			return a, err
		}
	}
	fields := strings.Fields(text)
	if len(fields) == 0 || len(fields[0]) != 1 {
		return a, errors.New("want r, w, b, s or +")
	}
	a.op = fields[0][0]
	numbers := make([]uint64, len(fields)-1)
	base, bits := 16, 32
	if a.op == 's' {
		base, bits = 10, 63
	}
	for i, f := range fields[1:] {
		if numbers[i], err = strconv.ParseUint(f, base, bits); err != nil {
			return a, fmt.Errorf("%.20q is no number of %d bits", f, bits)
		}
	}
	switch {
	case a.op == '+' && len(numbers) > 0:
		a.words = toWords(numbers)
	case a.op == 's' && len(numbers) == 1:
		a.value = numbers[0]
	case a.op == 'b' && len(numbers) > 0:
		a.addr, a.words = uint32(numbers[0]), toWords(numbers[1:])
	case (a.op == 'r' || a.op == 'w') && len(numbers) == 2:
		a.addr, a.value = uint32(numbers[0]), numbers[1]
	default:
		return a, fmt.Errorf("%.20q with %d numbers means nothing", fields[0], len(numbers))
	}
	return a, nil
}

func toWords(numbers []uint64) []uint32 {
	w := make([]uint32, len(numbers))
	for i, n := range numbers {
		w[i] = uint32(n)
	}
	return w
}

func parseFailure(text string) (*failure, error) {
	kind, quoted, _ := strings.Cut(text, " ")
	words, err := strconv.Unquote(quoted)
	known := slices.ContainsFunc(kinds, func(k struct {
		name string
		err  error
	}) bool {
		return k.name == kind
	})
	if err != nil || !known {
		return nil, fmt.Errorf("%.40q is no error", text)
	}
	return &failure{kind, words}, nil
}
