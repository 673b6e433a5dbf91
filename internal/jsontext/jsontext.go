// Package jsontext encodes values as JSON that people read too: "<", ">" and "&" stand for
// themselves, because no browser reads it.
package jsontext

import (
	"bytes"
	"encoding/json"
)

// Marshal is json.Marshal.
func Marshal(v any) ([]byte, error) {
	b, err := encode(v, "")
	return bytes.TrimSuffix(b, []byte("\n")), err
}

// Indent returns lines, the last of which ends with a newline.
func Indent(v any) ([]byte, error) { return encode(v, "  ") }

func encode(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	err := e.Encode(v)
	return b.Bytes(), err
}
