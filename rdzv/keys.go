package rdzv

import (
	"net/url"
	"strconv"
)

// version is the version of keys and values. A reader rejects a value of another version.
const version = 1

// keys builds all keys of one attempt of one job. Nothing else builds keys.
type keys struct{ prefix string }

func keysOf(job string, attempt int) keys {
	return keys{"/rdzv/v1/" + url.PathEscape(job) + "/" + strconv.Itoa(attempt) + "/"}
}

func (k keys) members() string           { return k.prefix + "member/" }
func (k keys) member(id string) string   { return k.members() + id }
func (k keys) seat(id string) string     { return k.prefix + "seat/" + id }
func (k keys) progresses() string        { return k.prefix + "progress/" }
func (k keys) progress(id string) string { return k.progresses() + id }
func (k keys) outcomes() string          { return k.prefix + "outcome/" }
func (k keys) outcome(id string) string  { return k.outcomes() + id }
func (k keys) signals() string           { return k.prefix + "signal/" }
func (k keys) world() string             { return k.signals() + "world" }
func (k keys) verdict() string           { return k.signals() + "verdict" }
func (k keys) settled() string           { return k.signals() + "settled" }
