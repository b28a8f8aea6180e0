// Package queue hands the jobs of a sweep to workers on other machines and returns their results, through a NATS server
// with JetStream. Jobs wait in a stream until a worker has stored the result and acknowledged them; the job of a silent
// worker goes to another. A result is created once under its key. A job that was done twice, after a partition or a
// restart, therefore still has one result, or a difference that names both machines.
//
//	stream SWEEP_JOBS          subjects sweep.jobs.<build>: a work queue, deduplicated by key
//	bucket SWEEP_RESULTS       key: the result, or why there is none
//	bucket SWEEP_DIFFERENCES   key.<digest>: a second, different result
//	bucket SWEEP_PRESENCE      processes that hand out or do work, with their builds; entries expire soon
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

// ErrUnreachable reports that there is no work queue at an address or that the queue rejects this client.
var ErrUnreachable = olaf.NewError(olaf.Device, "no work queue there")

// Remedies for errors from the server.
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

	// versions is the number of results per key that the server stores. More than one is needed to detect that a result
	// was overwritten.
	versions = 8
	// duplicates is the time within which the server drops a job that is submitted a second time.
	duplicates = 10 * time.Minute
	// resultsLast is the time for which the server stores results.
	resultsLast = 7 * 24 * time.Hour
	// presence is the time after which an announcement expires, and beats is the interval at which it is renewed.
	presence = 15 * time.Second
	beats    = 3 * time.Second
	// silence is the time for which a worker may not report on a job before the job is handed to another worker.
	// Workers report three times as often.
	silence = 6 * time.Second
	// deliveries is the maximum number of times that a job is handed out. A job that kills its workers fails earlier.
	deliveries = 20
	// mostFaulty is the maximum number of workers that a job may kill.
	mostFaulty = 3
	// request is the timeout of one request to the server. A request that times out is repeated.
	request = 5 * time.Second
	// again is the pause before a failed request is repeated.
	again = 500 * time.Millisecond
)

// The buckets. The one in memory is lost when the server ends.
var (
	resultsKept = jetstream.KeyValueConfig{Bucket: resultBucket, History: versions, TTL: resultsLast,
		Storage: jetstream.FileStorage}
	differencesKept = jetstream.KeyValueConfig{Bucket: differBucket, TTL: resultsLast, Storage: jetstream.FileStorage}
	presenceKept    = jetstream.KeyValueConfig{Bucket: hereBucket, TTL: presence, Storage: jetstream.MemoryStorage}
)

// Options configures the connection to the server.
type Options struct {
	URL   string // nats://HOST:PORT
	TLS   *tls.Config
	Token string // authentication token; may be empty
	Name  string // name of this connection, in the server's log
	// Remark receives notices for the user, such as a lost connection; it may be nil.
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
	back    turn // fires when a lost connection is back
	remark  func(string)
	remarks sync.Map // remarks already made
}

// remarkOnce prints a remark unless the same remark was already printed.
func (q *Queue) remarkOnce(text string) {
	if _, made := q.remarks.LoadOrStore(text, true); !made {
		q.remark(text)
	}
}

// turn is an event that occurs repeatedly and for which callers can wait.
type turn struct {
	mu   sync.Mutex
	next context.Context // nil without a waiter
	end  context.CancelFunc
}

// awaitNext returns a context that ends at the next occurrence of the event.
func (t *turn) awaitNext() context.Context {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next == nil {
		t.next, t.end = context.WithCancel(context.Background())
	}
	return t.next
}

// wakeAll ends the contexts of all callers that wait for the event.
func (t *turn) wakeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next != nil {
		t.end()
		t.next = nil
	}
}

// Dial connects to the server and creates the streams and buckets that are missing. After that, lost connections are
// restored, however long that takes. The error matches ErrUnreachable.
func Dial(ctx context.Context, o Options) (*Queue, error) {
	if o.Remark == nil {
		o.Remark = func(string) {}
	}
	q := &Queue{remark: o.Remark}
	options := []nats.Option{nats.Name(o.Name), nats.MaxReconnects(-1), nats.ReconnectWait(again),
		nats.Timeout(request), nats.PingInterval(beats), nats.MaxPingsOutstanding(2),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				o.Remark(fmt.Sprintf("the connection to %s is lost (%v); trying again", o.URL, err))
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) {
			q.back.wakeAll()
			o.Remark("connected to " + o.URL + " again")
		}),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})} // each failed request returns its own error
	if o.TLS != nil {
		options = append(options, nats.Secure(o.TLS))
	}
	if o.Token != "" {
		options = append(options, nats.Token(o.Token))
	}
	var err error
	if q.conn, err = nats.Connect(o.URL, options...); err != nil {
		return nil, fmt.Errorf("%w: %s: %w%s", ErrUnreachable, o.URL, err, connectionAdvice(err, &o))
	}
	if err := q.openStreams(ctx); err != nil {
		q.conn.Close()
		return nil, fmt.Errorf("%w: %s: %w%s", ErrUnreachable, o.URL, err, serverAdvice(err))
	}
	return q, nil
}

// connectionAdvice returns advice for the user about a connection that was rejected.
func connectionAdvice(err error, o *Options) string {
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
		{"unknown authority", o.TLS == nil,
			"; it uses TLS with a certificate that is not trusted here: add --tls-ca"},
		{"unknown authority", true, "; --tls-ca does not vouch for its certificate"},
		{"bad certificate", true, "; it does not trust our certificate: its --tls-client-ca must vouch for --tls-cert"},
		{"unknown certificate authority", true,
			"; it does not trust our certificate: its --tls-client-ca must vouch for --tls-cert"},
		// The server rejects our certificate only after the handshake, by closing the connection.
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

// serverAdvice returns advice for the user about an error from a connected server. The text begins with a semicolon. It
// is "" if there is no advice.
func serverAdvice(err error) string {
	switch {
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrJetStreamNotEnabled),
		errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return "; " + noJetStream
	case noRoom(err):
		return "; " + moreRoom
	}
	return ""
}

func (q *Queue) openStreams(ctx context.Context) (err error) {
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

// stream returns a stream, which it creates if it does not exist. It updates a stream only if the configuration
// differs, because a NATS server that rewrites settings races with other readers.
func (q *Queue) stream(ctx context.Context, config jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := q.js.CreateStream(ctx, config)
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return q.js.UpdateStream(ctx, config)
	}
	return s, err
}

// bucket returns a bucket, which it creates if it does not exist. It updates a bucket only if the configuration
// differs.
func (q *Queue) bucket(ctx context.Context, config jetstream.KeyValueConfig) (jetstream.KeyValue, error) {
	b, err := q.js.CreateKeyValue(ctx, config)
	if errors.Is(err, jetstream.ErrBucketExists) {
		return q.js.UpdateKeyValue(ctx, config)
	}
	return b, err
}

// Close ends the connection.
func (q *Queue) Close() { q.conn.Close() }

// Announce announces a process. The returned function repeats the announcement every few seconds until ctx ends.
func (q *Queue) Announce(ctx context.Context, p Presence, now func() time.Time) (stay func()) {
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
				if p.Role == Works { // its entry expires, since workers may still be reported and nothing waits for their end
					return
				}
				gone, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
				_ = q.here.Delete(gone, key) // if this fails, the entry expires
				stop()
				return
			case <-ticker.C:
				tell()
			}
		}
	}
}

// FollowPresence calls seen for every new announcement until ctx ends.
func (q *Queue) FollowPresence(ctx context.Context, seen func(Presence)) error {
	return q.followBucket(ctx, presenceKept, func(entry jetstream.KeyValueEntry) {
		if p, err := readPresence(entry.Value()); err == nil {
			seen(p)
		}
	}, func() {})
}

// followBucket calls seen for every entry that is put into a bucket, until ctx ends. It calls missed after a lost
// connection.
func (q *Queue) followBucket(ctx context.Context, bucket jetstream.KeyValueConfig, seen func(jetstream.KeyValueEntry),
	missed func(), o ...jetstream.WatchOpt) error {
	o = append(o, jetstream.IgnoreDeletes())
	updates, back, err := q.watchBucket(ctx, bucket, o)
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
			case <-back.Done(): // a restarted server has forgotten its watchers
			case <-retry:
			case entry, ok := <-updates:
				if entry != nil { // nil marks the end of the existing entries
					seen(entry)
				}
				if ok {
					continue
				}
			}
			if updates, back, err = q.watchBucket(ctx, bucket, o); err == nil {
				missed()
			}
		}
	}()
	return nil
}

// watchBucket watches a bucket until the connection has been lost and restored. At that time the context back ends.
func (q *Queue) watchBucket(ctx context.Context, bucket jetstream.KeyValueConfig,
	o []jetstream.WatchOpt) (updates <-chan jetstream.KeyValueEntry, back context.Context, err error) {
	back = q.back.awaitNext()
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

// keepTrying calls do repeatedly until it succeeds, ctx ends, or it fails with an error that the server's absence does
// not explain. After a lost connection it calls do immediately, because the old request receives no answer.
func (q *Queue) keepTrying(ctx context.Context, do func(context.Context) error) error {
	for {
		back := q.back.awaitNext()
		asked, stop := context.WithTimeout(ctx, request)
		forget := context.AfterFunc(back, stop)
		err := do(asked)
		forget()
		stop()
		if err == nil || ctx.Err() != nil || !isPassing(err) && back.Err() == nil {
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

// storeFailed is the server's error code for a failed write. The error stops when there is room and the server has been
// restarted.
const storeFailed jetstream.ErrorCode = 10077

// full contains the server's error codes for exceeded JetStream limits of the account, the server, its memory or disk,
// or a stream.
var full = []jetstream.ErrorCode{10002, 10023, 10027, 10028, 10047, 10122}

// noRoom reports whether err means that the server had no room to store something.
func noRoom(err error) bool {
	var apiErr *jetstream.APIError
	return errors.As(err, &apiErr) && (apiErr.ErrorCode == storeFailed || slices.Contains(full, apiErr.ErrorCode))
}

// isPassing reports whether an error is temporary. Such an error comes from the connection or the server's disk, not
// from the request.
func isPassing(err error) bool {
	var apiErr *jetstream.APIError
	if errors.As(err, &apiErr) && apiErr.ErrorCode == storeFailed && !strings.Contains(apiErr.Description, "maximum") {
		return true
	}
	return slices.ContainsFunc([]error{nats.ErrTimeout, nats.ErrNoResponders, nats.ErrConnectionReconnecting,
		nats.ErrDisconnected, nats.ErrStaleConnection, jetstream.ErrNoStreamResponse, context.DeadlineExceeded,
		nats.ErrNoServers}, func(kind error) bool { return errors.Is(err, kind) })
}

// jobsSubjectOf returns the subject under which the jobs of a build are published.
func jobsSubjectOf(b sweep.Build) string { return jobsSubject + b.Hash() }
