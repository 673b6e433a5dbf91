package main

import (
	"errors"
	"slices"
)

// captureMode is the value of --capture: whether the stderr of PROGRAM is read for the report.
type captureMode string

const (
	captureAuto   captureMode = "auto" // unless it is a terminal
	captureAlways captureMode = "always"
	captureNever  captureMode = "never"
)

// captureModes are the values of --capture. Before, it was true or false.
func captureModes() []string {
	return []string{string(captureAuto), string(captureAlways), string(captureNever)}
}

func (m *captureMode) Set(text string) error {
	switch {
	case text == "true" || text == "1":
		text = string(captureAlways)
	case text == "false" || text == "0":
		text = string(captureAuto)
	case !slices.Contains(captureModes(), text):
		return errors.New("must be auto, always or never")
	}
	*m = captureMode(text)
	return nil
}

func (m *captureMode) String() string { return string(*m) }

// Type is that of a flag, for messages about a value that cannot be read.
func (m *captureMode) Type() string { return "capture" }

// noValue is what the flag means without a value.
func (m *captureMode) noValue() string { return string(captureAlways) }

// noCapture is the value of --no-capture, the former name of --capture=never.
type noCapture captureMode

func (n *noCapture) Set(text string) error {
	switch text {
	case "true", "1":
		*n = noCapture(captureNever)
	case "false", "0":
	default:
		return errors.New("must be true or false")
	}
	return nil
}

func (n *noCapture) String() string { return "" }

func (n *noCapture) Type() string { return "bool" }
