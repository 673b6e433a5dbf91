package etcd

import (
	"cmp"
	"context"
	"crypto/tls"
	"net/url"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// oldest is the oldest version of etcd that can be used: 3.oldest.
const oldest = 4

// askVersion asks a member for its version; config is nil without encryption.
func askVersion(ctx context.Context, addr string, config *tls.Config) (string, error) {
	var secure credentials.TransportCredentials = insecure.NewCredentials()
	if config != nil {
		secure = credentials.NewTLS(config)
	}
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(secure),
		grpc.WithNoProxy())
	if err != nil {
		return "", err
	}
	defer conn.Close()
	client := etcdserverpb.NewMaintenanceClient(conn)
	answer, err := client.Status(ctx, new(etcdserverpb.StatusRequest))
	if err != nil {
		return "", err
	}
	return answer.Version, nil
}

// recent tells whether a version such as 3.4.23 can be used.
func recent(version string) bool {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	m, errMajor := strconv.Atoi(major)
	n, errMinor := strconv.Atoi(minor)
	return cmp.Or(errMajor, errMinor) == nil && (m > 3 || m == 3 && n >= oldest)
}

// isEtcds tells whether an error is one of etcd itself.
func isEtcds(err error) bool {
	text := status.Convert(err).Message()
	return strings.HasPrefix(text, "etcdserver: ") || strings.HasPrefix(text, "auth: ")
}

// hostOf is the host and the port of a URL that ParseURLs has accepted.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return text
	}
	return u.Host
}
