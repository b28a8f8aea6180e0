package trace

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/csvtext"
)

// columns lists the columns of the CSV form in order. Only the first four are required when reading.
var columns = []string{"gen_ns", "worker", "cluster", "reward", "seq", "base_version", "episodes", "env_steps",
	"cost_ns", "grad_norm", "digest"}

const requiredColumns = 4

// csvHeader is the text before the JSON header in the first line of a CSV file.
const csvHeader = "# " + magic

// WriteCSV writes source as CSV: a comment with the version, a comment with the JSON header, the column names, and one
// line per update.
func WriteCSV(out io.Writer, source Source) error {
	doc, err := json.Marshal(source.Header())
	if err != nil {
		return fmt.Errorf("trace header: %w", err)
	}
	w := bufio.NewWriterSize(out, 1<<16)
	fmt.Fprintf(w, "%s%d\n# %s\n%s\n", csvHeader, version, doc, strings.Join(columns, ","))
	var u Update
	var line []byte
	for {
		if err := source.Next(&u); err == io.EOF {
			return w.Flush()
		} else if err != nil {
			return errors.Join(err, w.Flush())
		}
		line = strconv.AppendInt(line[:0], u.GenNS, 10)
		for _, v := range [...]uint64{uint64(u.Worker), uint64(u.Cluster)} {
			line = strconv.AppendUint(append(line, ','), v, 10)
		}
		line = strconv.AppendFloat(append(line, ','), u.Reward, 'g', -1, 64)
		for _, v := range [...]uint64{uint64(u.Seq), u.BaseVersion, uint64(u.Episodes), uint64(u.EnvSteps),
			uint64(u.CostNS)} {
			line = strconv.AppendUint(append(line, ','), v, 10)
		}
		line = strconv.AppendFloat(append(line, ','), float64(u.GradNorm), 'g', -1, 32)
		line = fmt.Appendf(append(line, ','), "%016x\n", u.Digest)
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
}

// CSVSource reads updates from a CSV file. Columns may be in any order. If the column seq is missing, updates are
// numbered by counting. Other missing optional columns are 0. Lines that begin with # are comments, except for the
// header written by WriteCSV.
type CSVSource struct {
	header Header
	rows   *csv.Reader
	place  map[string]int
	order  *order
}

// NewCSVSource reads the header of a CSV file. If there is no header from WriteCSV, the trace is assumed to be recorded
// with a wall clock and to have the given numbers of workers and clusters. The error matches ErrFormat.
func NewCSVSource(in io.Reader, workers, clusters int) (*CSVSource, error) {
	buffered, err := csvtext.Open(in)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrFormat, err)
	}
	s := &CSVSource{header: Header{Tool: "csv", Clock: Wall, Workers: workers, Clusters: clusters}}
	if err := s.readComments(buffered); err != nil {
		return nil, err
	}
	if err := s.header.Check(); err != nil {
		return nil, err
	}
	s.order = newOrder(&s.header)
	s.rows = csv.NewReader(buffered)
	s.rows.Comment, s.rows.ReuseRecord, s.rows.TrimLeadingSpace = '#', true, true
	names, err := s.rows.Read()
	if err != nil {
		return nil, fmt.Errorf("%w: no line with column names: %v", ErrFormat, err)
	}
	return s, s.placeColumns(names)
}

// placeColumns finds the columns by their names and rejects missing or ambiguous columns.
func (s *CSVSource) placeColumns(names []string) error {
	if err := csvtext.CheckSeparator(strings.Join(names, ",")); err != nil {
		return fmt.Errorf("%w: %v", ErrFormat, err)
	}
	s.place = map[string]int{}
	for i, name := range names {
		name = strings.TrimSpace(name)
		if first, twice := s.place[name]; twice && slices.Contains(columns, name) {
			return fmt.Errorf("%w: the column %s is there twice, as columns %d and %d", ErrFormat, name, first+1, i+1)
		}
		s.place[name] = i
	}
	for _, name := range columns[:requiredColumns] {
		if _, ok := s.place[name]; !ok {
			return fmt.Errorf("%w: the column %s is missing; needed are %s", ErrFormat, name,
				strings.Join(columns[:requiredColumns], ", "))
		}
	}
	return nil
}

// readComments reads the comment lines at the beginning and the header, if they contain one.
func (s *CSVSource) readComments(in *bufio.Reader) error {
	own := false
	for {
		next, err := in.Peek(1)
		if err != nil || next[0] != '#' {
			return nil
		}
		line, err := readLine(in, maxHeaderJSON)
		if err != nil {
			return err
		}
		text := string(line)
		switch {
		case strings.HasPrefix(text, csvHeader):
			if number, err := strconv.Atoi(strings.TrimSpace(text[len(csvHeader):])); err != nil || number > version {
				return fmt.Errorf("%w: it says %q", ErrVersion, text)
			}
			own = true
		case own:
			own = false
			if err := json.Unmarshal([]byte(text[1:]), &s.header); err != nil {
				return fmt.Errorf("%w: its header is not the JSON it should be: %v", ErrFormat, err)
			}
		}
	}
}

// Header returns the header of the trace.
func (s *CSVSource) Header() *Header { return &s.header }

// Next reads one line. The error matches ErrFormat for a line that cannot be parsed and ErrInvalid for a line that
// breaks the order. Both include the line number.
func (s *CSVSource) Next(u *Update) error {
	record, err := s.rows.Read()
	if err == io.EOF {
		return io.EOF
	}
	if err != nil {
		return fmt.Errorf("%w: %v", ErrFormat, err)
	}
	field := fields{record: record, place: s.place}
	*u = Update{
		GenNS:       field.parseInt("gen_ns", math.MaxInt64),
		Worker:      olaf.WorkerID(field.parseInt("worker", math.MaxUint16)),
		Cluster:     olaf.ClusterID(field.parseInt("cluster", math.MaxUint16)),
		Reward:      parseField(&field, "reward", olaf.ParseNumber),
		BaseVersion: uint64(field.parseInt("base_version", math.MaxInt64)),
		Episodes:    uint32(field.parseInt("episodes", math.MaxUint32)),
		EnvSteps:    uint32(field.parseInt("env_steps", math.MaxUint32)),
		CostNS:      field.parseInt("cost_ns", math.MaxInt64),
		GradNorm:    float32(parseField(&field, "grad_norm", olaf.ParseNumber)),
		Digest:      parseField(&field, "digest", func(s string) (uint64, error) { return strconv.ParseUint(s, 16, 64) }),
		Seq:         uint32(field.parseInt("seq", math.MaxUint32)),
	}
	if field.err != nil {
		line, _ := s.rows.FieldPos(0)
		return fmt.Errorf("%w: line %d: %v", ErrFormat, line, field.err)
	}
	if _, ok := s.place["seq"]; !ok && int(u.Worker) < len(s.order.next) {
		u.Seq = s.order.next[u.Worker]
	}
	return s.order.checkNext(u)
}

// fields parses the columns of a line and stores the first error.
type fields struct {
	record []string
	place  map[string]int
	err    error
}

// parseField returns a column's value as read by parse, or 0 if the line lacks the column. It stores the first error.
func parseField[T any](f *fields, name string, parse func(string) (T, error)) (v T) {
	i, ok := f.place[name]
	if !ok || i >= len(f.record) {
		return v
	}
	text := strings.TrimSpace(f.record[i])
	v, err := parse(text)
	if err != nil && f.err == nil {
		f.err = fmt.Errorf("%s is %q", name, text)
	}
	return v
}

func (f *fields) parseInt(name string, largest int64) int64 {
	return parseField(f, name, func(text string) (int64, error) {
		v, err := strconv.ParseInt(text, 10, 64)
		if err == nil && (v < 0 || v > largest) {
			err = strconv.ErrRange
		}
		return v, err
	})
}
