package fpgatest

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
)

// T is what a case needs of a test; *testing.T is one.
type T interface {
	Helper()
	Error(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// Suite is a test that has subtests of its own type: *testing.T.
type Suite[S any] interface {
	T
	Run(name string, f func(S)) bool
}

// Run runs the whole suite as subtests. open gives a device that nobody else uses; the suite resets it before each case
// and leaves closing to the opener.
func Run[S Suite[S]](t S, open func(S) fpga.Device) {
	for _, c := range cases {
		t.Run(c.name, func(t S) { c.on(t, open(t)) })
	}
}

type testCase struct {
	name string
	run  func(d *device)
}

// on resets dev, which every case starts from, and runs the case.
func (c *testCase) on(t T, dev fpga.Device) {
	d := &device{t, dev}
	d.write(regmap.GeneratorCommand, regmap.GeneratorCommandAbort)
	d.write(regmap.CommonCommand, regmap.CommonCommandReset)
	d.sleep(olaf.Millisecond)
	c.run(d)
}

// Result is how one case went.
type Result struct {
	Name  string
	Fails []string // empty when it passed
}

// Check runs the suite on a device outside of go test and tells done how each case went. It ends after a case that lost
// the device.
func Check(dev fpga.Device, done func(Result)) {
	for _, c := range cases {
		r := &recorder{}
		finished := make(chan struct{})
		go func() { // a fatal failure ends this goroutine and the case, nothing else
			defer close(finished)
			c.on(r, dev)
		}()
		<-finished
		done(Result{c.name, r.fails})
		if len(r.fails) > 0 {
			if _, err := dev.Read32(regmap.CommonMagic); err != nil {
				return
			}
		}
	}
}

// recorder is a T that keeps what failed.
type recorder struct{ fails []string }

func (r *recorder) Helper() {}

func (r *recorder) Error(args ...any) {
	r.fails = append(r.fails, strings.TrimSpace(fmt.Sprintln(args...)))
}

func (r *recorder) Errorf(format string, args ...any) { r.Error(fmt.Sprintf(format, args...)) }

func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) { r.Fatal(fmt.Sprintf(format, args...)) }
