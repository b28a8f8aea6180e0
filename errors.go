package olaf

import (
	"errors"
	"strings"
)

// Kind says what a failure means to whoever started the program: whether another command line, another device, or nothing
// at all would help. cmd/olafctl makes it the exit code.
type Kind uint8

// Kinds of failures.
const (
	Failed      Kind = iota // the work itself failed, or its result is invalid
	Usage                   // what was asked for makes no sense: flags, files, names
	Device                  // a device or its agent refused, is gone, or belongs to another controller
	Missed                  // an expectation was missed or a property violated
	Unknown                 // no answer within the time limit
	Interrupted             // the user ended it
)

// kindError is a sentinel: compared by address, as those of package errors.
type kindError struct {
	kind Kind
	text string
}

func (e *kindError) Error() string { return e.text }

// NewError is errors.New with a kind. Whatever wraps the error has the same kind, unless it has one of its own.
func NewError(k Kind, text string) error { return &kindError{k, text} }

// List is several failures, each with a remedy of its own: people are told a line of each.
type List []error

func (l List) Error() string { return errors.Join(l...).Error() }

// Unwrap are the failures.
func (l List) Unwrap() []error { return l }

// Listed is the List of some failures; nil of none.
func Listed(errs []error) error {
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

// InField says which field err is about, without changing its text; of a field of a field, both say so. A nil err stays nil.
func InField(field string, err error) error {
	if err == nil {
		return nil
	}
	return &fieldError{field, err}
}

// FieldOf is the path of the field that err is about, such as workload.size; empty where nothing says so.
func FieldOf(err error) string {
	var path []string
	for e := (*fieldError)(nil); errors.As(err, &e); err = e.error {
		path = append(path, e.field)
	}
	return strings.Join(path, ".")
}

// KindOf gives the kind of the outermost error that declares one, and false where none does. An error that wraps several
// is searched in their order, each to its end, as errors.Is does. A declared Failed counts: it hides the kinds below it.
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
