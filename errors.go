package olaf

import (
	"errors"
	"strings"
)

// Kind classifies a failure by its remedy, such as another command line or another device. cmd/olafctl turns it into
// the exit code.
type Kind uint8

// Kinds of failures.
const (
	Failed      Kind = iota // the work itself failed, or its result is invalid
	Usage                   // the request is invalid: flags, files, names
	Device                  // a device or its agent refused, is gone, or belongs to another controller
	Missed                  // an expectation was missed or a property violated
	Unknown                 // no answer within the time limit
	Interrupted             // the user ended it
)

// kindError is a sentinel error with a kind. It is compared by address, like the errors of package errors.
type kindError struct {
	kind Kind
	text string
}

func (e *kindError) Error() string { return e.text }

// NewError is like errors.New, but the error has a kind. Errors that wrap it have the same kind, unless they declare a
// different one.
func NewError(k Kind, text string) error { return &kindError{k, text} }

// List is a list of errors. Each is printed on its own line, because each has a separate remedy.
type List []error

func (l List) Error() string { return errors.Join(l...).Error() }

// Unwrap returns the errors in the list.
func (l List) Unwrap() []error { return l }

// ListErrors returns errs as a List, or nil if there are none.
func ListErrors(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return List(errs)
}

// fieldError is an error about a field of a specification.
type fieldError struct {
	field string
	error
}

func (e *fieldError) Unwrap() error { return e.error }

// InField marks err as an error about a field, without changing its text. Marks can be nested, for fields within
// fields. It returns nil if err is nil.
func InField(field string, err error) error {
	if err == nil {
		return nil
	}
	return &fieldError{field, err}
}

// FieldOf returns the path of the field that err is about, such as workload.size, or an empty string if it is not about
// a field.
func FieldOf(err error) string {
	var path []string
	for e := (*fieldError)(nil); errors.As(err, &e); err = e.error {
		path = append(path, e.field)
	}
	return strings.Join(path, ".")
}

// KindOf returns the kind of the outermost error in the chain that declares one. declared is false if there is none.
// Errors that wrap several others are searched depth first, as errors.Is does. A declared Failed also ends the search,
// so it hides the kinds of the errors that it wraps.
func KindOf(err error) (k Kind, declared bool) {
	for err != nil {
		switch e := err.(type) {
		case *kindError:
			return e.kind, true
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			for _, err := range e.Unwrap() {
				if k, declared := KindOf(err); declared {
					return k, true
				}
			}
			return Failed, false
		default:
			return Failed, false
		}
	}
	return Failed, false
}
