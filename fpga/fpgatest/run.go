package fpgatest

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
)

// T is the part of testing.TB that test cases use.
type T interface {
	Helper()
	Error(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// Suite is a test that can run subtests of its own type, such as *testing.T.
type Suite[S any] interface {
	T
	Run(name string, f func(S)) bool
}

// Run runs the suite as subtests. open returns a device for exclusive use. The suite resets it before each case and
// does not close it.
func Run[S Suite[S]](t S, open func(S) fpga.Device) {
	for _, c := range cases {
		t.Run(c.name, func(t S) { c.runOn(t, open(t)) })
	}
}

type testCase struct {
	name string
	run  func(d *device)
}

// runOn resets dev and runs the test case on it.
func (c *testCase) runOn(t T, dev fpga.Device) {
	d := &device{t, dev}
	d.write(regmap.GeneratorCommand, regmap.GeneratorCommandAbort)
	d.write(regmap.CommonCommand, regmap.CommonCommandReset)
	d.sleep(olaf.Millisecond)
	c.run(d)
}

// Result is the outcome of one test case.
type Result struct {
	Name  string
	Fails []string // empty if it passed
}

// CheckDevice runs the suite on a device outside of go test and passes the result of each case to done. It stops if the
// device is lost.
func CheckDevice(dev fpga.Device, done func(Result)) {
	for _, c := range cases {
		r := &recorder{}
		finished := make(chan struct{})
		go func() { // a fatal failure ends this goroutine only
			defer close(finished)
			c.runOn(r, dev)
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

// recorder is a T that collects failures as text.
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
