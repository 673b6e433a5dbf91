package meet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"time"

	"rdzv/rdzv/meet/internal/gate"
)

// probeTimeout limits the time in which the user of a port must answer.
const probeTimeout = time.Second

// explainPortInUse adds to an error about a port that the user has specified and that is in use,
// which service uses it, if that can be determined.
func (l *locator) explainPortInUse(ctx context.Context, p *plan, err error) error {
	if !p.named || !errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	d, dialerErr := l.dialer(p)
	if dialerErr != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	conn, _, answer := d.Dial(ctx, netip.AddrPortFrom(p.addrs[0], uint16(p.ports[0])))
	var service gate.ServiceError
	switch {
	case answer == nil:
		conn.Close() // its agents have a different runtime directory
		return fmt.Errorf("%w (by a store of this job)", err)
	case errors.Is(answer, gate.ErrDifferentJob):
		return fmt.Errorf("%w (by the store of another job)", err)
	case errors.Is(answer, gate.ErrDifferentToken):
		return fmt.Errorf("%w (by a store of this job with a different token)", err)
	case errors.As(answer, &service):
		return fmt.Errorf("%w (by %s)", err, string(service))
	}
	return err
}
