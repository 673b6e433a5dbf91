package query

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"
	"time"

	"rdzv/internal/peer"
	"rdzv/internal/procfs"
)

// agents are the agents in a network namespace, with what they have replied.
type agents struct {
	own    []exchange
	others []int // the users of the others
}

// find asks all agents of a user in this network namespace, at the same time, until ctx ends.
func find(ctx context.Context, proc fs.FS, uid int, r Request) (all agents, err error) {
	names, err := procfs.UnixListeners(proc, prefix)
	if err == nil && uid != AnyUser {
		err = peer.CheckUser(uid)
	}
	if err != nil {
		return agents{}, fmt.Errorf("cannot look for agents: %w", err)
	}
	asked := make(chan exchange, len(names))
	for _, name := range names {
		go func() { asked <- ask(ctx, name, uid, r) }()
	}
	for range names {
		switch e := <-asked; {
		case e.peer == nil: // the agent has ended
		case errors.Is(e.err, errOtherUser):
			all.others = append(all.others, int(e.peer.Uid))
		default:
			all.own = append(all.own, e)
		}
	}
	return all, nil
}

// exchange is a request to the agent at an address, and its reply.
type exchange struct {
	addr  string
	peer  *syscall.Ucred // nil if there is no such agent
	value []byte
	err   error // why there is no value
}

// ask asks one agent of a user, until ctx ends.
func ask(ctx context.Context, addr string, uid int, r Request) (e exchange) {
	e.addr = addr
	connected, err := new(net.Dialer).DialContext(ctx, "unix", addr)
	if err != nil {
		e.err = err
		return e
	}
	conn := connected.(*net.UnixConn)
	defer conn.Close()
	if e.peer, e.err = verify(conn, uid); e.err != nil {
		return e
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	var answer reply
	if err = write(conn, r); err == nil {
		err = read(conn, maxReply, &answer)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		err = context.Cause(ctx)
	case err == nil && answer.Error != "":
		err = errors.New(answer.Error)
	}
	e.value, e.err = answer.Value, err
	return e
}
