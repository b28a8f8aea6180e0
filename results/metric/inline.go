package metric

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Here is the JSON name of a field whose members Inline puts in place of the field, as for an embedded struct. Such
// fields are ordered sets of named numbers.
const Here = "*"

var here = []byte(`"` + Here + `":{`)

// Inline encodes a struct like json.Marshal, but replaces fields named Here by their members.
func Inline(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // the writer of the complete document does the escaping
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	raw := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	for {
		at := bytes.Index(raw, here)
		if at < 0 {
			return raw, nil
		}
		from := at + len(here)
		to := from + findClosing(raw[from:])
		inner, rest := raw[from:to], raw[to+1:]
		if len(inner) == 0 { // no members, so no comma either
			if bytes.HasPrefix(rest, []byte(",")) {
				rest = rest[1:]
			} else if raw[at-1] == ',' {
				at--
			}
		}
		raw = bytes.Join([][]byte{raw[:at], inner, rest}, nil)
	}
}

// findClosing returns the index of the brace that closes a JSON object. raw must begin after the opening brace.
func findClosing(raw []byte) int {
	depth, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}' && depth == 0:
			return i
		case c == '}':
			depth--
		}
	}
	return len(raw)
}

// EachMember calls take for every member of a JSON object, in order.
func EachMember(raw []byte, take func(name string, value json.RawMessage) error) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	if open, err := d.Token(); open != json.Delim('{') {
		return errors.Join(fmt.Errorf("an object is expected, not %.20q", raw), err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		if err := take(fmt.Sprint(name), value); err != nil {
			return err
		}
	}
	return nil
}
