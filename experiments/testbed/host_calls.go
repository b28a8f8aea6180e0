package testbed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Names of requests to a host, besides those for its programs and frames.
const (
	callReserve = "reserve"
	callRelease = "release"
	callList    = "reservations"
)

// reserveRequest asks for a reservation of devices and interfaces for a period of time.
type reserveRequest struct {
	Reservation Reservation
	LastsNS     int64
}

// reserveAnswer is the answer to a reserveRequest. It is empty if the reservation was made.
type reserveAnswer struct{ Reserved string }

// releaseRequest names the reservation that is to end.
type releaseRequest struct{ Testbed, Host, Owner string }

// HostCalls returns the handlers for the requests that a host serves, keyed by the request's name.
func (a Access) HostCalls() map[string]CallHandler {
	return map[string]CallHandler{
		callReserve: func(_ context.Context, body json.RawMessage) (any, error) {
			var r reserveRequest
			if err := json.Unmarshal(body, &r); err != nil {
				return nil, err
			}
			err := a.LocalReservations().Take(r.Reservation, time.Duration(r.LastsNS))
			if errors.Is(err, ErrReserved) {
				return reserveAnswer{err.Error()}, nil
			}
			return reserveAnswer{}, err
		},
		callRelease: func(_ context.Context, body json.RawMessage) (any, error) {
			var r releaseRequest
			if err := json.Unmarshal(body, &r); err != nil {
				return nil, err
			}
			return a.LocalReservations().Release(r.Testbed, r.Host, r.Owner)
		},
		callList: func(context.Context, json.RawMessage) (any, error) { return a.LocalReservations().List() },
		callAbout: func(ctx context.Context, body json.RawMessage) (any, error) {
			var what AboutRequest
			if err := json.Unmarshal(body, &what); err != nil {
				return nil, err
			}
			return a.About(ctx, what), nil
		},
		callProbe: a.answerProbe,
	}
}

// farReserved is an error that matches ErrReserved and has the message of another host.
type farReserved struct{ words string }

func (e *farReserved) Error() string { return e.words }
func (e *farReserved) Unwrap() error { return ErrReserved }

// Reserve makes a reservation on the host for the given time. The error matches ErrReserved if one of the resources is
// already reserved.
func (h *Host) Reserve(ctx context.Context, r Reservation, lasts time.Duration) error {
	var answer reserveAnswer
	if err := h.Call(ctx, callReserve, reserveRequest{r, int64(lasts)}, &answer); err != nil {
		return err
	}
	if answer.Reserved != "" {
		return &farReserved{answer.Reserved}
	}
	return nil
}

// Release ends a reservation on the host and reports whether there was such a reservation.
func (h *Host) Release(ctx context.Context, name, host, owner string) (found bool, err error) {
	err = h.Call(ctx, callRelease, releaseRequest{name, host, owner}, &found)
	return found, err
}

// Reservations returns all reservations on the host.
func (h *Host) Reservations(ctx context.Context) (all []Reservation, err error) {
	err = h.Call(ctx, callList, nil, &all)
	return all, err
}

// About returns a description of the host.
func (h *Host) About(ctx context.Context, what AboutRequest) (about HostAbout, err error) {
	if err = h.Call(ctx, callAbout, what, &about); err != nil {
		return about, fmt.Errorf("describe the host: %w", err)
	}
	return about, nil
}
