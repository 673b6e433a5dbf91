package nodecheck

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// Workers of different nodes connect to each other directly, so that it is not enough that every
// node reaches the store. One agent of each node answers the others on a port, and that of rank 0
// on MASTER_PORT.
//
// A request is the first half of the ID of the agent that is to answer, and the answer the second
// half and the time. Only agents of the job know IDs, so that no other program gets an answer, or
// is taken for the agent; nor is another node that has the same address in a network of its own.

// halves are those of the ID of an agent.
func halves(id string) (request, answer string) { return id[:len(id)/2], id[len(id)/2:] }

// clockLen is the length of a time, in nanoseconds since 1970.
const clockLen = 8

// acceptRetry is the time between two calls of accept(2) after an error.
const acceptRetry = 20 * time.Millisecond

// Serve answers requests to the agent with an ID, until stop, which waits for the end. now is the
// clock of the node.
func Serve(listener net.Listener, id string, now func() time.Time) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := listener.Accept()
			switch {
			case errors.Is(err, net.ErrClosed):
				return
			case err != nil: // such as no free file descriptor, which can be temporary
				select {
				case <-ctx.Done():
				case <-time.After(acceptRetry):
				}
			default:
				wg.Go(func() { answer(ctx, conn, id, now) })
			}
		}
	})
	return func() {
		cancel()
		listener.Close()
		wg.Wait()
	}
}

// answer answers requests on a connection until one is not valid.
func answer(ctx context.Context, conn net.Conn, id string, now func() time.Time) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	conn.SetDeadline(time.Now().Add(MeasureTime))
	request, answer := halves(id)
	got := make([]byte, len(request))
	for {
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != request {
			return
		}
		text := binary.BigEndian.AppendUint64([]byte(answer), uint64(now().UnixNano()))
		if _, err := conn.Write(text); err != nil {
			return
		}
	}
}
