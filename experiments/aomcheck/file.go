package aomcheck

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/internal/yamldoc"
)

// fileSchema is the name that the optional field schema of a problem file contains.
const fileSchema = "olafctl.verify-problem/v1"

// ErrFile is matched by all errors in a problem file. The message names the line and the field.
var ErrFile = olaf.NewError(olaf.Usage, "bad verification file")

// ParseFile parses a problem from YAML and rejects unknown keys; docs/guide/proofs.md describes the keys. The error
// matches ErrFile or ErrProblem.
func ParseFile(data []byte) (Problem, error) {
	p := Problem{}
	root, err := document(data)
	if err != nil {
		return p, err
	}
	return p, problemKeys(&p).decode("", root)
}

// ParseClusters parses the clusters to be admitted, either from a mapping with the key clusters or from a single
// cluster. The error matches ErrFile.
func ParseClusters(data []byte) ([]Cluster, error) {
	root, err := document(data)
	if err != nil {
		return nil, err
	}
	if has(root, "clusters") {
		var list []Cluster
		err := keys{"schema": checkSchema, "clusters": clusterList(&list)}.decode("", root)
		return list, err
	}
	c := newCluster()
	fields := clusterKeys(&c)
	fields["schema"] = checkSchema
	err = fields.decode("", root)
	return []Cluster{c}, err
}

func has(mapping *yaml.Node, key string) bool {
	for i := 0; mapping.Kind == yaml.MappingNode && i < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return true
		}
	}
	return false
}

func document(data []byte) (*yaml.Node, error) {
	root, second, err := yamldoc.FindRoot(data)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	case second > 0:
		return nil, fmt.Errorf("%w: line %d: a second document begins here; a file has one problem", ErrFile, second)
	case root == nil:
		return nil, fmt.Errorf("%w: it is empty", ErrFile)
	}
	return root, nil
}

// setter parses the YAML node at a path in the file and sets the field that belongs to it.
type setter func(path string, value *yaml.Node) error

// keys maps each allowed key of a mapping to the setter for its value.
type keys map[string]setter

func (k keys) decode(path string, node *yaml.Node) error {
	if node.Kind != yaml.MappingNode {
		return at(node, path, "a mapping of fields is expected")
	}
	seen := make(map[string]bool, len(k))
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		field := strings.TrimPrefix(path+"."+key.Value, ".")
		set, ok := k[key.Value]
		if !ok {
			return at(key, field, "unknown field; there are "+strings.Join(slices.Sorted(maps.Keys(k)), ", "))
		}
		if seen[key.Value] {
			return at(key, field, "given twice")
		}
		seen[key.Value] = true
		if err := set(field, value); err != nil {
			return err
		}
	}
	return nil
}

func at(node *yaml.Node, path, why string) error {
	path = cmp.Or(path, "document")
	return fmt.Errorf("%w: line %d: %s: %s", ErrFile, node.Line, path, why)
}

// scalar returns a setter for a scalar node, whose text it passes to parse.
func scalar(parse func(string) error) setter {
	return func(path string, value *yaml.Node) error {
		if value.Kind != yaml.ScalarNode {
			return at(value, path, "a single value is expected")
		}
		if err := parse(value.Value); err != nil {
			return at(value, path, err.Error())
		}
		return nil
	}
}

// parseWhole returns a setter for an integer of at least the given value; what describes such numbers.
func parseWhole(dst *int, least int, what string) setter {
	return scalar(func(s string) error {
		v, err := strconv.Atoi(s)
		if err != nil || v < least {
			return fmt.Errorf("%q is not a %s", s, what)
		}
		*dst = v
		return nil
	})
}

// parsePositive returns a setter that also rejects 0, because 0 would select the default.
func parsePositive(dst *int) setter { return parseWhole(dst, 1, "positive whole number") }

// checkSchema rejects every schema name except fileSchema.
func checkSchema(path string, value *yaml.Node) error {
	if value.Kind != yaml.ScalarNode || value.Value != fileSchema {
		return at(value, path, "it is not "+fileSchema)
	}
	return nil
}

func word[T ~string](dst *T) setter {
	return scalar(func(s string) error {
		*dst = T(s)
		return nil
	})
}

func problemKeys(p *Problem) keys {
	return keys{
		"schema":     checkSchema,
		"model":      word(&p.Model),
		"service":    scalar(p.Service.Set),
		"slots":      parsePositive(&p.Slots),
		"separation": scalar(p.Separation.Set),
		"horizon":    parsePositive(&p.Horizon),
		"clusters":   clusterList(&p.Clusters),
		"control": keys{
			"delta-t":   scalar(p.Control.DeltaT.Set),
			"slope":     scalar(p.Control.SetSlope),
			"active":    parseWhole(&p.Control.Active, math.MinInt, "whole number"),
			"ack-delay": scalar(p.Control.AckDelay.Set),
			"sends":     scalar(p.Control.SetSends),
		}.decode,
		"objective": keys{
			"kind":    word(&p.Objective.Kind),
			"epsilon": scalar(p.Objective.Bound.Set),
			"bound":   scalar(p.Objective.Bound.Set),
			"mean":    word(&p.Objective.Mean),
		}.decode,
	}
}

func newCluster() Cluster { return Cluster{EveryPhase: true} }

func clusterList(dst *[]Cluster) setter {
	return func(path string, value *yaml.Node) error {
		if value.Kind != yaml.SequenceNode {
			return at(value, path, "a list of clusters is expected")
		}
		for i, item := range value.Content {
			c := newCluster()
			if err := clusterKeys(&c).decode(fmt.Sprintf("%s[%d]", path, i), item); err != nil {
				return err
			}
			*dst = append(*dst, c)
		}
		return nil
	}
}

func clusterKeys(c *Cluster) keys {
	return keys{
		"name":     word(&c.Name),
		"interval": scalar(c.Interval.Set),
		"phase":    scalar(c.SetPhase),
		"jitter":   scalar(c.Jitter.Set),
		"updates":  parsePositive(&c.Updates),
		"sends":    scalar(c.setDecisions),
		"max-peak": scalar(c.MaxPeak.Set),
		"mean":     scalar(c.Mean.Set),
	}
}

// SetPhase parses "every", one instant such as 10ms, or a range such as 0ms..50ms.
func (c *Cluster) SetPhase(s string) error {
	if s == "every" {
		c.EveryPhase = true
		return nil
	}
	low, high, ranged := strings.Cut(s, "..")
	if !ranged {
		high = low
	}
	if err := errors.Join(c.PhaseLow.Set(low), c.PhaseHigh.Set(high)); err != nil {
		return fmt.Errorf("phase %q is none of every, an instant, a range such as 0ms..50ms: %w", s, err)
	}
	if c.PhaseHigh < c.PhaseLow {
		return fmt.Errorf("phase %q ends before it begins", s)
	}
	c.EveryPhase = false
	return nil
}

// setDecisions parses given send decisions, written as a string of 1 (sent) and 0 (not sent).
func (c *Cluster) setDecisions(s string) error {
	if strings.Trim(s, "01") != "" || s == "" {
		return fmt.Errorf("send decisions %q are not a word of 0 and 1", s)
	}
	for _, bit := range s {
		c.Sends = append(c.Sends, bit == '1')
	}
	return nil
}

// SetSends parses free, given, seeded, or seeded:N with the seed N.
func (c *Control) SetSends(s string) error {
	kind, seed, seeded := strings.Cut(s, ":")
	c.Sends = Sends(kind)
	if !seeded {
		return nil
	}
	v, err := strconv.ParseUint(seed, 10, 64)
	if err != nil || c.Sends != SendsSeeded {
		return fmt.Errorf("send decisions %q are none of free, given, seeded:N", s)
	}
	c.Seed = v
	return nil
}

// SetSlope parses urgency (v = 1/Δ̄T) or fairness (v = Δ̄T). It also accepts the names that package tc uses.
func (c *Control) SetSlope(s string) error {
	switch s {
	case "urgency":
		c.Slope = tc.Urgency
		return nil
	case "fairness":
		c.Slope = tc.Fairness
		return nil
	}
	if c.Slope.UnmarshalText([]byte(s)) != nil {
		return fmt.Errorf("%q is not one of urgency, fairness", s)
	}
	return nil
}
