package main

import (
	"fmt"
	"math"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"

	"github.com/olafctl/olaf/pktgen/attach"
)

// attachedProgram is the command 'attached' in scripts: it computes as a worker or as the server of 'olafctl train
// --program'. A worker that waits for sums checks every value.
func attachedProgram() {
	address := os.Getenv("OLAF_ATTACH")
	c, err := attach.Dial(address)
	if os.Getenv("ATTACHED_HANGS") != "" && err == nil {
		hangOrWait()
	}
	switch {
	case err != nil:
	case os.Getenv("ATTACHED_FAILS") != "" && os.Getenv("RANK") == "1":
		err = fmt.Errorf("the computation of rank 1 failed on purpose")
	case c.Role == attach.RoleServer:
		serveUpdates(c)
		return
	case c.Flags&attach.FlagWaits != 0:
		err = sumVectors(c)
	default:
		err = pushUpdates(c)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = c.Close() // the worker may have ended first
}

// hangOrWait reports that the program is attached. It returns only at worker 0, which waits for the other workers.
func hangOrWait() {
	signal.Reset(os.Interrupt)
	fmt.Println("hangs")
	if os.Getenv("RANK") == "0" {
		return
	}
	if r, _, err := os.Pipe(); err == nil {
		_, _ = r.Read(make([]byte, 1)) // nothing comes
	}
}

// attachedLengths lists the lengths of the vectors that a worker sends.
var attachedLengths = []int{5, 1000, 1, 3000, 0, 704}

// sumVectors sends vectors of several lengths and checks their sums.
func sumVectors(c *attach.Client) error {
	if fifo := os.Getenv("ATTACHED_WAITS"); fifo != "" {
		if err := awaitNamed(c, fifo); err != nil {
			return err
		}
	}
	if os.Getenv("ATTACHED_NAN") != "" {
		_, sum, err := c.Sum([]float32{float32(math.NaN())}, 0)
		if err == nil && sum[0] == sum[0] {
			err = fmt.Errorf("the sum of NaN is %v", sum[0])
		}
		return err
	}
	tolerance, _ := strconv.ParseFloat(os.Getenv("ATTACHED_TOLERANCE"), 64)
	n := float32(c.Workers)
	for round, length := range attachedLengths {
		vector := make([]float32, length)
		for i := range vector {
			vector[i] = float32(c.Worker+1)/8 + float32(i)/1024
		}
		head, sum, err := c.Sum(vector, 0.5)
		if err != nil || len(sum) != length || head.Round != uint32(round) || head.Reward != n/2 {
			return fmt.Errorf("round %d: %+v with %d values, %w", round, head, len(sum), err)
		}
		for i, v := range sum {
			if want := n*(n+1)/16 + n*float32(i)/1024; math.Abs(float64(v-want)) > tolerance {
				return fmt.Errorf("round %d: value %d is %v, want %v", round, i, v, want)
			}
		}
		fmt.Printf("{\"loss\": %d}\n", round)
	}
	return nil
}

// awaitNamed makes worker 1 wait until the other workers have been notified, through a named pipe, that its vector is
// missing.
func awaitNamed(c *attach.Client, fifo string) error {
	if c.Worker == 1 {
		_, err := os.ReadFile(fifo)
		return err
	}
	var once sync.Once
	c.Waits = func(text string) {
		if c.Worker == 0 && strings.Contains(text, "the vector of worker 1 is missing") {
			once.Do(func() { _ = os.WriteFile(fifo, nil, 0) }) // worker 1 waits for it
		}
	}
	return nil
}

// pushUpdates sends updates of several frames, each after the model with the previous update has arrived.
func pushUpdates(c *attach.Client) error {
	update := make([]float32, c.Largest)
	after := uint32(0)
	for round := range 5 {
		update[0] = float32(round)
		if _, err := c.Push(update, 0.5); err != nil {
			return err
		}
		m, _, err := c.Pull(after, true)
		if err != nil {
			return err
		}
		after = m.Version
		fmt.Printf("{\"reward\": %d}\n", round)
	}
	return nil
}

// serveUpdates answers updates until the server ends.
func serveUpdates(c *attach.Client) {
	for {
		u, values, err := c.Take()
		if err != nil {
			return
		}
		if err := c.Reply(u.Number, values); err != nil {
			return
		}
		if u.Reward != float32(u.Count)/2 {
			fmt.Fprintln(os.Stderr, "the rewards of "+strconv.Itoa(int(u.Count))+" updates add up to", u.Reward)
			os.Exit(1)
		}
	}
}
