package record

import (
	"encoding/json"
	"fmt"
	"strings"

	"rdzv/rdzv/internal/protocol"
)

// MaxValue is the maximum size of a value in the store, in bytes. The largest one is a member with
// 128 KiB of exported variables and their names.
const MaxValue = 512 << 10

// MaxText is the maximum size of a text for people in a value, in bytes.
const MaxText = 2 << 10

// envelope adds the version of the protocol to a value. A reader rejects a value of another
// version, and can distinguish that from an invalid one.
type envelope[T any] struct {
	Version int `json:"v"`
	Value   T   `json:"value"`
}

// valueVersionError is a [protocol.VersionError] about a value.
type valueVersionError struct{ *protocol.VersionError }

func (e valueVersionError) Error() string {
	return fmt.Sprintf("version %d (this agent uses version %d)", e.Other, protocol.Version)
}

func (e valueVersionError) Unwrap() error { return e.VersionError }

func Encode[T any](v T) string {
	b, err := json.Marshal(envelope[T]{protocol.Version, v})
	if err != nil {
		panic("rdzv: cannot encode a value: " + err.Error()) // all values are plain structs
	}
	return string(b)
}

func Decode[T any](b []byte) (v T, err error) {
	if len(b) > MaxValue {
		return v, fmt.Errorf("%d bytes (at most %d allowed)", len(b), MaxValue)
	}
	// The version first: in another version, fields may have other types.
	var e envelope[json.RawMessage]
	if err := json.Unmarshal(b, &e); err != nil {
		return v, err
	}
	if e.Version != protocol.Version {
		return v, valueVersionError{&protocol.VersionError{Other: e.Version}}
	}
	err = json.Unmarshal(e.Value, &v)
	return v, err
}

// Clip shortens a text to MaxText, at the boundary of a character.
func Clip(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) > MaxText {
		text = strings.ToValidUTF8(text[:MaxText-len("...")], "") + "..."
	}
	return text
}

// DecodeAny decodes a value, whatever its version is, as far as it has the form of this one.
func DecodeAny[T any](value []byte) (v T, version int) {
	var e envelope[json.RawMessage]
	if json.Unmarshal(value, &e) == nil {
		_ = json.Unmarshal(e.Value, &v)
	}
	return v, e.Version
}
