// Package queue hands the jobs of a sweep to workers on other machines and brings their results back, through a NATS server with
// JetStream. Jobs wait in a stream until a worker has stored the result and acknowledged them; one whose worker falls silent is
// handed to another. A result is created once under its key, so that a job that was done twice, after a partition or a
// restart, is still one result, or a difference that names both machines.
//
//	stream SWEEP_JOBS          subjects sweep.jobs.<build>: a work queue, deduplicated by key
//	bucket SWEEP_RESULTS       key: the result, or why there is none
//	bucket SWEEP_DIFFERENCES   key.<digest>: a second result that was another one
//	bucket SWEEP_PRESENCE      who hands out work and who takes it, of which build; gone soon after they are
package queue

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/sweep"
)

// ErrUnreachable says that nobody hands out work at an address, or not to us.
var ErrUnreachable = olaf.NewError(olaf.Device, "no work queue there")

// Remedies for errors of the server.
const (
	moreRoom    = "give its JetStream more room (max_file_store, max_memory_store)"
	noJetStream = "the NATS server there has no JetStream; start it with -js, or use 'olafctl sweep serve'"
)

const (
	jobsStream   = "SWEEP_JOBS"
	jobsSubject  = "sweep.jobs."
	resultBucket = "SWEEP_RESULTS"
	differBucket = "SWEEP_DIFFERENCES"
	hereBucket   = "SWEEP_PRESENCE"

	// versions is the number of results of one key that the server keeps, so that an overwritten one is noticed.
	versions = 8
	// duplicates is for how long a job that was handed in twice is one.
	duplicates = 10 * time.Minute
	// resultsLast is for how long results wait for whoever wanted them.
	resultsLast = 7 * 24 * time.Hour
	// presence is how long somebody is there after his last word, beats how often he says it.
	presence = 15 * time.Second
	beats    = 3 * time.Second
	// silence is how long a worker may say nothing of a job before another one has it; it says something thrice as often.
	silence = 6 * time.Second
	// deliveries bounds how often a job is handed out; one that ends its workers has failed before.
	deliveries = 20
	// mostFaulty is how often a job may end its worker.
	mostFaulty = 3
	// request bounds one question to the server, which is asked again.
	request = 5 * time.Second
	// again is how long to wait after one that failed.
	again = 500 * time.Millisecond
)

// The buckets. The one in memory is gone with the server.
var (
	resultsKept     = jetstream.KeyValueConfig{Bucket: resultBucket, History: versions, TTL: resultsLast, Storage: jetstream.FileStorage}
	differencesKept = jetstream.KeyValueConfig{Bucket: differBucket, TTL: resultsLast, Storage: jetstream.FileStorage}
	presenceKept    = jetstream.KeyValueConfig{Bucket: hereBucket, TTL: presence, Storage: jetstream.MemoryStorage}
)

// Options say how the server is reached.
type Options struct {
	URL   string // nats://HOST:PORT
	TLS   *tls.Config
	Token string // what the server wants to hear; empty for nothing
	Name  string // of this connection, for the server's log
	// Remark takes what a user should know meanwhile, such as a lost connection; nil for nobody.
	Remark func(string)
}

// Queue is a connection to the server.
type Queue struct {
	conn    *nats.Conn
	js      jetstream.JetStream
	jobs    jetstream.Stream
	results jetstream.KeyValue
	differ  jetstream.KeyValue
	here    jetstream.KeyValue
	back    turn // of a connection that was lost
	remark  func(string)
	said    sync.Map // remarks that were made
}

// remarkOnce passes a remark on unless it was made before.
func (q *Queue) remarkOnce(text string) {
	if _, made := q.said.LoadOrStore(text, true); !made {
		q.remark(text)
	}
}

// turn is something that happens now and then.
type turn struct {
	mu   sync.Mutex
	next context.Context // nil while nobody awaits it
	end  context.CancelFunc
}

// await ends when it happens next.
func (t *turn) await() context.Context {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next == nil {
		t.next, t.end = context.WithCancel(context.Background())
	}
	return t.next
}

// happens tells all who await it.
func (t *turn) happens() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next != nil {
		t.end()
		t.next = nil
	}
}

// Dial connects and makes what is not there yet. Once connected, a lost connection is taken up again for as long as it takes. The
// error matches ErrUnreachable.
func Dial(ctx context.Context, o Options) (*Queue, error) {
	if o.Remark == nil {
		o.Remark = func(string) {}
	}
	q := &Queue{remark: o.Remark}
	options := []nats.Option{nats.Name(o.Name), nats.MaxReconnects(-1), nats.ReconnectWait(again), nats.Timeout(request),
		nats.PingInterval(beats), nats.MaxPingsOutstanding(2),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				o.Remark(fmt.Sprintf("the connection to %s is lost (%v); trying again", o.URL, err))
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) {
			q.back.happens()
			o.Remark("connected to " + o.URL + " again")
		}),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})} // what is asked for and fails says so itself
	if o.TLS != nil {
		options = append(options, nats.Secure(o.TLS))
	}
	if o.Token != "" {
		options = append(options, nats.Token(o.Token))
	}
	var err error
	if q.conn, err = nats.Connect(o.URL, options...); err != nil {
		return nil, fmt.Errorf("%w: %s: %w%s", ErrUnreachable, o.URL, err, advice(err, &o))
	}
	if err := q.open(ctx); err != nil {
		q.conn.Close()
		return nil, fmt.Errorf("%w: %s: %w%s", ErrUnreachable, o.URL, err, remedy(err))
	}
	return q, nil
}

// advice says what to do about a connection that was refused.
func advice(err error, o *Options) string {
	given := o.TLS != nil && len(o.TLS.Certificates) > 0
	text := err.Error()
	for _, m := range []struct {
		seen string
		when bool
		say  string
	}{
		{"secure connection required", true, "; it speaks TLS: add --tls-ca"},
		{"secure connection not available", true, "; it speaks no TLS: leave --tls-ca out"},
		{"certificate has expired", true, "; its certificate has expired: renew it, or set the clock"},
		{"certificate required", given, "; it does not trust our certificate: its --tls-client-ca must vouch for --tls-cert"},
		{"certificate required", true, "; it wants a certificate of ours: add --tls-cert and --tls-key"},
		{"unknown authority", o.TLS == nil, "; it uses TLS with a certificate that is not trusted here: add --tls-ca"},
		{"unknown authority", true, "; --tls-ca does not vouch for its certificate"},
		{"bad certificate", true, "; it does not trust our certificate: its --tls-client-ca must vouch for --tls-cert"},
		{"unknown certificate authority", true, "; it does not trust our certificate: its --tls-client-ca must vouch for --tls-cert"},
		// What it thinks of our certificate it says when the connection seems to stand, and leaves.
		{"after TLS handshake", given, "; it does not trust our certificate: its --tls-client-ca must vouch for --tls-cert"},
		{"after TLS handshake", true, "; it wants a certificate of ours: add --tls-cert and --tls-key"},
		{"uthorization", o.Token != "", "; it rejects the token: --token-file must contain the queue's token"},
		{"uthorization", true, "; it requires a token: add --token-file"},
		{"refused", true, "; 'olafctl sweep serve' starts one there"},
		{"no servers available", true, "; 'olafctl sweep serve' starts one there"},
	} {
		if m.when && strings.Contains(text, m.seen) {
			return m.say
		}
	}
	return ""
}

// remedy returns what to do about an error of a server that was reached, with a semicolon in front; empty for nothing.
func remedy(err error) string {
	switch {
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return "; " + noJetStream
	case noRoom(err):
		return "; " + moreRoom
	}
	return ""
}

func (q *Queue) open(ctx context.Context) (err error) {
	ctx, stop := context.WithTimeout(ctx, 2*request)
	defer stop()
	if q.js, err = jetstream.New(q.conn); err != nil {
		return err
	}
	if q.jobs, err = q.stream(ctx, jetstream.StreamConfig{Name: jobsStream, Subjects: []string{jobsSubject + "*"},
		Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage, Duplicates: duplicates}); err != nil {
		return err
	}
	for _, b := range []struct {
		into   *jetstream.KeyValue
		config jetstream.KeyValueConfig
	}{{&q.results, resultsKept}, {&q.differ, differencesKept}, {&q.here, presenceKept}} {
		if *b.into, err = q.bucket(ctx, b.config); err != nil {
			return err
		}
	}
	return nil
}

// stream finds or makes a stream. It is changed only where another version of this program made it otherwise: a server that is
// told what it has already writes its settings anew, while it reads them for somebody else.
func (q *Queue) stream(ctx context.Context, config jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := q.js.CreateStream(ctx, config)
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return q.js.UpdateStream(ctx, config)
	}
	return s, err
}

// bucket does the same for what is found by a key.
func (q *Queue) bucket(ctx context.Context, config jetstream.KeyValueConfig) (jetstream.KeyValue, error) {
	b, err := q.js.CreateKeyValue(ctx, config)
	if errors.Is(err, jetstream.ErrBucketExists) {
		return q.js.UpdateKeyValue(ctx, config)
	}
	return b, err
}

// Close ends the connection.
func (q *Queue) Close() { q.conn.Close() }

// Present says that somebody is there: once before it returns, and every few seconds in what it returns, which ends with ctx.
func (q *Queue) Present(ctx context.Context, p Presence, now func() time.Time) (stay func()) {
	key := p.Role + "." + nats.NewInbox()[len("_INBOX."):]
	tell := func() {
		p.At = now().UTC().Format(time.RFC3339)
		raw, err := json.Marshal(p)
		if err != nil {
			return
		}
		asked, stop := context.WithTimeout(ctx, request)
		defer stop()
		_, _ = q.here.Put(asked, key, raw) // the next beat tries again
	}
	tell()
	return func() {
		ticker := time.NewTicker(beats)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				if p.Role == Works { // somebody may still want to know of it, and nobody waits for its end
					return
				}
				gone, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
				_ = q.here.Delete(gone, key) // else it ends by itself
				stop()
				return
			case <-ticker.C:
				tell()
			}
		}
	}
}

// Others calls seen with everybody who says that he is there, from now on, until ctx ends.
func (q *Queue) Others(ctx context.Context, seen func(Presence)) error {
	return q.follow(ctx, presenceKept, func(entry jetstream.KeyValueEntry) {
		if p, err := readPresence(entry.Value()); err == nil {
			seen(p)
		}
	}, func() {})
}

// follow calls seen with all that is put into a bucket, until ctx ends, and missed when the connection was lost and seen goes on.
func (q *Queue) follow(ctx context.Context, bucket jetstream.KeyValueConfig, seen func(jetstream.KeyValueEntry), missed func(), o ...jetstream.WatchOpt) error {
	o = append(o, jetstream.IgnoreDeletes())
	updates, back, err := q.watch(ctx, bucket, o)
	if err != nil {
		return err
	}
	go func() {
		for {
			var retry <-chan time.Time
			if updates == nil {
				retry = time.After(again)
			}
			select {
			case <-ctx.Done():
				return
			case <-back.Done(): // a server that was started again knows nobody who follows
			case <-retry:
			case entry, ok := <-updates:
				if entry != nil { // nil stands where what was there before ends
					seen(entry)
				}
				if ok {
					continue
				}
			}
			if updates, back, err = q.watch(ctx, bucket, o); err == nil {
				missed()
			}
		}
	}()
	return nil
}

// watch has what is put into a bucket until the connection is back after it was lost, which back awaits.
func (q *Queue) watch(ctx context.Context, bucket jetstream.KeyValueConfig, o []jetstream.WatchOpt) (updates <-chan jetstream.KeyValueEntry, back context.Context, err error) {
	back = q.back.await()
	ctx, stop := context.WithCancel(ctx)
	context.AfterFunc(back, stop)
	b, err := q.bucket(ctx, bucket)
	if err == nil {
		var w jetstream.KeyWatcher
		if w, err = b.WatchAll(ctx, o...); err == nil {
			return w.Updates(), back, nil
		}
	}
	stop()
	return nil, back, err
}

// keepTrying does something until it is done, ctx ends, or it fails for good: not for want of a server. What was asked before the
// connection was lost is asked again as soon as it is back, as nobody answers it any more.
func (q *Queue) keepTrying(ctx context.Context, do func(context.Context) error) error {
	for {
		back := q.back.await()
		asked, stop := context.WithTimeout(ctx, request)
		forget := context.AfterFunc(back, stop)
		err := do(asked)
		forget()
		stop()
		if err == nil || ctx.Err() != nil || !passing(err) && back.Err() == nil {
			return errors.Join(err, ctx.Err())
		}
		if noRoom(err) {
			q.remarkOnce(fmt.Sprintf("the queue stores nothing (%v); waiting for room", err))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-back.Done():
		case <-time.After(again):
		}
	}
}

// storeFailed is how the server says that it could not write, which passes when there is room and it was started again.
const storeFailed jetstream.ErrorCode = 10077

// full are the server's codes for limits of JetStream that are reached: of the account, the server, its memory or disk, a stream.
var full = []jetstream.ErrorCode{10002, 10023, 10027, 10028, 10047, 10122}

// noRoom reports whether the server refused to store something for want of room.
func noRoom(err error) bool {
	var said *jetstream.APIError
	return errors.As(err, &said) && (said.ErrorCode == storeFailed || slices.Contains(full, said.ErrorCode))
}

// passing says that an error is of the connection or of the server's disk, and not of what was asked.
func passing(err error) bool {
	var said *jetstream.APIError
	if errors.As(err, &said) && said.ErrorCode == storeFailed && !strings.Contains(said.Description, "maximum") {
		return true
	}
	for _, kind := range []error{nats.ErrTimeout, nats.ErrNoResponders, nats.ErrConnectionReconnecting, nats.ErrDisconnected, nats.ErrStaleConnection,
		jetstream.ErrNoStreamResponse, context.DeadlineExceeded, nats.ErrNoServers} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// subject is where the jobs of a build wait.
func subject(b sweep.Build) string { return jobsSubject + b.Hash() }
