package rdzv

import (
	"encoding/json"
	"fmt"
)

// maxValue bounds a value read from the store, in bytes. The largest that is
// written is the outcome of an agent with hundreds of workers.
const maxValue = 256 << 10

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

func decode[T any](key string, b []byte) (T, error) {
	var e envelope[T]
	if len(b) > maxValue {
		return e.Value, fmt.Errorf("cannot read %q: %d bytes, at most %d are allowed", key, len(b), maxValue)
	}
	if err := json.Unmarshal(b, &e); err != nil {
		return e.Value, fmt.Errorf("cannot read %q: %v", key, err)
	}
	if e.Version != version {
		return e.Value, fmt.Errorf("cannot read %q: version %d, this is a rdzv of version %d", key, e.Version, version)
	}
	return e.Value, nil
}
