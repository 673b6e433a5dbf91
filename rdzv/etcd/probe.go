package etcd

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// oldest is the oldest version of etcd that can be used: 3.oldest.
const oldest = 4

// probe asks one member for its version. Its answer has no text if it can be used.
func (d *dialer) probe(ctx context.Context, u string) Answer {
	asking, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	version, err := d.version(asking, hostOf(u))
	switch {
	case err == nil && !recent(version):
		return Answer{
			URL: u, final: true,
			Text: fmt.Sprintf("it is etcd %s: 3.%d or later is required", version, oldest),
		}
	case err == nil, isEtcds(err): // a later version wants to know the user first
		return Answer{URL: u}
	case ctx.Err() != nil:
		return Answer{URL: u, Text: noAnswer}
	}
	if s := status.Convert(err); s.Code() != codes.Unavailable && s.Code() != codes.DeadlineExceeded {
		return notEtcd(u, "")
	}
	return d.diagnose(ctx, u, err)
}

// version is that of the member.
func (d *dialer) version(ctx context.Context, addr string) (string, error) {
	var secure credentials.TransportCredentials = insecure.NewCredentials()
	if d.tls != nil {
		secure = credentials.NewTLS(d.tls)
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
