package trace

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
)

// RecordSuffix is the suffix of the files that the Recorder in the Python package writes. There is a file
// NAME.RANK.olafrec for each worker.
const RecordSuffix = ".olafrec"

// RecordMagic is the byte sequence at the beginning of a Recorder's file. The file is little-endian and contains a
// header and, for each update, a record with its values.
const RecordMagic = "olafrec1"

// recordHeader is the header that follows the magic bytes.
type recordHeader struct {
	Worker, Workers, Cluster, Lanes uint32
	Name                            [32]byte // padded with zeros
}

// record is the structure that precedes the values of an update.
type record struct {
	AtNS    uint64 // ns since 1970
	CostNS  uint64
	Reward  float64
	Version uint32
	Loss    float32
}

// Records reads the updates in the record files of all workers, in order of time. It implements Source.
type Records struct {
	header Header
	rows   []recordedUpdate
	names  []string // names of the files
	at     int
	order  *order
}

// recordedUpdate is an update with the position of its values in the file.
type recordedUpdate struct {
	Update
	file int
	at   int64
}

// OpenRecords reads the file NAME.RANK.olafrec and the files of the other workers in the same folder. If the file of a
// worker is missing, or if the files disagree, the error matches ErrFormat.
func OpenRecords(path string) (*Records, error) {
	base := strings.TrimSuffix(path, RecordSuffix)
	base = strings.TrimSuffix(base, filepath.Ext(base))
	r := &Records{header: Header{Tool: "olafrec", Clock: Wall}}
	clusters := uint32(0)
	for k := 0; k == 0 || k < r.header.Workers; k++ {
		name := fmt.Sprintf("%s.%d%s", base, k, RecordSuffix)
		r.names = append(r.names, name)
		h, err := r.read(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		env := string(bytes.TrimRight(h.Name[:], "\x00"))
		switch {
		case h.Worker != uint32(k):
			return nil, fmt.Errorf("%w: %s is of worker %d", ErrFormat, name, h.Worker)
		case k == 0:
			r.header.Workers, r.header.Lanes, r.header.Env = int(h.Workers), int(h.Lanes), env
		case int(h.Workers) != r.header.Workers || int(h.Lanes) != r.header.Lanes:
			return nil, fmt.Errorf("%w: %s has %d workers and %d values an update, and worker 0's file %d and %d", ErrFormat,
				name, h.Workers, h.Lanes,
				r.header.Workers, r.header.Lanes)
		}
		clusters = max(clusters, h.Cluster+1)
	}
	r.header.Clusters = int(clusters)
	if err := r.header.Check(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(r.rows, func(a, b recordedUpdate) int { return cmp.Compare(a.GenNS, b.GenNS) })
	if len(r.rows) > 0 {
		first := r.rows[0].GenNS
		for i := range r.rows {
			r.rows[i].GenNS -= first
		}
	}
	r.order = newOrder(&r.header)
	return r, nil
}

// read reads the record file of one worker.
func (r *Records) read(name string) (h recordHeader, err error) {
	file, err := os.Open(name)
	if err != nil {
		return h, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	in := bufio.NewReaderSize(file, 1<<20)
	magic := make([]byte, len(RecordMagic))
	if _, err := io.ReadFull(in, magic); err != nil || string(magic) != RecordMagic {
		return h, fmt.Errorf("%w: it does not begin with %q", ErrFormat, RecordMagic)
	}
	if err := binary.Read(in, binary.LittleEndian, &h); err != nil {
		return h, fmt.Errorf("%w: it ends in its header", ErrFormat)
	}
	if h.Workers < 1 || h.Workers > 1<<16 || h.Worker >= h.Workers || h.Cluster >= 1<<16 || h.Lanes > maxLanes {
		return h, fmt.Errorf("%w: worker %d of %d in cluster %d, with %d values", ErrFormat, h.Worker, h.Workers, h.Cluster,
			h.Lanes)
	}
	values, gradients := make([]byte, 4*h.Lanes), make([]float32, h.Lanes)
	at, size := int64(len(RecordMagic)+binary.Size(h)), int64(binary.Size(record{}))
	for seq := uint32(0); ; seq++ {
		var one record
		if err := binary.Read(in, binary.LittleEndian, &one); err == io.EOF {
			return h, nil
		} else if err != nil {
			return h, fmt.Errorf("%w: it ends within update %d", ErrFormat, seq)
		}
		if _, err := io.ReadFull(in, values); err != nil {
			return h, fmt.Errorf("%w: it ends within update %d", ErrFormat, seq)
		}
		toFloats(gradients, values)
		r.rows = append(r.rows, recordedUpdate{Update{
			GenNS: int64(one.AtNS), CostNS: int64(one.CostNS), BaseVersion: uint64(one.Version), Reward: one.Reward, Seq: seq,
			Digest: GradientDigest(gradients), GradNorm: Norm(gradients), Worker: olaf.WorkerID(h.Worker), Cluster: olaf.ClusterID(h.Cluster),
		}, len(r.names) - 1, at + size})
		at += size + int64(len(values))
	}
}

func toFloats(into []float32, values []byte) {
	for i := range into {
		into[i] = math.Float32frombits(binary.LittleEndian.Uint32(values[4*i:]))
	}
}

// CopyTo appends all updates with their gradients to a trace.
func (r *Records) CopyTo(f *File) (err error) {
	files := make([]*os.File, len(r.names))
	for i, name := range r.names {
		if files[i], err = os.Open(name); err != nil {
			return err
		}
		defer files[i].Close()
	}
	values, gradients := make([]byte, 4*r.header.Lanes), make([]float32, r.header.Lanes)
	for i := range r.rows {
		row := &r.rows[i]
		if _, err := files[row.file].ReadAt(values, row.at); err != nil {
			return fmt.Errorf("%s: %w", r.names[row.file], err)
		}
		toFloats(gradients, values)
		if err := f.Append(&row.Update, gradients); err != nil {
			return err
		}
	}
	return nil
}

// Norm returns the Euclidean norm of gradients.
func Norm(gradients []float32) float32 {
	sum := 0.0
	for _, v := range gradients {
		square := float64(v) * float64(v)
		sum += square
	}
	return float32(math.Sqrt(sum))
}

// Header implements Source.
func (r *Records) Header() *Header { return &r.header }

// Next implements Source.
func (r *Records) Next(u *Update) error {
	if r.at == len(r.rows) {
		return io.EOF
	}
	*u = r.rows[r.at].Update
	r.at++
	return r.order.checkNext(u)
}
