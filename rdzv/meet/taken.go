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

// askingWho is how long to wait for who has our port to show what it is.
const askingWho = time.Second

// sayWho adds to the error that the port which the user named is taken what it is taken by, if that
// shows.
func (j *joiner) sayWho(ctx context.Context, p *plan, err error) error {
	if !p.named || !errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	d, bad := j.dialer(p)
	if bad != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askingWho)
	defer cancel()
	conn, _, why := d.Dial(ctx, netip.AddrPortFrom(p.addrs[0], uint16(p.ports[0])))
	var service gate.ServiceError
	switch {
	case why == nil:
		conn.Close() // of agents with another runtime directory
		return fmt.Errorf("%w (by a store of this job)", err)
	case errors.Is(why, gate.ErrDifferentJob):
		return fmt.Errorf("%w (by the store of another job)", err)
	case errors.Is(why, gate.ErrDifferentToken):
		return fmt.Errorf("%w (by a store of this job with a different token)", err)
	case errors.As(why, &service):
		return fmt.Errorf("%w (by %s)", err, string(service))
	}
	return err
}
