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

// ErrAccounting is the kind of every broken accounting identity; such a run is invalid.
var ErrAccounting = errors.New("accounting identity broken")

// Counter declares one named count. Documents, tables, registers and pages that list counters read these rows.
type Counter struct {
	Name  string // in documents
	Title string // as a column header, without the unit
	Unit  string // updates, frames, …; empty for plain events
	Doc   string // what it counts, in a phrase
	Paper string // where the paper has it
	// Register is the full name of the register that counts it on a card; empty where no register does.
	Register string
	// Sparse counters are left out of documents and tables where nothing was counted.
	Sparse bool
	// A Gauge is a level, which may fall and which clearing the counters leaves as it is.
	Gauge bool
	// Aside counters are kept with every run, but there is no statistic of them over runs.
	Aside bool
	// Column heads its column at a terminal: that of a Part in the table of what was lost, where counters with one header
	// are added up, that of any other in the first table.
	Column string
}

// Identity is an equation between sums of counters, by name.
type Identity struct {
	Left  []string
	Right []string
	Less  []string // taken from the right side
	Void  string   // the counter that voids the identity once it is not 0; empty for none
	Text  string   // in words, where the names alone read badly
}

// String is the identity as it is printed.
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

// Ledger declares an ordered set of counters and what holds between them.
type Ledger struct {
	Counters   []Counter
	Identities []Identity
	// Offered are the counters of what goes in, Output those of what leaves any port: a run in which something was
	// offered and nothing came out is no measurement. Merged count what leaves inside of something else. The rest of what
	// was offered is lost; Parts are the counters of what became of it, and Inside those of them that may still come out.
	Offered, Output, Merged, Parts, Inside []string
	// MaySilent allows a run without output while something is inside: a network may be slower than its simulated time.
	MaySilent bool
}

// JoinLedgers declares what all parts declare, in their order.
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

// Index is the place of a counter, -1 where the ledger has none of that name.
func (l *Ledger) Index(name string) int {
	for i := range l.Counters {
		if l.Counters[i].Name == name {
			return i
		}
	}
	return -1
}

// Validate says what is wrong with the declaration itself: a name that is there twice, or one that nobody declares.
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

// Rules lists what Check verifies, in words that name each rule for good.
func (l *Ledger) Rules() (rules []string) {
	for i := range l.Identities {
		rules = append(rules, l.Identities[i].String())
	}
	if len(l.Output) > 0 {
		rules = append(rules, l.silence())
	}
	return rules
}

// silence is the rule against runs out of which nothing came.
func (l *Ledger) silence() string {
	return strings.Join(l.Output, " + ") + " > 0 where " + strings.Join(l.Offered, " + ") + " > 0"
}

// among is the part of the ledger that concerns counters of the given names: those in their order, with the rows that the
// ledger has for them, and what holds between them alone. A sparse counter that is not among them counts as 0.
func (l *Ledger) among(names []string) *Ledger {
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

// Counts are the values of a ledger's counters in one run. The zero Counts declare nothing. A copy shares the values with
// its original; Clone does not.
type Counts struct {
	ledger *Ledger
	values []int64
}

// NewCounts are all 0.
func NewCounts(l *Ledger) Counts { return Counts{l, make([]int64, len(l.Counters))} }

// Ledger is what declares the counts; nil of the zero Counts.
func (c Counts) Ledger() *Ledger { return c.ledger }

// Clone is a copy with values of its own.
func (c Counts) Clone() Counts { return Counts{c.ledger, slices.Clone(c.values)} }

// Index is the place of a counter, -1 where none of that name is declared.
func (c Counts) Index(name string) int { return c.declares().Index(name) }

// Of is a counter's value, 0 where none of that name is declared.
func (c Counts) Of(name string) int64 {
	if i := c.Index(name); i >= 0 {
		return c.values[i]
	}
	return 0
}

// Sum adds up counters by name.
func (c Counts) Sum(names ...string) (sum int64) {
	for _, name := range names {
		sum += c.Of(name)
	}
	return sum
}

// declares is the ledger, an empty one for the zero Counts.
func (c Counts) declares() *Ledger {
	if c.ledger == nil {
		return new(Ledger)
	}
	return c.ledger
}

// Offered is how much went in.
func (c Counts) Offered() int64 { return c.Sum(c.declares().Offered...) }

// Output is how much left, Merged what left inside of that, and Inside what may still come out.
func (c Counts) Output() int64 { return c.Sum(c.declares().Output...) }
func (c Counts) Merged() int64 { return c.Sum(c.declares().Merged...) }
func (c Counts) Inside() int64 { return c.Sum(c.declares().Inside...) }

// Lost is what went in and did not come out, neither alone nor inside of something else; the Parts say what became of it.
func (c Counts) Lost() int64 { return c.Offered() - c.Output() - c.Merged() }

// Parts calls yield with the counter and the number of every part of what is lost, but for what may still come out.
func (c Counts) Parts(yield func(*Counter, int64) bool) {
	l := c.declares()
	for _, name := range l.Parts {
		if i := l.Index(name); i >= 0 && !slices.Contains(l.Inside, name) && !yield(&l.Counters[i], c.values[i]) {
			return
		}
	}
}

// At is the value of the counter at an index.
func (c Counts) At(i int) int64 { return c.values[i] }

// SetAt gives the counter at an index a value.
func (c Counts) SetAt(i int, v int64) { c.values[i] = v }

// Add adds v to a declared counter. It panics where the name is not declared: a count must not get lost.
func (c Counts) Add(name string, v int64) {
	i := c.Index(name)
	if i < 0 {
		panic(fmt.Sprintf("olaf: no counter %q is declared", name))
	}
	c.values[i] += v
}

// Equal says whether both have the same counters with the same values. Their declarations may differ otherwise.
func (c Counts) Equal(o Counts) bool {
	return slices.Equal(c.values, o.values) && (c.ledger == o.ledger || slices.Equal(c.Names(), o.Names()))
}

// Balance verifies the identities. The error names the first that does not hold, with both sides; see BrokenError.
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

// Check verifies the identities, and that something came out where something went in. A ledger that allows silence excuses a
// run with something inside.
func (c Counts) Check() error {
	if err := c.Balance(); err != nil {
		return err
	}
	if in := c.Offered(); in > 0 && c.Output() == 0 && len(c.ledger.Output) > 0 &&
		!(c.ledger.MaySilent && c.Inside() > 0) {
		return &BrokenError{c.ledger.silence(), fmt.Sprintf("0 of %d", in)}
	}
	return nil
}

// BrokenError says which rule of a ledger its counts break. It matches ErrAccounting.
type BrokenError struct {
	Rule  string // one of Ledger.Rules
	Found string // what was found instead
}

func (e *BrokenError) Error() string { return ErrAccounting.Error() + ": " + e.Rule + ": " + e.Found }
func (e *BrokenError) Unwrap() error { return ErrAccounting }

// Under gives counts that were read from a document the declarations of l, as far as it has them. What the document
// doesn't have stays undeclared, but for sparse counters, and so does every identity that needs it.
func (c Counts) Under(l *Ledger) Counts {
	names := c.Names()
	whole := NewCounts(l)
	for i := range l.Counters {
		at := slices.Index(names, l.Counters[i].Name)
		if at < 0 && !l.Counters[i].Sparse {
			return Counts{l.among(names), c.values}
		}
		if at >= 0 {
			whole.values[i] = c.values[at]
		}
	}
	for _, name := range names {
		if l.Index(name) < 0 {
			return Counts{l.among(names), c.values}
		}
	}
	return whole
}

// Names lists the declared counters in their order.
func (c Counts) Names() []string {
	names := make([]string, len(c.values))
	for i := range names {
		names[i] = c.ledger.Counters[i].Name
	}
	return names
}

// String lists the counters that counted anything.
func (c Counts) String() string {
	var words []string
	for i, v := range c.values {
		if v != 0 {
			words = append(words, fmt.Sprintf("%s=%d", c.ledger.Counters[i].Name, v))
		}
	}
	return strings.Join(words, " ")
}

// MarshalJSON writes an object of the counters in their order.
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

// UnmarshalJSON reads an object of integers. Their names are all that is declared; see Under.
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
