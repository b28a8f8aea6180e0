package attach

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/olafctl/olaf/pktgen/trace"
)

// Records writes the data from recorders into one file per worker, in the same format as olaf.Recorder. Its clients are
// served by a Port with Many set.
type Records struct {
	folder string
	done   func(error) // called when all recorders have ended in order, or with the error that ended the recording

	mu    sync.Mutex
	names map[uint32]bool // workers that started
	ended uint32          // number of recorders that ended
}

// NewRecords returns a Records that writes to files in a folder. done is called when the recorders of all workers have
// ended properly, or with the error that ends the recording. It may be called more than once.
func NewRecords(folder string, done func(error)) *Records {
	return &Records{folder: folder, done: done, names: map[uint32]bool{}}
}

// recordsName is the first part of the names of the record files.
const recordsName = "records"

// First returns the path of the file for worker 0, which can be passed to trace.OpenRecords.
func (r *Records) First() string { return r.path(0) }

func (r *Records) path(worker uint32) string {
	return filepath.Join(r.folder, fmt.Sprintf("%s.%d%s", recordsName, worker, trace.RecordSuffix))
}

func (*Records) greeting() Greeting {
	return Greeting{Magic: magic, Version: Version, Role: RoleRecorder, Largest: MaxValues}
}

// serve writes the data from one recorder into its file.
func (r *Records) serve(s *session) error {
	var file *os.File
	workers := uint32(0)
	for {
		m, bye, err := s.next()
		if err == nil && m.Kind != KindRecord {
			err = fmt.Errorf("%w: a recorder sends records, and this is a message of kind %d", ErrProtocol, m.Kind)
		}
		if err == nil && file == nil {
			file, workers, err = r.begin(m.Body)
		} else if err == nil {
			_, err = file.Write(m.Body)
		}
		if err == nil {
			continue
		}
		if file != nil {
			err = errors.Join(err, file.Close())
		}
		if bye {
			r.end(workers)
		}
		return err
	}
}

// begin opens the file for the worker that is named in the header. It rejects a second recorder for the same worker.
func (r *Records) begin(header []byte) (file *os.File, workers uint32, err error) {
	if !bytes.HasPrefix(header, []byte(trace.RecordMagic)) || len(header) < len(trace.RecordMagic)+8 {
		return nil, 0, fmt.Errorf("%w: a recorder's first bytes are no header of records", ErrProtocol)
	}
	worker := binary.LittleEndian.Uint32(header[len(trace.RecordMagic):])
	workers = binary.LittleEndian.Uint32(header[len(trace.RecordMagic)+4:])
	r.mu.Lock()
	taken := r.names[worker]
	r.names[worker] = true
	r.mu.Unlock()
	if taken {
		return nil, 0, fmt.Errorf("%w: worker %d has a recorder already", ErrProtocol, worker)
	}
	if file, err = os.Create(r.path(worker)); err == nil {
		_, err = file.Write(header)
	}
	if err != nil {
		r.done(err)
	}
	return file, workers, err
}

// end counts a recorder that ended properly. A recorder that wrote no records is not counted.
func (r *Records) end(workers uint32) {
	if workers == 0 {
		return
	}
	r.mu.Lock()
	r.ended++
	all := r.ended >= workers
	r.mu.Unlock()
	if all {
		r.done(nil)
	}
}
