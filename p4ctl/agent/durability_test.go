package agent

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/olafctl/olaf/p4ctl/p4"
)

// kept contains a journal of 20 batches and its files.
type kept struct {
	journal, sidecar []byte
	content          string // acknowledged content
}

const keptBatches = 20

func keep(t *testing.T) kept {
	t.Helper()
	return keepBatches(t, keptBatches)
}

// keepBatches writes a journal of n batches. With an odd n the newest acknowledgement is in the first slot.
func keepBatches(t *testing.T, batches uint32) kept {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tables")
	o, err := newOwner(t, path, p4.Lab())
	if err != nil {
		t.Fatal(err)
	}
	if err := o.push(v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, labConfig()); err != nil {
		t.Fatal(err)
	}
	for i := range batches {
		if err := o.send(workerUpdate(v1.Update_INSERT, i+1)); err != nil {
			t.Fatal(err)
		}
	}
	k := kept{content: dump(t, o.current.Load())}
	o.crash()
	k.journal, k.sidecar = read(t, path), read(t, path+".ack")
	return k
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// memory is an in-memory file system.
type memory map[string][]byte

func (m memory) ReadFile(path string) ([]byte, error) {
	if b, ok := m[path]; ok {
		return append([]byte{}, b...), nil
	}
	return nil, os.ErrNotExist
}

func (m memory) Open(path string) (writable, error) {
	if _, ok := m[path]; !ok {
		return nil, os.ErrNotExist
	}
	return memoryFile{m, path}, nil
}

func (m memory) Create(path string) (writable, error) {
	m[path] = nil
	return memoryFile{m, path}, nil
}

func (m memory) Rename(from, to string) error {
	m[to] = m[from]
	delete(m, from)
	return nil
}

func (memory) SyncFolder(string) error { return nil }

type memoryFile struct {
	m    memory
	path string
}

func (f memoryFile) WriteAt(b []byte, at int64) (int, error) {
	if end := int(at) + len(b); end > len(f.m[f.path]) {
		f.m[f.path] = append(f.m[f.path], make([]byte, end-len(f.m[f.path]))...)
	}
	return copy(f.m[f.path][at:], b), nil
}

func (f memoryFile) Truncate(n int64) error {
	f.m[f.path] = append(f.m[f.path], make([]byte, max(0, int(n)-len(f.m[f.path])))...)[:n]
	return nil
}

func (memoryFile) Sync() error  { return nil }
func (memoryFile) Close() error { return nil }

// start starts an agent on the journal files "t" and "t.ack" and returns its content. If the agent fails to start, it
// must leave the files unchanged.
func start(t *testing.T, files memory) (content string, warnings []string, err error) {
	t.Helper()
	before := maps.Clone(files)
	j := &journal{fs: files, path: "t", sidecar: sidecar{fs: files, path: "t.ack"},
		warn: func(s string) { warnings = append(warnings, s) }}
	c, err := j.read()
	if err != nil {
		if !errors.Is(err, ErrJournal) {
			t.Fatalf("an error of another kind: %v", err)
		}
		if !maps.EqualFunc(before, files, func(a, b []byte) bool { return string(a) == string(b) }) {
			t.Fatal("a refusal changed files")
		}
		return "", nil, err
	}
	if c.config == nil {
		return "", warnings, j.settle(nil)
	}
	p, err := replay(new(Embedded), Options{Profile: p4.Lab()}, c)
	if err != nil {
		return "", nil, err
	}
	return dump(t, p), warnings, j.settle(p)
}

// TestEveryBitOfAJournal flips each bit and checks that the agent fails to start, because the whole file was
// acknowledged.
func TestEveryBitOfAJournal(t *testing.T) {
	k := keep(t)
	for i := range len(k.journal) * 8 {
		bad := append([]byte(nil), k.journal...)
		bad[i/8] ^= 1 << (i % 8)
		if _, _, err := start(t, memory{"t": bad, "t.ack": k.sidecar}); err == nil {
			t.Fatalf("bit %d of byte %d flipped: the agent started", i%8, i/8)
		}
	}
	t.Logf("%d bits flipped, all refused", len(k.journal)*8)
}

// TestEveryBitOfASidecar flips each bit and checks that the agent starts with the acknowledged content or fails to
// start.
func TestEveryBitOfASidecar(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	k := keep(t)
	refused := 0
	for i := range len(k.sidecar) * 8 {
		bad := append([]byte(nil), k.sidecar...)
		bad[i/8] ^= 1 << (i % 8)
		content, _, err := start(t, memory{"t": k.journal, "t.ack": bad})
		if err != nil {
			refused++
		} else if content != k.content {
			t.Fatalf("bit %d of byte %d flipped: the agent holds\n%s", i%8, i/8, content)
		}
	}
	t.Logf("%d bits flipped, %d refused", len(k.sidecar)*8, refused)
	if refused == 0 {
		t.Error("no flip in the newest acknowledgement was noticed")
	}
}

// damagedSidecars damages the sidecars for an even and for an odd number of batches, and checks that the agent starts
// with the acknowledged content or fails to start, whichever slot has the newest acknowledgement.
func damagedSidecars(t *testing.T, damage func(sidecar []byte) [][]byte) {
	t.Helper()
	for _, batches := range []uint32{keptBatches, keptBatches + 1} {
		k := keepBatches(t, batches)
		refused, bad := 0, damage(k.sidecar)
		for i, b := range bad {
			files := memory{"t": k.journal, "t.ack": b}
			content, _, err := start(t, files)
			if err != nil {
				refused++
				continue
			}
			if content != k.content {
				t.Fatalf("%d batches, damage %d: the agent holds\n%s", batches, i, content)
			}
			if content, warnings, err := start(t, files); err != nil || content != k.content || len(warnings) > 0 {
				t.Fatalf("%d batches, damage %d: the next start: %v, %q", batches, i, err, warnings)
			}
		}
		t.Logf("%d batches: %d damaged in turn, %d refused", batches, len(bad), refused)
		if refused == 0 {
			t.Errorf("%d batches: nothing that took the newest acknowledgement was noticed", batches)
		}
	}
}

// TestSidecarCutAtEveryByte checks sidecars that are shortened to every length.
func TestSidecarCutAtEveryByte(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	damagedSidecars(t, func(sidecar []byte) (bad [][]byte) {
		for n := range sidecar {
			bad = append(bad, append([]byte{}, sidecar[:n]...))
		}
		return bad
	})
}

// TestEverySidecarSectorZeroed checks sidecars in which an aligned run of 512 bytes is zeroed.
func TestEverySidecarSectorZeroed(t *testing.T) {
	damagedSidecars(t, func(sidecar []byte) (bad [][]byte) {
		for at := 0; at < len(sidecar); at += 512 {
			b := append([]byte{}, sidecar...)
			clear(b[at:min(at+512, len(b))])
			bad = append(bad, b)
		}
		return bad
	})
}

// TestSidecarOfEarlierFormat starts agents with sidecars in the earlier format, in which an empty slot meant that there
// was no acknowledgement. It checks that intact sidecars are accepted, and that those in which only an empty slot shows
// that there were no more acknowledgements are rejected.
func TestSidecarOfEarlierFormat(t *testing.T) {
	k := keep(t)
	s := scanJournal(k.journal)
	for _, at := range []int{0, 1} {
		before := make([]byte, slotStride+slotBytes)
		copy(before[at*slotStride:], s.acknowledgedUpTo(len(s.records)).bytes())
		files := memory{"t": k.journal, "t.ack": before}
		for round := range 2 {
			content, warnings, err := start(t, files)
			if err != nil || content != k.content || len(warnings) != 1-round {
				t.Errorf("place %d, start %d: %v, %q", at, round, err, warnings)
			}
		}
	}
	before := make([]byte, slotStride+slotBytes)
	copy(before, s.acknowledgedUpTo(len(s.records)-1).bytes())
	if _, _, err := start(t, memory{"t": k.journal, "t.ack": before}); err == nil || !strings.Contains(err.Error(),
		"it is unknown whether record 21 was acknowledged") {
		t.Errorf("an empty place and a record more: %v", err)
	}
}

// TestFailedAcknowledgementWrite checks a failed write of an acknowledgement. The newest acknowledgement is then in
// both slots, so that the loss of one slot neither loses a batch nor prevents a start.
func TestFailedAcknowledgementWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tables")
	o := filled(t, path)
	want := dump(t, o.current.Load())
	o.journal.sidecar.close()
	o.journal.sidecar.fs = &faultyDisk{fileSystem: disk{}, failing: 1} // opening succeeds, and the write after it fails
	if err := o.send(workerUpdate(v1.Update_INSERT, 9)); err == nil {
		t.Fatal("acknowledged without an acknowledgement")
	}
	o.crash()
	journal, sidecar := read(t, path), read(t, path+".ack")
	for at := range slotCount {
		bad := append([]byte{}, sidecar...)
		clear(bad[at*slotStride:][:slotBytes])
		content, _, err := start(t, memory{"t": journal[:o.journal.size], "t.ack": bad})
		if err != nil || content != want {
			t.Errorf("place %d lost: %v", at, err)
		}
	}
}

// TestCutAtEveryByte shortens the journal and checks that the agent rejects every cut, because everything was
// acknowledged.
func TestCutAtEveryByte(t *testing.T) {
	k := keep(t)
	for n := range len(k.journal) {
		if _, _, err := start(t, memory{"t": k.journal[:n], "t.ack": k.sidecar}); err == nil {
			t.Fatalf("cut at %d of %d: the agent started", n, len(k.journal))
		}
	}
}

// TestEverySectorZeroed checks journals in which an aligned run of 512 bytes is zeroed.
func TestEverySectorZeroed(t *testing.T) {
	k := keep(t)
	for at := 0; at < len(k.journal); at += 512 {
		bad := append([]byte(nil), k.journal...)
		clear(bad[at:min(at+512, len(bad))])
		if _, _, err := start(t, memory{"t": bad, "t.ack": k.sidecar}); err == nil {
			t.Fatalf("zeros from byte %d: the agent started", at)
		}
	}
}

// TestUnacknowledgedTail appends every prefix of one more batch, and zeros. It checks that the agent ignores the tail,
// stores it in a file, and reports it.
func TestUnacknowledgedTail(t *testing.T) {
	k := keep(t)
	next, err := appendRecord(nil, recordBatch,
		&v1.WriteRequest{Updates: []*v1.Update{workerUpdate(v1.Update_INSERT, 99)}})
	if err != nil {
		t.Fatal(err)
	}
	tails := [][]byte{make([]byte, 4096)}
	for n := 1; n <= len(next); n++ {
		tails = append(tails, next[:n])
	}
	for _, tail := range tails {
		files := memory{"t": append(append([]byte{}, k.journal...), tail...), "t.ack": k.sidecar}
		content, warnings, err := start(t, files)
		if err != nil || content != k.content {
			t.Fatalf("a tail of %d bytes: %v", len(tail), err)
		}
		beside := fmt.Sprintf("t.tail-1-%d", keptBatches+1)
		if string(files[beside]) != string(tail) {
			t.Fatalf("a tail of %d bytes is not kept in %s", len(tail), beside)
		}
		if len(warnings) != 1 || !strings.Contains(warnings[0], beside) {
			t.Fatalf("said %q", warnings)
		}
		if string(files["t"]) != string(k.journal) {
			t.Fatal("the tail is still there")
		}
	}
}

// TestMissingFiles checks the start without one of the two files.
func TestMissingFiles(t *testing.T) {
	k := keep(t)
	files := memory{"t": k.journal}
	content, warnings, err := start(t, files)
	if err != nil || content != k.content || len(warnings) != 1 {
		t.Errorf("without its acknowledgements a whole journal is taken, and that is said: %v, %q", err, warnings)
	}
	if content, warnings, err = start(t, files); err != nil || content != k.content || len(warnings) != 0 {
		t.Errorf("the next start: %v, %q", err, warnings)
	}
	if _, _, err := start(t, memory{"t": k.journal[:len(k.journal)-3]}); err == nil {
		t.Error("a cut journal without acknowledgements was taken")
	}
	if _, _, err := start(t, memory{"t.ack": k.sidecar}); err == nil || !strings.Contains(err.Error(), "is missing") {
		t.Errorf("without its journal: %v", err)
	}
	if _, _, err := start(t, memory{}); err != nil {
		t.Errorf("without both: %v", err)
	}
	other := acknowledged{epoch: 7, records: 21, sum: chain{1}}
	if _, _, err := start(t, memory{"t": k.journal, "t.ack": other.bytes()}); err == nil {
		t.Error("another journal's acknowledgements were taken")
	}
}

// TestOldJournal checks that a journal in the previous format is read and that a damaged one is rejected.
func TestOldJournal(t *testing.T) {
	k := keep(t)
	old := []byte(journalMagic1)
	for at := int64(headerBytes); at < int64(len(k.journal)); {
		n, err := recordLength(k.journal[at:], version2)
		if err != nil {
			t.Fatal(err)
		}
		r := append([]byte(nil), k.journal[at:at+n]...)
		sum := recordSum(r, version1)
		r[4], r[5], r[6], r[7] = byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum)
		old, at = append(old, r...), at+n
	}
	files := memory{"t": old}
	if content, _, err := start(t, files); err != nil || content != k.content {
		t.Fatalf("an old journal: %v", err)
	}
	if content, warnings, err := start(t, files); err != nil || content != k.content || len(warnings) > 0 {
		t.Fatalf("written anew: %v, %q", err, warnings)
	}
	if _, _, err := start(t, memory{"t": old[:len(old)-1]}); err == nil {
		t.Error("a cut old journal was taken")
	}
}

// faultyDisk fails one operation, counted from 0. A failing write leaves half of its bytes.
type faultyDisk struct {
	fileSystem
	done, failing int
	dead          bool // all later operations fail too, as after a kill
	failed        bool
}

var errFault = errors.New("injected fault")

func (d *faultyDisk) fail() bool {
	now := d.done == d.failing
	d.done++
	d.failed = d.failed || now
	return now || d.dead && d.failed
}

func (d *faultyDisk) Open(path string) (writable, error) {
	if d.fail() {
		return nil, errFault
	}
	f, err := d.fileSystem.Open(path)
	return &faultyFile{f, d}, err
}

func (d *faultyDisk) Create(path string) (writable, error) {
	if d.fail() {
		return nil, errFault
	}
	f, err := d.fileSystem.Create(path)
	return &faultyFile{f, d}, err
}

func (d *faultyDisk) Rename(from, to string) error {
	if d.fail() {
		return errFault
	}
	return d.fileSystem.Rename(from, to)
}

func (d *faultyDisk) SyncFolder(path string) error {
	if d.fail() {
		return errFault
	}
	return d.fileSystem.SyncFolder(path)
}

type faultyFile struct {
	writable
	d *faultyDisk
}

func (f *faultyFile) WriteAt(b []byte, at int64) (int, error) {
	if first := !f.d.failed; f.d.fail() {
		if !first {
			return 0, errFault
		}
		n, _ := f.writable.WriteAt(b[:len(b)/2], at)
		return n, errFault
	}
	return f.writable.WriteAt(b, at)
}

func (f *faultyFile) Sync() error {
	if f.d.fail() {
		return errFault
	}
	return f.writable.Sync()
}

func (f *faultyFile) Truncate(n int64) error {
	if f.d.fail() {
		return errFault
	}
	return f.writable.Truncate(n)
}

// TestEveryFailedFileOperation makes each file operation in a story fail in turn, once with the agent continuing and
// once with its end. It checks that the next agent has exactly the acknowledged content, plus at most the one batch
// whose answer was cut off.
func TestEveryFailedFileOperation(t *testing.T) {
	for _, dead := range []bool{false, true} {
		faults, refused, cutOff := 0, 0, 0
		for at := 0; ; at++ {
			files := memory{}
			d := &faultyDisk{fileSystem: files, failing: at, dead: dead}
			acknowledged, unanswered := story(t, d)
			if !d.failed {
				faults = at
				break
			}
			again, _, err := start(t, files)
			switch {
			case err == nil && again == acknowledged:
			case dead && err == nil && again == unanswered:
				cutOff++
			case dead && err != nil && strings.Contains(err.Error(), "it is unknown whether"):
				refused++
			default:
				t.Fatalf("death %v, operation %d failed (%v): acknowledged\n%s\nthe next agent holds\n%s", dead, at, err,
					acknowledged, again)
			}
		}
		t.Logf("death %v: %d operations failed in turn; %d answers cut off, %d refusals to guess", dead, faults,
			cutOff, refused)
		if faults < 60 {
			t.Errorf("%d operations", faults)
		}
	}
}

// story runs an agent on a disk through commits, batches and a rewrite. It returns the content that was acknowledged
// last, and the pending content at the first failed operation.
func story(t *testing.T, d *faultyDisk) (acknowledged, unanswered string) {
	a, err := New(Options{Backend: newCard(), Profile: p4.Lab(), Journal: filepath.Join(t.TempDir(), "t"), disk: d})
	if err != nil {
		t.Fatal(err)
	}
	a.journal.path, a.journal.sidecar.path = "t", "t.ack"
	stream, _ := a.joinStream(t.Context())
	if err := a.announce(stream, &v1.MasterArbitrationUpdate{DeviceId: 1, ElectionId: &v1.Uint128{Low: 1}}); err != nil {
		t.Fatal(err)
	}
	o := &owner{Agent: a}
	twin := twinOf(t) // the same sequence without a disk
	both := func(f func(*owner) error) {
		before := d.failed
		err := f(o)
		if again := f(twin); again != nil {
			t.Fatal(again)
		}
		if d.failed && !before {
			unanswered = dump(t, twin.current.Load())
		}
		if err == nil {
			acknowledged = dump(t, o.current.Load())
		}
	}
	second := labConfig()
	second.Cookie = &v1.ForwardingPipelineConfig_Cookie{Cookie: 2}
	commit := v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT
	both(func(o *owner) error { return o.push(commit, labConfig()) })
	for i := range uint32(20) {
		if i == 7 {
			both(func(o *owner) error { return o.push(commit, second) })
		}
		if i == 13 && a.journal.size > 0 { // as if 16 MB had been written
			a.journal.base = a.journal.size - rewriteAfter
		}
		both(func(o *owner) error { return o.send(workerUpdate(v1.Update_INSERT, i+1)) })
	}
	a.journal.lock.Close()
	return acknowledged, unanswered
}

func twinOf(t *testing.T) *owner {
	t.Helper()
	o, err := newOwner(t, "", p4.Lab())
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestFullDiskDuringCommit fills the disk during a commit and checks that later batches follow the new pipeline.
func TestFullDiskDuringCommit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tables")
	o := filled(t, path)
	second := labConfig()
	second.Cookie = &v1.ForwardingPipelineConfig_Cookie{Cookie: 2}
	d := &faultyDisk{fileSystem: disk{}}
	o.journal.dropFile()
	o.journal.fs, o.journal.sidecar.fs = d, d
	if err := o.push(v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, second); err == nil ||
		!strings.Contains(err.Error(), "not durable") {
		t.Fatalf("got %v", err)
	}
	if err := o.send(workerUpdate(v1.Update_INSERT, 2)); err != nil {
		t.Fatal(err)
	}
	want := dump(t, o.current.Load())
	o.crash()
	again, err := newOwner(t, path, p4.Lab())
	if err != nil || dump(t, again.current.Load()) != want {
		t.Errorf("after the restart: %v", err)
	}
}

// fullDisk has no room for another byte in an open file.
type fullDisk struct{ disk }

func (fullDisk) Open(string) (writable, error) {
	return nil, &os.PathError{Op: "write", Path: "t", Err: syscall.ENOSPC}
}
func (fullDisk) Create(string) (writable, error) { return fullDisk{}.Open("") }

// TestFullDiskSaysWhatToDo checks the errors of writes and commits on a full disk, and that they succeed when there is
// room again.
func TestFullDiskSaysWhatToDo(t *testing.T) {
	o := filled(t, filepath.Join(t.TempDir(), "tables"))
	commit := func() error { return o.push(v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, labConfig()) }
	for _, write := range []func() error{func() error { return o.send(workerUpdate(v1.Update_INSERT, 7)) }, commit} {
		o.journal.dropFile()
		o.journal.fs = fullDisk{}
		if err := write(); err == nil || !strings.Contains(err.Error(), "free some space on the agent's disk and write again") {
			t.Errorf("without room: %v", err)
		}
		o.journal.fs = disk{}
		if err := write(); err != nil {
			t.Errorf("with room: %v", err)
		}
	}
}

// TestFailedAppendDropsBatch makes an append fail, and checks that the batch is dropped and the next one is accepted.
func TestFailedAppendDropsBatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tables")
	o := filled(t, path)
	before := dump(t, o.current.Load())
	o.journal.file.Close()
	if err := o.send(workerUpdate(v1.Update_INSERT, 7)); err == nil {
		t.Fatal("written to a closed file")
	}
	if dump(t, o.current.Load()) != before || !o.card.holds(o.current.Load().state) {
		t.Error("the batch is half there")
	}
	if err := o.send(workerUpdate(v1.Update_INSERT, 8)); err != nil {
		t.Error(err)
	}
}
