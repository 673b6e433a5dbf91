package rdzv

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxValue bounds a value in the store, in bytes. The largest is the outcome of
// an agent with hundreds of workers that all failed.
const maxValue = 256 << 10

// maxText bounds a text for people in a value, in bytes.
const maxText = 2 << 10

// envelope carries the version beside the value, so that a reader can tell a
// value of another release of rdzv from a broken one.
type envelope[T any] struct {
	Version int `json:"v"`
	Value   T   `json:"value"`
}

func encode[T any](v T) string {
	b, err := json.Marshal(envelope[T]{version, v})
	if err != nil {
		panic("rdzv: a value that cannot be encoded: " + err.Error()) // only plain structs are given
	}
	return string(b)
}

func decode[T any](b []byte) (T, error) {
	var e envelope[T]
	if len(b) > maxValue {
		return e.Value, fmt.Errorf("%d bytes (at most %d allowed)", len(b), maxValue)
	}
	// The version first: the fields of another one may have other types.
	var any envelope[json.RawMessage]
	if err := json.Unmarshal(b, &any); err != nil {
		return e.Value, err
	}
	if any.Version != version {
		return e.Value, fmt.Errorf("version %d (this agent uses version %d)", any.Version, version)
	}
	return e.Value, json.Unmarshal(any.Value, &e.Value)
}

// clip shortens a text for people to maxText, at a whole character.
func clip(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= maxText {
		return text
	}
	end := maxText - len("...")
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "..."
}
