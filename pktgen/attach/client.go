package attach

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/olafctl/olaf"
)

// ErrRefused is returned if the worker or server answers a request with an error message.
var ErrRefused = olaf.NewError(olaf.Failed, "the worker or server refused")

// Client is the program's end of the socket. It is not safe for concurrent use.
type Client struct {
	Greeting
	// Waits is called with each text that arrives before an answer; if nil, the texts are ignored.
	Waits func(text string)

	conn   net.Conn
	in     []byte
	out    []byte
	values []byte
}

// Dial attaches to the worker or server at an address such as unix:/tmp/w0.sock. The error matches ErrRefused or
// ErrProtocol, or comes from the socket.
func Dial(address string) (*Client, error) {
	conn, err := net.Dial("unix", strings.TrimPrefix(address, "unix:"))
	if err != nil {
		return nil, err
	}
	enlarge(conn)
	c := &Client{conn: conn}
	m, err := c.ask(KindHello, Hello{Magic: magic, Version: Version}, nil, KindGreeting)
	if err == nil {
		_, err = m.Decode(&c.Greeting)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return c, nil
}

// Name returns the name of the system.
func (c *Client) Name() string { return strings.TrimRight(string(c.System[:]), "\x00") }

// Close ends the session properly and notifies the other end.
func (c *Client) Close() error {
	_, _ = c.conn.Write(Append(nil, KindBye, nil, nil)) // ignore the error: the other end may have closed first
	return c.conn.Close()
}

// ask sends a request and returns the answer, which must have the kind want.
func (c *Client) ask(kind Kind, structure any, tail []byte, want Kind) (Message, error) {
	c.out = Append(c.out[:0], kind, structure, tail)
	_, unsent := c.conn.Write(c.out)
	m, err := c.answer(want) // the answer may contain the reason why the message could not be sent
	if err != nil && unsent != nil && !errors.Is(err, ErrRefused) {
		err = unsent
	}
	return m, err
}

// answer returns the next answer. It passes messages about the state of waiting to Waits.
func (c *Client) answer(want Kind) (Message, error) {
	for {
		m, err := Read(c.conn, &c.in)
		switch {
		case err != nil:
			return m, err
		case m.Kind == KindWaits:
			if c.Waits != nil {
				c.Waits(string(m.Body))
			}
		case m.Kind == KindError:
			var f Failure
			text, err := m.Decode(&f)
			if err != nil {
				return m, err
			}
			return m, fmt.Errorf("%w: %s", ErrRefused, text)
		case m.Kind != want:
			return m, fmt.Errorf("%w: a message of kind %d, want %d", ErrProtocol, m.Kind, want)
		default:
			return m, nil
		}
	}
}

// decode decodes the structure of an answer and returns the values that follow it.
func decode(m Message, err error, into any) ([]float32, error) {
	if err != nil {
		return nil, err
	}
	tail, err := m.Decode(into)
	if err != nil {
		return nil, err
	}
	return Floats(tail)
}

// Sum sends a vector and its reward from a worker that waits, and returns the sum of all workers' vectors.
func (c *Client) Sum(values []float32, reward float32) (Sum, []float32, error) {
	c.values = AppendFloats(c.values[:0], values)
	m, err := c.ask(KindVector, Vector{Reward: reward}, c.values, KindSum)
	var s Sum
	sum, err := decode(m, err, &s)
	return s, sum, err
}

// Push sends an update and its reward from a worker that does not wait.
func (c *Client) Push(values []float32, reward float32) (p Pushed, err error) {
	c.values = AppendFloats(c.values[:0], values)
	m, err := c.ask(KindVector, Vector{Reward: reward}, c.values, KindPushed)
	_, err = decode(m, err, &p)
	return p, err
}

// Pull returns the newest model at a worker that does not wait for sums. If wait is set, Pull waits for a version above
// after.
func (c *Client) Pull(after uint32, wait bool) (Model, []float32, error) {
	p := Pull{After: after}
	if wait {
		p.Wait = 1
	}
	m, err := c.ask(KindPull, p, nil, KindModel)
	var model Model
	values, err := decode(m, err, &model)
	return model, values, err
}

// Take waits for the next frame at a server and returns it.
func (c *Client) Take() (Update, []float32, error) {
	m, err := c.ask(KindTake, nil, nil, KindUpdate)
	var u Update
	values, err := decode(m, err, &u)
	return u, values, err
}

// Reply answers the last frame returned by Take. If there are no values, the frame's workers receive only an ACK.
func (c *Client) Reply(number uint32, values []float32) error {
	c.values = AppendFloats(c.values[:0], values)
	_, err := c.conn.Write(Append(c.out[:0], KindReply, Reply{Number: number}, c.values))
	return err
}
