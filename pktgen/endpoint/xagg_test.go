package endpoint

import (
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/xagg"
)

// TestTicket checks that a worker requests its first epoch repeatedly until its own request is answered, once for all
// of its vectors, and that a change of the tree before the answer counts.
func TestTicket(t *testing.T) {
	c := new(clerk)
	e, err := NewXAgg(Config{Job: 1, Worker: 1, Workers: 2, Layout: Layout{Values: 2, PerPacket: 1}, Updates: 2},
		XAgg{Ticket: 9, Timeout: olaf.Millisecond, Epoch: 3}, c)
	if err != nil {
		t.Fatal(err)
	}
	control := func(now olaf.Time, action uint8, seg, value uint64) {
		e.Receive(now, &program.Packet{Kind: program.Control, Action: action, Seg: seg, Value: value}, nil)
	}
	e.Start(0)
	e.OnComputed(0, []uint32{1, 2})
	now := olaf.Time(0)
	for range 3 {
		now = e.Next()
		e.Timer(now)
	}
	asked := "to -1 control action=8 job=1 worker=1 seg=9 round=3 value=2 [] -"
	for i, s := range c.said {
		if i > 0 && s != asked {
			t.Errorf("it says %q, want %q", s, asked)
		}
	}
	if len(c.said) != 5 || len(c.data) > 0 { // one computation and four requests
		t.Errorf("%q", c.said)
	}
	control(now, xagg.First, 8, 500)
	control(now, xagg.Renew, 0, 1)
	e.Receive(now, &program.Packet{Kind: program.Result, Round: 3, Lanes: 1}, []uint32{1})
	if len(c.data) > 0 {
		t.Errorf("it sends %v before it is told", c.data)
	}
	play := func() {
		for e.Next() <= now {
			e.Timer(now)
		}
	}
	control(now, xagg.First, 9, 600)
	play()
	if len(c.data) != 2 || c.data[0].Round != 602 { // 600 plus 2 for the change
		t.Fatalf("%+v", c.data)
	}
	c.said = nil
	now = e.Next()
	e.Timer(now)
	if len(c.said) == 0 || c.said[0] != "to -1 control action=10 job=1 worker=1 seg=9 round=600 value=2 [] -" {
		t.Errorf("after a silence it says %q", c.said)
	}
	c.data = nil
	control(now, xagg.First, 9, 600)
	control(now, xagg.First, 8, 500)
	play()
	if len(c.data) > 0 {
		t.Errorf("told the same it sends %+v", c.data)
	}
	control(now, xagg.First, 9, 65_534)
	play()
	if len(c.data) != 2 || c.data[0].Round != 0 {
		t.Fatalf("told another epoch it sends %+v", c.data)
	}
	for _, p := range c.data[:2] {
		p.Kind = program.Result
		e.Receive(now, &p, []uint32{4})
	}
	c.data, c.said = nil, nil
	e.OnApplied(now)
	e.OnComputed(now, []uint32{3, 4})
	for e.Next() <= now {
		e.Timer(now)
	}
	if len(c.data) != 2 || c.data[0].Round != 1 {
		t.Errorf("of the second vector %+v; %q", c.data, c.said)
	}
	c.said = nil
	e.(Leaver).Leave()
	if len(c.said) != 1 || c.said[0] != "to -1 control action=11 job=1 worker=1 seg=9 round=1 value=2 [] -" {
		t.Errorf("as it goes it says %q", c.said)
	}
	c.said = nil
	now = e.Next()
	e.Timer(now)
	if len(c.said) == 0 || c.said[0] != "to -1 control action=10 job=1 worker=1 seg=9 round=65534 value=2 [] -" {
		t.Errorf("after a silence in the middle of its job it says %q", c.said)
	}
	control(now, xagg.First, 8, 800)
	control(now, xagg.First, 9, 65_534)
	if e.(Leaver).Superseded() {
		t.Error("it is superseded by what was told to another, or by its own job")
	}
	control(now, xagg.First, 9, 800)
	c.said = nil
	e.(Leaver).Leave()
	if !e.(Leaver).Superseded() || len(c.said) != 1 || c.said[0] != "to -1 control action=11 job=1 worker=1 seg=9 "+
		"round=1 [] -" {
		t.Errorf("superseded %v, as it goes it says %q", e.(Leaver).Superseded(), c.said)
	}
}

// TestRefusedTicket checks that a worker whose epochs the parent refuses reports the reason, and that it ignores the
// refusal of another request.
func TestRefusedTicket(t *testing.T) {
	e, err := NewXAgg(Config{Job: 1, Worker: 1, Workers: 2, Layout: Layout{Values: 2, PerPacket: 1}, Updates: 2},
		XAgg{Ticket: 9}, new(clerk))
	if err != nil {
		t.Fatal(err)
	}
	e.Start(0)
	e.OnComputed(0, []uint32{1, 2})
	refuse := func(question uint64) string {
		e.Receive(0, &program.Packet{Kind: program.Control, Action: xagg.Refuse, Seg: question,
			Value: uint64(xagg.EpochsSpent)}, nil)
		return e.(Leaver).Refused()
	}
	if why := refuse(8); why != "" {
		t.Errorf("a refusal of another question ends the job: %s", why)
	}
	if why := refuse(9); why != xagg.EpochsSpent.String() {
		t.Errorf("the refusal gives the reason %q, want %q", why, xagg.EpochsSpent)
	}
}

// TestWorkerEndsAfterAnotherLeft checks that a worker ends when another worker has left the job and sums stop arriving.
func TestWorkerEndsAfterAnotherLeft(t *testing.T) {
	c := new(clerk)
	e, err := NewXAgg(Config{Job: 1, Worker: 1, Workers: 2, Layout: Layout{Values: 2, PerPacket: 1}, Updates: 2},
		XAgg{Ticket: 9, Timeout: olaf.Millisecond}, c)
	if err != nil {
		t.Fatal(err)
	}
	now := olaf.Time(0)
	control := func(action uint8, value uint64) {
		e.Receive(now, &program.Packet{Kind: program.Control, Action: action, Seg: 9, Value: value}, nil)
	}
	e.Start(now)
	e.OnComputed(now, []uint32{1, 2})
	control(xagg.First, 0)
	silence := func() {
		for range 2 * leavers {
			now = max(now, e.Next())
			e.Timer(now)
		}
		control(xagg.Refuse, uint64(xagg.WorkerLeft))
	}
	if silence(); e.(Leaver).Refused() != "" {
		t.Error("it ends before its first sum, though the other may begin again")
	}
	e.Receive(now, &program.Packet{Kind: program.Result, Lanes: 1}, []uint32{1})
	if control(xagg.Refuse, uint64(xagg.WorkerLeft)); e.(Leaver).Refused() != "" {
		t.Error("it ends while sums still come")
	}
	if silence(); e.(Leaver).Refused() == "" {
		t.Error("it waits for sums that never come")
	}
}

// TestTooManyFragments checks that a worker ends if the parent refuses its vector because of too many fragments, but
// not if another vector is refused.
func TestTooManyFragments(t *testing.T) {
	e, err := NewXAgg(Config{Job: 1, Worker: 1, Workers: 2, Layout: Layout{Values: 2, PerPacket: 1}, Updates: 2},
		XAgg{Epoch: 5}, new(clerk))
	if err != nil {
		t.Fatal(err)
	}
	e.Start(0)
	e.OnComputed(0, []uint32{1, 2})
	refuse := func(epoch uint16) string {
		e.Receive(0, &program.Packet{Kind: program.Control, Action: xagg.Refuse, Round: epoch,
			Value: uint64(xagg.TooManyFragments)}, nil)
		return e.(Leaver).Refused()
	}
	if refuse(4) != "" || refuse(5) == "" {
		t.Error("it ends by the refusal of another vector, or goes on after that of its own")
	}
}

// TestWaitFollowsRounds checks that a worker that follows rounds of different durations waits for their mean plus four
// deviations, within limits, and that a round with a timeout changes nothing.
func TestWaitFollowsRounds(t *testing.T) {
	const ms = olaf.Millisecond
	x := XAgg{Timeout: 100 * ms, Follows: true}
	e, err := NewXAgg(Config{Job: 1, Worker: 1, Workers: 2, Layout: Layout{Values: 1, PerPacket: 1}, Updates: 99}, x,
		new(clerk))
	if err != nil {
		t.Fatal(err)
	}
	now := olaf.Time(0)
	round := uint16(0)
	play := func(takes olaf.Duration) (wait olaf.Duration) {
		e.OnComputed(now, []uint32{1})
		for e.Next() <= now {
			e.Timer(now)
		}
		wait = e.Next().Sub(now)
		if now = now.Add(takes); takes > wait {
			e.Timer(now)
		}
		e.Receive(now, &program.Packet{Kind: program.Result, Lanes: 1, Round: round}, []uint32{1})
		e.OnApplied(now)
		round++
		return wait
	}
	e.Start(now)
	for i, c := range []struct{ takes, wait olaf.Duration }{
		{40 * ms, 100 * ms}, {40 * ms, 120 * ms}, {150 * ms, 100 * ms}, {8 * ms, 100 * ms}, {36 * ms, 113 * ms},
	} {
		if wait := play(c.takes); wait != c.wait {
			t.Errorf("in round %d it waits for %v, want %v", i, wait, c.wait)
		}
	}
	for range 50 {
		play(ms)
	}
	if wait := play(ms); wait != leastFollow {
		t.Errorf("after quick rounds it waits for %v, want %v", wait, leastFollow)
	}
}

// TestRejectedFragmentsAreSentLessOften lets the parent lack all fragments after every repair. The first repairs follow
// at once, and the time between later ones doubles up to a limit: a second, or less if rounds are short. A sum ends it.
func TestRejectedFragmentsAreSentLessOften(t *testing.T) {
	const fragments = 3
	c := new(clerk)
	e, err := NewXAgg(Config{Job: 1, Workers: 1, Layout: Layout{Values: fragments, PerPacket: 1}, Updates: 2},
		XAgg{Timeout: olaf.Millisecond, Follows: true}, c)
	if err != nil {
		t.Fatal(err)
	}
	now := olaf.Time(0)
	// reject plays for a time and returns the times between repairs. The parent answers after 10 µs.
	reject := func(until olaf.Time) (gaps []olaf.Duration) {
		c.data = nil
		for at := now; now < until; {
			for e.Next() <= now && len(c.data) < fragments {
				e.Timer(now)
			}
			if len(c.data) == fragments {
				gaps, at, c.data = append(gaps, now.Sub(at)), now, nil
				now = now.Add(10 * olaf.Microsecond)
				e.Receive(now, &program.Packet{Kind: program.Control, Action: xagg.Lost, Bitmap: 1<<fragments - 1,
					Round: e.(*treeWorker).epoch()}, nil)
			}
			now = max(now, e.Next())
		}
		return gaps
	}
	check := func(gaps []olaf.Duration, most olaf.Duration, ends string) {
		t.Helper()
		for i := 1; i < len(gaps); i++ {
			if gaps[i] < gaps[i-1] || gaps[i] > most+olaf.Millisecond {
				t.Errorf("%s: after %s the next repair follows after %s; want times that grow up to %s", ends, gaps[i-1], gaps[i], most)
			}
		}
		if last := gaps[len(gaps)-1]; last < most/2 || gaps[2] > olaf.Millisecond {
			t.Errorf("%s: the times between repairs are %v, want the first at once and the last up to %s", ends, gaps, most)
		}
	}
	e.Start(now)
	e.OnComputed(now, []uint32{1, 2, 3})
	check(reject(now.Add(20*olaf.Second)), olaf.Second, "in the first round")
	finish := func() {
		for i := range fragments {
			e.Receive(now, &program.Packet{Kind: program.Result, Seg: uint64(i), Round: e.(*treeWorker).epoch(), Lanes: 1},
				[]uint32{7})
		}
		e.OnApplied(now)
	}
	finish()
	e.(*treeWorker).average, e.(*treeWorker).spread = olaf.Millisecond, 0
	e.OnComputed(now, []uint32{1, 2, 3})
	check(reject(now.Add(20*olaf.Second)), olaf.Millisecond<<hushes, "after rounds of 1 ms")
	if e.Done() {
		t.Error("the job is done without its last sum")
	}
	if finish(); !e.Done() {
		t.Error("the job does not end with its last sum")
	}
}
