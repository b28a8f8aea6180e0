package olaf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ErrAccounting is the error for a broken accounting identity. Such a run is invalid.
var ErrAccounting = errors.New("accounting identity broken")

// Counter declares one counter by its name, title, unit and description. JSON output, tables, register maps and pages
// that list counters are built from these declarations.
type Counter struct {
	Name  string // name in JSON documents
	Title string // column header, without the unit
	Unit  string // updates, frames, …; empty for plain events
	Doc   string // what it counts, in a phrase
	Paper string // section, table or figure of the paper
	// Register is the full name of the card register that counts the same events, if there is one.
	Register string
	// Sparse counters are omitted from documents and tables if their value is 0.
	Sparse bool
	// Gauge marks a level: its value may fall, and clearing the counters does not change it.
	Gauge bool
	// Aside counters are stored with every run, but there are no statistics of them over runs.
	Aside bool
	// Column is the header of the counter's column at a terminal. A Part has its column in the table of losses, where
	// counters with the same header are added up. Any other counter has its column in the first table.
	Column string
}

// Identity is an equation between sums of counters, which are given by name.
type Identity struct {
	Left  []string
	Right []string
	Less  []string // subtracted from the right side
	Void  string   // the identity is not checked if this counter is not 0
	Text  string   // in words, if the names alone are hard to read
}

// String returns the identity as an equation, or as its Text if it has one.
func (i *Identity) String() string {
	if i.Text != "" {
		return i.Text
	}
	right := strings.Join(i.Right, " + ")
	for _, name := range i.Less {
		right += " − " + name
	}
	return strings.Join(i.Left, " + ") + " = " + right
}

// Ledger declares an ordered set of counters and their identities.
type Ledger struct {
	Counters   []Counter
	Identities []Identity
	// Offered lists the counters of inputs. Output lists those of outputs on any port; a run with input but without
	// output is invalid. Merged lists those of inputs that leave inside another update. The rest of the input is lost.
	// Parts lists the counters that show where it was lost, and Inside lists those Parts whose updates may still come
	// out.
	Offered, Output, Merged, Parts, Inside []string
	// MaySilent allows a run without output while something is inside, since a network may be slower than its simulated
	// time.
	MaySilent bool
}

// JoinLedgers returns a ledger with the declarations of all the given ledgers, in order.
func JoinLedgers(parts ...*Ledger) *Ledger {
	joined := new(Ledger)
	for _, p := range parts {
		joined.Counters = append(joined.Counters, p.Counters...)
		joined.Identities = append(joined.Identities, p.Identities...)
		joined.Offered = append(joined.Offered, p.Offered...)
		joined.Output = append(joined.Output, p.Output...)
		joined.Merged = append(joined.Merged, p.Merged...)
		joined.Parts = append(joined.Parts, p.Parts...)
		joined.Inside = append(joined.Inside, p.Inside...)
		joined.MaySilent = joined.MaySilent || p.MaySilent
	}
	return joined
}

// Index returns the index of the counter with the given name, or -1 if the ledger has no such counter.
func (l *Ledger) Index(name string) int {
	return slices.IndexFunc(l.Counters, func(c Counter) bool { return c.Name == name })
}

// Validate returns an error if a counter name is declared twice or is used without being declared.
func (l *Ledger) Validate() error {
	for i := range l.Counters {
		if name := l.Counters[i].Name; name == "" || l.Index(name) != i {
			return fmt.Errorf("counter %d is declared twice or has no name: %q", i, name)
		}
	}
	known := func(where string, names ...string) error {
		for _, name := range names {
			if name != "" && l.Index(name) < 0 {
				return fmt.Errorf("%s names the counter %q, which is not declared", where, name)
			}
		}
		return nil
	}
	for i := range l.Identities {
		id := &l.Identities[i]
		if err := known("the identity "+id.String(),
			slices.Concat(id.Left, id.Right, id.Less, []string{id.Void})...); err != nil {
			return err
		}
	}
	return known("what becomes of what goes in", slices.Concat(l.Offered, l.Output, l.Merged, l.Parts, l.Inside)...)
}

// Rules returns the rules that Counts.Check verifies, as text. The texts are stable and may be used as names.
func (l *Ledger) Rules() (rules []string) {
	for i := range l.Identities {
		rules = append(rules, l.Identities[i].String())
	}
	if len(l.Output) > 0 {
		rules = append(rules, l.silence())
	}
	return rules
}

// silence returns the text of the rule that a run with input must have output.
func (l *Ledger) silence() string {
	return strings.Join(l.Output, " + ") + " > 0 where " + strings.Join(l.Offered, " + ") + " > 0"
}

// selectCounters returns a ledger with only the named counters, in the order of names, and with the identities that use
// no other counters. Sparse counters may be used without being named, because a missing sparse counter counts as 0.
func (l *Ledger) selectCounters(names []string) *Ledger {
	part := new(Ledger)
	for _, name := range names {
		row := Counter{Name: name}
		if i := l.Index(name); i >= 0 {
			row = l.Counters[i]
		}
		part.Counters = append(part.Counters, row)
	}
	has := func(name string) bool {
		i := l.Index(name)
		return slices.Contains(names, name) || name == "" || i >= 0 && l.Counters[i].Sparse
	}
	all := func(names []string) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return !has(name) })
	}
	for _, id := range l.Identities {
		if all(id.Left) && all(id.Right) && all(id.Less) && has(id.Void) {
			part.Identities = append(part.Identities, id)
		}
	}
	if all(slices.Concat(l.Offered, l.Output, l.Merged, l.Inside)) {
		part.Offered, part.Output, part.Merged, part.Inside, part.MaySilent = l.Offered, l.Output, l.Merged, l.Inside,
			l.MaySilent
		part.Parts = slices.DeleteFunc(slices.Clone(l.Parts), func(name string) bool { return !has(name) })
	}
	return part
}

// Counts contains the values of a ledger's counters in one run. The zero Counts has no counters. Assigning a Counts
// copies no values; use Clone for an independent copy.
type Counts struct {
	ledger *Ledger
	values []int64
}

// NewCounts returns counts for the counters of l, all 0.
func NewCounts(l *Ledger) Counts { return Counts{l, make([]int64, len(l.Counters))} }

// Ledger returns the ledger that declares the counters, or nil for the zero Counts.
func (c Counts) Ledger() *Ledger { return c.ledger }

// Clone returns an independent copy of the counts.
func (c Counts) Clone() Counts { return Counts{c.ledger, slices.Clone(c.values)} }

// Index returns the index of the counter with the given name, or -1 if it is not declared.
func (c Counts) Index(name string) int { return c.declares().Index(name) }

// Of returns the value of the counter with the given name, or 0 if it is not declared.
func (c Counts) Of(name string) int64 {
	if i := c.Index(name); i >= 0 {
		return c.values[i]
	}
	return 0
}

// Sum returns the sum of the counters with the given names.
func (c Counts) Sum(names ...string) (sum int64) {
	for _, name := range names {
		sum += c.Of(name)
	}
	return sum
}

// declares returns the ledger, or an empty one for the zero Counts.
func (c Counts) declares() *Ledger {
	if c.ledger == nil {
		return new(Ledger)
	}
	return c.ledger
}

// SumOffered returns the number of inputs.
func (c Counts) SumOffered() int64 { return c.Sum(c.declares().Offered...) }

// SumOutput returns the number of outputs. SumMerged returns the number of inputs that were merged into outputs, and
// SumInside the number that may still come out.
func (c Counts) SumOutput() int64 { return c.Sum(c.declares().Output...) }
func (c Counts) SumMerged() int64 { return c.Sum(c.declares().Merged...) }
func (c Counts) SumInside() int64 { return c.Sum(c.declares().Inside...) }

// SumLost returns the number of inputs that did not come out, neither alone nor merged. Parts lists the causes.
func (c Counts) SumLost() int64 { return c.SumOffered() - c.SumOutput() - c.SumMerged() }

// Parts calls yield with each counter of the loss and its value. It skips inputs that may still come out.
func (c Counts) Parts(yield func(*Counter, int64) bool) {
	l := c.declares()
	for _, name := range l.Parts {
		if i := l.Index(name); i >= 0 && !slices.Contains(l.Inside, name) && !yield(&l.Counters[i], c.values[i]) {
			return
		}
	}
}

// At returns the value of the counter at index i.
func (c Counts) At(i int) int64 { return c.values[i] }

// SetAt sets the counter at index i to v.
func (c Counts) SetAt(i int, v int64) { c.values[i] = v }

// Add adds v to the counter with the given name. It panics if the counter is not declared, because a count must not get
// lost.
func (c Counts) Add(name string, v int64) {
	i := c.Index(name)
	if i < 0 {
		panic(fmt.Sprintf("olaf: no counter %q is declared", name))
	}
	c.values[i] += v
}

// Equal reports whether c and o have the same counters with the same values. Other properties of their counters, such
// as titles, may differ.
func (c Counts) Equal(o Counts) bool {
	return slices.Equal(c.values, o.values) && (c.ledger == o.ledger || slices.Equal(c.Names(), o.Names()))
}

// Balance verifies the ledger's identities. It returns a BrokenError with the first broken identity and the values of
// both sides.
func (c Counts) Balance() error {
	l := c.declares()
	for i := range l.Identities {
		id := &l.Identities[i]
		left, right := c.Sum(id.Left...), c.Sum(id.Right...)-c.Sum(id.Less...)
		if left != right && c.Of(id.Void) == 0 {
			return &BrokenError{id.String(), fmt.Sprintf("%d ≠ %d", left, right)}
		}
	}
	return nil
}

// Check verifies the ledger's identities, and that a run with input also has output. If the ledger's MaySilent is set,
// a run without output is accepted as long as inputs are still inside.
func (c Counts) Check() error {
	if err := c.Balance(); err != nil {
		return err
	}
	if in := c.SumOffered(); in > 0 && c.SumOutput() == 0 && len(c.ledger.Output) > 0 &&
		!(c.ledger.MaySilent && c.SumInside() > 0) {
		return &BrokenError{c.ledger.silence(), fmt.Sprintf("0 of %d", in)}
	}
	return nil
}

// BrokenError is the error for a broken rule of a ledger. It matches ErrAccounting.
type BrokenError struct {
	Rule  string // one of Ledger.Rules
	Found string // numbers that were found
}

func (e *BrokenError) Error() string { return ErrAccounting.Error() + ": " + e.Rule + ": " + e.Found }
func (e *BrokenError) Unwrap() error { return ErrAccounting }

// Under returns counts that were read from a document, with the declarations of l. Counters that are missing from the
// document stay undeclared, except for sparse counters, and so do the identities that use them.
func (c Counts) Under(l *Ledger) Counts {
	names := c.Names()
	whole := NewCounts(l)
	for i := range l.Counters {
		at := slices.Index(names, l.Counters[i].Name)
		if at < 0 && !l.Counters[i].Sparse {
			return Counts{l.selectCounters(names), c.values}
		}
		if at >= 0 {
			whole.values[i] = c.values[at]
		}
	}
	if slices.ContainsFunc(names, func(name string) bool { return l.Index(name) < 0 }) {
		return Counts{l.selectCounters(names), c.values}
	}
	return whole
}

// Names returns the names of the declared counters, in order.
func (c Counts) Names() []string {
	names := make([]string, len(c.values))
	for i := range names {
		names[i] = c.ledger.Counters[i].Name
	}
	return names
}

// String returns the counters that are not 0, as name=value.
func (c Counts) String() string {
	var words []string
	for i, v := range c.values {
		if v != 0 {
			words = append(words, fmt.Sprintf("%s=%d", c.ledger.Counters[i].Name, v))
		}
	}
	return strings.Join(words, " ")
}

// MarshalJSON encodes the counts as a JSON object, in the order of the ledger. Sparse counters that are 0 are omitted.
func (c Counts) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, v := range c.values {
		row := &c.ledger.Counters[i]
		if row.Sparse && v == 0 {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		name, err := json.Marshal(row.Name)
		if err != nil {
			return nil, err
		}
		out = append(append(out, name...), ':')
		out = strconv.AppendInt(out, v, 10)
	}
	return append(out, '}'), nil
}

// UnmarshalJSON reads a JSON object of integers. The counters are declared only by name; use Under to apply a ledger.
func (c *Counts) UnmarshalJSON(raw []byte) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return errors.Join(fmt.Errorf("counters are an object of names and integers, not %.20q", raw), err)
	}
	read := Counts{ledger: new(Ledger)}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var v int64
		if err := d.Decode(&v); err != nil {
			return fmt.Errorf("counter %v: %w", name, err)
		}
		read.ledger.Counters = append(read.ledger.Counters, Counter{Name: fmt.Sprint(name)})
		read.values = append(read.values, v)
	}
	*c = read
	return nil
}
