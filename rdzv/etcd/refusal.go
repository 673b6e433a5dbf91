package etcd

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"rdzv/rdzv"
)

// clusterTimeout is how long the cluster may take to answer.
const clusterTimeout = 10 * time.Second

var errNoQuorum = fmt.Errorf("the cluster does not answer within %v: it has no quorum, or is "+
	"overloaded", clusterTimeout)

// refusal says why the cluster does not accept this client, although the member at a URL answers.
func (c Cluster) refusal(u string, err error) Answer {
	a := Answer{URL: u, Text: err.Error(), final: true}
	who := "this client"
	if c.User != "" {
		who = fmt.Sprintf("user %q", c.User)
	} else if c.Cert != "" {
		who = fmt.Sprintf("the user of the certificate in %q", c.Cert)
	}
	switch {
	case errors.Is(err, rpctypes.ErrAuthFailed):
		a.Text = fmt.Sprintf("wrong password of user %q, or no such user", c.User)
	case errors.Is(err, rpctypes.ErrUserEmpty), errors.Is(err, rpctypes.ErrUserNotFound):
		a.Text = "it requires a user, and does not know " + who
		a.hint = "set RDZV_STORE_USER to NAME:PASSWORD"
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		prefix := cmp.Or(c.Prefix, rdzv.DefaultPrefix)
		a.Text = fmt.Sprintf("%s may not read and write the keys with the prefix %q", who, prefix)
		a.hint = "etcdctl role grant-permission ROLE readwrite --prefix " + prefix +
			", or another --store-prefix"
	case errors.Is(err, rpctypes.ErrNoSpace):
		a.Text = "its database is full (NOSPACE)"
		a.hint = "see etcdctl alarm list; compact and defragment it, then etcdctl alarm disarm"
	case errors.Is(err, errNoQuorum):
		a.Text, a.final = errNoQuorum.Error(), false
	default:
		a.final = false
	}
	return a
}
