package rdzv

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxValue is the maximum size of a value in the store, in bytes. The largest one is the
// outcome of an agent with hundreds of failed workers.
const maxValue = 256 << 10

// maxText is the maximum size of a text for people in a value, in bytes.
const maxText = 2 << 10

// envelope adds the version to a value, so that a reader can distinguish a value of another
// release from an invalid one.
type envelope[T any] struct {
	Version int `json:"v"`
	Value   T   `json:"value"`
}

func encode[T any](v T) string {
	b, err := json.Marshal(envelope[T]{version, v})
	if err != nil {
		panic("rdzv: cannot encode a value: " + err.Error()) // all values are plain structs
	}
	return string(b)
}

func decode[T any](b []byte) (v T, err error) {
	if len(b) > maxValue {
		return v, fmt.Errorf("%d bytes (at most %d allowed)", len(b), maxValue)
	}
	// The version first: in another version, fields may have other types.
	var e envelope[json.RawMessage]
	if err := json.Unmarshal(b, &e); err != nil {
		return v, err
	}
	if e.Version != version {
		return v, fmt.Errorf("version %d (this agent uses version %d)", e.Version, version)
	}
	err = json.Unmarshal(e.Value, &v)
	return v, err
}

// clip shortens a text to maxText, at the boundary of a character.
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
