// Package token finds the token of an agent, and knows what to do if there is none, or another one.
package token

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"rdzv/envmap"
	"rdzv/internal/hint"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/secret"
)

// Owner is whose token it is.
type Owner struct {
	Text, File string // as given
	Env        envmap.Env
	Root       fs.FS
	OneHost    bool   // all agents of the job are known to be on this host
	Platform   string // that has started the agents; "" if none has
	Agents     int    // of the job
	None       bool   // the job has no token (--insecure)
}

// source says where the token may be.
func (o Owner) source() secret.TokenSource {
	s := secret.TokenSource{File: o.File, Text: o.Text, Home: host.Home(o.Env), UID: os.Geteuid()}
	switch {
	case o.OneHost:
		s.Temp = host.TempDir(o.Env)
	case o.Platform != "":
		s.Exists = true
	}
	return s
}

// Load returns the token. If it creates it, created gets its file; elsewhere, which may be nil,
// gets an unusual file that has it, and why.
//
// The agents of other hosts could not have a token that is created in this host's temporary
// directory, so then there is none.
func (o Owner) Load(
	created func(path string), elsewhere func(path string, cause error),
) ([]byte, error) {
	s := o.source()
	s.Created, s.Elsewhere = created, elsewhere
	token, err := secret.LoadToken(s)
	if _, is := errors.AsType[*secret.MissingError](err); is {
		return nil, o.missingOnPlatform(err)
	}
	if _, is := errors.AsType[*secret.NoPlaceError](err); is {
		return nil, hint.With(err,
			"all hosts of the job need the same token: copy the output of rdzv token "+
				"into a file on each of them and name it with --token-file, or set RDZV_TOKEN to it")
	}
	return token, err
}

// Files names what contains the token, for messages.
func (o Owner) Files() string {
	if o.File != "" {
		return fmt.Sprintf("the token file %q", o.File)
	}
	return "the home directory"
}
