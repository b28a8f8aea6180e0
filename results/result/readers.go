package result

import (
	"encoding/json"
	"strings"
)

// Readers maps the names of schemas, without version, to functions. Each function reads documents of the current and of
// earlier versions of its schema.
type Readers map[string]func(document []byte) (*Result, error)

// Name is the name of Schema without its version.
const Name = "olafctl.result"

// Read reads a document with the function for its schema. It returns nil if the schema is unknown.
func (rs Readers) Read(document []byte) (*Result, error) {
	var head struct {
		Schema string          `json:"schema"`
		Config json.RawMessage `json:"config"`
	}
	if err := json.Unmarshal(document, &head); err != nil {
		return nil, err
	}
	name, _, _ := strings.Cut(head.Schema, "/")
	read := rs[name]
	if read == nil {
		return nil, nil
	}
	r, err := read(document)
	if err == nil {
		r.Config, r.Statements = head.Config, append([]string{}, r.Statements...) // the configuration with every digit
	}
	return r, err
}
