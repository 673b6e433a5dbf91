package main

import (
	"fmt"
	"strings"
)

// exportValue is the value of --export: variables, or @FILE, a file of them.
type exportValue options

func (e *exportValue) Set(text string) error {
	file, isFile := strings.CutPrefix(text, "@")
	switch {
	case !isFile:
		e.export = append(e.export, text)
	case e.exportFile != "":
		return fmt.Errorf("there can be one file, and %s is given", e.exportFile)
	default:
		e.exportFile = file
	}
	return nil
}

func (e *exportValue) String() string {
	if e.exportFile != "" {
		return "@" + e.exportFile
	}
	return strings.Join(e.export, " ")
}

// Type is that of a flag that takes one value from each line of its variable.
func (e *exportValue) Type() string { return "stringArray" }
