package results

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// ListLeaves returns the leaves of a JSON document in document order, each as a dotted path and its value.
func ListLeaves(raw json.RawMessage) (out [][2]string) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var walk func(path string) bool
	walk = func(path string) bool {
		token, err := d.Token()
		if err != nil {
			return false
		}
		switch token {
		case json.Delim('{'):
			for d.More() {
				key, err := d.Token()
				if err != nil || !walk(strings.TrimPrefix(fmt.Sprintf("%s.%v", path, key), ".")) {
					return false
				}
			}
		case json.Delim('['):
			for i := 0; d.More(); i++ {
				if !walk(fmt.Sprintf("%s[%d]", path, i)) {
					return false
				}
			}
		default:
			out = append(out, [2]string{path, fmt.Sprint(token)})
			return true
		}
		_, err = d.Token()
		return err == nil
	}
	walk("")
	return out
}
