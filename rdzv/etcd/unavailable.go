package etcd

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// UnavailableError says that a cluster cannot be used, in the words of etcd or its client.
type UnavailableError struct {
	cluster Cluster
	err     error
	Cause   error // why this client has not tried again; nil if that would not help
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("cannot connect to etcd %q: %s%s", strings.Join(e.cluster.URLs, ","),
		words(e.err), e.otherScheme())
}

// otherScheme is what to add to words that do not tell that the other side expects TLS, or that it
// does not: etcd then closes the connection.
func (e *UnavailableError) otherScheme() string {
	text := words(e.err)
	closed := strings.HasSuffix(text, "EOF") || strings.HasSuffix(text, "connection reset by peer")
	switch secure := e.cluster.Protected(); {
	case secure && (closed || strings.HasSuffix(text, "not look like a TLS handshake")):
		return " (does it use http://?)"
	case !secure && closed:
		return " (does it use https://?)"
	}
	return ""
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Cause }

// words are those of the reason, without what gRPC writes around it, such as
// connection error: desc = "transport: Error while dialing: dial tcp 10.0.0.1:2379: ...".
func words(err error) string {
	text := status.Convert(err).Message()
	if _, quoted, around := strings.Cut(text, "connection error: desc = "); around {
		if desc, err := strconv.Unquote(quoted); err == nil {
			text = desc
		}
	}
	for _, around := range []string{
		"transport: ", "Error while dialing: ", "authentication handshake failed: ",
	} {
		text = strings.TrimPrefix(text, around)
	}
	return text
}

// permanent tells whether a reason stays until somebody changes the cluster or this client's
// configuration: etcd has refused the user, or one side has refused the certificate of the other.
func permanent(err error) bool {
	for _, refusal := range []error{
		rpctypes.ErrAuthFailed, rpctypes.ErrUserEmpty, rpctypes.ErrUserNotFound,
		rpctypes.ErrPermissionDenied, rpctypes.ErrNoSpace,
	} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return status.Code(err) == codes.Unimplemented || strings.Contains(words(err), "tls: ")
}

// Hint returns a suggestion for the user, never "".
func (e *UnavailableError) Hint() string {
	switch text := words(e.err); {
	case strings.Contains(text, "unknown authority"):
		return "name the file with the CA of the cluster with --store-ca"
	case strings.Contains(text, "certificate required"):
		return "give --store-cert and --store-key"
	case errors.Is(e.err, rpctypes.ErrUserEmpty), errors.Is(e.err, rpctypes.ErrUserNotFound):
		return "set RDZV_STORE_USER to NAME:PASSWORD"
	case errors.Is(e.err, rpctypes.ErrAuthFailed):
		return "check RDZV_STORE_USER"
	case errors.Is(e.err, rpctypes.ErrPermissionDenied):
		return "etcdctl role grant-permission ROLE readwrite --prefix " + e.cluster.prefix() +
			", or another --store-prefix"
	case errors.Is(e.err, rpctypes.ErrNoSpace):
		return "see etcdctl alarm list; compact and defragment it, then etcdctl alarm disarm"
	}
	return "is the cluster running, and can this node reach it? Check the URL"
}
