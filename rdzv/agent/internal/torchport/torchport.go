// Package torchport holds MASTER_PORT for an agent that may run rank 0.
package torchport

import (
	"errors"
	"syscall"

	"rdzv/internal/hint"
	"rdzv/rdzv/masterport"
)

// Port is the port for torch's store while rank 0 may be one of this agent's workers: until
// they have ended, or the world says that it is not.
type Port struct{ reserved *masterport.Reservation }

// Hold reserves it; given is 0 for any.
func (p *Port) Hold(given int) (err error) {
	if p.reserved != nil {
		return nil
	}
	p.reserved, err = masterport.Hold(given)
	if errors.Is(err, syscall.EADDRINUSE) {
		return hint.With(err, "omit --master-port: each job then gets a free port")
	}
	return err
}

// Number is 0 if it is not reserved.
func (p *Port) Number() int {
	if p.reserved == nil {
		return 0
	}
	return p.reserved.Port()
}

// Release ends the reservation.
func (p *Port) Release() {
	if p.reserved != nil {
		p.reserved.Close()
		p.reserved = nil
	}
}
