// Package ras asks the RAS service of NCCL (2.24 and later) how far the ranks of a job are. Every
// process that has initialised NCCL answers for the whole job, on a TCP port of its host
// (NCCL_RAS_ADDR).
//
// The service is part of the workers: it may be missing, hang with them, or be another program. So
// the time and the size of an answer are limited, and what it says is only as true as they are.
package ras

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// Report is an answer of the service, which is about all ranks of the job.
type Report struct {
	Comms []Comm // the largest first
	// Text is the report of NCCL before 2.28.7, for people; "" if there are Comms.
	Text string
}

// maxText limits Text, in bytes.
const maxText = 16 << 10

// maxReply limits an answer. In JSON a rank takes 700 bytes in each of its communicators.
const maxReply = 64 << 20

// Ask asks the service at an address until ctx ends. wait is how long the process that answers may
// wait for others, in whole seconds. An error says why there is no answer.
func Ask(ctx context.Context, addr string, wait time.Duration) (Report, error) {
	return ask(ctx, addr, wait, maxReply)
}

func ask(ctx context.Context, addr string, wait time.Duration, limit int64) (Report, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return Report{}, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	// A service that does not know a command says so in one line, and goes on with the next one.
	_, err = fmt.Fprintf(conn, "CLIENT PROTOCOL 2\nTIMEOUT %d\nSET FORMAT json\nVERBOSE STATUS\n",
		max(1, int(wait/time.Second)))
	if err != nil {
		return Report{}, err
	}
	text, err := io.ReadAll(io.LimitReader(conn, limit+1))
	switch {
	case ctx.Err() != nil:
		return Report{}, context.Cause(ctx)
	case err != nil:
		return Report{}, err
	case int64(len(text)) > limit:
		return Report{}, fmt.Errorf("an answer of more than %d MiB", limit>>20)
	}
	return parse(string(text))
}

var errUnreadable = errors.New("the answer is not that of NCCL's RAS service")

// parse reads an answer: a line for each command that is not "STATUS", then the report.
func parse(text string) (Report, error) {
	if !strings.HasPrefix(text, "SERVER PROTOCOL ") {
		return Report{}, errUnreadable
	}
	for {
		line, rest, found := strings.Cut(text, "\n")
		switch {
		case strings.HasPrefix(line, "{"):
			return parseJSON(text)
		case strings.HasPrefix(line, "NCCL version "):
			return Report{Text: legible(text)}, nil
		case !found:
			return Report{}, errUnreadable
		}
		text = rest
	}
}

// legible is the beginning of a text, at most maxText of whole lines.
func legible(text string) string {
	text = strings.ToValidUTF8(strings.TrimSpace(text), "?")
	if len(text) > maxText {
		end := strings.LastIndexByte(text[:maxText], '\n')
		text = strings.ToValidUTF8(text[:max(end, 0)], "?") + "\n..."
	}
	return text
}

// maxSize is more ranks than a communicator has.
const maxSize = 1 << 24
