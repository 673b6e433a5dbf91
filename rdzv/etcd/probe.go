package etcd

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// probe asks one member for its version. Its answer has no text if it can be used.
func (p *prober) probe(ctx context.Context, u string) Answer {
	asking, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	version, err := askVersion(asking, hostOf(u), p.tls)
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
	return p.diagnose(ctx, u, err)
}
