package yamlfile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Marshal writes the JSON form of v as YAML that looks handwritten, with one field per line and quotes only if needed.
// Decode can read the output. Top-level fields whose names are in without are omitted.
func Marshal(v any, without ...string) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil { // JSON is YAML
		return nil, fmt.Errorf("write as YAML: %w", err)
	}
	simplifyStyle(&doc)
	if root := doc.Content[0]; root.Kind == yaml.MappingNode {
		var kept []*yaml.Node
		for pair := range slices.Chunk(root.Content, 2) {
			if !slices.Contains(without, pair[0].Value) {
				kept = append(kept, pair...)
			}
		}
		root.Content = kept
	}
	return yaml.Marshal(&doc)
}

// simplifyStyle removes the JSON style. Lists of single words stay on one line.
func simplifyStyle(n *yaml.Node) {
	n.Style = 0
	long := func(n *yaml.Node) bool { return n.Kind != yaml.ScalarNode || strings.Contains(n.Value, " ") }
	if n.Kind == yaml.SequenceNode && !slices.ContainsFunc(n.Content, long) {
		n.Style = yaml.FlowStyle
	}
	for _, c := range n.Content {
		simplifyStyle(c)
	}
}
