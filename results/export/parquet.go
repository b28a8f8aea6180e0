package export

import (
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"strings"
	"unicode"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/table"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

// Parquet returns a target in dir for each sheet except the sample of events, because Observations writes all events.
func Parquet(dir string, r *sheets.Result) []Target {
	var targets []Target
	for _, s := range sheets.Book(r).Sheets {
		if s.Name == "Events" {
			continue
		}
		targets = append(targets, Target{filepath.Join(dir, FileName(&s)+".parquet"), func(w io.Writer) error { return writeSheet(w, &s) }, dir})
	}
	return targets
}

// writeSheet writes a sheet as a Parquet table. Text columns become strings and all others doubles; missing values are
// null.
func writeSheet(w io.Writer, s *table.Sheet) error {
	fields := make([]reflect.StructField, len(s.Columns))
	taken := map[string]int{}
	for i, c := range s.Columns {
		name := columnName(c)
		if taken[name]++; taken[name] > 1 {
			name = fmt.Sprintf("%s_%d", name, taken[name])
		}
		kind := reflect.TypeFor[*float64]()
		if c.Format == table.Text {
			kind = reflect.TypeFor[*string]()
		}
		fields[i] = reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: kind, Tag: reflect.StructTag(`parquet:"` + name + `,optional"`)}
	}
	schema := parquet.SchemaOf(reflect.New(reflect.StructOf(fields)).Interface())
	out := parquet.NewGenericWriter[any](w, schema, parquet.Compression(&zstd.Codec{}), parquet.CreatedBy("olafctl", "", ""))
	for _, cells := range s.Rows {
		row := make(parquet.Row, len(cells))
		for i, v := range cells {
			row[i] = valueOf(v, s.Columns[i]).Level(0, 0, i)
			if !row[i].IsNull() {
				row[i] = row[i].Level(0, 1, i)
			}
		}
		if _, err := out.WriteRows([]parquet.Row{row}); err != nil {
			return err
		}
	}
	return out.Close()
}

func valueOf(v table.Cell, c table.Column) parquet.Value {
	switch {
	case c.Format == table.Text && v.Kind != table.Empty:
		return parquet.ByteArrayValue([]byte(c.Plain(v)))
	case v.Kind == table.Number:
		return parquet.DoubleValue(v.Number)
	}
	return parquet.NullValue()
}

// columnName converts the title of a column to a name with lower-case letters, digits and underscores.
func columnName(c table.Column) string {
	title := strings.NewReplacer("%", "pct", "±", "half_width", "'", "").Replace(c.Title())
	words := strings.FieldsFunc(strings.ToLower(title), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return strings.Join(words, "_")
}

// observation is a row for a delivered frame in a Parquet table.
type observation struct {
	Queue        string        `parquet:"queue,dict"`
	OutRateBPS   int64         `parquet:"out_rate_bps,dict"`
	Run          int32         `parquet:"run"`
	AtPS         int64         `parquet:"at_ps,delta"`
	QueuedPS     *int64        `parquet:"queued_ps,optional"`
	GenNS        int64         `parquet:"gen_ns,delta"`
	Seq          uint32        `parquet:"seq"`
	Reward       int32         `parquet:"reward_q24_8"`
	Cluster      int32         `parquet:"cluster"`
	Worker       int32         `parquet:"worker"`
	Count        int32         `parquet:"count"`
	Lanes        int32         `parquet:"lanes"`
	Contributors []contributor `parquet:"contributors,list"`
}

type contributor struct {
	Worker int32  `parquet:"worker"`
	Seq    uint32 `parquet:"seq"`
	GenNS  int64  `parquet:"gen_ns"`
}

// Labelled is a delivered frame with the run that it belongs to.
type Labelled = sheets.Sample

// Observations returns a target for the file observations.parquet in dir. It contains every frame that each passes to
// its callback. A frame needs to be valid only during this call.
func Observations(dir string, each func(func(*Labelled) error) error) Target {
	return Target{Path: filepath.Join(dir, "observations.parquet"), Folder: dir, Write: func(w io.Writer) error {
		out := parquet.NewGenericWriter[observation](w, parquet.Compression(&zstd.Codec{}), parquet.CreatedBy("olafctl", "", ""))
		const batch = 4096
		rows := make([]observation, 0, batch)
		flush := func() error {
			_, err := out.Write(rows)
			rows = rows[:0]
			return err
		}
		err := each(func(l *Labelled) error {
			rows = append(rows, observationOf(l))
			if len(rows) == batch {
				return flush()
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := flush(); err != nil {
			return err
		}
		return out.Close()
	}}
}

func observationOf(l *Labelled) observation {
	u := &l.Observation.Update
	row := observation{Queue: l.Queue, OutRateBPS: l.OutRateBPS, Run: int32(l.Run), AtPS: int64(l.Observation.At),
		GenNS: int64(u.GenNS), Seq: u.Seq,
		Reward: u.Reward, Cluster: int32(u.Cluster), Worker: int32(u.Worker), Count: int32(u.Count), Lanes: int32(u.Lanes)}
	if queued := int64(l.Observation.Queued); l.Observation.Queued >= 0 {
		row.QueuedPS = &queued
	}
	row.Contributors = contributorsOf(l.Observation.Contributors)
	return row
}

func contributorsOf(in []olaf.Contributor) (out []contributor) {
	for _, c := range in {
		out = append(out, contributor{int32(c.Worker), c.Seq, int64(c.GenNS)})
	}
	return out
}
