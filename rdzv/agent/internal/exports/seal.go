package exports

import (
	"errors"
	"fmt"
	"strings"

	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/rdzv/secret"
)

const use = "exports" // of the key

// Seal encrypts exports with the job's key, so that an agent can publish them; nil if there are
// none. Without a key it fails, unless etcd decides who may read them: then they are not encrypted.
func (e Exports) Seal(key *secret.Key, inEtcd bool) (*rdzv.Exports, error) {
	if len(e.Variables) == 0 {
		return nil, nil
	}
	text := []byte(strings.Join(e.Variables, "\x00"))
	switch {
	case key != nil:
		text = key.Seal(use, text)
	case !inEtcd:
		return nil, errors.New("cannot export variables: the job has no key (--insecure)")
	}
	return &rdzv.Exports{
		Sealed:    text,
		Variables: Names(e.Variables),
		Files:     envmap.MayPreventStart(e.Variables),
	}, nil
}

// Open are the variables that rank 0's agent has sealed, as NAME=VALUE.
func Open(text []byte, key *secret.Key, inEtcd bool) (variables []string, err error) {
	switch {
	case key != nil:
		if text, err = key.Open(use, text); err != nil {
			return nil, fmt.Errorf("cannot read the variables that rank 0's agent exports: %w", err)
		}
	case !inEtcd:
		return nil, errors.New("rank 0's agent exports variables, but the job has no key")
	}
	return strings.Split(string(text), "\x00"), nil
}
