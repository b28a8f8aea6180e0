//go:build unix

package agent

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/olafctl/olaf/p4ctl/p4"
)

// unread is a disk that must not be read, because reading the paths in this test could block forever.
type unread struct{ disk }

var errRead = errors.New("it was read")

func (unread) ReadFile(string) ([]byte, error) { return nil, errRead }

// TestJournalIsAFile checks that paths, and paths of sibling files, that are not regular files are rejected with a
// remedy before any is opened, which could block forever.
func TestJournalIsAFile(t *testing.T) {
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	for _, name := range []string{"pipe", "a.lock", "b.ack", "c.new", "d.ack.new"} {
		if err := syscall.Mkfifo(at(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"hard", "h.ack"} {
		if err := errors.Join(os.WriteFile(at("other."+name), []byte(name), 0o600), os.Link(at("other."+name),
			at(name))); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink(os.DevNull, at("null")), os.Symlink(at("nobody"), at("dangling")),
		os.Symlink(at("other.h.ack"), at("l.ack"))); err != nil {
		t.Fatal(err)
	}
	const nothing, links = " is a device, pipe or socket; name a regular file", " has 2 hard links"
	for _, c := range []struct{ path, want string }{
		{os.DevNull, os.DevNull + nothing},
		{at("null"), os.DevNull + nothing},
		{at("pipe"), at("pipe") + nothing},
		{at("a"), at("a.lock") + nothing},
		{at("b"), at("b.ack") + nothing},
		{at("c"), at("c.new") + nothing},
		{at("d"), at("d.ack.new") + nothing},
		{folder, "is a directory; name a file"},
		{at("hard"), at("hard") + links},
		{at("h"), at("h.ack") + links},
		{at("l"), at("l.ack") + " is a symbolic link"},
		{at("dangling"), "name the file itself"},
		{at("none/t"), "there is no folder " + at("none") + " for t; create it"},
	} {
		if _, err := New(Options{Backend: newCard(), Profile: p4.Lab(), Journal: c.path, disk: unread{}}); !errors.Is(err,
			ErrJournal) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.path, err)
		}
		if strings.HasPrefix(c.path, folder+"/") && c.path != at("a") {
			if _, err := os.Lstat(c.path + ".lock"); err == nil {
				t.Errorf("%s: a lock was left", c.path)
			}
		}
	}
}

// TestJournalThroughALink checks that if a journal is named by a link, lock, acknowledgements and journal are those of
// the target.
func TestJournalThroughALink(t *testing.T) {
	folder := t.TempDir()
	path, link := filepath.Join(folder, "tables"), filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	first := filled(t, path)
	if _, err := newOwner(t, link, p4.Lab()); !errors.Is(err, ErrJournal) || !strings.Contains(err.Error(),
		"another agent uses") {
		t.Errorf("a second agent through the link: %v", err)
	}
	first.crash()
	through, err := newOwner(t, link, p4.Lab())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newOwner(t, path, p4.Lab()); err == nil {
		t.Error("a second agent beside the one that came through the link")
	}
	if err := errors.Join(through.send(workerUpdate(v1.Update_INSERT, 9)),
		through.journal.rewrite(through.current.Load()), through.send(workerUpdate(v1.Update_INSERT, 10))); err != nil {
		t.Fatal(err)
	}
	want := dump(t, through.current.Load())
	through.crash()
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is none any more: %v", err)
	}
	if beside, err := filepath.Glob(link + ".*"); err != nil || len(beside) > 0 {
		t.Errorf("beside the link there are %q", beside)
	}
	if again, err := newOwner(t, path, p4.Lab()); err != nil || dump(t, again.current.Load()) != want {
		t.Errorf("by its own name: %v", err)
	}
}
