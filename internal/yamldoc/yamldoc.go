// Package yamldoc finds the single document in a YAML file.
package yamldoc

import (
	"bytes"
	"errors"
	"io"

	"go.yaml.in/yaml/v4"
)

// FindRoot returns the root node of the document in text, or nil if the text is empty. second is the line on which a
// second document begins, or 0 if there is none. A parser would silently ignore the second document. The error is that
// of the parser.
func FindRoot(text []byte) (root *yaml.Node, second int, err error) {
	var docs [2]yaml.Node
	in := yaml.NewDecoder(bytes.NewReader(text))
	for i := range docs {
		if err = in.Decode(&docs[i]); err != nil {
			break
		}
	}
	switch first := &docs[0]; {
	case err == nil:
		return nil, max(1, docs[1].Line), nil
	case !errors.Is(err, io.EOF):
		return nil, 0, err
	case first.Kind == yaml.DocumentNode && len(first.Content) == 1 && first.Content[0].Tag != "!!null":
		root = first.Content[0]
	}
	return root, 0, nil
}
