package meet

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Meet returns when this agent hosts the store (host has returned without an error) or has an
// authenticated connection to it. If ctx ends before that, the error is a *NotFoundError with the
// answers of all addresses that were tried; if the host of the store has a different token, it is a
// *RefusedError after 30 s.
func Meet(ctx context.Context, c Config, host HostFunc) (*Meeting, error) {
	c.setDefaults()
	if c.PortLo < 1 || c.PortHi > 65535 || c.PortLo > c.PortHi {
		return nil, fmt.Errorf("cannot use ports %d-%d: not a range within 1-65535", c.PortLo, c.PortHi)
	}
	if err := CheckNet(c.Net); err != nil {
		return nil, err
	}
	if len(c.Net) > 0 && !c.oneNode() {
		if _, err := c.allowed(); err != nil {
			return nil, err
		}
	}
	return newLocator(&c, host).locate(ctx)
}

// locate makes the plan for this agent and carries it out. It runs the cleanup if that fails, even
// with a panic, because Hydra kills the other ranks if one exits without finalize.
func (l *locator) locate(ctx context.Context) (m *Meeting, err error) {
	defer func() {
		if m == nil {
			l.cleanup.run()
		}
	}()
	l.begin = time.Now()
	p, elect, err := makePlan(ctx, l.config, l.cleanup.add)
	if err != nil {
		return nil, err
	}
	if l.wasShared {
		p.hint, p.refusedHint = "the shared store was stopped: start rdzv store there again", ""
	}
	return l.meet(ctx, p, elect)
}

func (l *locator) meet(ctx context.Context, p *plan, elect election) (*Meeting, error) {
	m, err := elect(ctx, l, p)
	if err != nil {
		return nil, err
	}
	m.config, m.cleanup = l.config, l.cleanup
	if err := l.keepToNetworks(ctx, m); err != nil {
		m.release()
		return nil, err
	}
	m.again = func(ctx context.Context) (*Meeting, error) {
		next := *l
		if next.wasShared = m.Shared; !m.Shared {
			next.past = append(slices.Clip(l.past), m.id)
		}
		return next.locate(ctx)
	}
	return m, nil
}
